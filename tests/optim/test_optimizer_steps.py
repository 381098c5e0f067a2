"""Steps of every optimizer: counting, slots, sums over replicas, clipping, and what is missing."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.distribute import MirroredStrategy, MirroredVariable
from mirrored.optim import SGD, Adam, Optimizer

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"


# Steps


def test_iterations(
    strategy: MirroredStrategy,
    kind: Callable[..., Optimizer],
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = kind()
    assert optimizer.iterations.dtype == mr.int64
    for step in range(3):
        assert everywhere([optimizer.iterations]) == [step, step]
        strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert everywhere([optimizer.iterations]) == [3, 3]


def test_slots_are_mirrored(
    strategy: MirroredStrategy,
    kind: Callable[..., Optimizer],
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0], name="v")
        optimizer = kind()
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant([1.0, 1.0]), v)]))
    ((_, slots),) = optimizer.slots.snapshot().values()
    assert len(slots) == len(optimizer.slots.names(v))
    for slot in slots:
        assert isinstance(slot, MirroredVariable)
        assert any(slot is each for each in optimizer.variables)
        assert [copy.device for copy in slot.copies] == [copy.device for copy in v.copies]
        first, second = everywhere([slot])
        assert first == second
        assert slot.ndim == 0 or first != [0.0, 0.0]  # Adafactor has no rows of a vector.


@pytest.mark.behaviour("summed-gradients")
def test_gradients_of_replicas_are_summed(
    strategy: MirroredStrategy, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = SGD(0.25)
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert everywhere([v]) == [0.5, 0.5]


@pytest.mark.behaviour("same-batch-numbers")
@cases("replicas", [1, 2, 3, 4])
@cases("loss", ["sum", "mean"])
def test_the_same_batch_on_every_replica(
    simulate: Simulate, replicas: int, loss: str, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    """TensorFlow's numbers for the squared error of w x: 2 + .106 N, and 2.053."""
    simulate(replicas)
    strategy = MirroredStrategy()
    with strategy.scope():
        w = mr.Variable(2.0)
        optimizer = SGD(0.001)
    x, y = np.float32([2.0, 7.0]), np.float32([6.0, 21.0])

    def step() -> None:
        with mr.GradientTape() as tape:
            errors = mr.square(w * x - y)
            if loss == "sum":
                value = mr.reduce_sum(errors)
            else:
                value = mr.reduce_mean(errors) / float(replicas)
        optimizer.apply_gradients([(tape.gradient(value, w), w)])

    strategy.run(step)
    expected = 2.0 + 0.106 * replicas if loss == "sum" else 2.053
    np.testing.assert_allclose(everywhere([w]), [expected] * replicas, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # The sum is (6, 8), of norm 10; the replicas' own norms are 5 each.
        ({"clipnorm": 5.0}, [-3.0, -4.0]),
        ({"clipnorm": 10.0}, [-6.0, -8.0]),
        ({"clipvalue": 7.0}, [-6.0, -7.0]),
        ({"global_clipnorm": 5.0}, [-3.0, -4.0]),
    ],
)
def test_clipping_acts_on_the_sum(
    strategy: MirroredStrategy,
    settings: dict[str, float],
    expected: list[float],
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    with strategy.scope():
        v = mr.Variable([0.0, 0.0])
        optimizer = SGD(1.0, **settings)
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant([3.0, 4.0]), v)]))
    np.testing.assert_allclose(everywhere([v]), [expected] * 2, rtol=1e-6)


def test_a_mirrored_step_outside_replicas_reaches_every_copy(
    strategy: MirroredStrategy, everywhere: Callable[[list[Any]], list[Any]]
) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0])
        optimizer = SGD(0.5, momentum=0.5)
    optimizer.apply_gradients([(mr.constant([1.0, 1.0]), v)])
    assert everywhere([v]) == [[0.5, 1.5]] * 2
    assert everywhere(optimizer.variables) == [1, 1, 0.5, 0.5, [-0.5, -0.5], [-0.5, -0.5]]


def test_variables_on_several_devices_stay_there(simulate: Simulate) -> None:
    """Manual placement: each variable, its slots and the step count where they were made."""
    simulate(2)
    made = []
    for name in ("GPU:1", "CPU:0"):
        with mr.device(name):
            made.append(mr.Variable([1.0, 2.0]))
    with mr.device("CPU:0"):
        optimizer = SGD(0.5, momentum=0.5, weight_decay=0.1)
    for _ in range(2):
        optimizer.apply_gradients([(mr.constant([1.0, 1.0]), v) for v in made])
    assert [v.read_value().device for v in made] == [f"{FULL}GPU:1", f"{FULL}CPU:0"]
    slots = optimizer.variables[2:]
    assert [slot.read_value().device for slot in slots] == [f"{FULL}GPU:1", f"{FULL}CPU:0"]
    assert optimizer.iterations.read_value().device == f"{FULL}CPU:0"
    assert made[0].numpy().tolist() == made[1].numpy().tolist()


def test_frozen_variables_have_no_slots() -> None:
    a, b = mr.Variable(1.0, name="a"), mr.Variable(2.0, name="b")
    optimizer = Adam()
    optimizer.apply_gradients([(mr.constant(1.0), a)])
    assert [slot.name for slot in optimizer.variables[2:]] == [
        "adam/a_momentum:0",
        "adam/a_velocity:0",
    ]
    optimizer.build([a, b])
    assert len(optimizer.variables[2:]) == 4


@cases(
    "gradient",
    [0.5, np.float64(0.5), np.array(0.5, np.float32), mr.constant],
    ids=["float", "NumPy double", "array", "tensor"],
)
def test_gradients_of_any_kind(gradient: Any) -> None:
    v = mr.Variable(1.0, dtype="float32")
    value = gradient(0.5) if callable(gradient) else gradient
    SGD(1.0).apply_gradients([(value, v)])
    assert float(v) == 0.5


def test_pairs_may_come_from_a_generator(everywhere: Callable[[list[Any]], list[Any]]) -> None:
    variables = [mr.Variable(1.0), mr.Variable(2.0)]
    SGD(1.0).apply_gradients((mr.constant(1.0), v) for v in variables)
    assert everywhere(variables) == [0.0, 1.0]


# Gradients that are missing


def test_a_gradient_of_none_leaves_its_variable_alone(
    strategy: MirroredStrategy,
    caplog: pytest.LogCaptureFixture,
    everywhere: Callable[[list[Any]], list[Any]],
) -> None:
    with strategy.scope():
        a, b = mr.Variable(1.0, name="a"), mr.Variable(2.0, name="b")
        optimizer = SGD(0.5, momentum=0.5)

    def step() -> None:
        optimizer.apply_gradients([(mr.constant(0.5), a), (None, b)])

    strategy.run(step)
    strategy.run(step)
    assert everywhere([a, b]) == [-0.25, -0.25, 2.0, 2.0]
    assert len(optimizer.variables) == 3
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings == [
        "Gradients do not exist for variables ['b:0']; these variables keep their values."
    ]


@pytest.mark.parametrize("missing", [1, 2])
def test_no_gradient_at_all(missing: int) -> None:
    variables = [mr.Variable(1.0, name=f"v{i}") for i in range(missing)]
    optimizer = SGD()
    with pytest.raises(ValueError, match="No gradients provided for any variable") as error:
        optimizer.apply_gradients([(None, v) for v in variables])
    assert str([v.name for v in variables]) in str(error.value)
    assert int(optimizer.iterations) == 0


def test_a_step_returns_the_count_of_steps(strategy: MirroredStrategy) -> None:
    """As in Keras: the variable, on replicas too, and its value from a recorded function."""
    with strategy.scope():
        v, optimizer = mr.Variable(1.0), SGD(0.5)

    def step() -> Any:
        return optimizer.apply_gradients([(mr.constant(1.0), v)])

    assert strategy.run(step) is optimizer.iterations
    assert int(mr.function(lambda: strategy.run(step))()) == 2
