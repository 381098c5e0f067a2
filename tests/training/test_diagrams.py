"""Pictures of models: boxes and lines as Keras draws them, in SVG without any other package."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

import mirrored as mr

NAMESPACE = "{http://www.w3.org/2000/svg}"
plot_model = mr.keras.utils.plot_model


def branching(inner: Any = None) -> mr.Model:
    begin = mr.layers.Input((4,), name="begin")
    left = mr.layers.Dense(3, "relu", name="left")(begin)
    right = (inner or mr.layers.Dense(3, name="right"))(begin)
    return mr.Model(begin, mr.layers.Add(name="both")([left, right]))


def drawn(path: Path, model: Any, **options: Any) -> tuple[list[str], list[list[float]]]:
    """Return the texts and the lines of a picture."""
    plot_model(model, path / "model.svg", **options)
    root = ElementTree.fromstring((path / "model.svg").read_text())
    texts = [each.text or "" for each in root.iter(f"{NAMESPACE}text")]
    keys = ("x1", "y1", "x2", "y2")
    lines = [[float(each.attrib[key]) for key in keys] for each in root.iter(f"{NAMESPACE}line")]
    return texts, lines


def test_all_that_is_shown(tmp_path: Path) -> None:
    model = branching()
    model.get_layer("left").trainable = False
    assert drawn(tmp_path, model)[0] == ["InputLayer", "Dense", "Dense", "Add"]
    texts, lines = drawn(
        tmp_path,
        model,
        show_shapes=True,
        show_dtype=True,
        show_layer_names=True,
        show_layer_activations=True,
        show_trainable=True,
    )
    assert texts[:3] == ["begin (InputLayer)", "Output shape: (None, 4)", "Output dtype: float32"]
    start = texts.index("left (Dense)")
    assert texts[start : start + 6] == [
        "left (Dense)",
        "Activation: relu",
        "Input shape: (None, 4)",
        "Output shape: (None, 3)",
        "Output dtype: float32",
        "Non-trainable",
    ]
    assert "Input shape: (None, 3), (None, 3)" in texts
    assert len(lines) == 4
    assert all(y2 > y1 for _, y1, _, y2 in lines)
    assert all(x2 > x1 for x1, _, x2, _ in drawn(tmp_path, model, rankdir="LR")[1])


def test_models_in_models(tmp_path: Path) -> None:
    inner = mr.Sequential([mr.layers.Dense(5, name="a"), mr.layers.Dense(3, name="b")], name="two")
    model = branching(inner)
    texts, lines = drawn(tmp_path, model, show_layer_names=True)
    assert "two (Sequential)" in texts
    assert len(lines) == 4
    texts, lines = drawn(tmp_path, model, show_layer_names=True, expand_nested=True)
    assert {"two", "a (Dense)", "b (Dense)"} <= {*texts}
    assert "two (Sequential)" not in texts
    assert len(lines) == 5
    again = mr.Sequential([mr.layers.Input((4,)), branching(), mr.layers.Dense(2)])
    assert len(drawn(tmp_path, again, expand_nested=True)[1]) == 5


def test_other_models(tmp_path: Path) -> None:
    class Own(mr.Model):
        def call(self, inputs: Any) -> Any:
            return inputs

    model = Own()
    model.build((None, 3))
    assert drawn(tmp_path, model, show_shapes=True)[0][0] == "Own"
    begin = mr.layers.Input((3,))
    assert (
        "<&>"
        in drawn(
            tmp_path, mr.Model(begin, mr.layers.Dense(1, name="<&>")(begin)), show_layer_names=True
        )[0][1]
    )
    operations = mr.Model(begin, mr.keras.ops.tanh(begin) + begin)
    assert len(drawn(tmp_path, operations, show_dtype=True, show_shapes=True)[1]) == 3


def test_without_pydot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    monkeypatch.chdir(tmp_path)
    plot_model(branching())
    assert [each.name for each in tmp_path.iterdir()] == ["model.svg"]
    assert "model.svg is written instead of model.png" in caplog.text
    with pytest.raises(ImportError, match=r"pip install pydot.* ends in .svg without it"):
        plot_model(branching(), "model.pdf")
    with pytest.raises(ValueError, match="has not yet been built"):
        plot_model(mr.Sequential([mr.layers.Dense(1)]))
    with pytest.raises(ValueError, match=re.escape('`rankdir` of an SVG must be "TB" or "LR"')):
        plot_model(branching(), "model.svg", rankdir="BT")


class Noted:
    """Stands for pydot's graphs: it notes what it is asked."""

    written: list[Any] = []  # noqa: RUF012

    def __init__(self, *args: Any, **options: Any) -> None:
        self.args, self.options, self.parts = args, options, []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: self.parts.append((name, args, options))

    def write(self, path: str, format: str) -> None:
        self.written.append((path, format, self))


def test_with_pydot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not needed by the tests: its graph is asked for what pydot 4 has."""
    pydot: Any = ModuleType("pydot")
    pydot.Dot = pydot.Cluster = pydot.Node = pydot.Edge = Noted
    monkeypatch.setitem(sys.modules, "pydot", pydot)
    inner = mr.Sequential([mr.layers.Dense(3)], name="inner")
    try:
        plot_model(branching(inner), tmp_path / "m.pdf", expand_nested=True, show_shapes=True)
    finally:
        ((path, kind, dot),) = Noted.written
        Noted.written.clear()
    assert (path, kind) == (str(tmp_path / "m.pdf"), "pdf")
    assert [name for name, *_ in dot.parts].count("add_edge") == 4
    assert [name for name, *_ in dot.parts].count("add_node") == 3
    label = dot.parts[2][1][0].options["label"]
    assert label == "{InputLayer|Output shape: (None, 4)}"
