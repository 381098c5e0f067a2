"""Images flipped, cropped, resized, moved and coloured: TensorFlow's and Keras' numbers.

The table is `image_values.json`; `image_values.py` beside it says how it was made.
"""

import json
from collections.abc import Callable
from typing import Any

import image_values
import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import FailedPreconditionError, InvalidArgumentError

EXPECTED = json.loads(image_values.FILE.read_text("utf-8"))
X = image_values.INPUTS["x"]
_ONES = [1, 1, 1, 1]
CASES = {text.format(name): (text, name) for text, name in image_values.CASES}
RECORDED = {*list(CASES)[::3]}
_CLOSE = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-3}
# TensorFlow computes these in float32 too, in another order.
_IN_SINGLES = ("contrast", "gamma", "gray")


def _close(ours: Any, theirs: Any, text: str) -> None:
    dtype, shape, values = theirs
    assert (str(ours.dtype), list(ours.shape)) == (dtype, shape)
    near = 1e-6 if any(part in text for part in _IN_SINGLES) else 0.0
    near = max(near, _CLOSE.get(dtype, 0.0))
    np.testing.assert_allclose(ours.reshape(-1).astype(float), values, near, near)


def test_the_table_has_all_calls() -> None:
    layers = {f"{text} {name}" for text, name in image_values.LAYER_CASES}
    assert set(EXPECTED) == {*CASES, *layers}


@cases("case", CASES)
def test_as_in_tensorflow(case: str) -> None:
    """Values and gradients; and, in a third of the cases, bits of a recorded function."""
    text, name = CASES[case]
    output, slope = image_values.results(mr, text, name)
    _close(output, EXPECTED[case][0], text)
    if EXPECTED[case][1] is not None:
        _close(slope, EXPECTED[case][1], text)
    if case not in RECORDED:
        return
    transforms = {key: np.float32(row) for key, row in image_values.TRANSFORMS.items()}
    names = {"I": mr.image, "K": mr.keras.ops.image, "T": transforms, "np": np}
    call = mr.function(lambda x: eval(text.format("x"), {**names, "x": x}))
    recorded = call(ops.constant(image_values.INPUTS[name])).numpy()
    np.testing.assert_array_equal(recorded, output)


ON_CARDS = (
    "I.resize(x, (5, 3), 'bicubic', antialias=False)",
    "I.resize(x, (2, 3))",
    "I.rgb_to_grayscale(c)",
    "I.adjust_hue(c, 0.3)",
    "K.affine_transform(x, T['turn'], 'bilinear', 'reflect', 3)",
)


@cases("case", ON_CARDS)
def test_on_the_emulated_card(emulated_cuda: Callable[[], Any], case: str) -> None:
    """In all digits of float32: none is a product of matrices, which has fewer on cards."""
    emulated_cuda()
    text, name = CASES[case]
    with mr.device("GPU:0"):
        output, slope = image_values.results(mr, text, name)
    _close(output, EXPECTED[case][0], text)
    if EXPECTED[case][1] is not None:
        _close(slope, EXPECTED[case][1], text)


EMPTY = {
    "resize": (lambda x: mr.image.resize(x, (5, 2)), (0, 5, 2, 1)),
    "flip": (mr.image.random_flip_left_right, (0, 3, 4, 1)),
    "patches": (lambda x: mr.keras.ops.image.extract_patches(x, 2), (0, 1, 2, 4)),
    "standardization": (mr.image.per_image_standardization, (0, 3, 4, 1)),
    "gray": (mr.image.grayscale_to_rgb, (0, 3, 4, 3)),
    "crop": (lambda x: mr.image.resize_with_crop_or_pad(x, 9, 2), (0, 9, 2, 1)),
    "transform": (lambda x: mr.keras.ops.image.affine_transform(x, [[1.0] * 8]), (0, 3, 4, 1)),
}


@cases("name", EMPTY)
def test_no_images(name: str) -> None:
    function, shape = EMPTY[name]
    assert function(X[:0]).shape == mr.function(function)(ops.constant(X[:0])).shape == shape


@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_transforms_differentiate_as_they_compute(method: str) -> None:
    """Linear in the images: the gradient is the transform of units, turned over."""
    turn = image_values.TRANSFORMS["turn"]

    def total(x: Any) -> Any:
        moved = mr.keras.ops.image.affine_transform(x, turn, method, "reflect")
        return ops.reduce_sum(moved * weights)

    x = ops.constant(X[0])
    weights = np.random.default_rng(0).uniform(size=x.shape).astype(np.float32)
    with mr.GradientTape() as tape:
        tape.watch(x)
        value = total(x)
    slope = tape.gradient(value, x).numpy().reshape(-1)
    units = np.eye(12, dtype=np.float32).reshape(12, 3, 4, 1)
    np.testing.assert_allclose(slope, [float(total(unit)) for unit in units], 1e-5, 1e-6)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "resize to nothing": (
        lambda: mr.image.resize(X, [0, 3]),
        InvalidArgumentError,
        "output dimensions must be positive",
    ),
    "resize nothing": (
        lambda: mr.image.resize(X[:, :0], [2, 3]),
        InvalidArgumentError,
        "input image must be of non-zero size",
    ),
    "resize no channels": (
        lambda: mr.image.resize(X[..., :0], [2, 3]),
        InvalidArgumentError,
        "image must have at least one channel",
    ),
    "resize booleans": (
        lambda: mr.image.resize(X > 0, [2, 3]),
        InvalidArgumentError,
        "Value for attr 'T' of bool",
    ),
    "three sizes": (lambda: mr.image.resize(X, [2, 3, 4]), ValueError, "of 2 elements"),
    "half a size": (lambda: mr.image.resize(X, [2.5, 3]), ValueError, "must be a 1-D int32"),
    "size of letters": (lambda: mr.image.resize(X, ["a", 3]), ValueError, "must be a 1-D int32"),
    "no such method": (
        lambda: mr.image.resize(X, [2, 3], "foo"),
        ValueError,
        "Resize method is not implemented: foo",
    ),
    "resize to nothing by cubes": (
        lambda: mr.image.resize(X, [2, 0], mr.image.ResizeMethod.BICUBIC),
        InvalidArgumentError,
        "output dimensions must be positive .Op:ResizeBicubic",
    ),
    "resize a matrix": (
        lambda: mr.image.resize(X[0, 0], [2, 3]),
        ValueError,
        "'images' must have either 3 or 4 dimensions.",
    ),
    "flip a matrix": (
        lambda: mr.image.flip_left_right(X[0, 0]),
        ValueError,
        r"'image' \(shape \(4, 1\)\) must be at least three-dimensional.",
    ),
    "flip a film": (
        lambda: mr.image.random_flip_up_down(X[None]),
        ValueError,
        "must have either 3 or 4 dimensions",
    ),
    "flip nothing": (
        lambda: mr.image.flip_left_right(X[:, :0]),
        ValueError,
        "inner 3 dims of 'image.shape' must be > 0",
    ),
    "turn by half": (lambda: mr.image.rot90(X, 1.5), TypeError, "`k` is an integer"),
    "crop to nothing": (
        lambda: mr.image.central_crop(X, 0.0),
        ValueError,
        r"central_fraction must be within \(0, 1\]",
    ),
    "crop beyond": (
        lambda: mr.image.crop_to_bounding_box(X, 1, 0, 3, 2),
        ValueError,
        "height must be >= target",
    ),
    "pad inwards": (
        lambda: mr.image.pad_to_bounding_box(X, 1, 0, 3, 5),
        ValueError,
        "height must be <= target - offset",
    ),
    "no height": (
        lambda: mr.image.resize_with_crop_or_pad(X, 0, 3),
        ValueError,
        "target_height must be > 0",
    ),
    "two colours": (
        lambda: mr.image.rgb_to_grayscale(X[..., [0, 0]]),
        InvalidArgumentError,
        "Matrix size-incompatible",
    ),
    "no gray": (
        lambda: mr.image.grayscale_to_rgb(X[..., [0, 0]]),
        ValueError,
        "Last dimension of a grayscale image should be size 1",
    ),
    "to booleans": (
        lambda: mr.image.convert_image_dtype(X, bool),
        AttributeError,
        "dtype must be either floating point or integer",
    ),
    "contrast of a matrix": (
        lambda: mr.image.adjust_contrast(X[0, 0], 2.0),
        InvalidArgumentError,
        "input must be at least 3-D",
    ),
    "two contrasts": (
        lambda: mr.image.adjust_contrast(X, [2.0, 1.0]),
        InvalidArgumentError,
        "contrast_factor must be scalar",
    ),
    "negative gamma": (lambda: mr.image.adjust_gamma(X, -1), ValueError, "non-negative real"),
    "less than no change": (
        lambda: mr.image.random_brightness(X, -1.0),
        ValueError,
        "max_delta must be non-negative",
    ),
    "no range": (
        lambda: mr.image.random_contrast(X, 2.0, 1.0),
        ValueError,
        "upper must be > lower",
    ),
    "hues of two colours": (
        lambda: mr.image.rgb_to_hsv(X[..., [0, 0]]),
        FailedPreconditionError,
        "input must have 3 channels but input only has 2 channels",
    ),
    "other hues of two colours": (
        lambda: mr.image.adjust_hue(X[..., [0, 0]], 0.1),
        InvalidArgumentError,
        "input must have 3 channels but instead has 2 channels",
    ),
    "two turns": (
        lambda: mr.image.adjust_hue(X[..., [0] * 3], 2.0),
        ValueError,
        r"delta must be in the interval \[-1, 1\]",
    ),
    "more than half a turn": (
        lambda: mr.image.random_hue(X, 0.6),
        ValueError,
        "max_delta must be <= 0.5",
    ),
    "two saturations": (
        lambda: mr.image.adjust_saturation(X[..., [0] * 3], [1.0, 2.0]),
        InvalidArgumentError,
        "scale must be scalar",
    ),
    "hues of integers": (
        lambda: mr.keras.ops.image.rgb_to_hsv(image_values.INPUTS["k"]),
        ValueError,
        "expected float dtype. Received: images.dtype=uint8",
    ),
    "too large a part": (
        lambda: mr.image.random_crop(X, (2, 4, 4, 1)),
        InvalidArgumentError,
        "Need value.shape >= size",
    ),
    "a transform of 7": (
        lambda: mr.keras.ops.image.affine_transform(X, [1.0] * 7),
        InvalidArgumentError,
        "Input transform should be num_images x 8 or 1 x 8",
    ),
    "no such filling": (
        lambda: mr.keras.ops.image.affine_transform(X, [1.0] * 8, fill_mode="mirror"),
        ValueError,
        "Invalid value for argument `fill_mode`",
    ),
    "both proportions": (
        lambda: mr.keras.ops.image.resize(
            X, (2, 2), crop_to_aspect_ratio=True, pad_to_aspect_ratio=True
        ),
        ValueError,
        "Only one of `pad_to_aspect_ratio`",
    ),
    "one number of three": (
        lambda: mr.keras.ops.image.pad_images(X, 1, 1, 1),
        ValueError,
        "Must specify exactly two of left_padding, right_padding, target_width",
    ),
    "patches of nothing": (
        lambda: mr.image.extract_patches(X, [1, 0, 2, 1], _ONES, _ONES, "SAME"),
        InvalidArgumentError,
        r"ksizes is out of range. Received: \(0, 2\) \[Op:ExtractImagePatches\]",
    ),
    "patches of three numbers": (
        lambda: mr.image.extract_patches(X, [1, 2, 2], _ONES, _ONES, "SAME"),
        ValueError,
        r"sizes should be of length 4. Received: sizes=\[1, 2, 2\]",
    ),
    "patches of channels": (
        lambda: mr.image.extract_patches(X, [1, 2, 2, 2], _ONES, _ONES, "SAME"),
        InvalidArgumentError,
        "does not yet support sizes in the batch and depth",
    ),
    "patches of an image": (
        lambda: mr.image.extract_patches(X[0], _ONES, _ONES, _ONES, "SAME"),
        InvalidArgumentError,
        r"input must be 4-dimensional.* \[3,4,1\]",
    ),
    "patches with padding of numbers": (
        lambda: mr.image.extract_patches(X, _ONES, _ONES, _ONES, [[0, 0]] * 4),
        TypeError,
        "Expected string for argument 'padding'",
    ),
    "larger patches": (
        lambda: mr.image.extract_patches(X, [1, 9, 2, 1], _ONES, _ONES, "VALID"),
        InvalidArgumentError,
        "Computed output size would be negative: -5",
    ),
    "Keras' patches of one number": (
        lambda: mr.keras.ops.image.extract_patches(X, (2,)),
        ValueError,
        r"Expected a tuple of length 2 or 3. Received: size=\(2,\) with length 1",
    ),
    "Keras' patches of a name": (
        lambda: mr.keras.ops.image.extract_patches(X, "2"),
        TypeError,
        "Expected an int or a tuple. Received: size=2 of type str",
    ),
    "Keras' patches of a row": (
        lambda: mr.keras.ops.image.extract_patches(X[0, 0], 2),
        ValueError,
        r"must have 3 or 4 axes .* shape \(4, 1\)",
    ),
    "crop more than there is": (
        lambda: mr.keras.ops.image.crop_images(X, 1, 1, target_height=9, target_width=3),
        InvalidArgumentError,
        "Expected size",
    ),
}


@cases("name", REFUSED)
def test_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def _changed(replicas: int, rows: int, function: Callable[[Any], Any]) -> Any:
    mr.random.set_seed(3)
    images = np.random.default_rng(1).uniform(size=(rows, 3, 4, 1)).astype(np.float32)
    strategy = mr.distribute.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
    (batch,) = strategy.experimental_distribute_dataset(
        mr.data.Dataset.from_tensor_slices(images).batch(rows)
    )
    parts = strategy.experimental_local_results(strategy.run(function, args=(batch,)))
    return np.concatenate([part.numpy() for part in parts])


DRAWN: dict[str, Callable[[Any], Any]] = {
    "flip": mr.image.random_flip_left_right,
    "flip by a seed": lambda x: mr.image.stateless_random_flip_up_down(x, (5, 3)),
    "brightness": lambda x: mr.image.random_brightness(x, 0.3),
    "contrast": lambda x: mr.image.random_contrast(x, 0.3, 0.9, seed=4),
    # As many axes as a replica may have images: no vector is drawn.
    "part": lambda x: mr.image.random_crop(x, (len(x), 2, 2, 1)),
    "hue": lambda x: mr.image.random_hue(mr.image.grayscale_to_rgb(x), 0.3),
}


@cases("name", DRAWN)
def test_replicas_draw_what_one_draws(simulate: Any, name: str) -> None:
    """Of batches that do not divide, and that leave a replica without an example."""
    simulate(3)
    for rows in (8, 5, 2):
        one = _changed(1, rows, DRAWN[name])
        for replicas in (2, 3):
            np.testing.assert_array_equal(_changed(replicas, rows, DRAWN[name]), one)


def test_each_image_has_its_draw() -> None:
    images = np.broadcast_to(np.float32([[[0.0], [1.0]]]), (40, 1, 2, 1))
    first = mr.image.random_flip_left_right(images, seed=1).numpy()[:, 0, 0, 0]
    assert 5 < first.sum() < 35


def test_random_crop_keeps_rows_together() -> None:
    image = np.arange(36, dtype=np.float32).reshape(6, 6, 1)
    part = mr.image.random_crop(image, (2, 3, 1)).numpy()[..., 0]
    np.testing.assert_array_equal(part - part[0, 0], [[0, 1, 2], [6, 7, 8]])
