"""Values with one part a replica: how they are shown, put together, taken apart and used."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import Mirrored, MirroredStrategy, PerReplica, get_replica_context
from mirrored.distribute.per_replica import regroup, select
from mirrored.errors import InvalidArgumentError


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


# PerReplica and Mirrored


@pytest.mark.behaviour("per-replica-repr")
def test_per_replica_repr() -> None:
    value = PerReplica([mr.constant(1), "b"])
    assert repr(value) == (
        "PerReplica:{\n  0: <mr.Tensor: shape=(), dtype=int32, numpy=1>,\n  1: 'b'\n}"
    )


def test_per_replica_is_no_tensor() -> None:
    with pytest.raises(InvalidArgumentError, match="2 parts, one per replica, cannot be used as"):
        mr.convert_to_tensor(PerReplica([1.0, 2.0]))
    value = PerReplica([1.0, 2.0])
    with pytest.raises(TypeError, match=r"Take its parts, with `strategy[.]experimental_local"):
        mr.constant(value)
    assert not hasattr(value, "numpy")
    with pytest.raises(
        AttributeError, match=r"no attribute 'numpy': it has a value per replica[.]"
    ):
        value.numpy()
    assert copy.deepcopy(value).values == (1.0, 2.0)


def test_mirrored_is_a_tensor_of_the_running_replica(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    value = Mirrored([mr.constant([1.0]), mr.constant([2.0])])
    assert repr(value).startswith("Mirrored:{\n  0: <mr.Tensor: shape=(1,)")
    assert (value.shape, value.dtype, value.numpy().tolist()) == ((1,), mr.float32, [1.0])
    assert float((value + 1.0)[0]) == 2.0

    def replica(part: Any) -> Any:
        here = get_replica_context()
        assert here is not None
        assert isinstance(part, mr.Tensor)  # Taken apart, as any value with one a replica.
        return value * 10.0, here.all_reduce("sum", value), part

    product, total, part = strategy.run(replica, (value,))
    assert [float(each[0]) for each in product.values] == [10.0, 20.0]
    assert [float(each[0]) for each in total.values] == [3.0, 3.0]
    assert [float(each[0]) for each in part.values] == [1.0, 2.0]


def test_mirrored_in_one_replica_of_another_strategy() -> None:
    value = Mirrored([mr.constant(1.0), mr.constant(2.0)])
    assert float(MirroredStrategy(["CPU:0"]).run(lambda: value + 0.0)) == 1.0


SHARED = object()
GROUPS: list[tuple[str, list[Any], Any]] = [
    ("a value", [1.5, 2.5], PerReplica([1.5, 2.5])),
    ("one object", [SHARED, SHARED], SHARED),
    ("None", [None, None], None),
    ("a list", [[1, 2], [3, 4]], [PerReplica([1, 3]), PerReplica([2, 4])]),
    ("a tuple", [(1, (2,)), (3, (4,))], (PerReplica([1, 3]), (PerReplica([2, 4]),))),
    ("a dict", [{"a": 1, "b": 2}, {"b": 4, "a": 3}], {"a": PerReplica([1, 3]), "b": None}),
    ("a named tuple", [Pair(1, 2), Pair(3, 4)], Pair(PerReplica([1, 3]), PerReplica([2, 4]))),
    ("nothing", [[], []], []),
]


@cases(("parts", "grouped"), [row[1:] for row in GROUPS], ids=[row[0] for row in GROUPS])
def test_regroup_and_select_are_inverse(parts: list[Any], grouped: Any) -> None:
    found = regroup(parts)
    assert type(found) is type(grouped)
    if isinstance(grouped, dict):
        assert list(found) == list(grouped)
    elif isinstance(grouped, list | tuple):
        assert len(found) == len(grouped)
    for i, part in enumerate(parts):
        assert select(i, found) == part


@cases(
    ("parts", "match"),
    [
        ([1, [1]], "at the top: replica 0 has a int, replica 1 has a list of 1"),
        ([[1], [1, 2]], "replica 0 has a list of 1, replica 1 has a list of 2"),
        ([[1], (1,)], "replica 0 has a list of 1, replica 1 has a tuple of 1"),
        ([{"a": 1}, {"b": 1}], r"keys \['a'\], replica 1 has a dict with the keys \['b'\]"),
        ([{"a": [0, 1]}, {"a": [0, None, 1]}], r"differ at \['a'\]: replica 0"),
        ([{"a": [0, (1,)]}, {"a": [0, 1]}], r"differ at \['a'\]\[1\]: replica 0"),
        ([Pair(1, 2), (1, 2)], "a Pair of 2, replica 1 has a tuple of 2"),
        ([None, [None]], "a NoneType, replica 1"),
    ],
)
def test_regroup_of_different_structures(parts: list[Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        regroup(parts)


@cases("parts", [[1, 1], [SHARED, SHARED], [None, None], [1.5, 2.5]])
def test_regroup_that_always_wraps(parts: list[Any]) -> None:
    grouped = regroup([{"a": part} for part in parts], always_wrap=True)["a"]
    assert type(grouped) is PerReplica
    assert grouped.values == tuple(parts)
