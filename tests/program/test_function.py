"""Users' own recorded functions: they compute what Python would, and Python runs once a kind."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

Pair = namedtuple("Pair", "first second")


def tensor(*shape: int, seed: int = 0) -> mr.Tensor:
    return mr.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def numbers(result: Any) -> Any:
    """Return a structure of tensors as one of lists."""
    if isinstance(result, dict):
        return {key: numbers(value) for key, value in result.items()}
    if isinstance(result, Pair):
        return Pair(*map(numbers, result))
    if isinstance(result, list | tuple):
        return type(result)(map(numbers, result))
    return np.asarray(result).tolist() if isinstance(result, mr.Tensor | mr.Variable) else result


# ------------------------------------------------------------------------------ what is a kind


ARRAY = np.ones(2, np.float32)
KEPT, OTHER = mr.losses.MeanSquaredError(), mr.losses.MeanSquaredError()
# Calls, as functions of a tensor of two numbers, and how many of them Python runs for.
KINDS: dict[str, tuple[Callable[[Any], list[Any]], int]] = {
    "values": (lambda x: [(x,), (x + 1.0,), (ARRAY,), (ARRAY * 2,)], 1),
    "shapes": (lambda x: [(x,), (tensor(3),), (x,), (tensor(2, 1),)], 3),
    "dtypes": (lambda x: [(x,), (mr.cast(x, "float64"),), (mr.constant([1, 2]),), (x,)], 3),
    "numbers": (lambda x: [(x, 1), (x, 2), (x, 1), (x, 1.0), (x, True), (x, 1.5)], 3),
    "zeros of two signs": (lambda x: [(x, 0.0), (x, -0.0), (x, 0.0)], 2),
    "no number": (lambda x: [(x, float("nan")), (x, float("nan"))], 1),
    "numbers of NumPy": (lambda x: [(x, np.float32(1)), (x, np.float32(2))], 1),
    "strings": (lambda x: [(x, "a"), (x, "b"), (x, "a"), (x, None)], 3),
    "objects": (lambda x: [(x, KEPT), (x, OTHER), (x, KEPT)], 2),
    "sequences": (lambda x: [([x, x],), ((x, x),), (Pair(x, x),), ([x, [x]],), ([x, x],)], 4),
    "dicts": (lambda x: [({"a": x},), ({"a": x},), ({"b": x},)], 2),
}


@cases(("calls", "expected"), KINDS.values(), ids=KINDS)
def test_python_runs_once_a_kind(calls: Callable[[Any], list[Any]], expected: int) -> None:
    runs: list[Any] = []

    @mr.function
    def recorded(x: Any, *more: Any) -> Any:
        runs.append(more)
        return mr.constant(1.0)

    for args in calls(tensor(2)):
        recorded(*args)
    assert len(runs) == expected


def test_keywords_and_defaults() -> None:
    @mr.function
    def scaled(x: Any, *, by: Any = 2.0) -> Any:
        """Scale."""
        return x * by

    x = mr.constant([3.0])
    assert [float(scaled(x)[0]), float(scaled(x, by=3.0)[0]), float(scaled(x=x)[0])] == [6, 9, 6]
    assert float(scaled(x, by=mr.constant(5.0))[0]) == 15
    assert (scaled.__name__, scaled.__doc__) == ("scaled", "Scale.")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        scaled()
    with pytest.raises(TypeError, match=r"takes a function\. Received: 3"):
        mr.function(3)
    assert mr.function(scaled) is scaled
    assert float(mr.function(jit_compile=True, reduce_retracing=True)(lambda v: v + v)(x)[0]) == 6


def test_devices_are_part_of_a_kind(simulate: Callable[..., Any]) -> None:
    simulate(2)
    runs = []

    @mr.function
    def doubled(x: Any) -> Any:
        runs.append(x.device)
        return x * 2.0

    for name in ("GPU:0", "GPU:1", "CPU:0", "GPU:1"):
        with mr.device(name):
            assert doubled(mr.constant([1.0])).device.endswith(name)
            assert doubled(ARRAY).device.endswith(name)
    assert len(runs) == 6


def test_methods_are_recorded_for_each_object() -> None:
    class Counter:
        runs = 0

        def __init__(self, start: float) -> None:
            self.total = mr.Variable(start)

        @mr.function
        def add(self, x: Any) -> Any:
            Counter.runs += 1
            return self.total.assign_add(x) * 1.0

    first, second = Counter(0.0), Counter(10.0)
    for _ in range(3):
        first.add(mr.constant(1.0))
    assert (float(second.add(mr.constant(1.0))), float(first.total), Counter.runs) == (11, 3, 2)


def test_a_model_can_be_recorded() -> None:
    """It is built while it is recorded, and its weights are made once."""
    model = mr.Sequential([mr.layers.Dense(3, "tanh"), mr.layers.Dropout(0.5)])
    recorded, x = mr.function(model), tensor(4, 2)
    np.testing.assert_array_equal(recorded(x).numpy(), model(x).numpy())
    assert (recorded(x, training=True).numpy() == 0).any()
    assert len(model.weights) == 2


# ------------------------------------------------------------------------------ structures


STRUCTURES: dict[str, Callable[[Any], Any]] = {
    "a tensor": lambda x: x + 1.0,
    "the argument": lambda x: x,
    "a list": lambda x: [x, [x * 2.0, x]],
    "a tuple": lambda x: (x, (), (x,)),
    "a named tuple": lambda x: Pair(x, Pair(None, x * 2.0)),
    "a dict": lambda x: {"b": x, "a": {"c": x + 1.0, "d": 3}},
    "parts": lambda x: (x[0], x[1:], x[::-1], mr.reshape(x, (3, 1)), x[:0]),
    "numbers": lambda x: [1, None, 2.5],
    "nothing": lambda x: None,
    "a constant": lambda x: mr.constant([1.0, 2.0]),
    "iteration": lambda x: [each * 2.0 for each in x],
    "shapes": lambda x: x * len(x) + x.shape[0],
}


@cases("function", STRUCTURES.values(), ids=STRUCTURES)
def test_structures_that_are_returned(function: Callable[[Any], Any]) -> None:
    recorded = mr.function(function)
    for seed in range(3):
        x = tensor(3, seed=seed)
        assert numbers(recorded(x)) == numbers(function(x))


@cases("function", [lambda: 3, lambda: None, lambda: mr.constant(3.0)])
def test_a_function_of_nothing(function: Callable[[], Any]) -> None:
    recorded = mr.function(function)
    assert [numbers(recorded()) for _ in range(2)] == [numbers(function())] * 2


def test_structures_that_are_given() -> None:
    @mr.function
    def total(first: Any, **rest: Any) -> Any:
        (a, b), c = first
        return a + b["x"] * 10.0 + c.second * 100.0 + rest["z"] * 1000.0

    one, two = mr.constant(1.0), mr.constant(2.0)
    for i, j in ((one, two), (two, one)):
        assert float(total([(i, {"x": j}), Pair(None, i)], z=j)) == float(i) * 101 + float(j) * 1010


@pytest.mark.parametrize("around", ["a tape", "another function"])
def test_arrays_are_tensors_however_the_function_runs(around: str) -> None:
    recorded = mr.function(lambda x: x * 2.0)
    if around == "another function":
        assert isinstance(mr.function(lambda: recorded(ARRAY))(), mr.Tensor)
    else:
        with mr.GradientTape():
            assert isinstance(recorded(ARRAY), mr.Tensor)


def test_what_is_returned_and_given_stays_as_it_is() -> None:
    w = mr.Variable([1.0, 1.0])

    @mr.function
    def step(x: Any) -> Any:
        w.assign_add(x)
        return x, w.read_value(), w * 2.0

    array = np.array([1.0, 2.0], np.float32)
    given = mr.constant(array)
    first = step(given)
    kept = numbers(first)
    array[...] = 7.0
    step(array)
    assert numbers(first) == kept == ([1, 2], [2, 3], [4, 6])
    assert numbers(given) == [1, 2]


def test_what_a_function_closes_over() -> None:
    """Tensors, arrays and numbers are as they were when it was recorded; variables are read."""
    scale, offset, w = mr.constant(2.0), np.float32([1.0, 2.0]), mr.Variable(3.0)
    recorded, x = mr.function(lambda x: x * scale + offset + w), tensor(2)
    for value in (3.0, 5.0):
        w.assign(value)
        assert numbers(recorded(x)) == numbers(x * 2.0 + offset + value)


# ------------------------------------------------------------------------------ variables


def read_slice(x: Any, v: Any, w: Any) -> Any:
    row = v[1:3]
    v.assign(v * 2.0)
    return row, v[1:3]


def swapped(x: Any, v: Any, w: Any) -> None:
    first, second = v.read_value(), w.read_value()
    v.assign(second)
    w.assign(first)


def in_order(x: Any, v: Any, w: Any) -> Any:
    seen = [v.read_value()]
    for write in (v.assign_add, v.assign_sub, w.assign, v.assign):
        write(x * w + v)
        seen.append(v.read_value())
    return seen


def shifted(x: Any, v: Any, w: Any) -> Any:
    """One new value is computed on the way to another."""
    old = v - v * 0.01
    new_w = w * 0.5 + x / (mr.reduce_sum(x * x) + 1.0)
    v.assign(old - new_w * 0.05 * mr.reduce_sum(old * old))
    w.assign(new_w)


def joined(x: Any, v: Any, w: Any) -> Any:
    """What is computed in its place in a join dies before the join does."""
    doubled = x * 2.0
    both = mr.concat([doubled, x], axis=0)
    total = mr.reduce_sum(mr.square(both))
    return doubled - total, both[:4] * total


def assigned_constant(x: Any, v: Any, w: Any) -> Any:
    v.assign([1.0, 2.0, 3.0, 4.0])
    w.assign(v[::-1])


# Functions of a tensor and two variables, all of four numbers.
FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "read": lambda x, v, w: (v.read_value(), v + w, x * v),
    "assign": lambda x, v, w: v.assign(x) * 1.0,
    "assign_add": lambda x, v, w: v.assign_add(x) * 1.0,
    "assign_sub": lambda x, v, w: w.assign_sub(v).read_value(),
    "read before a write": lambda x, v, w: (v.read_value(), v.assign_add(x) * 1.0),
    "read a slice before a write": read_slice,
    "swap": swapped,
    "in order": in_order,
    "one value for both": lambda x, v, w: (w.assign(v.assign(x + v)) * 2.0, v + w),
    "one on the way to the other": shifted,
    "a join": joined,
    "constants": assigned_constant,
}


@pytest.mark.usefixtures("one_blas_thread")
@cases("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_variables(function: Callable[..., Any], bits: Callable[..., Any]) -> None:
    seen = []
    for make in (lambda each: each, mr.function):
        v, w = (mr.Variable(tensor(4, seed=seed)) for seed in (7, 8))
        call, results = make(lambda x, v=v, w=w: function(x, v, w)), []
        for seed in range(3):
            results.append(numbers(call(tensor(4, seed=seed))))
            results.append(bits([v.numpy(), w.numpy()]))
            v.assign(v * 0.5)  # The user's own writes count too.
        seen.append(results)
    assert seen[0] == seen[1]


def test_a_part_of_a_long_vector() -> None:
    """It may be computed in pieces, of which a later one has that part."""
    function = mr.function(lambda x: (y := x * 2.0) * y[150_000])
    for seed in range(2):
        x = tensor(200_000, seed=seed).numpy()
        np.testing.assert_array_equal(function(x).numpy(), 2 * x * (2 * x)[150_000])


def test_a_variable_made_inside_is_made_when_recorded() -> None:
    """As an object that makes it on first use would have it."""

    class Layer:
        weight: Any = None

        @mr.function
        def __call__(self, x: Any) -> Any:
            if self.weight is None:
                self.weight = mr.Variable(lambda: mr.ones((2,)))
            return self.weight.assign_add(x) * 1.0

    layer = Layer()
    assert [numbers(layer.__call__(ARRAY)) for _ in range(3)] == [[2, 2], [3, 3], [4, 4]]


# ------------------------------------------------------------------------------ random numbers


def drawn(dropout: Any) -> list[Any]:
    mr.random.uniform((3,))  # Nobody looks at it, but it is drawn.
    total = mr.random.uniform((2,)) + mr.random.normal((2,), seed=3)
    return [
        total,
        mr.random.uniform((2,), 0, 9, "int32"),
        mr.random.normal((3,)),
        dropout(total, training=True),
    ]


def test_random_numbers_are_those_of_eager_calls() -> None:
    seen = []
    for make in (lambda each: each, mr.function):
        dropout = mr.layers.Dropout(0.5, seed=4)
        call = make(lambda dropout=dropout: drawn(dropout))
        mr.random.set_seed(1)
        results = [numbers(call()) for _ in range(3)]
        mr.random.set_seed(1)
        assert numbers(call())[:3] == results[0][:3]
        results.append(numbers(mr.random.uniform((2,))))
        seen.append(results)
    assert seen[0] == seen[1]
    assert len({str(each) for each in seen[1][:3]}) == 3


# ------------------------------------------------------------------------------ tapes


def test_a_tape_inside() -> None:
    w = mr.Variable(3.0)

    @mr.function
    def gradients(x: Any) -> Any:
        with mr.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                y = w * w * mr.square(x)
            first = inner.gradient(y, w)
        return first, outer.gradient(first, [w, x])

    for x in (2.0, 5.0):
        assert numbers(gradients(mr.constant(x))) == (6 * x * x, [2 * x * x, 12 * x])


def test_a_tape_outside_and_nested_functions() -> None:
    """They run Python, so that the tape sees the ops and the outer function has them all."""
    w, runs = mr.Variable(3.0), []

    @mr.function
    def squared(x: Any) -> Any:
        runs.append(x)
        return x * w * w

    outer, x = mr.function(lambda x: squared(x) + squared(x * 2.0)), mr.constant(2.0)
    assert [float(squared(x)), float(outer(x)), float(outer(x))] == [18, 54, 54]
    assert len(runs) == 3
    with mr.GradientTape() as tape:
        y = squared(x)
    assert float(tape.gradient(y, w)) == 12
    assert [float(squared(x)), len(runs)] == [18, 4]


def test_text_with_a_tensor_that_has_no_value() -> None:
    texts: list[str] = []
    mr.function(lambda x: texts.append(f"{x} {x!s}") or x)(mr.ones(2))
    assert texts == [" ".join(["<mr.Tensor: shape=(2,), dtype=float32, recorded>"] * 2)]
