"""What calls are compared by, what they feed, and what they give back: structures of any kind."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from case_table import cases

import mirrored as mr
from mirrored import devices
from mirrored.distribute import Mirrored, PerReplica
from mirrored.ops.host_tensor import HostTensor
from mirrored.program import PeekingIterator
from mirrored.program.dataflow import SHARED
from mirrored.program.function_arguments import Arguments, Results


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


class Elements(PeekingIterator):
    """A stream, whose elements do not matter here."""


ONES = np.ones(2, np.float32)
OBJECT = object()


def pending(values: Any) -> HostTensor:
    return HostTensor(np.asarray(values), devices.get_device("CPU:0"))


# What two calls are given, and whether a recording of the one serves the other.
PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any], bool]] = {
    "values": (lambda: mr.constant([1.0]), lambda: mr.constant([2.0]), True),
    "shapes": (lambda: mr.constant([1.0]), lambda: mr.constant([1.0, 2.0]), False),
    "dtypes": (lambda: mr.constant([1.0]), lambda: mr.constant([1]), False),
    "arrays": (lambda: ONES, lambda: ONES * 2, True),
    "an array and a tensor": (lambda: ONES, lambda: mr.constant(ONES), True),
    "a tensor on the host still": (lambda: mr.constant(ONES), lambda: pending(ONES), True),
    "a number of NumPy": (lambda: np.float32(1), lambda: np.float32(2), True),
    "numbers": (lambda: 1, lambda: 2, False),
    "a float and an integer": (lambda: 1.0, lambda: 1, True),
    "a bool and an integer": (lambda: True, lambda: 1, True),
    "signs of zero": (lambda: 0.0, lambda: -0.0, False),
    "no numbers": (lambda: float("nan"), lambda: float("nan"), True),
    "text": (lambda: "a", lambda: "a", True),
    "bytes and text": (lambda: b"a", lambda: "a", False),
    "nothing": (lambda: None, lambda: None, True),
    "one object": (lambda: OBJECT, lambda: OBJECT, True),
    "two objects": (lambda: OBJECT, lambda: PAIRS, False),
    "a list and a tuple": (lambda: [1, 2], lambda: (1, 2), False),
    "a tuple and a named one": (lambda: (1, 2), lambda: Pair(1, 2), False),
    "nesting": (lambda: [[1], 2], lambda: [1, [2]], False),
    "keys": (lambda: {"a": 1}, lambda: {"b": 1}, False),
    "streams": (Elements, Elements, True),
    "parts": (
        lambda: PerReplica([mr.constant(1.0), mr.constant(2.0)]),
        lambda: PerReplica([mr.constant(3.0), mr.constant(4.0)]),
        True,
    ),
    "numbers of parts": (
        lambda: PerReplica([mr.constant(1.0)]),
        lambda: PerReplica([mr.constant(1.0)] * 2),
        False,
    ),
    "places in the batch": (
        lambda: PerReplica([mr.constant(1.0)] * 2, [0, 1]),
        lambda: PerReplica([mr.constant(1.0)] * 2, [0, 2]),
        False,
    ),
    "parts and copies": (
        lambda: PerReplica([mr.constant(1.0)] * 2),
        lambda: Mirrored([mr.constant(1.0)] * 2),
        False,
    ),
    "parts that are numbers": (lambda: PerReplica([1, 2]), lambda: PerReplica([1, 3]), False),
}


@cases(("one", "other", "same"), PAIRS.values(), ids=PAIRS)
def test_which_calls_are_of_one_kind(
    one: Callable[[], Any], other: Callable[[], Any], same: bool
) -> None:
    def keys_of(make: Callable[[], Any]) -> list[Any]:
        return [Arguments(each).key for each in (make(), [make()], {"k": (make(), 1)})]

    kept = one(), other()  # Objects are known by their identity, which must not be used again.
    first, second = keys_of(lambda: kept[0]), keys_of(lambda: kept[1])
    assert [a == b for a, b in zip(first, second, strict=True)] == [same] * 3
    assert first == keys_of(lambda: kept[0])
    hash(tuple(first))


def test_the_device_in_force_is_part_of_the_kind(simulate: Callable[..., Any]) -> None:
    simulate(2)
    x = mr.constant(1.0)
    keys = set()
    for name in (None, "GPU:0", "GPU:1", "CPU:0"):
        with mr.device(name):
            keys.add(Arguments([x]).key)
    assert len(keys) == 3  # Without one it is the first GPU.


def test_what_is_fed(simulate: Callable[..., Any]) -> None:
    simulate(2)
    gpu = devices.get_device("GPU:1")
    there = mr.constant([1.0]).copy_to(gpu)
    parts = PerReplica([ONES, there, "text"], [0, 2, 3])
    stream = Elements()
    arguments = Arguments((there, {"b": ONES, "a": 3}), {"p": parts, "s": [stream]})
    assert [(device.full_name[-5:], replica) for _, device, replica in arguments.inputs] == [
        ("GPU:1", SHARED),
        ("GPU:0", SHARED),
        ("GPU:0", 0),
        ("GPU:1", 1),
    ]
    assert [spec.shape for spec, _, _ in arguments.inputs] == [(1,), (2,), (2,), (1,)]
    assert [np.asarray(array).tolist() for array in arguments.arrays] == [
        [1.0],
        [1.0, 1.0],
        [1.0, 1.0],
        [1.0],
    ]
    assert arguments.iterators == [stream]

    stand_ins = [mr.constant(float(i)) for i in range(4)]
    (first, second), last = arguments.with_tensors(stand_ins)
    assert first is stand_ins[0]
    assert (second["b"], second["a"], list(second)) == (stand_ins[1], 3, ["b", "a"])
    assert type(last["p"]) is PerReplica
    assert (last["p"].values, last["p"].first_examples) == ((*stand_ins[2:], "text"), (0, 2, 3))
    assert last["s"] == [stream]


def test_structures_stay_as_they_are() -> None:
    structure = Pair([(), {}], (ONES, {"z": None, "a": [ONES]}))
    stand_ins = [mr.constant(1.0), mr.constant(2.0)]
    (found,) = Arguments(structure).with_tensors(stand_ins)
    assert type(found) is Pair
    assert found.first == [(), {}]
    assert found.second == (stand_ins[0], {"z": None, "a": [stand_ins[1]]})


RESULTS: dict[str, tuple[Any, int]] = {
    "a tensor": ("t0", 1),
    "nothing": (None, 0),
    "no tensor": ([1, "a", None], 0),
    "nested": ({"b": ["t0", 5], "a": Pair("t1", ("t2",))}, 3),
    "parts": (PerReplica(["t0", "t1"], [0, 4]), 2),
    "some parts": ([PerReplica(["t0", 3.0]), Mirrored(["t1", "t2"])], 3),
}


@cases(("structure", "count"), RESULTS.values(), ids=RESULTS)
def test_results_are_put_where_they_stood(structure: Any, count: int) -> None:
    """Texts stand for what was recorded."""
    results = Results(structure, lambda part: isinstance(part, str) and part.startswith("t"))
    assert len(results.parts) == count
    for _ in range(2):  # One recording serves many calls.
        tensors = [mr.constant(float(i)) for i in range(count)]
        given = dict(zip(results.parts, tensors, strict=True))
        found = leaves(results.with_tensors(tensors))
        expected = [given.get(each, each) for each in leaves(structure)]
        assert all(a is b for a, b in zip(found, expected, strict=True))


def test_results_keep_their_kind() -> None:
    structure = {"b": Pair("t0", [PerReplica(["t1", "t2"], [0, 4])]), "a": None}
    found = Results(structure, lambda part: isinstance(part, str)).with_tensors(
        [mr.constant(float(i)) for i in range(3)]
    )
    assert (list(found), type(found["b"])) == (["b", "a"], Pair)
    parts = found["b"].second[0]
    assert (type(parts), parts.first_examples) == (PerReplica, (0, 4))
    assert [float(part) for part in parts.values] == [1.0, 2.0]


def leaves(item: Any) -> list[Any]:
    """Return the parts of a structure in the order in which they are written."""
    if isinstance(item, PerReplica | Mirrored):
        return list(item.values)
    if isinstance(item, dict):
        return [each for value in item.values() for each in leaves(value)]
    if isinstance(item, list | tuple):
        return [each for value in item for each in leaves(value)]
    return [item]
