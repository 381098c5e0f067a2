"""A fixed number of replicas on any number of devices: the same bits."""

import functools
import hashlib
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from card_training import make_devices
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st
from worker_loops import WAYS, run

import mirrored as mr
from mirrored import devices, layers
from mirrored.backends import product_settings
from mirrored.distribute import MirroredStrategy, get_replica_context
from mirrored.ops.add_n import tree_sum
from mirrored.program import Program

Simulate = Callable[..., Any]
X = np.random.default_rng(1).normal(size=(21, 6)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(21, 3)).astype(np.float32)
WEIGHTS = np.random.default_rng(3).uniform(0.5, 2.0, size=21).astype(np.float32)


def begin(count: int, *, logical_cpus: bool = False) -> list[str]:
    """Set up N devices, as a program does at its beginning, and return their names."""
    devices.reset_devices()
    layers.reset_names()
    mr.random.set_seed(7)
    if not logical_cpus:
        mr.config.experimental.set_simulated_gpus(count)
        return [f"GPU:{i}" for i in range(count)]
    (cpu,) = mr.config.list_physical_devices("CPU")
    parts = [mr.config.LogicalDeviceConfiguration() for _ in range(count)]
    mr.config.set_logical_device_configuration(cpu, parts)
    return [f"CPU:{i}" for i in range(count)]


def digest(*values: Any) -> str:
    """Return a hash of arrays and plain values."""
    total = hashlib.sha256()
    for value in values:
        total.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
    return total.hexdigest()[:16]


def make_model(*, eager: bool = False, steps: int = 1) -> mr.Model:
    model = mr.Sequential(
        [
            mr.layers.Input((6,)),
            mr.layers.Dense(5, "tanh", kernel_regularizer="l2"),
            mr.layers.BatchNormalization(),
            mr.layers.Dropout(0.3),
            mr.layers.Dense(3),
        ]
    )
    optimizer = mr.optim.Adam(0.01, global_clipnorm=0.5)
    model.compile(optimizer, "mse", metrics=["mae"], run_eagerly=eager, steps_per_execution=steps)
    return model


def trained(model: mr.Model) -> str:
    """Return a hash of all that training leaves: the last batch of 5 leaves replicas empty."""
    history = model.fit(X, Y, batch_size=16, sample_weight=WEIGHTS, verbose=0)
    kept = [v.numpy() for v in (*model.weights, *model.optimizer.variables)]
    return digest(*kept, model.predict(X, batch_size=16, verbose=0), history.history)


def train(count: int, *, executor: str = "auto", replicas: int = 8, **options: Any) -> str:
    names = begin(count, logical_cpus=options.pop("logical_cpus", False))
    with MirroredStrategy(names, executor=executor, replicas=replicas).scope():
        model = make_model(**options)
    return trained(model)


@pytest.mark.behaviour("fixed-replicas")
def test_bits_do_not_depend_on_devices_or_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirrored.distribute.mirrored_strategy.available_threads", lambda: 3)
    expected = train(1)
    assert train(3, eager=True, logical_cpus=True) == expected
    assert train(8, executor="threads", steps=2) == expected
    assert train(2, replicas=7) != expected


@pytest.mark.behaviour("fixed-replicas")
def test_one_copy_per_device(simulate: Simulate) -> None:
    simulate(3)
    strategy = MirroredStrategy(replicas=8)
    on_read = mr.VariableSynchronization.ON_READ
    with strategy.scope():
        v = mr.Variable(2.0, aggregation=mr.VariableAggregation.SUM)
        seen = mr.Variable(0.0, synchronization=on_read, aggregation=mr.VariableAggregation.SUM)
    names = [device.name[-5:] for device in strategy.devices]
    assert names == ["GPU:0"] * 3 + ["GPU:1"] * 3 + ["GPU:2"] * 2
    assert strategy.num_replicas_in_sync == strategy.local_replicas == 8
    assert strategy.extended.parameter_devices == strategy.extended.worker_devices[::3]
    assert len(v.copies) == 3
    assert len(seen.copies) == len(strategy.experimental_local_results(v)) == 8

    def step() -> Any:
        context = get_replica_context()
        assert context is not None
        number = context.replica_id_in_sync_group
        seen.assign_add(float(number))
        v.assign(float(number))
        return number, v.device[-5:], context.all_reduce("sum", mr.constant(1.0))

    numbers, places, sums = strategy.run(step)
    assert list(numbers.values) == list(range(8))
    assert list(places.values) == names
    assert [float(value) for value in sums.values] == [8.0] * 8
    assert [float(copy) for copy in v.copies] == [28.0] * 3
    assert float(seen) == 28.0
    assert [float(copy.numpy()) for copy in seen.copies] == list(range(8))
    updates = strategy.extended.update(v, lambda copy: copy.device[-5:], group=False)
    assert updates == ("GPU:0", "GPU:1", "GPU:2")
    total = strategy.extended.reduce_to("sum", strategy.run(lambda: mr.constant(0.5)), v)
    updated = strategy.extended.update(v, lambda copy, x: copy.assign(x).read_value(), (total,))
    assert [float(value) for value in updated.values] == [4.0] * 8
    v.assign(28.0)
    gathered = strategy.gather(strategy.run(lambda: mr.constant([v.read_value()])), 0)
    assert gathered.numpy().tolist() == [28.0] * 8


class Case(NamedTuple):
    """A training run, but for the devices."""

    replicas: int
    examples: int
    batch_size: int
    optimizer: str
    clipping: str | None
    penalty: str | None
    dropout: float
    normalized: bool
    weighted: bool
    images: bool
    policy: str
    seed: int


class Place(NamedTuple):
    """Where and how a case runs, which does not change its bits."""

    devices: int
    executor: str
    eager: bool
    steps: int
    logical_cpus: bool


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "momentum": lambda **clip: mr.optim.SGD(0.05, momentum=0.9, **clip),
    "adam": lambda **clip: mr.optim.Adam(0.01, **clip),
    "accumulation": lambda **clip: mr.optim.Adam(0.01, gradient_accumulation_steps=2, **clip),
    "average": lambda **clip: mr.optim.SGD(0.05, use_ema=True, weight_decay=0.1, **clip),
}


@st.composite
def training_runs(draw: st.DrawFn) -> tuple[Case, Place]:
    """Draw a case and a place, also with fewer examples than replicas."""
    replicas = draw(st.integers(1, 8), label="replicas")
    batch_size = draw(st.integers(1, 20), label="batch_size")
    case = Case(
        replicas=replicas,
        examples=draw(st.integers(1, 3 * batch_size), label="examples"),
        batch_size=batch_size,
        optimizer=draw(st.sampled_from(sorted(OPTIMIZERS))),
        clipping=draw(st.sampled_from([None, "clipnorm", "clipvalue", "global_clipnorm"])),
        penalty=draw(st.sampled_from([None, "l1", "l2"])),
        dropout=draw(st.sampled_from([0.0, 0.4])),
        normalized=draw(st.booleans()),
        weighted=draw(st.booleans()),
        images=draw(st.booleans()),
        policy=draw(st.sampled_from(["float32", "mixed_bfloat16"])),
        seed=draw(st.integers(0, 2**20)),
    )
    place = Place(
        devices=draw(st.integers(1, replicas), label="devices"),
        executor=draw(st.sampled_from(["serial", "threads", "auto"])),
        eager=draw(st.booleans()),
        steps=draw(st.integers(1, 3)),
        logical_cpus=draw(st.booleans()),
    )
    return case, place


def run_case(case: Case, place: Place) -> str:
    """Return a hash of weights, slots, history, results and predictions."""
    names = begin(place.devices, logical_cpus=place.logical_cpus)
    rng = np.random.default_rng(case.seed)
    shape = (4, 4, 2) if case.images else (5,)
    x = rng.normal(size=(case.examples, *shape)).astype(np.float32)
    y = rng.normal(size=(case.examples, 2)).astype(np.float32)
    weights = rng.uniform(0.5, 2.0, size=case.examples) if case.weighted else None
    stack = [mr.layers.Input(shape)]
    with MirroredStrategy(names, executor=place.executor, replicas=case.replicas).scope():
        if case.images:
            stack += [mr.layers.Conv2D(3, 2, activation="relu"), mr.layers.Flatten()]
        options: dict[str, Any] = {"dtype": case.policy}
        stack.append(mr.layers.Dense(6, "tanh", kernel_regularizer=case.penalty, **options))
        if case.normalized:
            stack.append(mr.layers.BatchNormalization(**options))
        stack += [mr.layers.Dropout(case.dropout, **options), mr.layers.Dense(2)]
        model = mr.Sequential(stack)
        clip = {} if case.clipping is None else {case.clipping: 0.1}
        model.compile(
            OPTIMIZERS[case.optimizer](**clip),
            "mse",
            metrics=["mae"],
            run_eagerly=place.eager,
            steps_per_execution=place.steps,
        )
    sizes: dict[str, Any] = {"batch_size": case.batch_size, "verbose": 0}
    history = model.fit(x, y, epochs=2, sample_weight=weights, **sizes)
    kept = [v.numpy() for v in (*model.weights, *model.optimizer.variables)]
    results = model.evaluate(x, y, **sizes), model.predict(x, **sizes)
    return digest(*kept, history.history, *results)


def check_case(drawn: tuple[Case, Place]) -> None:
    case, place = drawn
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("mirrored.distribute.mirrored_strategy.available_threads", lambda: 3)
        alone = Place(1, "serial", eager=False, steps=1, logical_cpus=False)
        assert run_case(case, place) == run_case(case, alone)


@pytest.mark.behaviour("fixed-replicas")
@settings(max_examples=3)
@given(drawn=training_runs())
def test_bits_do_not_depend_on_the_place(drawn: tuple[Case, Place]) -> None:
    check_case(drawn)


@pytest.mark.parametrize(
    "examples",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.long)],
)
def test_bits_do_not_depend_on_many_places(examples: int) -> None:
    settings(max_examples=examples)(given(drawn=training_runs())(check_case))()


@pytest.mark.parametrize(
    "ways",
    [
        [("loop", "loop eagerly")],
        pytest.param(
            [("fit", "fit eagerly"), ("own step", "own step eagerly")]
            + [(way, way) for way in ("attention", "pairs", "callbacks", "by batch")],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["loop", "others"],
)
def test_ways_of_training_have_the_same_bits(ways: list[tuple[str, str]]) -> None:
    """In `fit`, by steps and in loops of the user's, recorded and eager."""
    strategy_of = functools.partial(MirroredStrategy, replicas=5)
    for one, other in ways:
        expected, spread = run(WAYS[one], 1, strategy_of), run(WAYS[other], 3, strategy_of)
        differing = [n for n in expected if expected[n].tobytes() != spread[n].tobytes()]
        assert differing == [], (one, other)


@pytest.mark.slow
def test_bits_do_not_depend_on_the_cards(emulated_cuda: Callable[..., Any]) -> None:
    """Three cards, one, and virtual ones, whose streams run late and in a random order."""
    hashes = set()
    for seed, layout in enumerate(([1, 1, 1], [1], [2, 1])):
        for eager in (False, True) if seed == 2 else (False,):
            devices.reset_devices()
            layers.reset_names()
            mr.random.set_seed(7)
            emulated_cuda(cards=len(layout), seed=seed)
            with MirroredStrategy(make_devices(layout), replicas=5).scope():
                model = make_model(eager=eager)
            hashes.add(trained(model))
    assert len(hashes) == 1


@cases("count", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_every_sum_is_that_of_the_tree(count: int, dtype: str) -> None:
    """Of a custom loop, recorded and eager; of `reduce`; and of variables that are read."""
    names = begin(count)
    values = mr.cast(np.random.default_rng(5).normal(size=(6, 4)) * 1e3, dtype)
    rows = [values[i] for i in range(6)]
    expected = np.asarray(tree_sum(rows, lambda left, right: left + right).numpy())
    strategy = MirroredStrategy(names, replicas=6)
    with strategy.scope():
        total = mr.Variable(
            mr.zeros((4,), dtype),
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )
    parts = strategy.experimental_distribute_values_from_function(
        lambda context: rows[context.replica_id_in_sync_group]
    )

    def step(part: Any) -> Any:
        context = get_replica_context()
        assert context is not None
        total.assign(part)
        return context.all_reduce("sum", part)

    results = [strategy.run(step, (parts,)), mr.function(strategy.run)(step, (parts,))]
    for value in (*results[0].values, *results[1].values, strategy.reduce("sum", parts), total):
        np.testing.assert_array_equal(np.asarray(value.numpy()), expected)
    assert pickle.loads(pickle.dumps(total)).numpy().tobytes() == expected.tobytes()
    np.testing.assert_array_equal(total.whole().value, expected)


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Return the programs that are made, in order."""
    prepared: list[Program] = []
    prepare = Program.__init__

    def noting(self: Program, *args: Any, **options: Any) -> None:
        prepare(self, *args, **options)
        prepared.append(self)

    monkeypatch.setattr(Program, "__init__", noting)
    return prepared


def vectors_alive(program: Program, size: int) -> dict[int, int]:
    """Return, for each lane, how many vectors of N float32 are alive at one time, at most."""
    blocks = {block.root for block in program.plan.blocks.values() if block.root.storage is None}
    alive: dict[int, int] = {}
    for lane in sorted({block.replica for block in blocks if block.nbytes == 4 * size}):
        own = [b for b in blocks if b.replica == lane and b.nbytes == 4 * size]
        alive[lane] = max(sum(b.start <= a.start <= b.end for b in own) for a in own)
    return alive


@cases(
    ("executor", "alive"),
    [("serial", {0: 4}), ("threads", {0: 3, 1: 3})],  # A lane of 8 replicas; two lanes of 4.
)
def test_few_partial_sums_are_alive(
    executor: str,
    alive: dict[int, int],
    programs: list[Program],
    simulate: Simulate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At most log2 of a lane's replicas, beside the sum that is being written."""
    monkeypatch.setattr("mirrored.distribute.mirrored_strategy.available_threads", lambda: 2)
    simulate(1)
    with MirroredStrategy(replicas=8, executor=executor).scope():
        model = mr.Sequential([mr.layers.Input((6,)), mr.layers.Dense(40), mr.layers.Dense(3)])
        model.compile(mr.optim.SGD(0.1), "mse")
    model.fit(X, Y, batch_size=21, verbose=0)
    assert vectors_alive(programs[-1], 6 * 40 + 40 + 40 * 3 + 3) == alive
    assert programs[-1].threads == (2 if executor == "threads" else 1)


@cases("eager", [True, False], ids=["eager", "recorded"])
def test_products_use_one_thread(
    eager: bool, simulate: Simulate, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int | None] = []
    run = product_settings.run_on_threads

    def noting(count: int | None, *args: Any, **named: Any) -> None:
        used.append(count)
        run(count, *args, **named)

    # Recorded, a product only notes its calls, and the program sets the number of threads.
    asked = "mirrored.backends.product_settings" if eager else "mirrored.program.program"
    monkeypatch.setattr(f"{asked}.run_on_threads", noting)
    monkeypatch.setattr("mirrored.program.lowering.use_all_threads", lambda: used.append(None))
    simulate(1)
    strategy = MirroredStrategy(replicas=2)
    x = mr.ones((400, 400))

    def step(x: Any) -> Any:
        return x @ x

    (strategy.run if eager else mr.function(strategy.run))(step, (x,))
    assert set(used) == {1}
    if eager:
        x @ x
        assert used[-1] is None
        mr.distribute.experimental_set_strategy(strategy)
        x @ x
        assert used[-1] == 1
        mr.distribute.experimental_set_strategy(None)
        x @ x
        assert used[-1] is None


def test_a_trace_has_a_row_per_thread(
    simulate: Simulate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mirrored.distribute.mirrored_strategy.available_threads", lambda: 2)
    simulate(1)
    with MirroredStrategy(replicas=5, executor="threads").scope():
        model = make_model()
    model.fit(X, Y, batch_size=21, verbose=0)
    with mr.profiler.trace(tmp_path / "trace.json"):
        model.fit(X, Y, batch_size=21, verbose=0)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    names = {"replicas 0 to 2 (GPU:0)", "replicas 3 to 4 (GPU:0)", "all replicas"}
    assert rows - {"GPU:0"} == names


def test_another_number_of_devices_goes_on(tmp_path: Path) -> None:
    """A run that is interrupted continues on another number of devices, with the same bits."""
    path = str(tmp_path / "model.keras")

    def run(counts: Sequence[int]) -> str:
        hashes = ""
        for i, count in enumerate(counts):
            names = begin(count)
            with MirroredStrategy(names, replicas=5).scope():
                model = mr.keras.models.load_model(path) if i else make_model()
            hashes = trained(model)
            model.save(path)
        return hashes

    assert run([1, 3]) == run([5, 2])


def test_a_pickled_strategy_has_its_replicas(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy(replicas=5)
    assert strategy.arguments()["replicas"] == 5
    assert "replicas=5" in repr(strategy)
    pickled = pickle.dumps(strategy)
    mr.config.experimental.reset_devices()
    simulate(2)
    again = pickle.loads(pickled)
    assert again is not strategy
    assert again.num_replicas_in_sync == 5
    assert len(again.extended.parameter_devices) == 2


@pytest.mark.behaviour("fixed-replicas")
@cases(
    ("arguments", "match"),
    [
        ({"replicas": 0}, "must be an integer of 1 or more. Received: replicas=0"),
        ({"replicas": -2}, "Received: replicas=-2"),
        ({"replicas": 2.0}, "Received: replicas=2.0"),
        ({"replicas": True}, "Received: replicas=True"),
        ({"replicas": 1025}, "must be at most 1024. Received: replicas=1025"),
        ({"replicas": 2}, "at least the number of devices. Received: replicas=2 and 3 devices"),
        ({"replicas": 4, "deterministic": True}, "deterministic=True. Leave out `deterministic`"),
        (
            {"replicas": 4, "cross_device_ops": mr.distribute.ReductionToOneDevice()},
            "Received: replicas=4 and cross_device_ops=ReductionToOneDevice.*Leave out one",
        ),
    ],
)
def test_refused(arguments: dict[str, Any], match: str, simulate: Simulate) -> None:
    simulate(3)
    with pytest.raises(ValueError, match=match):
        MirroredStrategy(**arguments)


@pytest.mark.behaviour("fixed-replicas-of-workers")
@cases(
    ("replicas", "match"),
    [
        (2, "devices of all workers. Received: replicas=2 and 3 devices, by worker .3."),
        (0, "Received: replicas=0"),
        (1025, "at most 1024"),
    ],
)
def test_refused_of_workers(replicas: int, match: str, simulate: Simulate) -> None:
    simulate(3)
    with pytest.raises(ValueError, match=match):
        mr.distribute.MultiWorkerMirroredStrategy(replicas=replicas)


def test_a_worker_alone_is_as_one_process(simulate: Simulate) -> None:
    simulate(2)
    strategy = mr.distribute.MultiWorkerMirroredStrategy(replicas=5)
    assert strategy.copy_numbers == MirroredStrategy(replicas=5).copy_numbers == [0, 0, 0, 1, 1]
    assert strategy.arguments()["replicas"] == strategy.num_replicas_in_sync == 5
