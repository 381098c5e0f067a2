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
