"""The table that `summary` prints, character by character."""

import sys
import types
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.training import model_summary


def lines_of(model: mr.Model, **options: Any) -> list[str]:
    """Return what is printed of a model."""
    given: list[str] = []
    model.summary(print_fn=given.append, **options)
    return given[0].splitlines()


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
        "Total params: 7,510 (29.34 KB)\n"
        "Trainable params: 1,010 (3.95 KB)\n"
        "Non-trainable params: 6,500 (25.39 KB)\n"
    )


def test_a_graph_says_what_its_layers_are_called_on() -> None:
    """With the numbers of calls and results, as Keras has them."""
    mr.layers.reset_names()
    a, b = mr.layers.Input((4,), name="a"), mr.layers.Input((4,), name="b")
    shared = mr.layers.Dense(4, name="shared")
    sizes = mr.split(b, [1, 3], axis=1)
    model = mr.Model([a, b], [shared(a) + shared(b) * 2.0, mr.concat([sizes[1], a], axis=1)])
    lines = lines_of(model)
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


def test_a_line_break_in_a_name_forges_no_line() -> None:
    begin = mr.layers.Input((2,), name="in\nother (Dense)")
    end = mr.layers.Dense(1, name="a\rb\u2028c")(begin)
    model = mr.Model(begin, [end, mr.layers.Dense(1, name="é")(begin)], name="net\nTotal params: 0")
    given: list[str] = []
    model.summary(print_fn=given.append)
    (text,) = given
    assert len(text.splitlines()) == 11
    for shown in ("net\\nTotal params: 0", "in\\nother (Dense)", "a\\rb\\u2028c", "é (Dense)"):
        assert shown in text


def test_a_function_gets_the_whole_text() -> None:
    """As Keras 3's does, in one call."""
    given: list[str] = []
    model = mr.Sequential([mr.layers.Dense(1, name="only")], name="net")
    model.build((None, 2))
    model.summary(print_fn=given.append)
    (text,) = given
    assert text.splitlines()[0] == 'Model: "net"'
    assert text.splitlines()[4] == "only (Dense)  (None, 1)           3"


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
    lines = lines_of(model)
    assert lines[4:6] == [
        "inner (Sequential)  (None, 3)               9",
        "unused (Dense)      ?             0 (unbuilt)",
    ]


def test_a_shared_layer_is_counted_once() -> None:
    x = mr.layers.Input(shape=(2,))
    shared = mr.layers.Dense(2)
    assert "Total params: 6 (24.00 B)" in lines_of(mr.Model(x, shared(shared(x))))


def test_a_model_without_weights_yet() -> None:
    lines = lines_of(mr.Sequential([mr.layers.Dense(1, name="one")], name="net"))
    assert lines[4] == "one (Dense)   ?             0 (unbuilt)"


def nested() -> mr.Model:
    inner = mr.Sequential([mr.layers.Dense(2, name="deep")], name="inner")
    frozen = mr.layers.Dense(3, name="frozen", trainable=False)
    model = mr.Sequential(
        [mr.layers.Input((4,)), frozen, inner, mr.layers.ReLU(name="relu")], name="net"
    )
    model.compile("adam", "mse")
    return model


def test_layers_of_models_within_and_what_is_trained() -> None:
    lines = lines_of(nested(), expand_nested=True, show_trainable=True)
    assert lines[2:8] == [
        "Layer (type)        Output Shape  Param #  Trainable",
        lines[1],
        "frozen (Dense)      (None, 3)          15  N",
        "inner (Sequential)  (None, 2)           8  Y",
        "   └ deep (Dense)   (None, 2)           8  Y",
        "relu (ReLU)         (None, 2)           0  -",
    ]


@cases(
    ("names", "first", "last"),
    [
        (("inner", "relu"), "inner", "relu"),
        (("re", "in"), "inner", "relu"),
        ((".*", "inner"), "frozen", "inner"),
    ],
)
def test_a_part_of_the_layers(names: tuple[str, str], first: str, last: str) -> None:
    shown = lines_of(nested(), layer_range=names)[4:-4]
    assert (shown[0].split()[0], shown[-1].split()[0]) == (first, last)


def test_what_an_optimizer_has_counts() -> None:
    model = nested()
    model.fit(np.zeros((2, 4)), np.zeros((2, 2)), verbose=0)
    # Two slots for each of the 8 weights that are trained, a learning rate and a step count.
    assert lines_of(model)[-4:] == [
        "Total params: 41 (168.00 B)",
        "Trainable params: 8 (32.00 B)",
        "Non-trainable params: 15 (60.00 B)",
        "Optimizer params: 18 (76.00 B)",
    ]


def test_columns_of_given_widths() -> None:
    lines = lines_of(nested(), line_length=36, positions=[0.4, 0.8, 1.0])
    assert lines[1] == "-" * 36
    assert lines[2:7] == [
        "Layer (type)  Output Shape   Param #",
        lines[1],
        "frozen (Dens  (None, 3)           15",
        "e)",
        "inner (Seque  (None, 2)            8",
    ]


@cases(
    ("arguments", "message"),
    [
        ({"line_length": 10}, "Insufficient console width to print summary"),
        ({"positions": [0.5, 1.0]}, "one end for each of the 3 columns"),
        ({"layer_range": ["a"]}, "`layer_range` must have two names or patterns"),
        ({"layer_range": ["frozen", "nothing"]}, "do not match the layer names in the model"),
    ],
)
def test_bad_arguments(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        nested().summary(**arguments)


def test_in_a_notebook(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    display = types.ModuleType("IPython.display")
    monkeypatch.setitem(vars(display), "HTML", lambda text: text)
    monkeypatch.setitem(vars(display), "display", shown.append)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(model_summary, "in_notebook", lambda: True)
    mr.Sequential(
        [mr.layers.Input((4,)), mr.layers.Dense(2, name="a_dense")], name="<net>"
    ).summary()
    assert capsys.readouterr().out == ""
    (text,) = shown
    assert "Model: &quot;&lt;net&gt;&quot;" in text
    ElementTree.fromstring(f"<div>{text.replace('<br>', '<br/>')}</div>")
    for cell in ("a_dense (Dense)", "(None, 2)", "Total params: 10 (40.00 B)"):
        assert cell in text
