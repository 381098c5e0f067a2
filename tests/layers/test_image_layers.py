"""Layers that resize images, and that change them at random while they train.

The table is `image_values.json`; `image_values.py` beside it says how it was made.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers import Layer
from tests.support import image_values

EXPECTED = json.loads(image_values.FILE.read_text("utf-8"))
CASES = {f"{text} {name}": (text, name) for text, name in image_values.LAYER_CASES}
X = np.random.default_rng(0).uniform(0, 255, (7, 4, 5, 1)).astype(np.float32)
RANDOM: dict[str, Callable[..., Any]] = {
    "RandomFlip": mr.layers.RandomFlip,
    "RandomTranslation": lambda **options: mr.layers.RandomTranslation(0.4, 0.3, **options),
    "RandomRotation": lambda **options: mr.layers.RandomRotation(0.3, **options),
    "RandomZoom": lambda **options: mr.layers.RandomZoom(0.4, 0.3, "wrap", **options),
    "RandomContrast": lambda **options: mr.layers.RandomContrast(0.9, **options),
    "RandomBrightness": lambda **options: mr.layers.RandomBrightness(0.5, **options),
}


@cases("case", CASES)
def test_as_in_keras(case: str) -> None:
    """With the same numbers drawn, and in a recorded function in bits as eagerly."""
    text, name = CASES[case]
    output = image_values.layer_results(mr, text, name)
    dtype, shape, values = EXPECTED[case][0]
    assert (str(output.dtype), list(output.shape)) == (dtype, shape)
    near = {"float32": 1e-5, "float64": 1e-12}.get(dtype, 0.0)
    if "Resizing" in text and dtype == "float64":
        near = 1e-6  # Computed in float32 there, too.
    np.testing.assert_allclose(output.reshape(-1).astype(float), values, near, near)
    layer = eval(text, {"L": mr.layers})
    if hasattr(layer, "generator"):
        layer.generator = image_values.Draws(mr)
    call = mr.function(lambda x: layer(x, training=True))
    recorded = call(mr.constant(image_values.INPUTS[name])).numpy()
    np.testing.assert_array_equal(recorded, output)


@cases("name", RANDOM)
def test_outside_of_training_images_pass(name: str) -> None:
    layer = RANDOM[name](seed=1)
    np.testing.assert_array_equal(layer(X, training=False), X)
    assert not np.array_equal(layer(X), X)  # A call that does not say so trains.
    model = mr.Sequential([mr.layers.Input((4, 5, 1)), RANDOM[name](seed=1)])
    np.testing.assert_array_equal(model.predict(X, verbose=0), X)


@cases("name", RANDOM)
def test_replicas_draw_what_one_draws(simulate: Callable[[int], None], name: str) -> None:
    """Of batches that do not divide, and that leave a replica without an example."""
    simulate(3)

    def changed(replicas: int, rows: int) -> Any:
        strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
        with strategy.scope():
            layer = RANDOM[name](seed=3)
        (batch,) = strategy.experimental_distribute_dataset(
            mr.data.Dataset.from_tensor_slices(X[:rows]).batch(rows)
        )
        parts = strategy.run(lambda x: layer(x, training=True), args=(batch,))
        whole = [part.numpy() for part in strategy.experimental_local_results(parts)]
        return np.concatenate(whole)

    for rows in (7, 2):
        one = changed(1, rows)
        for replicas in (2, 3):
            np.testing.assert_array_equal(changed(replicas, rows), one)


def test_training_with_replicas(simulate: Callable[[int], None]) -> None:
    """Weights and losses are those of one device, also where batches end with few images."""
    simulate(3)

    def trained(replicas: int, eager: bool) -> Any:
        mr.random.set_seed(1)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            drawing = [RANDOM[name]() for name in ("RandomFlip", "RandomZoom", "RandomContrast")]
            model = mr.Sequential([*drawing, mr.layers.Flatten()])
            model.add(mr.layers.Dense(1))
            model.compile("sgd", "mse", run_eagerly=eager)
        history = model.fit(X / 255, np.ones(7), batch_size=5, epochs=2, verbose=0)
        return np.concatenate([history.history["loss"], *map(np.ravel, model.get_weights())])

    one = trained(1, eager=False)
    np.testing.assert_array_equal(trained(1, eager=True), one)
    np.testing.assert_allclose(trained(3, eager=False), one, 1e-6, 1e-7)


@cases("name", ["RandomFlip", "RandomContrast"])
def test_in_datasets(name: str) -> None:
    """A seed gives the same images in every run, and each element others."""

    def elements() -> Any:
        layer = RANDOM[name](seed=1)
        data = mr.data.Dataset.from_tensor_slices(X[:, :2, :3]).repeat(4)
        return np.stack(list(data.map(lambda x: layer(x, training=True)).as_numpy_iterator()))

    first = elements()
    assert first.shape == (28, 2, 3, 1)
    assert len({part.tobytes() for part in first.reshape(4, -1)}) > 1
    np.testing.assert_array_equal(elements(), first)


def test_masks_move_as_images_do() -> None:
    images = np.arange(40, dtype=np.float32).reshape(2, 4, 5, 1)
    data = {"images": images, "labels": np.eye(2), "segmentation_masks": images + 100}
    for name in ("RandomFlip", "RandomTranslation"):
        options = {} if name == "RandomFlip" else {"interpolation": "nearest"}
        layer = RANDOM[name](seed=1, **options)
        changed = layer(data, training=True)
        np.testing.assert_array_equal(
            changed["segmentation_masks"].numpy(), changed["images"].numpy() + 100
        )
        np.testing.assert_array_equal(changed["labels"].numpy(), data["labels"])
    colours = mr.layers.RandomBrightness((0.1, 0.2))(data)
    np.testing.assert_array_equal(colours["segmentation_masks"].numpy(), images + 100)
    sizes = mr.layers.Resizing(2, 3)(data)
    assert sizes["segmentation_masks"].shape == sizes["images"].shape == (2, 2, 3, 1)


def test_shapes() -> None:
    for shape in ((4, 5, 3), (None, None, 3)):
        resized = mr.layers.Resizing(2, 3)(mr.layers.Input(shape))
        assert mr.layers.RandomFlip()(resized).shape == (None, 2, 3, 3)
    first = mr.layers.CenterCrop(2, 3, "channels_first")
    assert first.compute_output_shape((None, 1, 4, 5)) == (None, 1, 2, 3)
    named = {"images": (None, 4, 5, 1), "labels": (None, 2)}
    expected = {"images": (None, 2, 3, 1), "labels": (None, 2)}
    assert mr.layers.Resizing(2, 3).compute_output_shape(named) == expected
    assert mr.layers.RandomRotation(0.1)(X[:0], training=True).shape == (0, 4, 5, 1)


REFUSED: dict[str, tuple[Callable[[], Layer], type[Exception], str]] = {
    "mode": (lambda: mr.layers.RandomFlip("x"), ValueError, "`mode` is 'horizontal'"),
    "format": (lambda: mr.layers.RandomFlip(data_format="x"), ValueError, "`data_format`"),
    "translation": (
        lambda: mr.layers.RandomTranslation(2, 0.1),
        ValueError,
        r"in the range \[-1.0, 1.0\]. Received: input_number=2",
    ),
    "three translations": (
        lambda: mr.layers.RandomTranslation((0.1, 0.2, 0.3), 0.1),
        ValueError,
        r"Received: height_factor=\(0.1, 0.2, 0.3\)",
    ),
    "filling": (
        lambda: mr.layers.RandomTranslation(0.1, 0.1, "x"),
        NotImplementedError,
        "Unknown `fill_mode` x. Expected of one",
    ),
    "interpolation": (
        lambda: mr.layers.RandomZoom(0.1, interpolation="x"),
        NotImplementedError,
        "Unknown `interpolation` x. Expected of one",
    ),
    "rotation": (
        lambda: mr.layers.RandomRotation(2),
        ValueError,
        r"in the range \[-1, 1\]. Received: factor=2",
    ),
    "zoom": (
        lambda: mr.layers.RandomZoom(-1.0),
        ValueError,
        r"in the range \(-1.0, 1.0\]. Received: input_number=-1.0",
    ),
    "contrast": (
        lambda: mr.layers.RandomContrast(-0.1),
        ValueError,
        r"in the range \[0, 1\]. Received: factor=-0.1",
    ),
    "brightness": (
        lambda: mr.layers.RandomBrightness(0.1, 3),
        ValueError,
        "`value_range` argument should be a list of two numbers",
    ),
    "a matrix": (
        lambda: mr.layers.RandomFlip()(X[0, 0]),
        ValueError,
        "Expected image tensor to have rank 3",
    ),
    "boxes": (
        lambda: mr.layers.RandomFlip()({"images": X, "bounding_boxes": X}),
        ValueError,
        'takes "images", and "labels" and "segmentation_masks"',
    ),
    "two images": (
        lambda: mr.layers.RandomFlip()([X, X]),
        ValueError,
        "expects 1 input",
    ),
    "no such interpolation": (
        lambda: mr.layers.Resizing(2, 3, "x")(X),
        ValueError,
        "Invalid value for argument `interpolation`",
    ),
    "contrast of integers": (
        lambda: mr.layers.RandomContrast(0.1)(X.astype(np.uint8)),
        mr.errors.InvalidArgumentError,
        "cannot compute Sub",
    ),
}


@cases("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_rescaling_has_a_factor_for_each_channel() -> None:
    mr.keras.config.set_image_data_format("channels_first")
    images = np.ones((2, 3, 4, 4), np.float32)
    scaled = mr.layers.Rescaling([1.0, 2.0, 3.0])(images)
    assert scaled.numpy()[1, :, 2, 3].tolist() == [1.0, 2.0, 3.0]
