"""The parameters of everything that has TensorFlow's name: its names, order and defaults.

What is not there can be refused; what is there must not mean something else.
"""

import ast
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from tests.support import signatures

# What is another one on purpose, or that of a class which the library makes itself.
OTHERS = {
    "tf.data.Dataset": "made by its class methods",
    "tf.distribute.ReplicaContext": "made by strategies",
    "tf.distribute.Strategy": "the base of strategies",
    "tf.distribute.StrategyExtended": "made by strategies",
    "tf.distribute.Strategy.reduce": "`axis` may be left out",
    "tf.function": "there is no autograph to turn off",
    "tf.keras.Model.add_weight": "`aggregation` is a member of the enum that has Keras' strings",
    "tf.keras.Model.compile": "`steps_per_execution` changes no number here",
    "tf.keras.Model.export": "there is one format, which the name of the file says",
    "tf.keras.layers.BatchNormalization": "replicas compute one device's statistics by default",
    "tf.keras.layers.Conv3DTranspose": "its arguments stand as those of the other two",
    "tf.keras.layers.Convolution3DTranspose": "likewise",
    "tf.keras.layers.Layer.add_weight": "`aggregation` is a member of the enum",
}


class Parameters:
    """The parameters of a function, from the text of its signature."""

    def __init__(self, text: str) -> None:
        (function,) = ast.parse(f"def f{text}: ...").body
        assert isinstance(function, ast.FunctionDef)
        given = function.args
        self.by_position = [each.arg for each in (*given.posonlyargs, *given.args)]
        self.by_keyword = [each.arg for each in given.kwonlyargs]
        self.takes_more = given.vararg is not None
        self.takes_any = given.kwarg is not None
        late = [None] * (len(self.by_position) - len(given.defaults))
        names, values = self.by_position + self.by_keyword, late + given.defaults
        self.defaults = dict(zip(names, map(_text, values + given.kw_defaults), strict=True))


def _text(node: ast.expr | None) -> str | None:
    return None if node is None else ast.unparse(node)


def alike(name: str, ours: str | None, theirs: str | None) -> bool:
    """Return whether two defaults are the same: one number may stand for a tuple of such."""
    of_axes = name in ("strides", "dilation_rate", "pool_size")
    return ours == theirs or (of_axes and theirs == "..." and ours in ("1", "2"))


def clashes(ours: str, theirs: str) -> list[str]:
    """Return where a call that fits the one signature means something else by the other.

    Parameters that we lack are refused by name, and by position where ours end or are given by
    name only. What a `name` defaults to is held where names are.
    """
    here, there = Parameters(ours), Parameters(theirs)
    found = [
        f"number {i} is {mine}, not {its}"
        for i, (mine, its) in enumerate(zip(here.by_position, there.by_position, strict=False))
        if mine != its
    ]
    if not there.takes_more and len(here.by_position) > len(there.by_position):
        found.append(f"{here.by_position[len(there.by_position) :]} by position")
    for name, default in here.defaults.items():
        its = there.defaults.get(name)
        is_needless = default is None and its is not None
        if (
            name in there.defaults
            and name != "name"
            and not is_needless
            and not alike(name, default, its)
        ):
            found.append(f"{name} is {default}, not {its}")
        if name not in there.defaults and default is None and not there.takes_any:
            found.append(f"{name} is needed")
    return found


THEIRS = json.loads(signatures.FILE.read_text("utf-8"))
OURS = signatures.signatures_of(mr)


def compared() -> dict[str, tuple[str, str]]:
    """Return the names that both have, each with both signatures."""
    return {
        f"{home}.{name}": (text, THEIRS[home][name])
        for home, members in OURS.items()
        for name, text in members.items()
        if name in THEIRS[home]
    }


def test_signatures() -> None:
    both = compared()
    assert len(both) > 400
    found = {name: clashes(*texts) for name, texts in both.items()}
    assert {name: where for name, where in found.items() if where and name not in OTHERS} == {}
    assert {name for name in OTHERS if not found[name]} == set()  # None is left from before.


@pytest.mark.slow
def test_signatures_of_what_needs_more_packages() -> None:
    wrappers, theirs = mr.keras.wrappers, THEIRS["tf.keras.wrappers"]
    assert theirs.keys() == set(wrappers.__all__)
    for name, text in theirs.items():
        ours = signatures.described(getattr(wrappers, name))
        assert ours is not None
        assert clashes(ours, text) == []


@cases(
    ("ours", "theirs", "clash"),
    [
        ("(x, y)", "(x, y, name=None)", ""),
        ("(x, *, name=None)", "(x, y=1, name=None)", ""),
        ("(x, *, more=1)", "(x)", ""),
        ("(x)", "(x=None)", ""),
        ("(y, x)", "(x, y)", "number 0 is y, not x"),
        ("(x, name=None)", "(x, y=1, name=None)", "number 1 is name, not y"),
        ("(x, y=1)", "(x, y=2)", "y is 1, not 2"),
        ("(x, y=1)", "(x)", "by position"),
        ("(x, *, y)", "(x)", "y is needed"),
    ],
)
def test_clashes(ours: str, theirs: str, clash: str) -> None:
    assert clash in "; ".join(clashes(ours, theirs))
    assert bool(clash) == bool(clashes(ours, theirs))


@cases(
    ("function", "arguments", "expected"),
    [
        (mr.reduce_sum, {"input_tensor": [[1, 2], [3, 4]], "axis": 0, "keepdims": True}, [[4, 6]]),
        (mr.reduce_mean, {"input_tensor": [1.0, 2.0]}, 1.5),
        (mr.reduce_max, {"input_tensor": [1.0, 2.0]}, 2.0),
        (mr.argmax, {"input": [1, 5, 2]}, 1),
        (mr.reshape, {"tensor": [1, 2], "shape": (2, 1)}, [[1], [2]]),
        (mr.transpose, {"a": [[1], [2]], "perm": (1, 0)}, [[1, 2]]),
        (mr.expand_dims, {"input": [1, 2], "axis": 0}, [[1, 2]]),
        (mr.squeeze, {"input": [[1, 2]], "axis": 0}, [1, 2]),
        (mr.broadcast_to, {"input": 1, "shape": (2,)}, [1, 1]),
        (mr.concat, {"values": [[1], [2]], "axis": 0}, [1, 2]),
        (mr.identity, {"input": 1}, 1),
        (mr.stop_gradient, {"input": 1}, 1),
        (mr.zeros_like, {"input": [1.0]}, [0.0]),
        (mr.ones_like, {"input": [2.0]}, [1.0]),
        (mr.matmul, {"a": [[1, 2]], "b": [[3, 4]], "transpose_b": True}, [[11]]),
        (mr.add, {"x": 1, "y": 2}, 3),
        (mr.numpy_function, {"func": np.negative, "inp": [1], "Tout": mr.int32}, -1),
        (mr.nn.relu, {"features": [-1.0, 1.0]}, [0.0, 1.0]),
        (mr.nn.softmax, {"logits": [0.0, 0.0], "axis": None}, [0.5, 0.5]),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_arguments_by_keyword(
    function: Callable[..., Any], arguments: dict[str, Any], expected: Any
) -> None:
    result = function(**arguments, name="ignored")
    np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(("like", "value"), [(mr.zeros_like, 0), (mr.ones_like, 1)])
def test_like_with_another_dtype(like: Callable[..., Any], value: int) -> None:
    result = like(mr.constant([[1.5, 2.5]]), dtype=mr.int32)
    assert result.dtype == mr.int32
    np.testing.assert_array_equal(result.numpy(), [[value, value]])


@cases("axis", [0, 1, -2])
def test_cross_entropy_along_another_axis(axis: int) -> None:
    """As that of the transposed inputs; the last axis under its own number is no other axis."""
    labels = np.array([[0.25, 1.0, 0.0], [0.75, 0.0, 1.0]], np.float32)
    logits = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]], np.float32)
    rows = (labels, logits) if axis == 1 else (labels.T, logits.T)
    loss = mr.nn.softmax_cross_entropy_with_logits
    np.testing.assert_array_equal(
        loss(labels=labels, logits=logits, axis=axis).numpy(), loss(*rows).numpy()
    )


def test_cross_entropy_along_an_axis_that_is_not_there() -> None:
    with pytest.raises(mr.errors.InvalidArgumentError, match="Invalid axis 2"):
        mr.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 0.0]], axis=2)
