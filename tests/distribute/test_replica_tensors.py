"""Tensors that one replica computed, in another one that found them in a Python object."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute import MirroredStrategy, PerReplica, get_replica_context


class Keeping(mr.layers.Layer):
    """Puts a tensor somewhere, meets the other replicas, and takes it from there."""

    def __init__(self, put: Callable[[Any, Any], None], take: Callable[[Any], Any]) -> None:
        super().__init__(name="keeping")
        self.put, self.take = put, take
        self.rows: list[Any] = []
        self.by_name: dict[str, Any] = {}
        self.module = mr.Module("inner")

    def call(self, inputs: Any) -> Any:
        self.put(self, inputs * 2.0)
        get_replica_context().all_reduce("sum", 1.0)
        return self.take(self) + 0.0


box: list[Any] = []
record = SimpleNamespace()
OTHERS = {
    "list": (lambda s, x: s.rows.append(x), lambda s: s.rows[-1], "attribute 'rows' of <Keeping"),
    "dict": (
        lambda s, x: s.by_name.update(x=x),
        lambda s: s.by_name["x"],
        "attribute 'by_name' of <Keeping name=keeping",
    ),
    "module": (
        lambda s, x: setattr(s.module, "kept", x),
        lambda s: s.module.kept,
        "attribute 'kept' of <mirrored",
    ),
    "global": (lambda s, x: box.append(x), lambda s: box[-1], "a closure or a global"),
    "object": (
        lambda s, x: setattr(record, "x", x),
        lambda s: record.x,
        "a closure or a global",
    ),
}


def parts(*values: float) -> PerReplica:
    return PerReplica([mr.constant([each]) for each in values])


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("case", OTHERS)
def test_a_tensor_of_another_replica(strategy: MirroredStrategy, case: str, recorded: bool) -> None:
    put, take, holder = OTHERS[case]
    layer = Keeping(put, take)
    step = lambda x: strategy.run(layer, args=(x,))  # noqa: E731
    with pytest.raises(RuntimeError, match="that replica 2 computed") as error:
        (mr.function(step) if recorded else step)(parts(1.0, 2.0, 3.0))
    assert holder in str(error.value)
    box.clear()


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x,
        lambda x: get_replica_context().all_reduce("sum", x),
        lambda x: mr.custom_gradient(lambda y: (y, lambda g: g))(x),
    ],
    ids=["returned", "summed", "custom gradient"],
)
def test_other_uses(strategy: MirroredStrategy, use: Callable[[Any], Any]) -> None:
    kept: list[Any] = []

    def step(x: Any) -> Any:
        kept.append(x)
        return use(kept[0])

    with pytest.raises(
        RuntimeError, match="in replica 1, a tensor of shape \\(1,\\) that replica 0"
    ):
        strategy.run(step, args=(parts(1.0, 2.0, 3.0),))


def test_random_numbers_and_local_copies_are_of_their_replica(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        variable = mr.Variable(0.0, synchronization=mr.VariableSynchronization.ON_READ)
    for make in (lambda: mr.random.normal((2,)), variable.read_value):
        kept: list[Any] = []

        def step(kept: list[Any] = kept, make: Any = make) -> Any:
            kept.append(make())
            return kept[0] + 0.0

        with pytest.raises(RuntimeError, match="in replica 1, a tensor"):
            strategy.run(step)


@pytest.mark.parametrize("recorded", [False, True])
def test_what_is_the_same_on_all_replicas(strategy: MirroredStrategy, recorded: bool) -> None:
    """Tables, values of mirrored variables and sums over replicas, which the first one keeps."""
    with strategy.scope():
        variable = mr.Variable(3.0)
    kept: dict[str, Any] = {}

    def step(x: Any) -> Any:
        total = get_replica_context().all_reduce("sum", x)
        for name, make in (
            ("table", lambda: mr.cast(mr.range(2), "float32") / 2.0),
            ("value", lambda: variable * 2.0),
            ("sum", lambda: total * 1.0),
        ):
            kept.setdefault(name, make())
        return x + kept["table"] + kept["value"] + kept["sum"]

    program = lambda x: strategy.run(step, args=(x,))  # noqa: E731
    found = (mr.function(program) if recorded else program)(parts(1.0, 2.0, 3.0))
    rows = [each.numpy().tolist() for each in found.values]
    assert rows == [[each + 12.0, each + 12.5] for each in (1.0, 2.0, 3.0)]


def test_tensors_from_elsewhere(strategy: MirroredStrategy) -> None:
    """A tensor that all replicas get, and one that an earlier run left."""
    both, kept = mr.constant(1.0), []

    def step(x: Any, y: Any) -> Any:
        kept.append(x)
        return kept[0] + y

    found = strategy.run(step, args=(both, parts(1.0, 2.0, 3.0)))
    assert np.ravel([each.numpy() for each in found.values]).tolist() == [2.0, 3.0, 4.0]
