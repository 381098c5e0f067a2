"""What recorded functions return: tensors, whatever Python returned. Values: TensorFlow 2.21's."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Pair = namedtuple("Pair", "a b")  # As users write it.


class Box:
    def __init__(self, value: float = 1.0) -> None:
        self.v = mr.Variable(value)


def assigned_before(v: Any) -> Any:
    kept = v
    v.assign_add(10.0)
    return kept, v, v.read_value()


def assigned_after(v: Any) -> Any:
    first = v.assign_add(1.0)
    used, read = first + 0.0, first.read_value()
    v.assign(50.0)
    return [first, used, read, first + 0.0]


# A variable that is returned has the value that it has at the end of the function.
VARIABLES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "the variable": (lambda v: v, 1.0),
    "an assign": (lambda v: v.assign_add(1.0), 2.0),
    "two": (lambda v: [v.assign_add(1.0), v.assign_add(1.0)], [3.0, 3.0]),
    "nested": (lambda v: {"a": [v, v.assign_add(1.0)], "b": Pair(v, None)}, [2.0, 2.0, 2.0]),
    "before an assign": (assigned_before, [11.0, 11.0, 11.0]),
    "what an assign returned, later": (assigned_after, [50.0, 2.0, 2.0, 50.0]),
}


def flat(result: Any) -> Any:
    leaves = mr._nest.flatten(result)
    assert all(each is None or isinstance(each, mr.Tensor) for each in leaves)
    values = [float(each) for each in leaves if each is not None]
    return values[0] if len(leaves) == 1 else values


@pytest.mark.behaviour("function-returns")
@cases("inside", ["", "a tape", "a function"])
@cases(("body", "expected"), VARIABLES.values(), ids=VARIABLES)
def test_variables(body: Callable[[Any], Any], expected: Any, inside: str) -> None:
    box = Box()
    recorded = mr.function(lambda: body(box.v))
    call = mr.function(lambda: recorded()) if inside == "a function" else recorded
    for _ in range(3):
        box.v.assign(1.0)
        if inside == "a tape":
            with mr.GradientTape():
                result = call()
        else:
            result = call()
        box.v.assign(7.0)  # What was returned stays.
        assert flat(result) == expected


def test_a_function_inside_returns_what_the_variable_is_by_then() -> None:
    box = Box()
    inner = mr.function(lambda: box.v)

    @mr.function
    def outer() -> Any:
        first = inner()
        box.v.assign_add(1.0)
        return first, inner(), box.v

    assert [flat(outer()), flat(outer())] == [[1.0, 2.0, 2.0], [2.0, 3.0, 3.0]]


def test_a_tape_follows_the_variable() -> None:
    box = Box(2.0)
    for body in (lambda: box.v, lambda: box.v.assign_add(1.0)):
        with mr.GradientTape() as tape:
            y = mr.function(body)()
        assert float(tape.gradient(y, box.v)) == 1.0


@pytest.mark.behaviour("function-returns")
@cases(
    ("value", "dtype"),
    [
        (3, "int32"),
        (2**40, "int64"),
        (3.5, "float32"),
        (True, "bool"),
        (np.ones(2), "float64"),
        (np.float64(2), "float64"),
        (np.array([True]), "bool"),
        (np.int64(3), "int64"),
    ],
)
def test_numbers(value: Any, dtype: str) -> None:
    recorded = mr.function(lambda x: {"value": [value, None], "x": x})
    for _ in range(2):
        result = recorded(mr.constant(1.0))
        found, nothing = result["value"]
        assert isinstance(found, mr.Tensor)
        assert (found.dtype.name, nothing) == (dtype, None)
        np.testing.assert_array_equal(found.numpy(), value)


@pytest.mark.behaviour("function-returns")
@cases(
    "value",
    [
        *("a", b"a", 1j, 2**70, {1, 2}, range(3), object(), print, np.dtype("float32"), ...),
        *(np.array(["a"]), np.array([object()]), (i for i in [1]), mr.data.Dataset.range(3)),
    ],
    ids=lambda value: type(value).__name__,
)
@cases("inside", [False, True])
def test_what_is_no_tensor_is_refused(value: Any, inside: bool) -> None:
    """Strings are tensors in TensorFlow; there are none here. The rest is refused there too."""
    box = Box()

    @mr.function
    def returns() -> Any:
        box.v.assign_add(1.0)
        return [mr.constant(1.0), (value,)]

    call = mr.function(lambda: returns()) if inside else returns
    for _ in range(2):
        with pytest.raises(TypeError, match=r"To be compatible with mr\.function, Pyth") as e:
            call()
        assert f"found return value of type {type(value).__name__}, which is not" in str(e.value)
    assert float(box.v) == 1.0  # Nothing was run.


# ------------------------------------------------------------------------------ replicas

Made = Callable[[Any, Any], Any]


def position() -> int:
    context = mr.distribute.get_replica_context()
    assert context is not None
    return context.replica_id_in_sync_group


# From a mirrored variable of 1 whose writes are a mean, and one that is summed when it is read, of
# 1 on each replica. A list is a value a replica.
REPLICAS: dict[str, tuple[Made, Any]] = {
    "the mirrored variable": (lambda m, s: m, 1.0),
    "what is summed": (lambda m, s: s, 2.0),
    "an assign": (lambda m, s: m.assign_add(mr.constant(3.0)), [4.0, 4.0]),
    "an assign of each": (lambda m, s: s.assign_add(2.0), [3.0, 3.0]),
    "two assigns of each": (lambda m, s: s.assign_add(2.0).assign_add(position()), [3.0, 4.0]),
    "one number": (lambda m, s: 3, 3.0),
    "its number": (lambda m, s: position(), [0.0, 1.0]),
    "nothing": (lambda m, s: None, None),
}


@pytest.mark.behaviour("assigns-return")
@cases("outer", [True, False], ids=["around run", "given to run"])
@cases(("body", "expected"), REPLICAS.values(), ids=REPLICAS)
def test_results_of_replicas(body: Made, expected: Any, outer: bool, simulate: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        mirrored = mr.Variable(1.0, aggregation=mr.VariableAggregation.MEAN)
        summed = mr.Variable(
            1.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )

    def replica() -> Any:
        return body(mirrored, summed)

    recorded = mr.function(replica)
    call = mr.function(lambda: strategy.run(replica))
    result = call() if outer else strategy.run(recorded)
    mirrored.assign(9.0)
    summed.assign(9.0)
    if not isinstance(expected, list):
        assert expected == (None if result is None else float(result))
        return
    assert type(result) is mr.distribute.PerReplica
    assert [float(each) for each in result.values] == expected
    assert float(strategy.reduce("sum", result, axis=None)) == sum(expected)


@pytest.mark.behaviour("assigns-return")
def test_eager_assigns_in_replicas(simulate: Any) -> None:
    """They return each replica's own, recorded or not: a sum over them is one over replicas."""
    simulate(2)
    strategy = mr.MirroredStrategy()
    with strategy.scope():
        mirrored = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
    result = strategy.run(lambda: mirrored.assign_add(mr.constant(1.0)))
    assert float(strategy.reduce("sum", result, axis=None)) == 6.0
    mirrored.assign(0.0)
    assert [float(each) for each in result.values] == [3.0, 3.0]
    with pytest.raises(AttributeError, match="assign_add"):
        strategy.run(lambda: mirrored.assign_add(mr.constant(1.0)).assign_add(1.0))


def test_a_sum_without_an_aggregation_has_no_value(simulate: Any) -> None:
    simulate(2)
    with mr.MirroredStrategy().scope():
        v = mr.Variable(1.0, synchronization=mr.VariableSynchronization.ON_READ)
    with pytest.raises(ValueError, match=r"Could not convert from `mr\.Variable"):
        mr.function(lambda: v.assign(2.0))()
    assert float(v.copies[0]) == 1.0
