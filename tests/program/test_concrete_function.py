"""Functions for one kind of call: what they take, return and say of themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

SPEC = mr.TensorSpec([2])


def values(found: Any) -> Any:
    """Return tensors as lists of numbers, in the structure that they are in."""
    if isinstance(found, list | tuple):
        return [values(each) for each in found]
    return found.numpy().tolist()


def scaled(x: Any, by: Any = 3.0, *, plus: Any = 0) -> Any:
    return x * by + float(plus)


class Scaler:
    by = 5.0

    @mr.function
    def call(self, x: Any) -> Any:
        return x * self.by


def nested(d: Any) -> Any:
    return d["a"] - d["b"][0]


def made(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return mr.function(function).get_concrete_function(*args, **kwargs)


ONE, TWO = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
NAMED = (mr.TensorSpec([2], name="right"), mr.TensorSpec([2], name="left"))
PAIR = {"b": [SPEC], "a": SPEC}
CALLS: dict[str, tuple[Callable[[], Any], Any]] = {
    "spec": (lambda: made(scaled, SPEC)(ONE), [3.0, 6.0]),
    "tensor": (lambda: made(scaled, TWO)(ONE), [3.0, 6.0]),
    "array": (lambda: made(scaled, np.zeros(2, np.float32))([1.0, 2.0]), [3.0, 6.0]),
    "name": (lambda: made(scaled, SPEC)(x=ONE), [3.0, 6.0]),
    "spec's name": (lambda: made(scaled, mr.TensorSpec([2], name="left"))(left=ONE), [3.0, 6.0]),
    "both names": (lambda: made(scaled, *NAMED)(x=ONE, by=TWO), [3.0, 10.0]),
    "mixed names": (lambda: made(scaled, *NAMED)(x=ONE, left=TWO), [3.0, 10.0]),
    "two": (lambda: made(scaled, SPEC, SPEC)(ONE, by=TWO), [3.0, 10.0]),
    "known": (lambda: made(scaled, SPEC, 4, plus=1)(ONE), [5.0, 9.0]),
    "known again": (lambda: made(scaled, SPEC, 4, plus=1)(ONE, 4, plus=1), [5.0, 9.0]),
    "any size": (lambda: made(scaled, mr.TensorSpec([None]))([1.0]), [3.0]),
    "nested": (lambda: made(nested, PAIR)({"a": TWO, "b": [ONE]}), [2.0, 3.0]),
    "flat": (lambda: made(nested, PAIR)(mr.constant(TWO), mr.constant(ONE)), [2.0, 3.0]),
    "method": (lambda: Scaler().call.get_concrete_function(SPEC)(ONE), [5.0, 10.0]),
    "signature": (
        lambda: mr.function(scaled, input_signature=[SPEC]).get_concrete_function()(ONE),
        [3.0, 6.0],
    ),
    "inside": (lambda: mr.function(lambda x: made(scaled, SPEC)(x) * x)(ONE), [3.0, 12.0]),
    "missing": (lambda: made(scaled, SPEC, SPEC)(ONE), "missing a required argument: 'by'"),
    "none": (lambda: made(scaled), "missing a required argument: 'x'"),
    "too many": (lambda: made(nested, PAIR)(ONE, ONE, ONE), "too many positional arguments"),
    "unknown": (lambda: made(scaled, SPEC)(ONE, w=1), "unexpected keyword argument 'w'"),
    "other": (lambda: made(scaled, SPEC, 4)(ONE, 5), r"Can not cast 5 to Literal\[4\]"),
    "shape": (lambda: made(scaled, SPEC)([1.0]), r"an argument of shape \(1,\)"),
    "dtype": (
        lambda: made(scaled, SPEC)(mr.constant([1, 2])),
        "expected to be a float tensor but is a int32 tensor",
    ),
}


@cases(("call", "expected"), CALLS.values(), ids=CALLS)
def test_calls(call: Callable[[], Any], expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises((TypeError, mr.errors.InvalidArgumentError), match=expected):
            call()
    else:
        assert values(call()) == expected


def test_what_it_says_of_itself() -> None:
    def program(x: Any, by: Any = 2, *, more: Any) -> Any:
        return {"p": x * float(by), "q": (more["z"], None)}

    concrete = made(program, SPEC, more={"z": mr.constant(1)})
    scalar = mr.TensorSpec((), "int32")
    assert concrete.structured_input_signature == ((SPEC, 2), {"more": {"z": scalar}})
    assert concrete.structured_outputs == {"p": SPEC, "q": (scalar, None)}
    assert (concrete.inputs, concrete.outputs) == ([SPEC, scalar], [SPEC, scalar])
    assert concrete.name == "program"
    text = (
        f"(x: {SPEC}, by: Literal[2], more: Dict[['z', {scalar}]]) -> "
        f"Dict[['p', {SPEC}], ['q', Tuple[{scalar}, None]]]"
    )
    assert repr(concrete) == f"<ConcreteFunction {text}>"
    assert f"more (KEYWORD_ONLY): Dict[['z', {scalar}]]\nOutput Type:" in str(concrete)
    unknown = made(scaled, mr.TensorSpec([None]))
    with pytest.raises(ValueError, match="tensors with known sizes"):
        unknown.outputs  # noqa: B018 - it raises.


def test_it_is_recorded_when_it_is_made() -> None:
    runs = []

    @mr.function
    def counted(x: Any) -> Any:
        runs.append(x)
        return x * 2.0

    concrete = counted.get_concrete_function(SPEC)
    assert len(runs) == 1
    concrete(ONE)
    counted(TWO)
    counted.get_concrete_function(ONE)
    assert (len(runs), counted.experimental_get_tracing_count()) == (1, 1)
    assert counted.pretty_printed_concrete_signatures(verbose=False) == f"(x: {SPEC}) -> {SPEC}"


def test_its_variables(simulate: Any) -> None:
    """In the order in which they are met, without its arguments: TensorFlow 2.21's names."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        m = mr.Variable(1.0, name="m")
    a, b, c = (mr.Variable(1.0, trainable=name != "b", name=name) for name in "abc")

    def replica(x: Any) -> Any:
        return m * x

    for python, names, trained in [
        (lambda v, x: (c.assign(x), a + b, a * v)[2], ["c:0", "a:0", "b:0"], ["c:0", "a:0"]),
        (lambda v, x: v.assign(x), [], []),
        (lambda v, x: b.assign(x), ["b:0"], []),
        (lambda v, x: strategy.run(replica, (x,)), *[["m:0", "m/replica_1:0"]] * 2),
    ]:
        concrete = mr.function(python).get_concrete_function(mr.Variable(2.0), mr.constant(1.0))
        assert [each.name for each in concrete.variables] == names
        assert [each.name for each in concrete.trainable_variables] == trained
