"""Steps that are refused or run out of memory: they happen wholly or not."""

import gc
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import mirrored as mr
from mirrored import devices
from mirrored.distribute import MirroredStrategy, PerReplica
from mirrored.optim import SGD, Adam, Optimizer

Simulate = Callable[..., list[mr.config.LogicalDevice]]


def in_use() -> list[int]:
    """Return the bytes in use on every device."""
    return [device.pool.current for device in devices.logical_devices()]


# Calls that are refused


@pytest.mark.parametrize(
    ("pairs", "error", "match"),
    [
        (lambda v: [], ValueError, "No gradients provided for any variable"),
        (lambda v: [(1.0, v), (2.0, v)], ValueError, "more than one gradient for v:0"),
        (
            lambda v: [(mr.constant(1.0), v)],
            ValueError,
            r"the shape and dtype of its variable\. Received: \(\) float32 for v:0 of \(2,\) ",
        ),
        (
            lambda v: [(mr.zeros((2,)), mr.zeros((2,)))],
            TypeError,
            "Optimizers update only variables created by mr.Variable. Received: <mr.Tensor",
        ),
        (lambda v: [("steep", v)], TypeError, "Cannot make a tensor"),
    ],
)
def test_refused_gradients_change_nothing(
    strategy: MirroredStrategy,
    kind: Callable[..., Optimizer],
    pairs: Callable[[Any], Any],
    error: type[Exception],
    match: str,
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0], name="v")
        optimizer = kind()
    with pytest.raises(error, match=match):
        strategy.run(lambda: optimizer.apply_gradients(pairs(v)))
    assert everywhere([v, optimizer.iterations]) == [[1.0, 2.0], [1.0, 2.0], 0, 0]
    assert not optimizer.slots.snapshot()
    strategy.run(lambda: optimizer.apply_gradients([(mr.ones((2,)), v)]))
    assert everywhere([optimizer.iterations]) == [1, 1]


def test_cross_replica_context(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = SGD()
        with pytest.raises(
            RuntimeError,
            match=r"apply_gradients\(\) cannot be called in cross-replica context\. Use "
            r"strategy\.run",
        ):
            optimizer.apply_gradients([(mr.constant(1.0), v)])


def test_a_variable_of_another_scope(
    strategy: MirroredStrategy,
    kind: Callable[..., Optimizer],
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    outside, plain = mr.Variable(1.0, name="outside"), kind()
    with strategy.scope():
        inside, optimizer = mr.Variable(1.0, name="inside"), kind()
    step = mr.constant(1.0)
    match = r"Variable \({}:0\) was not created in the distribution strategy scope of \("
    with pytest.raises(ValueError, match=match.format("outside")):
        strategy.run(lambda: optimizer.apply_gradients([(step, outside)]))
    with pytest.raises(ValueError, match=match.format("inside")):
        plain.apply_gradients([(step, inside)])
    with pytest.raises(ValueError, match=match.format("inside")):
        plain.build([inside])
    assert everywhere([outside, inside]) == [1.0] * 3


def test_an_optimizer_of_another_scope(strategy: MirroredStrategy) -> None:
    v, optimizer = mr.Variable(1.0), SGD()
    with pytest.raises(
        ValueError,
        match=r"Optimizer \(sgd\) was not created in the distribution strategy scope of \(.*\)\. "
        "Create the model and its optimizer inside the same",
    ):
        strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert float(v) == 1.0


def test_replicas_that_leave_out_different_gradients(
    strategy: MirroredStrategy, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    with strategy.scope():
        variables = [mr.Variable(1.0, name="a"), mr.Variable(1.0, name="b")]
        optimizer = SGD()

    def step(count: int) -> None:
        optimizer.apply_gradients([(mr.constant(1.0), v) for v in variables[:count]])

    with pytest.raises(ValueError, match="replica 0 has a list of 1, replica 1 has a list of 2"):
        strategy.run(step, (PerReplica([1, 2]),))
    assert everywhere([*variables, optimizer.iterations]) == [1.0] * 4 + [0, 0]


# Wholly or not


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off: what a cycle keeps stays."""
    gc.collect()
    gc.disable()
    gc.freeze()  # Running out of memory collects once; this makes that quick.
    yield
    gc.enable()


def refusal_of(call: Callable[[], Any]) -> str | None:
    """Return what running out of memory said, None where there was enough, and let go of it."""
    try:
        call()
    except mr.errors.ResourceExhaustedError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("full", "steps_before"), [(0, 1), pytest.param(1, 0, marks=pytest.mark.slow)]
)
@pytest.mark.usefixtures("no_collector")
def test_out_of_memory_in_the_middle_of_an_update(
    simulate: Simulate,
    kind: Callable[..., Optimizer],
    full: int,
    steps_before: int,
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    """With more room each time, the step fails ever later, and at last succeeds."""
    simulate(2, memory_limit=1)
    strategy = MirroredStrategy()
    size = 256
    with strategy.scope():
        variables = [mr.Variable(mr.ones((size,)), name=name) for name in "abc"]
        optimizer = kind(learning_rate=0.5)

    def step() -> None:
        optimizer.apply_gradients([(mr.ones((size,)), v) for v in variables])

    def state() -> list[Any]:
        return everywhere([*variables, *optimizer.variables])

    for _ in range(steps_before):
        strategy.run(step)
    before, used = state(), in_use()
    pool = devices.get_device(f"GPU:{full}").pool
    failures = 0
    for room in range(100):
        free = (1 << 20) - pool.current - room * 4 * size
        with mr.device(f"GPU:{full}"):
            ballast = mr.zeros((free // 4,))
        refused = refusal_of(lambda: strategy.run(step))
        del ballast
        if refused is None:
            break
        assert f"GPU:{full}" in refused
        failures += 1
        assert state() == before
        assert in_use() == used
    assert failures > 5
    assert everywhere([optimizer.iterations]) == [steps_before + 1] * 2
    assert all(value != old for value, old in zip(state()[:6], before[:6], strict=True))


@pytest.mark.usefixtures("no_collector")
def test_steps_keep_nothing(strategy: MirroredStrategy, kind: Callable[..., Optimizer]) -> None:
    with strategy.scope():
        v = mr.Variable(mr.ones((100,)))
        optimizer = kind()

    def step() -> None:
        with mr.GradientTape() as tape:
            loss = mr.reduce_sum(v * v)
        optimizer.apply_gradients([(tape.gradient(loss, v), v)])

    strategy.run(step)
    after_one = in_use()
    for _ in range(3):
        strategy.run(step)
    assert in_use() == after_one


def test_prepare_changes_nothing_before_commit(
    strategy: MirroredStrategy, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0])
        optimizer = SGD(0.5, momentum=0.5)
    update = optimizer.prepare([v], [mr.constant([1.0, 1.0])])
    assert everywhere([v, optimizer.iterations]) == [[1.0, 2.0], [1.0, 2.0], 0, 0]
    update.commit()
    assert everywhere([v, optimizer.iterations]) == [[0.5, 1.5], [0.5, 1.5], 1, 1]


@pytest.mark.parametrize(
    ("make", "change", "names"),
    [
        (lambda: SGD(0.1), {"momentum": 0.9}, "('momentum',)"),
        (lambda: Adam(0.1), {"amsgrad": True}, "('momentum', 'velocity', 'velocity_hat')"),
    ],
)
def test_settings_that_ask_for_more_slots_come_too_late(
    make: Any, change: dict[str, Any], names: str
) -> None:
    """Keras 3.15 fails too, by an IndexError; without slots the setting would do nothing."""
    v, gradient = mr.Variable([1.0]), mr.constant([1.0])
    optimizer = make()
    optimizer.apply_gradients([(gradient, v)])
    before = v.numpy()
    for name, value in change.items():
        setattr(optimizer, name, value)
    with pytest.raises(ValueError, match=re.escape(f"before its settings needed {names}")):
        optimizer.apply_gradients([(gradient, v)])
    assert (v.numpy(), int(optimizer.iterations)) == (before, 1)
    for name in change:
        setattr(optimizer, name, 0)
    optimizer.apply_gradients([(gradient, v)])
    assert v.numpy() != before
