"""What strategies settle for their collectives: hints, failures of NCCL, the same bits, the end."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from case_table import cases
from replica_context import number

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    ReduceOp,
    ReductionToOneDevice,
)
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import CollectiveError, CollectiveTimeoutError, DeviceUnavailableError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
OPTIONS = CommunicationOptions(bytes_per_pack=64, timeout_seconds=5)


class Noting(ReductionToOneDevice):
    """The reference, which notes what it is asked, and may fail to prepare.

    Args:
        failure: What `prepare` raises, or None.
    """

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.calls: list[Any] = []
        self.shapes: list[Any] = []

    def prepare(self, devices: Sequence[devices.Device]) -> None:
        self.calls.append(("prepare", [device.name for device in devices]))
        if self.failure is not None:
            raise self.failure

    def make_deterministic(self, devices: Sequence[devices.Device]) -> None:
        self.calls.append(("make_deterministic", [device.name for device in devices]))

    def close(self) -> None:
        self.calls.append("close")

    def reduce_implementation(self, reduce_op: ReduceOp, values: Any, *rest: Any) -> ops.Tensor:
        self.calls.append(("reduce", rest[-1]))
        return super().reduce_implementation(reduce_op, values, *rest)

    def batch_all_reduce_implementation(
        self, reduce_op: ReduceOp, batch: Any, options: CommunicationOptions
    ) -> list[list[ops.Tensor]]:
        self.calls.append(("all-reduce", options))
        self.shapes = [values[0].shape for values in batch]
        return super().batch_all_reduce_implementation(reduce_op, batch, options)


PREPARE = ("prepare", ["/device:GPU:0", "/device:GPU:1"])


def all_reduce(options: CommunicationOptions | None = None) -> Any:
    context = mr.distribute.get_replica_context()
    assert context is not None
    number = context.replica_id_in_sync_group
    return context.all_reduce("sum", mr.constant(float(number + 1)), options)


@pytest.mark.parametrize("replicas", [1, 2])
def test_gradients_are_summed_in_the_order_of_the_update(simulate: Simulate, replicas: int) -> None:
    simulate(replicas)
    collectives = Noting()
    strategy = MirroredStrategy(cross_device_ops=collectives)
    with strategy.scope():
        sizes = (32, 3, 7, 160, 10)
        variables = [mr.Variable(np.zeros(size, np.float32)) for size in sizes]
    parts = strategy.run(lambda: [None if v.shape == (7,) else v + v.shape[0] for v in variables])
    sums = strategy.sum_gradients(variables, parts)
    assert collectives.shapes == [(160,), (32,), (10,), (3,)]
    for each in sums.values:
        found = {i: (each.spec(i).shape, float(each[i][0])) for i in each}
        assert found == {i: ((n,), n * replicas) for i, n in enumerate(sizes) if n != 7}
    assert not any(strategy.sum_gradients([], []).values)


def run(strategy: MirroredStrategy, recorded: bool, *args: Any) -> list[float]:
    """Return each replica's all-reduced value."""
    step = mr.function(lambda: strategy.run(all_reduce, args)) if recorded else None
    parts = strategy.run(all_reduce, args) if step is None else step()
    return [float(part) for part in strategy.experimental_local_results(parts)]


RECORDED = pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])


@RECORDED
@cases("base", [ReductionToOneDevice, HierarchicalCopyAllReduce])
@cases("method", ["batch_all_reduce", "batch_all_reduce_implementation"])
def test_gradients_are_what_a_subclass_makes_of_them(
    simulate: Simulate, recorded: bool, base: type, method: str
) -> None:
    """Whether it returns what it was given, packed as that is, or values of its own."""
    simulate(2)

    def doubled(self: Any, *args: Any) -> Any:
        reduced = getattr(base, method)(self, *args)
        return [[part * 2.0 for part in parts] for parts in reduced] if twice else reduced

    for twice in (False, True):
        strategy = MirroredStrategy(cross_device_ops=type("Own", (base,), {method: doubled})())
        with strategy.scope():
            variables = [mr.Variable(np.zeros(size, np.float32)) for size in (3, 16, 2)]
            optimizer = mr.optim.SGD(1.0)

        def step() -> None:
            gradients = [v + float(number() + 1) for v in variables]  # noqa: B023
            optimizer.apply_gradients(zip(gradients, variables, strict=True))  # noqa: B023

        call = mr.function(lambda: strategy.run(step)) if recorded else lambda: strategy.run(step)  # noqa: B023
        call()
        for v in variables:
            for copy in v.copies:
                assert copy.numpy().tolist() == [-6.0 if twice else -3.0] * v.size


@pytest.mark.behaviour("strategy-options")
@RECORDED
@cases("given", [None, OPTIONS])
@cases("own", [None, CommunicationOptions(bytes_per_pack=8)])
def test_hints(simulate: Simulate, recorded: bool, given: Any, own: Any) -> None:
    """Those of the strategy are for collectives that are given none."""
    simulate(2)
    collectives = Noting()
    strategy = MirroredStrategy(cross_device_ops=collectives, communication_options=given)
    assert run(strategy, recorded, own) == [3.0, 3.0]
    strategy.reduce("sum", strategy.run(lambda: mr.constant(1.0)))
    wanted = given or CommunicationOptions()
    assert collectives.calls == [PREPARE, ("all-reduce", own or wanted), ("reduce", wanted)]


FAILURES = [
    CollectiveError("rank 1 summed wrong"),
    CollectiveTimeoutError("not connected"),
    DeviceUnavailableError("NCCL is missing"),
]


@pytest.mark.behaviour("nccl-failure")
@RECORDED
@cases("failure", FAILURES, ids=lambda each: type(each).__name__)
def test_a_failure_is_raised(simulate: Simulate, recorded: bool, failure: Exception) -> None:
    """It says how to go on without, once."""
    simulate(2)
    strategy = MirroredStrategy(cross_device_ops=Noting(type(failure)(str(failure))))
    for _ in range(2):
        with pytest.raises(type(failure), match=str(failure)) as caught:
            run(strategy, recorded)
        notes = [note for note in caught.value.__notes__ if "on_nccl_failure" in note]
        assert len(set(notes)) == 1


@pytest.mark.behaviour("nccl-failure")
@RECORDED
@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
def test_a_failure_is_got_around(
    simulate: Simulate, caplog: pytest.LogCaptureFixture, recorded: bool, failure: Exception
) -> None:
    simulate(2)
    collectives = Noting(failure)
    strategy = MirroredStrategy(cross_device_ops=collectives, on_nccl_failure="fallback")
    for _ in range(2):
        assert run(strategy, recorded) == [3.0, 3.0]
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert warnings == [
        f"NCCL failed, so values are reduced by ReductionToOneDevice: {failure}",
    ]
    assert collectives.calls == [PREPARE]


def test_other_errors_are_raised_all_the_same(simulate: Simulate) -> None:
    simulate(2)
    strategy = MirroredStrategy(
        cross_device_ops=Noting(ZeroDivisionError("a mistake")), on_nccl_failure="fallback"
    )
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        run(strategy, recorded=False)


def test_the_same_bits_are_asked_for_once(simulate: Simulate) -> None:
    simulate(2)
    collectives = Noting()
    MirroredStrategy(cross_device_ops=collectives)
    MirroredStrategy(cross_device_ops=collectives, deterministic=False)
    assert collectives.calls == []
    MirroredStrategy(cross_device_ops=collectives, deterministic=True)
    assert collectives.calls == [("make_deterministic", PREPARE[1])]


@pytest.mark.behaviour("deterministic-option")
@pytest.mark.parametrize("gpus", [0, 2])
def test_on_the_host_the_same_bits_cost_nothing(
    simulate: Simulate, bits: Callable[[Any], list[Any]], gpus: int
) -> None:
    """Two runs give them anyway."""
    simulate(gpus)
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(32, 5)), rng.normal(size=(32, 2))
    weights = []
    for deterministic in (True, False, False):
        ops.set_seed(3)
        strategy = MirroredStrategy(deterministic=deterministic, executor="serial")
        with strategy.scope():
            model = mr.Sequential([mr.layers.Dense(7, activation="tanh"), mr.layers.Dense(2)])
            model.compile("sgd", "mse")
        model.fit(x, y, batch_size=8, epochs=2, verbose=0)
        weights.append(bits(model.get_weights()))
    assert weights[0] == weights[1] == weights[2]


def test_close(simulate: Simulate) -> None:
    """The collectives are told, and work again."""
    simulate(2)
    collectives = Noting()
    strategy = MirroredStrategy(cross_device_ops=collectives)
    strategy.close()
    assert collectives.calls == ["close"]
    assert run(strategy, recorded=True) == [3.0, 3.0]
    strategy.close()
    assert collectives.calls[-1] == "close"


def test_threads_of_steps_end_without_it(simulate: Simulate) -> None:
    """Other threads do not disconnect devices."""
    simulate(2)
    collectives = Noting()
    strategy = MirroredStrategy(cross_device_ops=collectives)
    first = strategy.thread_pool(2)
    assert strategy.thread_pool(3) is not first
    assert collectives.calls == []
    strategy.close()


@cases(
    ("given", "match"),
    [
        ({"on_nccl_failure": "ignore"}, r"one of \('raise', 'fallback'\). Received: .*'ignore'"),
        ({"on_nccl_failure": None}, "Received: on_nccl_failure=None"),
        ({"communication_options": {"bytes_per_pack": 3}}, "Received: {'bytes_per_pack': 3}"),
        ({"communication_options": 3}, "`communication_options` must be a .*CommunicationOptions"),
        ({"deterministic": 1}, "True or False. Received: deterministic=1"),
        ({"deterministic": None}, "Received: deterministic=None"),
        ({"executor": "none"}, "Received: executor='none'"),
    ],
)
def test_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        MirroredStrategy(**given)
