"""Graphs of functional models as configurations: the order of layers in them does not matter."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.training import graph_configurations

X = np.linspace(-1.0, 1.0, 6, dtype=np.float32).reshape(2, 3)


def chain(length: int) -> mr.Model:
    """Return a model with a layer that is called between the others, and so waits for them."""
    begin = x = mr.layers.Input((3,))
    shared = mr.layers.Dense(3, "tanh")
    for _ in range(length):
        x = mr.keras.ops.relu(shared(x))
    return mr.Model(begin, x)


@pytest.mark.parametrize("order", ["reversed", "shuffled"])
def test_layers_in_any_order_take_calls_in_proportion(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    look = graph_configurations._Drawing._arguments

    def counted(self: Any, call: Any) -> Any:
        looks.append(1)
        return look(self, call)

    monkeypatch.setattr(graph_configurations._Drawing, "_arguments", counted)
    for length in (4, 32):
        model = chain(length)
        config = model.get_config()
        layers = config["layers"]
        if order == "reversed":
            layers.reverse()
        else:
            np.random.default_rng(0).shuffle(layers)
        looks.clear()
        again = mr.Model.from_config(config)
        again.set_weights(model.get_weights())
        np.testing.assert_array_equal(again(X), model(X))
        assert len(looks) <= 2 * (2 * length) + 2 * length


def test_layers_whose_calls_lead_in_a_circle() -> None:
    config = chain(2).get_config()
    first = next(each for each in config["layers"] if each["class_name"] == "Dense")
    first["inbound_nodes"].reverse()
    with pytest.raises(ValueError, match=r"failed to be resolved: \['dense"):
        mr.Model.from_config(config)


def test_operations_of_images_have_keras_classes() -> None:
    images, turns = mr.layers.Input((4, 5, 3)), mr.layers.Input((8,))
    of_images = mr.keras.ops.image
    x = of_images.pad_images(of_images.resize(images, (6, 7)), 1, 1, 1, target_width=9)
    x = of_images.hsv_to_rgb(of_images.rgb_to_hsv(of_images.crop_images(x, 1, 1, 1, 1)))
    moved = of_images.affine_transform(x, turns, fill_mode="wrap")
    model = mr.Model([images, turns], of_images.rgb_to_grayscale(moved))
    config = model.get_config()
    entries = [entry for entry in config["layers"] if entry["class_name"] != "InputLayer"]
    assert [entry["class_name"] for entry in entries] == [
        "Resize",
        "PadImages",
        "CropImages",
        "RGBToHSV",
        "HSVToRGB",
        "AffineTransform",
        "RGBToGrayscale",
    ]
    assert {entry["module"] for entry in entries} == {"keras.src.ops.image"}
    again = mr.Model.from_config(config)
    rng = np.random.default_rng(0)
    data = [rng.uniform(size=size).astype(np.float32) for size in ((2, 4, 5, 3), (2, 8))]
    np.testing.assert_array_equal(again(data), model(data))


def test_operations_of_depth_have_the_modules_of_keras_classes() -> None:
    begin = mr.layers.Input((4, 4, 2))
    end = mr.keras.ops.depth_to_space(mr.keras.ops.space_to_depth(begin, 2), 2)
    modules = [entry["module"] for entry in mr.Model(begin, end).get_config()["layers"][1:]]
    assert modules == ["keras.src.ops.nn"] * 2


def test_convolutions_by_functions_are_kept_as_keras_keeps_them() -> None:
    """Keras 3 with JAX loads such files and predicts the same."""
    ops, begin = mr.keras.ops, mr.layers.Input((6, 6, 2))
    kernels = np.random.default_rng(0).normal(size=(3, 3, 2, 2)).astype(np.float32)
    end = ops.separable_conv(
        ops.depthwise_conv(ops.conv(begin, kernels), kernels[..., :1]),
        *(kernels[..., :1], kernels[:1, :1]),
        strides=2,
        padding="same",
    )
    model = mr.Model(begin, end)
    config = model.get_config()
    assert [entry["class_name"] for entry in config["layers"][1:]] == [
        "Conv",
        "DepthwiseConv",
        "SeparableConv",
    ]
    data = np.random.default_rng(1).normal(size=(2, 6, 6, 2)).astype(np.float32)
    np.testing.assert_array_equal(mr.Model.from_config(config)(data), model(data))
