"""What is asked of NCCL between emulated cards; and what is done where there is no NCCL."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import devices, ops
from mirrored.backends import selftest
from mirrored.backends.communication.connection import MULTI_RANK, Connection
from mirrored.devices import work_timing
from mirrored.devices.work_timing import Work
from mirrored.distribute import (
    CrossDeviceOps,
    IndexedSlices,
    MirroredStrategy,
    NcclAllReduce,
    ReductionToOneDevice,
)
from mirrored.distribute.cross_device_ops import nccl_all_reduce
from mirrored.distribute.cross_device_ops.connections import SELFTEST
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import CollectiveError, CollectiveTimeoutError, InvalidArgumentError

Cards = Callable[..., Any]
Spread = Callable[..., list[ops.Tensor]]
Lines = Callable[[str], list[str]]
FULL = "/job:localhost/replica:0/task:0/device:"


@pytest.mark.behaviour("num-packs")
@cases("num_packs", [-1, 2.0, "1", None])
def test_num_packs(num_packs: Any) -> None:
    match = f"^NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified$"
    with pytest.raises(ValueError, match=match):
        NcclAllReduce(num_packs)


# Without NCCL


@pytest.mark.behaviour("no-nccl")
@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["CPU:0"], f"{FULL}CPU:0, which is not a GPU"),
        (["GPU:0", "CPU:0"], f"{FULL}GPU:0, which is simulated in host memory"),
        (["GPU:1", "GPU:0"], f"{FULL}GPU:1, which is simulated in host memory"),
    ],
)
def test_where_there_are_no_cards_it_is_the_reference(
    simulate: Callable[[int], Any],
    lines: Lines,
    bits: Callable[[Any], list[Any]],
    names: list[str],
    told: str,
) -> None:
    """The log says so once for each set of devices, and NCCL's own line is not there."""
    simulate(2)
    rng = np.random.default_rng(0)
    batch = []
    for shape in ((3,), (2, 2)):
        tensors = []
        for name in names:
            with mr.device(name):
                tensors.append(mr.constant(rng.normal(size=shape)))
        batch.append(tensors)
    collective = NcclAllReduce()
    for _ in range(3):
        reduced = collective.batch_all_reduce("mean", batch)
    wanted = ReductionToOneDevice().batch_all_reduce("mean", batch)
    for parts, references in zip(reduced, wanted, strict=True):
        assert bits([each.numpy() for each in parts]) == bits([each.numpy() for each in references])
        assert [each.device for each in parts] == [each.device for each in references]
    line = f"NCCL does not connect {told}: values are reduced by ReductionToOneDevice."
    assert lines("NCCL") == [line]
    assert lines("batch_all_reduce") == []
    collective.batch_all_reduce("sum", [batch[0][:1], batch[0][:1]])
    assert len(lines("NCCL")) == 1 + (len(names) > 1)
    NcclAllReduce().batch_all_reduce("sum", batch)
    assert lines("NCCL")[-1] == line
    copied = pickle.loads(pickle.dumps(collective)).batch_all_reduce("mean", batch)
    assert [each.numpy().tolist() for each in copied[0]] == [
        each.numpy().tolist() for each in wanted[0]
    ]


@pytest.mark.behaviour("no-nccl")
def test_a_strategy_takes_it_where_there_are_no_cards(simulate: Callable[[int], Any]) -> None:
    simulate(2)
    strategy = MirroredStrategy(cross_device_ops=NcclAllReduce(), deterministic=True)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    model.fit(np.ones((4, 2)), np.ones(4), verbose=0)
    strategy.close()


def test_slices_and_single_values_go_by_the_reference() -> None:
    collective = NcclAllReduce()
    total = collective.reduce("sum", [IndexedSlices([1.0, 2.0], [0, 1], (2,))] * 2, "CPU:0")
    assert np.asarray(total.values).tolist() == [2.0, 4.0]
    assert float(collective.reduce("mean", [mr.constant(2.0), mr.constant(4.0)], "CPU:0")) == 3.0
    (pair,) = collective.batch_reduce("sum", [([mr.constant(1.0)] * 2, "CPU:0")])
    assert float(pair) == 2.0


# What is asked of NCCL


@pytest.mark.behaviour("virtual-gpus-nccl")
@pytest.mark.parametrize(
    ("num_packs", "nbytes", "buckets"),
    [(1, 0, [6, 4]), (0, 0, [2, 3, 1, 4]), (2, 0, [5, 1, 4]), (1, 12, [5, 1, 4])],
)
def test_one_rank_a_card_and_one_sum_a_bucket(
    cards: Cards,
    spread: Spread,
    lines: Lines,
    num_packs: int,
    nbytes: int,
    buckets: list[int],
) -> None:
    emulator = cards(2, 1)
    batch = [
        spread([np.arange(size, dtype=dtype)] * 3)
        for size, dtype in [(2, "float32"), (3, "float32"), (1, "float32"), (4, "int32")]
    ]
    options = CommunicationOptions(bytes_per_pack=nbytes)
    reduced = NcclAllReduce(num_packs).batch_all_reduce("sum", batch, options)
    assert [(each.rank, each.elements) for each in emulator.nccl.log] == [
        (rank, count) for count in buckets for rank in (0, 1)
    ]
    for values, results in zip(batch, reduced, strict=True):
        for result in results:
            np.testing.assert_array_equal(result.numpy(), 3 * values[0].numpy())
    text = f"batch_all_reduce: 4 all-reduces with algorithm = nccl, num_packs = {num_packs}"
    assert lines("batch_all_reduce") == [text]


def test_what_nccl_is_not_needed_for(cards: Cards, spread: Spread) -> None:
    """One card, nothing to add, and values of one replica."""
    emulator = cards(2, 1)
    collective = NcclAllReduce()
    one_card = spread([1.0, 2.0])
    empty = spread([np.zeros((0, 3), np.float32)] * 3)
    reduced = collective.batch_all_reduce("sum", [one_card, empty, one_card[:1]])
    assert [[part.numpy().tolist() for part in parts] for parts in reduced] == [
        [3.0, 3.0],
        [[], [], []],
        [1.0],
    ]
    assert emulator.nccl.calls["ncclCommInitAll"] == 0
    with pytest.raises(InvalidArgumentError, match="bool"):
        collective.batch_all_reduce("sum", [spread([True, False, True])])


def test_a_rank_a_replica(cards: Cards, spread: Spread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MULTI_RANK, "1")
    emulator = cards(2)
    (parts,) = NcclAllReduce().batch_all_reduce("sum", [spread([1.0, 2.0])])
    assert [float(part) for part in parts] == [3.0, 3.0]
    assert [each.rank for each in emulator.nccl.log] == [0, 1]


class Observer:
    """Notes the work that it is told of."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def add(self, work: Work, replica: int | None, start: int, end: int) -> None:
        assert end > start
        self.works.append(work)


def test_placement_log_and_traces(
    cards: Cards, spread: Spread, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards(1, 1)
    values, observer = spread([1.0, 2.0]), Observer()
    mr.debugging.set_log_device_placement(True)
    monkeypatch.setattr(nccl_all_reduce, "observers", [observer])
    monkeypatch.setattr(work_timing, "observers", [observer])
    NcclAllReduce().batch_all_reduce("sum", [values])
    assert [(work.kind, work.device, work.bytes_in) for work in observer.works] == [
        ("collective", "GPU:0", 4),
        ("collective", "GPU:1", 4),
    ]
    assert lines("Executing") == [
        f"Executing op NcclAllReduce in device {FULL}GPU:0",
        f"Executing op NcclAllReduce in device {FULL}GPU:1",
    ]


# Connections


def test_devices_are_connected_once(cards: Cards, spread: Spread) -> None:
    """All collectives and strategies share a connection; it opens again after `close`."""
    emulator = cards(1, 1)
    batch = [spread([1.0, 2.0])]
    first, second = NcclAllReduce(), NcclAllReduce(2)
    strategy = MirroredStrategy()
    assert emulator.nccl.calls["ncclCommInitAll"] == 0
    for collective in (first, second, first):
        collective.batch_all_reduce("sum", batch)
    assert run(strategy) == [3.0, 3.0]
    assert emulator.nccl.calls["ncclCommInitAll"] == 1
    strategy.close()
    assert emulator.nccl.calls["ncclCommDestroy"] == 2
    first.close()
    assert run(strategy) == [3.0, 3.0]
    assert emulator.nccl.calls["ncclCommInitAll"] == 2


def run(strategy: MirroredStrategy, recorded: bool = False) -> list[float]:
    """Return what an all-reduce of 1 and 2 gives each replica."""

    def replica() -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce("sum", mr.constant(context.replica_id_in_sync_group + 1.0))

    step = mr.function(lambda: strategy.run(replica)) if recorded else None
    total = strategy.run(replica) if step is None else step()
    return [float(each) for each in strategy.experimental_local_results(total)]


def failing(*_: Any) -> selftest.Outcome:
    """Stand in for a self-test whose process crashed."""
    return selftest.Outcome(-11, "", "NCCL WARN something", 0.1)


@pytest.mark.behaviour("nccl-failure")
@pytest.mark.parametrize("own", [True, False], ids=["chosen by the user", "chosen"])
@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_a_self_test_that_fails(
    cards: Cards,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    own: bool,
    recorded: bool,
) -> None:
    """It is an error, or another way to sum, before anything is connected."""
    emulator = cards(1, 1)
    monkeypatch.setattr(selftest, "run_child", failing)
    given: dict[str, CrossDeviceOps] = {"cross_device_ops": NcclAllReduce()} if own else {}
    with pytest.raises(CollectiveError, match="ended by SIGSEGV"):
        run(MirroredStrategy(**given), recorded)
    strategy = MirroredStrategy(**given, on_nccl_failure="fallback")
    assert run(strategy, recorded) == [3.0, 3.0]
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert len(warnings) == 1
    assert warnings[0].startswith("NCCL failed, so values are reduced by ")
    assert emulator.nccl.calls["ncclCommInitAll"] == 0


@pytest.mark.behaviour("nccl-self-test")
@pytest.mark.parametrize(("value", "tests"), [(None, 1), ("1", 1), ("0", 0)])
def test_the_self_test_may_be_left_out(
    cards: Cards,
    spread: Spread,
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
    tests: int,
) -> None:
    cards(1, 1)
    asked, passing = [], selftest.run_child

    def counting(*args: Any) -> Any:
        asked.append(args)
        return passing(*args)

    monkeypatch.setattr(selftest, "run_child", counting)
    if value is not None:
        monkeypatch.setenv(SELFTEST, value)
    for _ in range(2):
        NcclAllReduce().batch_all_reduce("sum", [spread([1.0, 2.0])])
    assert len(asked) == tests


@pytest.mark.behaviour("deterministic-option")
@pytest.mark.parametrize(("split", "expected"), [([1], 0), ([2], 0), ([1, 1], 1), ([2, 1], 1)])
def test_the_same_bits_cost_nothing_on_one_card(
    cards: Cards, monkeypatch: pytest.MonkeyPatch, split: list[int], expected: int
) -> None:
    cards(*split)
    asked: list[int] = []
    monkeypatch.setattr(nccl_all_reduce, "set_deterministic", lambda: asked.append(1))
    MirroredStrategy(cross_device_ops=NcclAllReduce(), deterministic=True)
    assert len(asked) == expected


# Failures in flight


@pytest.mark.behaviour("nccl-deadline")
@pytest.mark.parametrize("seconds", [0.05, 1e-3])
def test_a_sum_that_never_ends(cards: Cards, spread: Spread, seconds: float) -> None:
    """It is an error that names the bucket, and the next sum is right."""
    emulator = cards(1, 1)
    collective, batch = NcclAllReduce(), [spread([1.0, 2.0])]
    collective.batch_all_reduce("sum", batch)
    emulator.nccl.hang()
    with pytest.raises(CollectiveTimeoutError, match=r"bucket 1 of 1 \(4 bytes of float32\)"):
        collective.batch_all_reduce("sum", batch, CommunicationOptions(timeout_seconds=seconds))
    (parts,) = collective.batch_all_reduce("sum", batch)
    assert [float(part) for part in parts] == [3.0, 3.0]


@pytest.mark.behaviour("nccl-deadline")
def test_the_deadline_is_the_strategys(cards: Cards) -> None:
    emulator = cards(1, 1)
    strategy = MirroredStrategy(communication_options=CommunicationOptions(timeout_seconds=0.05))
    assert run(strategy) == [3.0, 3.0]
    emulator.nccl.hang()
    with pytest.raises(CollectiveTimeoutError):
        run(strategy)
    assert run(strategy) == [3.0, 3.0]


@pytest.mark.parametrize("seed", range(4, 12))
def test_memory_of_an_interrupted_call_is_used_after_it(
    cards: Cards, spread: Spread, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The sum goes on in memory that is free by then: others find it there, and wait."""
    cards(1, 1, seed=seed)
    collective, ones = NcclAllReduce(), [np.ones(1000, np.float32)] * 2
    collective.batch_all_reduce("sum", [spread(ones)])

    def interrupted(connection: Connection) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            collective.batch_all_reduce("sum", [spread(ones)])
    values = spread([np.full(1000, 3, np.float32)] * 2)
    others = [mr.negative(value) for value in values]
    (parts,) = collective.batch_all_reduce("sum", [values])
    assert [part.numpy().tolist() for part in parts] == [[6.0] * 1000] * 2
    assert [other.numpy().tolist() for other in others] == [[-3.0] * 1000] * 2


def test_devices_that_are_reset_are_connected_anew(cards: Cards, spread: Spread) -> None:
    emulator = cards(1, 1)
    collective = NcclAllReduce()
    collective.batch_all_reduce("sum", [spread([1.0, 2.0])])
    collective.close()
    devices.reset_devices()
    (parts,) = collective.batch_all_reduce("sum", [spread([1.0, 2.0])])
    assert [float(part) for part in parts] == [3.0, 3.0]
    assert emulator.nccl.calls["ncclCommInitAll"] == 2
