"""What `run` and `experimental_local_results` of strategies do."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from case_table import cases
from replica_context import number

import mirrored as mr
from mirrored import ops
from mirrored.distribute import (
    MirroredStrategy,
    PerReplica,
    Strategy,
    get_strategy,
    has_strategy,
)

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


# run


@pytest.mark.behaviour("two-replicas-run")
def test_id_plus_one(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    result = strategy.run(lambda: number() + 1)
    assert strategy.experimental_local_results(result) == (1, 2)
    assert repr(result) == "PerReplica:{\n  0: 1,\n  1: 2\n}"


@pytest.mark.behaviour("run", "two-replicas-run")
def test_structures_are_regrouped(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()

    def replica(x: ops.Tensor) -> Any:
        return {"a": 2.0 * x, "b": [x * x, (None, Pair("same", -x))]}

    x = PerReplica([mr.constant(1.0), mr.constant(2.0)])
    result = strategy.run(replica, (x,))
    flat = [result["a"], result["b"][0], result["b"][1][1].second]
    assert [[float(part) for part in each.values] for each in flat] == [
        [2.0, 4.0],
        [1.0, 4.0],
        [-1.0, -2.0],
    ]
    assert result["b"][1][0] is None
    assert result["b"][1][1].first == "same"
    assert list(result) == ["a", "b"]


@pytest.mark.behaviour("run")
def test_one_replica_is_unwrapped() -> None:
    strategy = MirroredStrategy(["CPU:0"])
    result = strategy.run(lambda x, *, y: {"sum": [x + y]}, [PerReplica([1])], {"y": 2})
    assert result == {"sum": [3]}


@pytest.mark.parametrize("wrap", [tuple, list])
def test_arguments_are_taken_apart(simulate: Simulate, wrap: Callable[[Any], Any]) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    seen: list[Any] = []

    def replica(*args: Any, **kwargs: Any) -> None:
        seen.append((args, kwargs))

    parts = PerReplica(["p0", "p1"])
    args = wrap([parts, 1, [parts, 2], {"k": parts}, Pair(parts, 3)])
    strategy.run(replica, args, {"a": parts, "b": (parts, 4)})
    assert seen == [
        (
            (p, 1, [p, 2], {"k": p}, Pair(p, 3)),
            {"a": p, "b": (p, 4)},
        )
        for p in ("p0", "p1")
    ]
    assert type(seen[0][0][4]) is Pair


def test_mirrored_variables_are_passed_whole(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    seen: list[Any] = []
    assert strategy.run(lambda w: (seen.append(w), w)[1], (v,)) is v
    assert all(each is v for each in seen)


@pytest.mark.behaviour("run-arguments")
@cases("replicas", [1, 2])
@cases(
    ("call", "error", "match"),
    [
        (
            lambda s: s.run(print, 3),
            ValueError,
            "positional args must be a list or tuple, got <class 'int'>",
        ),
        (
            lambda s: s.run(print, mr.constant([1.0])),
            ValueError,
            "positional args must be a list or tuple, got .*Tensor",
        ),
        (lambda s: s.run(3), TypeError, "`fn` must be callable. Received: 3"),
        (
            lambda s: s.run(print, (PerReplica([1, 2, 3]),)),
            ValueError,
            "one part per replica, here [12]. Received: 3 parts",
        ),
        (
            lambda s: s.run(print, (), {"x": [PerReplica([])]}),
            ValueError,
            "one part per replica, here [12]. Received: 0 parts",
        ),
        (
            lambda s: s.run(lambda: s.run(number)),
            RuntimeError,
            "strategy.run must be called in the cross-replica context",
        ),
        (
            lambda s: s.run(lambda: s.reduce("sum", 1.0)),
            RuntimeError,
            "reduce requires cross-replica context, use get_replica_context",
        ),
    ],
)
def test_refused_calls(
    simulate: Simulate,
    replicas: int,
    call: Callable[[Strategy], Any],
    error: type[Exception],
    match: str,
) -> None:
    simulate(replicas)
    strategy = MirroredStrategy()
    with pytest.raises(error, match=match):
        call(strategy)
    assert not has_strategy()
    assert strategy.run(lambda: 7) == 7


@pytest.mark.behaviour("different-structures")
@cases(
    ("result", "match"),
    [
        (lambda i: [1] * (i + 1), "at the top: replica 0 has a list of 1, replica 1 has a list of"),
        (lambda i: {"a": {"b": [1, i][: i + 1]}}, r"at \['a'\]\['b'\]: replica 0 has a list of 1"),
        (lambda i: None if i else (1, 2), "replica 0 has a tuple of 2, replica 1 has a NoneType"),
    ],
)
def test_results_of_different_structures(
    simulate: Simulate, result: Callable[[int], Any], match: str
) -> None:
    simulate(2)
    with pytest.raises(ValueError, match=match):
        MirroredStrategy().run(lambda: result(number()))


def test_run_outside_all_scopes() -> None:
    default = get_strategy()
    assert default.run(lambda x, *, y: x + y, (1,), {"y": PerReplica([2])}) == 3
    assert default.num_replicas_in_sync == 1
    assert [device.name for device in default.devices] == ["/device:CPU:0"]


def test_run_outside_all_scopes_is_placed_as_any_code_is(simulate: Simulate) -> None:
    simulate(2)
    with mr.device("GPU:1"):
        assert get_strategy().run(lambda: mr.constant(1.0).device) == f"{FULL}GPU:1"


# experimental_local_results


@pytest.mark.behaviour("local-results")
def test_local_results(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy()
    with strategy.scope():
        v = mr.Variable(3.0)
    parts = PerReplica([1, 2])
    local = strategy.experimental_local_results
    assert local(parts) == (1, 2)
    assert local("plain") == ("plain",)
    assert local(None) == (None,)
    assert all(a is b for a, b in zip(local(v), v.copies, strict=True))
    assert local({"a": parts, "b": [parts, 5]}) == ({"a": 1, "b": [1, 5]}, {"a": 2, "b": [2, 5]})
    first, second = local((v, parts))
    assert (first[0] is v.copies[0], second[0] is v.copies[1]) == (True, True)
    assert (first[1], second[1]) == (1, 2)
