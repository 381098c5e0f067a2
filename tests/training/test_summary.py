"""The table that `summary` prints, character by character."""

import numpy as np
import pytest

import mirrored as mr


def test_a_functional_model(capsys: pytest.CaptureFixture[str]) -> None:
    x = mr.layers.Input(shape=(8, 8), name="image")
    flat = mr.layers.Flatten(name="flat")(x)
    hidden = mr.layers.Dense(100, "relu", name="hidden", trainable=False)(flat)
    model = mr.Model(x, mr.layers.Dense(10, name="classes")(hidden), name="digits")
    model.summary()
    assert capsys.readouterr().out == (
        'Model: "digits"\n'
        "-----------------------------------------\n"
        "Layer (type)        Output Shape  Param #\n"
        "-----------------------------------------\n"
        "image (InputLayer)  (None, 8, 8)        0\n"
        "flat (Flatten)      (None, 64)          0\n"
        "hidden (Dense)      (None, 100)     6,500\n"
        "classes (Dense)     (None, 10)      1,010\n"
        "-----------------------------------------\n"
        "Total params: 7,510\n"
        "Trainable params: 1,010\n"
        "Non-trainable params: 6,500\n"
    )


def test_a_graph_says_what_its_layers_are_called_on() -> None:
    """With the numbers of calls and results, as Keras has them."""
    mr.layers.reset_names()
    a, b = mr.layers.Input((4,), name="a"), mr.layers.Input((4,), name="b")
    shared = mr.layers.Dense(4, name="shared")
    sizes = mr.split(b, [1, 3], axis=1)
    model = mr.Model([a, b], [shared(a) + shared(b) * 2.0, mr.concat([sizes[1], a], axis=1)])
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert lines[2:11] == [
        "Layer (type)         Output Shape          Param #  Connected to",
        lines[1],
        "a (InputLayer)       (None, 4)                   0  -",
        "b (InputLayer)       (None, 4)                   0  -",
        "shared (Dense)       (None, 4)                  20  a[0][0], b[0][0]",
        "multiply (Multiply)  (None, 4)                   0  shared[1][0]",
        "split (Split)        (None, 1), (None, 3)        0  b[0][0]",
        "add (Add)            (None, 4)                   0  shared[0][0], multiply[0][0]",
        "concat (Concat)      (None, 7)                   0  split[0][1], a[0][0]",
    ]


def test_lines_go_to_a_function() -> None:
    lines: list[str] = []
    model = mr.Sequential([mr.layers.Dense(1, name="only")], name="net")
    model.build((None, 2))
    model.summary(print_fn=lines.append)
    assert lines[0] == 'Model: "net"'
    assert lines[4] == "only (Dense)  (None, 1)           3"


def test_subclasses_and_nested_models() -> None:
    class Net(mr.Model):
        def __init__(self) -> None:
            super().__init__(name="net")
            self.inner = mr.Sequential([mr.layers.Dense(3)], name="inner")
            self.unused = mr.layers.Dense(2, name="unused")

        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            return self.inner(inputs)

    model = Net()
    model(np.ones((1, 2)))
    lines: list[str] = []
    model.summary(print_fn=lines.append)
    assert lines[4:6] == [
        "inner (Sequential)  (None, 3)               9",
        "unused (Dense)      ?             0 (unbuilt)",
    ]


def test_a_shared_layer_is_counted_once() -> None:
    x = mr.layers.Input(shape=(2,))
    shared = mr.layers.Dense(2)
    lines: list[str] = []
    mr.Model(x, shared(shared(x))).summary(print_fn=lines.append)
    assert "Total params: 6" in lines


def test_a_model_without_weights_yet() -> None:
    with pytest.raises(ValueError, match="Model 'net' has not yet been built"):
        mr.Sequential([mr.layers.Dense(1)], name="net").summary()
