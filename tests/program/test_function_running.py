"""Users' own recorded functions where they run: replicas, errors, memory and threads."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import PerReplica, get_replica_context
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError


def tensor(*shape: int, seed: int = 0) -> mr.Tensor:
    return mr.constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def numbers(result: Any) -> Any:
    """Return a structure of tensors as one of lists."""
    if isinstance(result, PerReplica):
        return [numbers(each) for each in result.values]
    if isinstance(result, dict):
        return {key: numbers(value) for key, value in result.items()}
    return np.asarray(result).tolist()


# ------------------------------------------------------------------------------ strategies


@pytest.fixture(
    params=[
        (1, "auto"),
        pytest.param((2, "serial"), marks=pytest.mark.slow),
        (3, "serial"),
        (2, "threads"),
        pytest.param((3, "threads"), marks=pytest.mark.slow),
    ]
)
def strategy(request: pytest.FixtureRequest, simulate: Any) -> Iterator[mr.MirroredStrategy]:
    count, executor = request.param
    simulate(count)
    strategy = mr.MirroredStrategy(executor=executor)
    yield strategy
    strategy.close()


def spread(strategy: mr.MirroredStrategy, x: Any, *, here: bool = True) -> PerReplica:
    """Return a part a replica, on its device or all where tensors are made."""
    count = strategy.num_replicas_in_sync
    parts = [mr.constant(part) for part in np.array_split(np.asarray(x, np.float32), count)]
    if here:
        parts = [p.copy_to(device) for p, device in zip(parts, strategy.devices, strict=True)]
    return PerReplica(parts, [i * 12 // count for i in range(count)])


def meeting(x: Any, v: Any) -> Any:
    """Meet and write, as replicas do."""
    context = get_replica_context()
    total = context.all_reduce("sum", mr.reduce_sum(x * v))
    mean = context.merge_call(lambda s, value: s.reduce("mean", value, axis=None), (total,))
    old = v.read_value()
    v.assign_add(mr.reduce_sum(x))
    return {"total": total, "mean": mean, "old": old, "x": x}


@pytest.mark.parametrize(
    ("around", "here"),
    [(True, False), (False, True)],
    ids=["around run, elsewhere", "run of a function, in place"],
)
def test_replicas(strategy: mr.MirroredStrategy, around: bool, here: bool) -> None:
    seen = []
    for recorded in (False, True):
        with strategy.scope():
            v = mr.Variable(1.0, aggregation=mr.VariableAggregation.SUM)
        make = mr.function if recorded else lambda each: each
        if around:
            call = make(lambda x, v=v: strategy.run(meeting, args=(x,), kwargs={"v": v}))
        else:
            step = make(meeting)
            call = lambda x, v=v, step=step: strategy.run(step, (x,), {"v": v})  # noqa: E731
        for seed in range(3):
            result = call(spread(strategy, tensor(12, seed=seed).numpy(), here=here))
            seen.append([numbers(result), [float(each) for each in getattr(v, "copies", [v])]])
    assert seen[:3] == seen[3:]


def test_replicas_of_which_some_have_nothing_to_do(strategy: mr.MirroredStrategy) -> None:
    def step(x: Any) -> Any:
        return x * 2.0 if get_replica_context().replica_id_in_sync_group else x

    x = spread(strategy, np.arange(12))
    for _ in range(2):
        assert numbers(mr.function(lambda x: strategy.run(step, (x,)))(x)) == numbers(
            strategy.run(step, (x,))
        )


def drawing(x: Any) -> Any:
    drawn = mr.random.uniform((2,))
    total = get_replica_context().all_reduce("sum", drawn + x[0])
    return {"total": total, "after": mr.random.uniform((2,))}


DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "around a meeting": lambda run, x: run(drawing, (x,)),
    "before": lambda run, x: [mr.random.uniform((2,)), run(drawing, (x,))],
    "after": lambda run, x: [run(drawing, (x,)), mr.random.uniform((2,))],
    "by replicas alone": lambda run, x: run(lambda: mr.random.normal((3,))),
}


@pytest.mark.parametrize("function", DRAWS.values(), ids=DRAWS)
def test_replicas_draw_what_they_draw_eagerly(
    function: Callable[[Any, Any], Any], strategy: mr.MirroredStrategy
) -> None:
    x, seen = spread(strategy, np.arange(12)), []
    for make in (lambda each: each, mr.function):
        call = make(lambda x: function(strategy.run, x))
        mr.random.set_seed(3)
        seen.append([repr(call(x)) for _ in range(2)])
    assert seen[0] == seen[1]


OPTIMIZERS: dict[str, Callable[[], mr.optim.Optimizer]] = {
    "sgd": lambda: mr.optim.SGD(0.1),
    "momentum": lambda: mr.optim.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda: mr.optim.Adam(0.1, global_clipnorm=0.5),
}


@pytest.mark.usefixtures("one_blas_thread")
@pytest.mark.parametrize(
    ("make", "strategy"),
    [
        pytest.param(OPTIMIZERS["sgd"], (1, "auto"), id="sgd"),
        pytest.param(OPTIMIZERS["momentum"], (2, "threads"), id="momentum"),
        pytest.param(OPTIMIZERS["adam"], (3, "serial"), id="adam"),
    ],
    indirect=["strategy"],
)
def test_steps_of_training(
    make: Callable[[], Any], strategy: mr.MirroredStrategy, bits: Callable[..., Any]
) -> None:
    seen = []
    for recorded in (False, True):
        mr.random.set_seed(5)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Dense(5, "tanh"), mr.layers.Dropout(0.3)])
            optimizer = make()
        model.build((None, 3))

        def step(x: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
            with mr.GradientTape() as tape:
                loss = mr.reduce_sum(mr.square(model(x, training=True)))
            weights = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return loss

        step = mr.function(step) if recorded else step
        x = spread(strategy, tensor(12, 3).numpy())
        losses = [numbers(strategy.run(step, (x,))) for _ in range(2)]
        optimizer.learning_rate = 0.01
        losses += [numbers(strategy.run(step, (x,))) for _ in range(2)]
        state = [*model.weights, *optimizer.variables]
        seen.append((losses, bits([c.numpy() for v in state for c in getattr(v, "copies", [v])])))
    assert seen[0] == seen[1]


# ------------------------------------------------------------------------------ errors


KEPT: list[Any] = []
REFUSED: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x.numpy(),
    "float": lambda x: float(x),
    "if": lambda x: x if x > 0.0 else -x,
    "print": lambda x: f"{x:.3f}",
    "NumPy": lambda x: np.tanh(x),
    "numpy_function": lambda x: mr.numpy_function(np.tanh, [x], mr.float32) + x,
    "the initial value of a variable": lambda x: mr.Variable(x),
    "a variable's value": lambda x: KEPT[0].numpy(),
}


@cases("use", REFUSED.values(), ids=REFUSED)
def test_what_needs_values(use: Callable[[Any], Any]) -> None:
    """It is an error while recording, which changes nothing, and the next call works."""
    KEPT[:] = [v := mr.Variable(1.0)]

    @mr.function
    def step(x: Any, refused: bool) -> Any:
        v.assign_add(x)
        return use(x) if refused else x

    with pytest.raises(OperatorNotAllowedInGraphError, match=r"Received: .*recorded"):
        step(mr.constant(1.0), True)
    assert float(v) == 1
    assert [float(step(mr.constant(1.0), False)), float(v)] == [1, 2]


@cases(
    "use",
    [
        lambda x: x + 1.0,
        lambda x: x.numpy(),
        lambda x: float(x),
        lambda x: mr.Variable(0.0).assign(x),
        lambda x: mr.function(lambda: x + 1.0)(),
        lambda x: mr.function(lambda y: y + 1.0)(x),
    ],
)
def test_a_tensor_that_is_kept_has_no_value(use: Callable[[Any], Any]) -> None:
    kept: list[Any] = []
    mr.function(lambda x: kept.append(x * 2.0))(mr.constant(1.0))
    with pytest.raises(OperatorNotAllowedInGraphError, match="has no value outside of it"):
        use(kept[0])


@pytest.mark.parametrize("good_first", [True, False])
def test_labels_are_checked_in_every_call(good_first: bool) -> None:
    v, logits = mr.Variable(1.0), mr.constant(np.zeros((2, 3), np.float32))

    @mr.function
    def loss(labels: Any) -> Any:
        v.assign_add(1.0)
        return mr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits * v)

    if good_first:
        loss(mr.constant([0, 1]))
    before = float(v)
    for labels in ([0, 3], [-1, 2]):
        with pytest.raises(InvalidArgumentError, match="outside the valid range of"):
            loss(mr.constant(labels))
    assert float(v) == before
    loss(mr.constant([0, 2]))
    assert float(v) == before + 1


def test_wrong_labels_of_one_replica_leave_the_variables_of_all(
    strategy: mr.MirroredStrategy,
) -> None:
    """Also of a replica that has gone on meanwhile to where it counts its examples."""
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        seen = mr.Variable(
            0.0,
            synchronization=mr.VariableSynchronization.ON_READ,
            aggregation=mr.VariableAggregation.SUM,
        )

    def replica(labels: mr.Tensor) -> None:
        losses = mr.nn.sparse_softmax_cross_entropy_with_logits(labels, mr.zeros((2, 3)))
        seen.assign_add(mr.reduce_sum(losses))

    @mr.function
    def step(labels: Any) -> None:
        strategy.run(replica, args=(labels,))

    def parts(wrong: int) -> PerReplica:
        return PerReplica([mr.constant([0, 3 if i == wrong else 0]) for i in range(replicas)])

    step(parts(replicas))
    before = numbers(PerReplica(strategy.experimental_local_results(seen)))
    for wrong in range(replicas):
        with pytest.raises(InvalidArgumentError, match="outside the valid range of"):
            step(parts(wrong))
        assert numbers(PerReplica(strategy.experimental_local_results(seen))) == before, wrong


@pytest.mark.parametrize("size", [3, 100_000])
def test_an_exponent_that_is_refused_leaves_the_whole_variable(size: int) -> None:
    """Also where a vector is computed in pieces, and a later one is refused."""
    x = mr.constant(np.full(size, 2, np.int32))
    v = mr.Variable(x)

    @mr.function
    def step(y: Any) -> None:
        v.assign(x**y + x)

    step(x)
    exponents = np.full(size, 3, np.int32)
    exponents[-1] = -1
    with pytest.raises(InvalidArgumentError, match="negative integer powers"):
        step(mr.constant(exponents))
    np.testing.assert_array_equal(v.numpy(), np.full(size, 6))


def test_an_error_in_python_leaves_nothing_behind() -> None:
    v, optimizer, fails = mr.Variable(1.0), mr.optim.Adam(0.1), [True]

    @mr.function
    def step(x: Any) -> None:
        optimizer.apply_gradients([(x, v)])
        if fails.pop():
            raise ArithmeticError("mine")

    with pytest.raises(ArithmeticError, match="mine"):
        step(mr.constant(1.0))
    assert [float(v), int(optimizer.iterations), len(optimizer.variables)] == [1, 0, 2]
    fails[:] = [False]
    step(mr.constant(1.0))
    assert int(optimizer.iterations) == 1
    eager = mr.Variable(1.0)
    mr.optim.Adam(0.1).apply_gradients([(mr.constant(1.0), eager)])
    assert float(v) == float(eager)


# ------------------------------------------------------------------------------ memory


def in_use() -> int:
    gc.collect()
    return int(mr.config.experimental.get_memory_info("GPU:0")["current"])


def test_out_of_memory_changes_nothing(simulate: Callable[..., Any]) -> None:
    """Neither where there is no room for the program, nor where there is none for results."""
    simulate(1, 1)
    v = mr.Variable(np.zeros(10, np.float32))
    step = mr.function(lambda n: [v.assign_add(v * 0.0 + 1.0), mr.random.uniform((n,)) + 1.0][1])
    small = step(10)
    before = in_use()
    with pytest.raises(mr.errors.ResourceExhaustedError):
        step(1_000_000)
    assert (in_use(), v.numpy()[0]) == (before, 1)
    kept = [small]
    with pytest.raises(mr.errors.ResourceExhaustedError):
        kept.extend(step(40_000) for _ in range(100))
    assert v.numpy()[0] == len(kept)
    kept.clear()
    step(40_000)


def test_a_recording_keeps_none_of_what_it_was_given(simulate: Callable[..., Any]) -> None:
    """But for objects that are known by their identity, which nobody else may get meanwhile."""

    class Settings:
        factor = 2.0

    simulate(1)
    x, settings = tensor(1000), Settings()
    arguments = [weakref.ref(each) for each in (x, settings)]
    scaled = mr.function(lambda x, settings: mr.reduce_sum(x) * settings.factor)
    scaled(x, settings)
    del x, settings
    assert [each() is None for each in arguments] == [True, False]


def test_memory_goes_with_the_function(simulate: Callable[..., Any]) -> None:
    simulate(1)
    v = mr.Variable(np.zeros(1000, np.float32))
    before = in_use()
    step = mr.function(lambda x: mr.tanh(v.assign_add(x)) * 2.0)
    result = step(np.ones(1000, np.float32))
    assert in_use() > before
    del step, result
    assert in_use() == before


def test_many_kinds_are_told_of_and_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    step = mr.function(lambda x, n: x * n)
    for n in range(70):
        step(mr.constant(1.0), n)
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "has been recorded for 16 different kinds of calls" in warning
    assert len(step._traces) == 64


# ------------------------------------------------------------------------------ threads


def test_threads_lose_no_write(ends: Callable[..., Any]) -> None:
    """Threads may call one function, several that write one variable, and write to it eagerly."""
    v, x, sizes = mr.Variable(0.0), mr.constant(1.0), range(1, 5)
    one = mr.function(lambda x: v.assign(v * 1.0 + mr.reduce_sum(x)))
    two = mr.function(lambda x: v.assign_add(x * 2.0))
    calls: Sequence[Callable[[], Any]] = (
        lambda: one(x),
        lambda: one(x),
        lambda: two(x),
        lambda: v.assign_add(x),
        lambda: [one(mr.ones((n,))) for n in sizes],
    )

    def work(call: Callable[[], Any]) -> None:
        for _ in range(200):
            call()

    def run() -> None:
        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        ends(run)
    finally:
        sys.setswitchinterval(interval)
    assert float(v) == 200 * (1 + 1 + 2 + 1 + sum(sizes))


def test_another_strategy_in_force_is_another_kind_of_call(simulate: Callable[..., Any]) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy()
    replicas = mr.function(lambda: mr.constant(mr.distribute.get_strategy().num_replicas_in_sync))
    for _ in range(2):
        assert int(replicas()) == 1
        with strategy.scope():
            assert int(replicas()) == 2
    assert len(replicas._traces) == 2


def test_optimizers_that_share_variables(no_deadlock: None) -> None:
    """Each brings them together its own way, so a recording of both is never where it was."""

    def trained(recorded: bool) -> list[list[float]]:
        w, b = mr.Variable([1.0, 2.0]), mr.Variable([3.0, 4.0])
        both, one = mr.optim.SGD(0.1, momentum=0.9), mr.optim.Adam(0.1)

        def step() -> None:
            with mr.GradientTape(persistent=True) as tape:
                loss = mr.reduce_sum(w * w) + mr.reduce_sum(b * w)
            gradients = tape.gradient(loss, [w, b])
            both.apply_gradients(zip(gradients, [w, b], strict=True))
            one.apply_gradients([(gradients[0], w)])

        run = mr.function(step) if recorded else step
        for _ in range(3):
            run()
        return [w.numpy().tolist(), b.numpy().tolist()]

    assert trained(recorded=True) == trained(recorded=False)
