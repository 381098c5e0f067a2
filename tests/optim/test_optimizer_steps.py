"""Steps of every optimizer: counting, slots, sums over replicas, clipping, and what is missing."""

import copy
import gc
import logging
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

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


# Plans of steps


def halved(value: Any) -> Any:
    return value * 0.5


# What a program may do before a step, to the optimizer and its variables.
CHANGES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "nothing": lambda o, vs: None,
    "rate": lambda o, vs: setattr(o, "learning_rate", 0.5),
    "rule": lambda o, vs: setattr(o, "beta_1", 0.25),
    "clipping": lambda o, vs: setattr(o, "clipnorm", 0.125),
    "decay": lambda o, vs: setattr(o, "weight_decay", 0.25),
    "count": lambda o, vs: o.iterations.assign(7),
    "values": lambda o, vs: vs[1].assign([3.0, 4.0, 5.0]),
    "slots": lambda o, vs: o.variables[2].assign(mr.ones_like(o.variables[2])),
    "constraint": lambda o, vs: setattr(vs[0], "constraint", halved),
    "no constraint": lambda o, vs: setattr(vs[0], "constraint", None),
    "average": lambda o, vs: setattr(o, "use_ema", True),  # Which is refused, with slots.
    "no average": lambda o, vs: setattr(o, "use_ema", False),
    "program": lambda o, vs: mr.function(lambda: o.apply_gradients([(vs[0] * 1.0, vs[0])]))(),
    "some": lambda o, vs: o.apply_gradients([(None, vs[0]), (vs[1] * 1.0, vs[1])]),
    "dtypes": lambda o, vs: o.apply_gradients([(mr.cast(v, "float64"), v) for v in vs]),
    "shape": lambda o, vs: o.apply_gradients([(mr.ones((7,)), v) for v in vs]),
    "twice": lambda o, vs: o.apply_gradients([(v * 1.0, v) for v in (vs[0], *vs)]),
    "no variable": lambda o, vs: o.apply_gradients([(v * 1.0, v * 1.0) for v in vs]),
}


class AsUsersHaveIt(Adam):
    """It has no plans: nobody knows what a subclass depends on."""


def outcome(act: Callable[..., object], *args: Any) -> str:
    try:
        act(*args)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(sorted(CHANGES)), max_size=8))
def test_planned_steps_are_like_others(changes: list[str]) -> None:
    optimizers = []
    for kind in (Adam, AsUsersHaveIt):
        starts = ([[1.0, -2.0], [0.5, 3.0]], [0.25, -0.75, 4.0])
        vs = [mr.Variable(start, name="v", dtype="float32") for start in starts]
        optimizers.append((kind(0.25, name="adam"), vs))
    for change in ["nothing", "nothing", *changes, "nothing"]:
        results = []
        for optimizer, vs in optimizers:
            texts = [outcome(CHANGES[change], optimizer, vs)]
            texts.append(outcome(optimizer.apply_gradients, [(v * 0.5, v) for v in vs]))
            rows = [(v, *slots) for v, slots in optimizer.slots.snapshot().values()]
            values = [v.numpy().tobytes() for row in rows for v in row]
            results.append((texts, int(optimizer.iterations), values))
        assert results[0] == results[1], change
    assert not optimizers[1][0]._plans


def test_plans_keep_nothing_alive() -> None:
    v, w = mr.Variable([1.0, 2.0]), mr.Variable(3.0)
    optimizer = Adam()
    for _ in range(3):
        optimizer.apply_gradients([(v * 1.0, v), (w * 1.0, w)])
    assert optimizer._plans
    assert not copy.copy(optimizer)._plans
    alive = [weakref.ref(thing) for thing in (optimizer, v, w, *optimizer.variables)]
    gc.disable()  # There are no cycles for it.
    try:
        del optimizer, v, w
        assert [reference() for reference in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_a_small_value_does_not_keep_what_it_was_joined_with(simulate: Simulate) -> None:
    (gpu,) = simulate(1)
    w, bias = mr.Variable(np.ones((64, 64), np.float32)), mr.Variable(1.0)
    optimizer = SGD(0.5)

    def step() -> mr.Tensor:
        optimizer.apply_gradients([(mr.ones(v.shape), v) for v in (w, bias)])
        return bias.read_value()

    step()
    before = mr.config.experimental.get_memory_info(gpu.name)["current"]
    kept = [step() for _ in range(3)]
    assert mr.config.experimental.get_memory_info(gpu.name)["current"] == before + 12
    assert [float(value) for value in kept] == [0.0, -0.5, -1.0]


@cases("dtype", ["float16", "float64"])
def test_a_rule_above_sgd_has_the_number_in_the_dtype_of_variables(dtype: str) -> None:
    numbers = []

    class Noting(SGD):
        def update(self, gradient: Any, value: Any, slots: Any, rate: Any, step: Any) -> Any:
            numbers.append((step.dtype.name, float(step)))
            return super().update(gradient, value, slots, rate, step)

    Noting().apply_gradients([(1.0, mr.Variable(1.0, dtype=dtype))])
    assert numbers == [(dtype, 1.0)]
