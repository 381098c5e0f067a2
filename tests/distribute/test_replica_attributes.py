"""What layers keep in attributes during `call`: each replica reads its own."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from listing import listed

import mirrored as mr
from mirrored.distribute import MirroredStrategy, PerReplica, get_replica_context


class Keeping(mr.layers.Layer):
    """Keeps its inputs in an attribute, meets the other replicas, and reads it."""

    def __init__(self, form: str = "value") -> None:
        super().__init__(name="keeping")
        self.form = form
        self.kept: Any = None
        self.seen: list[Any] = []

    def call(self, inputs: Any) -> Any:
        self.seen.append(self.kept is None)
        if self.form == "value":
            self.kept = inputs
        elif self.form == "list":
            self.kept = []
            self.kept.append(inputs)
        else:
            self.kept = {"a": [inputs]}
        get_replica_context().all_reduce("sum", 1.0)
        return self.read() * 1.0

    def read(self) -> Any:
        kept = self.kept
        return {"value": lambda: kept, "list": lambda: kept[0], "dict": lambda: kept["a"][0]}[
            self.form
        ]()


def parts(*values: float) -> PerReplica:
    return PerReplica([mr.constant([each]) for each in values])


def parts_of(value: Any) -> list[float]:
    return [float(each[0]) for each in value.values]


@pytest.mark.behaviour("replica-attributes")
@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("form", ["value", "list", "dict"])
def test_each_replica_reads_its_own(strategy: MirroredStrategy, form: str, recorded: bool) -> None:
    layer = Keeping(form)

    def step(x: Any) -> Any:
        layer(x)
        return layer.read() * 2.0

    program = lambda x: strategy.run(step, args=(x,))  # noqa: E731
    run = mr.function(program) if recorded else program
    assert parts_of(run(parts(1.0, 2.0, 3.0))) == [2.0, 4.0, 6.0]
    assert layer.seen[:3] == [True] * 3  # One replica does not see what another one assigned.
    assert parts_of(run(parts(4.0, 5.0, 6.0))) == [8.0, 10.0, 12.0]


def test_what_a_step_left_for_the_next(strategy: MirroredStrategy) -> None:
    layer = Keeping()

    def step(x: Any) -> Any:
        before = layer.kept
        layer(x)
        return x if before is None else before - x

    strategy.run(step, args=(parts(1.0, 2.0, 3.0),))
    assert parts_of(strategy.run(step, args=(parts(3.0, 3.0, 3.0),))) == [-2.0, -1.0, 0.0]
    two = MirroredStrategy(["GPU:0", "GPU:1"])
    assert parts_of(two.run(step, args=(parts(7.0, 8.0),))) == [7.0, 8.0]


@pytest.mark.behaviour("replica-attributes")
def test_outside_of_replicas(strategy: MirroredStrategy) -> None:
    """There it is what all replicas have, until it is assigned there."""
    layer = Keeping()
    strategy.run(layer, args=(parts(1.0, 2.0, 3.0),))
    assert parts_of(layer.kept) == [1.0, 2.0, 3.0]
    assert hasattr(layer, "kept")
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert parts_of(other.kept) == [1.0, 2.0, 3.0]
    layer.kept = mr.constant(5.0)
    assert float(layer.kept) == 5.0
    strategy.run(layer, args=(parts(1.0, 2.0, 3.0),))
    del layer.kept
    with pytest.raises(AttributeError, match="kept"):
        layer.kept  # noqa: B018


def test_a_layer_that_a_replica_makes_is_set_up_for_all(strategy: MirroredStrategy) -> None:
    made: list[Any] = []

    def step(x: Any) -> Any:
        if not made:
            made.append(mr.Sequential([mr.layers.Reshape((1,)), mr.layers.Flatten()]))
        return made[0](mr.reshape(x, (1, 1)))[0]

    assert parts_of(strategy.run(step, args=(parts(1.0, 2.0, 3.0),))) == [1.0, 2.0, 3.0]


def test_deleted_in_replicas(strategy: MirroredStrategy) -> None:
    layer = Keeping()

    def step(x: Any) -> Any:
        layer.fresh = x
        del layer.fresh
        return hasattr(layer, "fresh")

    assert strategy.run(step, args=(parts(1.0, 2.0, 3.0),)) is False


def test_what_is_no_tensor_is_shared(strategy: MirroredStrategy) -> None:
    layer = Keeping()

    def step() -> None:
        layer.calls = getattr(layer, "calls", 0) + 1
        layer.mixed = [mr.constant(1.0), layer]

    strategy.run(step)
    assert layer.calls == 3
    assert layer.mixed[1] is layer


class Hidden(mr.Model):
    """Reads in its step what it kept in `call`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = mr.layers.Dense(4), mr.layers.BatchNormalization()
        self.last = mr.layers.Dense(1)

    def call(self, inputs: Any, training: bool = False) -> Any:
        self.hidden = self.first(inputs)
        return self.last(self.norm(self.hidden, training=training))

    def train_step(self, data: Any) -> dict[str, Any]:
        x, y = data
        with mr.GradientTape() as tape:
            outputs = self(x, training=True)
            loss = mr.reduce_mean(mr.square(outputs - y)) + 0.3 * mr.reduce_mean(
                mr.square(self.hidden)
            )
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def test_a_step_that_reads_what_call_kept(simulate: Callable[..., Any]) -> None:
    simulate(2)
    x = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
    found = []
    for replicas in (1, 2):
        mr.random.set_seed(0)
        with MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = Hidden()
            model.compile(mr.optim.SGD(0.1))
        history = model.fit(x, x[:, :1], batch_size=4, shuffle=False, verbose=0)
        found.append([*history.history["loss"], *map(np.ravel, model.get_weights())])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)


SUM = mr.VariableAggregation.SUM


def replica() -> Any:
    return get_replica_context().replica_id_in_sync_group


@pytest.mark.behaviour("made-in-replicas")
def test_one_for_all(strategy: MirroredStrategy) -> None:
    made: list[Any] = []

    def program() -> Any:
        get_replica_context().all_reduce("sum", mr.constant(1.0))  # Replicas may meet before.
        made.append(mr.Variable(lambda: mr.constant(3.0 + replica()), name="v"))
        made.append(mr.Variable(2.0, name="v"))
        with mr.GradientTape() as tape:
            y = made[-2] * made[-2] * float(replica() + 1)
        return tape.gradient(y, made[-2])

    found = strategy.run(program)
    first, second = made[:2]
    assert [each is first for each in made] == [True, False] * 3
    assert [copy.name for copy in first.copies] == ["v:0", "v/replica_1:0", "v/replica_2:0"]
    assert first is not second
    assert listed(list(found.values)) == [6.0, 12.0, 18.0]
    strategy.run(program)
    assert made[6] is not first  # Another run makes others, as Python does.


@pytest.mark.parametrize("recorded", [False, True])
def test_it_is_kept_from_run_to_run(strategy: MirroredStrategy, recorded: bool) -> None:
    made: list[Any] = []

    def program(x: Any) -> Any:
        if not made:
            made.append(mr.Variable(3.0, aggregation=SUM))
        made[0].assign_add(x * (replica() + 1.0))
        return made[0] * 1.0

    def run(x: Any) -> Any:
        return strategy.run(program, (x,))

    step = mr.function(run) if recorded else run
    found = [listed(list(step(mr.constant(x)).values)) for x in (1.0, 2.0)]
    assert found == [[9.0] * 3, [21.0] * 3]
    assert len(made) == 1


def test_brought_together_on_reads(strategy: MirroredStrategy) -> None:
    made: list[Any] = []

    def program() -> None:
        on_read = mr.VariableSynchronization.ON_READ
        made.append(mr.Variable(0.0, synchronization=on_read, aggregation=SUM))
        made[-1].assign_add(replica() + 1.0)

    strategy.run(program)
    assert float(made[0]) == 6.0


def test_names_in_another_order(strategy: MirroredStrategy) -> None:
    def program() -> Any:
        names = ["a", "b"] if replica() else ["b", "a"]
        made = {name: mr.Variable(float(name == "a"), name=name) for name in names}
        return made["a"] * 1.0

    assert listed(list(strategy.run(program).values)) == [1.0, 1.0, 1.0]


@pytest.mark.behaviour("made-in-replicas")
def test_the_first_replica_makes_it(strategy: MirroredStrategy) -> None:
    found = strategy.run(lambda: 5.0 if replica() else float(mr.Variable(1.0)))
    assert found.values == (1.0, 5.0, 5.0)
    with pytest.raises(
        RuntimeError, match="which replica 1 creates and the first replica does not"
    ):
        strategy.run(lambda: mr.Variable(1.0) if replica() else None)
    with pytest.raises(RuntimeError, match="mismatching name on device 2"):
        strategy.run(lambda: [mr.Variable(1.0) for _ in range(1 + replica() // 2)])
