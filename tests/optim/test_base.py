"""What all optimizers share: settings, counting, clipping, and steps that happen wholly or not."""

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import MirroredStrategy, MirroredVariable, PerReplica
from mirrored.optim import SGD, Adam, Optimizer

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
KINDS: list[Callable[..., Optimizer]] = [
    SGD,
    lambda **settings: SGD(momentum=0.9, **settings),
    Adam,
    lambda **settings: Adam(amsgrad=True, **settings),
]
NAMES = ["sgd", "momentum", "adam", "amsgrad"]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=NAMES)


@pytest.fixture
def strategy(simulate: Simulate) -> MirroredStrategy:
    simulate(2)
    return MirroredStrategy()


def everywhere(variables: list[Any]) -> list[Any]:
    """Return the values of every copy of every variable."""
    return [
        copy.numpy().tolist()
        for variable in variables
        for copy in getattr(variable, "copies", [variable])
    ]


def in_use() -> list[int]:
    """Return the bytes in use on every device."""
    return [device.pool.current for device in devices.logical_devices()]


# Settings


@every_kind
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"learning_rate": -0.1},
            r"`learning_rate` is a finite number of 0 or more\. Received: learning_rate=-0\.1",
        ),
        ({"learning_rate": float("nan")}, "`learning_rate` is a finite number"),
        ({"learning_rate": float("inf")}, "`learning_rate` is a finite number"),
        ({"learning_rate": "0.1"}, "Received: learning_rate='0.1'"),
        ({"learning_rate": None}, "Received: learning_rate=None"),
        ({"learning_rate": True}, "Received: learning_rate=True"),
        ({"weight_decay": -1}, "`weight_decay` is a finite number of 0 or more"),
        ({"clipnorm": 0}, r"`clipnorm` is a finite number above 0\. Received: clipnorm=0"),
        ({"clipvalue": -1.0}, "`clipvalue` is a finite number above 0"),
        ({"global_clipnorm": "1"}, "`global_clipnorm` is a finite number above 0"),
        (
            {"clipnorm": 1.0, "clipvalue": 2.0},
            "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
            "clipnorm=1.0, clipvalue=2.0, global_clipnorm=None",
        ),
    ],
)
def test_settings_out_of_range(
    kind: Callable[..., Optimizer], settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        kind(**settings)


@pytest.mark.parametrize(
    ("settings", "name"), [({}, "sgd"), ({"name": "mine"}, "mine"), ({"name": ""}, "sgd")]
)
def test_name(settings: dict[str, Any], name: str) -> None:
    assert SGD(**settings).name == name


def test_settings_are_numbers() -> None:
    optimizer = SGD(weight_decay=np.float32(0.5), global_clipnorm=2)
    found = (optimizer.weight_decay, optimizer.clipnorm, optimizer.global_clipnorm)
    assert found == (0.5, None, 2.0)
    assert type(optimizer.weight_decay) is float


# The learning rate


def test_the_learning_rate_is_set_between_steps() -> None:
    v = mr.Variable(1.0)
    optimizer = SGD(0.5)
    for rate, expected in [(None, 0.5), (0.25, 0.25), (0, 0.25), (np.float64(0.125), 0.125)]:
        if rate is not None:
            optimizer.learning_rate = rate
            assert float(optimizer.learning_rate) == rate
        optimizer.apply_gradients([(mr.constant(1.0), v)])
        assert float(v) == expected


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf"), "fast", None, False])
def test_a_refused_learning_rate_changes_nothing(rate: Any) -> None:
    optimizer = SGD(0.5)
    with pytest.raises(ValueError, match="`learning_rate` is a finite number of 0 or more"):
        optimizer.learning_rate = rate
    assert float(optimizer.learning_rate) == 0.5


def test_the_learning_rate_is_mirrored(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        optimizer = SGD(0.5)
    optimizer.learning_rate = 0.25
    assert isinstance(optimizer.learning_rate, MirroredVariable)
    assert everywhere([optimizer.learning_rate]) == [0.25, 0.25]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_learning_rate_has_the_default_dtype(dtype: str) -> None:
    mr.keras.backend.set_floatx(dtype)
    assert SGD(0.1).learning_rate.dtype.name == dtype
    assert float(SGD(0.1).learning_rate) == float(np.dtype(dtype).type(0.1))


# Steps


@every_kind
def test_iterations(strategy: MirroredStrategy, kind: Callable[..., Optimizer]) -> None:
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = kind()
    assert optimizer.iterations.dtype == mr.int64
    for step in range(3):
        assert everywhere([optimizer.iterations]) == [step, step]
        strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert everywhere([optimizer.iterations]) == [3, 3]


@every_kind
def test_slots_are_mirrored(strategy: MirroredStrategy, kind: Callable[..., Optimizer]) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0], name="v")
        optimizer = kind()
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant([1.0, 1.0]), v)]))
    slots = optimizer.variables[2:]
    assert len(slots) == len(optimizer.slot_names)
    for slot in slots:
        assert isinstance(slot, MirroredVariable)
        assert [copy.device for copy in slot.copies] == [copy.device for copy in v.copies]
        first, second = everywhere([slot])
        assert first == second
        assert first != [0.0, 0.0]


def test_gradients_of_replicas_are_summed(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        v = mr.Variable(1.0)
        optimizer = SGD(0.25)
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant(1.0), v)]))
    assert everywhere([v]) == [0.5, 0.5]


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_the_same_batch_on_every_replica(simulate: Simulate, replicas: int, loss: str) -> None:
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
    strategy: MirroredStrategy, settings: dict[str, float], expected: list[float]
) -> None:
    with strategy.scope():
        v = mr.Variable([0.0, 0.0])
        optimizer = SGD(1.0, **settings)
    strategy.run(lambda: optimizer.apply_gradients([(mr.constant([3.0, 4.0]), v)]))
    np.testing.assert_allclose(everywhere([v]), [expected] * 2, rtol=1e-6)


def test_a_mirrored_step_outside_replicas_reaches_every_copy(strategy: MirroredStrategy) -> None:
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


@pytest.mark.parametrize(
    "gradient",
    [0.5, np.float64(0.5), np.array(0.5, np.float32), mr.constant],
    ids=["float", "NumPy double", "array", "tensor"],
)
def test_gradients_of_any_kind(gradient: Any) -> None:
    v = mr.Variable(1.0, dtype="float32")
    value = gradient(0.5) if callable(gradient) else gradient
    SGD(1.0).apply_gradients([(value, v)])
    assert float(v) == 0.5


def test_pairs_may_come_from_a_generator() -> None:
    variables = [mr.Variable(1.0), mr.Variable(2.0)]
    SGD(1.0).apply_gradients((mr.constant(1.0), v) for v in variables)
    assert everywhere(variables) == [0.0, 1.0]


# Gradients that are missing


def test_a_gradient_of_none_leaves_its_variable_alone(
    strategy: MirroredStrategy, caplog: pytest.LogCaptureFixture
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
    assert warnings == ["Gradients do not exist for variables ['b:0']; they stay as they are."]


@pytest.mark.parametrize("missing", [1, 2])
def test_no_gradient_at_all(missing: int) -> None:
    variables = [mr.Variable(1.0, name=f"v{i}") for i in range(missing)]
    optimizer = SGD()
    with pytest.raises(ValueError, match="No gradients provided for any variable") as error:
        optimizer.apply_gradients([(None, v) for v in variables])
    assert str([v.name for v in variables]) in str(error.value)
    assert int(optimizer.iterations) == 0


# Calls that are refused


@pytest.mark.parametrize(
    ("pairs", "error", "match"),
    [
        (lambda v: [], ValueError, "No gradients provided for any variable"),
        (lambda v: [(1.0, v), (2.0, v)], ValueError, "more than one gradient for v:0"),
        (
            lambda v: [(mr.constant(1.0), v)],
            ValueError,
            r"A gradient has the shape of its variable\. Received: \(\) for v:0 of shape \(2,\)",
        ),
        (
            lambda v: [(mr.zeros((2,), "float64"), v)],
            mr.errors.InvalidArgumentError,
            "expected to be a .* tensor but is a .* tensor",
        ),
        (
            lambda v: [(mr.zeros((2,)), mr.zeros((2,)))],
            TypeError,
            "Optimizers update variables made by mr.Variable. Received: <mr.Tensor",
        ),
        (lambda v: [("steep", v)], TypeError, "Cannot make a tensor"),
    ],
)
@every_kind
def test_refused_gradients_change_nothing(
    strategy: MirroredStrategy,
    kind: Callable[..., Optimizer],
    pairs: Callable[[Any], Any],
    error: type[Exception],
    match: str,
) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0], name="v")
        optimizer = kind()
    with pytest.raises(error, match=match):
        strategy.run(lambda: optimizer.apply_gradients(pairs(v)))
    assert everywhere([v, optimizer.iterations]) == [[1.0, 2.0], [1.0, 2.0], 0, 0]
    assert len(optimizer.variables) == 2
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


@every_kind
def test_a_variable_of_another_scope(
    strategy: MirroredStrategy, kind: Callable[..., Optimizer]
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


def test_replicas_that_leave_out_different_gradients(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        variables = [mr.Variable(1.0, name="a"), mr.Variable(1.0, name="b")]
        optimizer = SGD()

    def step(count: int) -> None:
        optimizer.apply_gradients([(mr.constant(1.0), v) for v in variables[:count]])

    with pytest.raises(ValueError, match="replica 0 has a list of 1, replica 1 has a list of 2"):
        strategy.run(step, (PerReplica([1, 2]),))
    assert everywhere([*variables, optimizer.iterations]) == [1.0] * 4 + [0, 0]


# Rules of one's own


class Halve(Optimizer):
    """Halves each weight, whatever the gradient."""

    def update(
        self,
        gradient: ops.Tensor,
        value: ops.Tensor,
        slots: tuple[ops.Tensor, ...],
        learning_rate: ops.Tensor,
        step: ops.Tensor,
    ) -> tuple[ops.Tensor, tuple[ops.Tensor, ...]]:
        return value * 0.5, ()


class Shrink(Halve):
    """Gets the shape wrong."""

    def update(self, *args: Any) -> tuple[ops.Tensor, tuple[ops.Tensor, ...]]:
        return args[1][:1], ()


class Forgetful(Halve):
    """Names a slot and does not return it."""

    @property
    def slot_names(self) -> tuple[str, ...]:
        return ("memory",)


def test_a_rule_of_ones_own() -> None:
    v = mr.Variable([4.0, 8.0])
    optimizer = Halve(0.1)
    optimizer.apply_gradients([(mr.zeros((2,)), v)])
    assert (v.numpy().tolist(), optimizer.name) == ([2.0, 4.0], "halve")


@pytest.mark.parametrize(
    ("kind", "error", "match"),
    [
        (Optimizer, NotImplementedError, "The optimizer Optimizer has no `update`. Define"),
        (
            Shrink,
            ValueError,
            r"Shrink\.update returns the new value and 0 new slots, each of the variable's shape "
            r"and dtype\. For v:0, which has .*\(2,\).*, received: .*\(1,\)",
        ),
        (Forgetful, ValueError, "Forgetful.update returns the new value and 1 new slots"),
    ],
)
def test_rules_that_are_wrong(
    kind: Callable[..., Optimizer], error: type[Exception], match: str
) -> None:
    v = mr.Variable([4.0, 8.0], name="v")
    optimizer = kind(0.1)
    with pytest.raises(error, match=match):
        optimizer.apply_gradients([(mr.zeros((2,)), v)])
    assert v.numpy().tolist() == [4.0, 8.0]
    assert int(optimizer.iterations) == 0


# Wholly or not


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off: what a cycle keeps stays."""
    gc.collect()
    gc.disable()
    gc.freeze()  # Running out of memory collects once; this makes that quick.
    yield
    gc.unfreeze()
    gc.enable()


def refusal_of(call: Callable[[], Any]) -> str | None:
    """Return what running out of memory said, None where there was enough, and let go of it."""
    try:
        call()
    except mr.errors.ResourceExhaustedError as error:
        return str(error)
    return None


@every_kind
@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("steps_before", [0, 1])
@pytest.mark.usefixtures("no_collector")
def test_out_of_memory_in_the_middle_of_an_update(
    simulate: Simulate, kind: Callable[..., Optimizer], full: int, steps_before: int
) -> None:
    """With more room each time, the step fails ever later, and at last succeeds."""
    simulate(2, memory_limit=1)
    strategy = MirroredStrategy()
    size = 1024
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
        free = (1 << 20) - pool.current - room * 2 * size
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


@every_kind
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


def test_prepare_changes_nothing_before_commit(strategy: MirroredStrategy) -> None:
    with strategy.scope():
        v = mr.Variable([1.0, 2.0])
        optimizer = SGD(0.5, momentum=0.5)
    update = optimizer.prepare([v], [mr.constant([1.0, 1.0])])
    assert everywhere([v, optimizer.iterations]) == [[1.0, 2.0], [1.0, 2.0], 0, 0]
    update.commit()
    assert everywhere([v, optimizer.iterations]) == [[0.5, 1.5], [0.5, 1.5], 1, 1]
