"""Every collective against the reference, on random devices, shapes, dtypes and ways to pack.

Where the order of the sum is the reference's, so are the bits; else N rounding errors are allowed,
and none for integers. What is recorded has the bits of what is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parts import one_of, others_of

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    MirroredStrategy,
    NcclAllReduce,
    ReductionToOneDevice,
)
from mirrored.distribute.cross_device_ops.tree import TreeReduction
from mirrored.distribute.experimental import CommunicationOptions

Cards = Callable[..., Any]
Bits = Callable[[Any], list[Any]]
IsMine = Callable[[object], bool]
# Those that reduce wherever devices are.
ALL_REDUCES = [HierarchicalCopyAllReduce, TreeReduction]
DTYPES = ["float32", "float64", "int32", "int64"]
SAME_ORDER = 3  # Up to so many replicas, both halves are added in replica order.


@dataclass(frozen=True)
class Case:
    """A batch, where it lies, and how it is packed.

    `split` says how many devices each card is; on the host there is one "card". Cards' replicas
    come in some order, which `seed` decides.
    """

    kind: str
    split: tuple[int, ...]
    reduce_op: str
    tensors: tuple[tuple[tuple[int, ...], str], ...]
    num_packs: int
    bytes_per_pack: int
    seed: int

    @property
    def replicas(self) -> int:
        return sum(self.split)

    @property
    def names(self) -> list[str]:
        """The device of each replica."""
        if self.kind != "cards":
            return [f"{self.kind}:{i}" for i in range(self.replicas)]
        order = np.random.default_rng(self.seed).permutation(self.replicas)
        return [f"GPU:{i}" for i in order]

    @property
    def options(self) -> CommunicationOptions:
        return CommunicationOptions(bytes_per_pack=self.bytes_per_pack)

    def arrays(self) -> list[list[np.ndarray]]:
        """Return for each value its arrays, by replica."""
        rng = np.random.default_rng(self.seed)
        return [
            [(rng.normal(size=shape) * 100).astype(dtype) for _ in range(self.replicas)]
            for shape, dtype in self.tensors
        ]

    def on_host(self) -> None:
        """Make the devices that a case on the host needs."""
        devices.reset_devices()
        if self.kind == "GPU":
            mr.config.experimental.set_simulated_gpus(self.replicas)
        else:
            mr.config.set_logical_device_configuration(
                mr.config.list_physical_devices("CPU")[0],
                [mr.config.LogicalDeviceConfiguration()] * self.replicas,
            )

    def check(self, arrays: Sequence[Any], got: Any, wanted: Any) -> None:
        """Hold one result to the reference's."""
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        same_order = self.kind != "cards" and self.replicas <= SAME_ORDER
        if same_order or arrays[0].dtype.kind == "i":
            assert got.tobytes() == wanted.tobytes()
            return
        allowed = self.replicas * np.finfo(got.dtype).eps * np.sum(np.abs(arrays), axis=0)
        assert (np.abs(got - wanted) <= allowed).all()


SMALL = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def cases(
    shapes: st.SearchStrategy[tuple[int, ...]], most: int, *, cards: bool = False
) -> st.SearchStrategy[Case]:
    """Return cases of tensors of some shapes, in at most so many packs."""
    on_host = st.integers(1, 5).map(lambda replicas: (replicas,))
    on_cards = st.lists(st.integers(1, 2), min_size=1, max_size=3).map(tuple)
    return st.builds(
        Case,
        kind=st.just("cards") if cards else st.sampled_from(["CPU", "GPU"]),
        split=on_cards if cards else on_host,
        reduce_op=st.sampled_from(["SUM", "mean"]),
        tensors=st.lists(st.tuples(shapes, st.sampled_from(DTYPES)), max_size=6).map(tuple),
        num_packs=st.one_of(st.integers(0, 5), st.just(most)),
        bytes_per_pack=st.sampled_from([0, 0, 4000 // most, 24, 100, 1 << 20]),
        seed=st.integers(0, 1 << 20),
    )


PARTS = pytest.mark.parametrize(
    "is_mine",
    [one_of(12), pytest.param(others_of(12), marks=pytest.mark.slow)],
    ids=["a twelfth", "the others"],
)
PARTS_ON_CARDS = pytest.mark.parametrize(
    "is_mine",
    [one_of(6), pytest.param(others_of(6), marks=pytest.mark.slow)],
    ids=["a sixth", "the others"],
)

CARDS = cases(st.lists(st.integers(0, 4), max_size=2).map(tuple), 3, cards=True)


def examples(count: int) -> settings:
    """Return the settings of a test of so many cases."""
    return settings(
        max_examples=count,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def check_eager(case: Case, collective: CrossDeviceOps) -> None:
    """Hold the results of a collective, called by itself, to the reference's."""
    arrays = case.arrays()
    batch: list[list[ops.Tensor]] = [[] for _ in arrays]
    for values, parts in zip(arrays, batch, strict=True):
        for array, name in zip(values, case.names, strict=True):
            with mr.device(name):
                parts.append(mr.constant(array))
    wanted = ReductionToOneDevice().batch_all_reduce(case.reduce_op, batch)
    reduced = collective.batch_all_reduce(case.reduce_op, batch, case.options)
    for inputs, values, results, references in zip(arrays, batch, reduced, wanted, strict=True):
        assert [each.device for each in results] == [each.device for each in values]
        for result, reference in zip(results, references, strict=True):
            case.check(inputs, result.numpy(), reference.numpy())


@pytest.mark.behaviour("packs")
@PARTS
@pytest.mark.parametrize("make", ALL_REDUCES)
@examples(150)
@given(case=cases(st.one_of(SMALL, st.just((1000,))), most=3000))
def test_all_reduces(make: Callable[[int], CrossDeviceOps], case: Case, is_mine: IsMine) -> None:
    if not is_mine(case):
        return
    case.on_host()
    check_eager(case, make(case.num_packs))


@pytest.mark.behaviour("virtual-gpus-nccl")
@PARTS_ON_CARDS
@examples(25)
@given(case=CARDS)
def test_nccl(cards: Cards, case: Case, is_mine: IsMine) -> None:
    if not is_mine(case):
        return
    emulator = cards(*case.split, seed=case.seed)
    collective = NcclAllReduce(case.num_packs)
    check_eager(case, collective)
    collective.close()
    several = len(case.split) > 1 and any(0 not in shape for shape, _ in case.tensors)
    assert emulator.nccl.calls["ncclCommInitAll"] == several
    assert emulator.nccl.calls["ncclAllReduce"] % len(case.split) == 0


def reduced_by(case: Case, collective: CrossDeviceOps, *, recorded: bool) -> list[list[np.ndarray]]:
    """Return for each value what the replicas of a strategy all-reduce it to."""
    strategy = MirroredStrategy(
        case.names, cross_device_ops=collective, communication_options=case.options
    )

    def replica(*values: ops.Tensor) -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce(case.reduce_op, list(values))

    args = tuple(
        strategy.experimental_distribute_values_from_function(
            lambda context, values=values: values[context.replica_id_in_sync_group]
        )
        for values in case.arrays()
    )
    step = mr.function(lambda args: strategy.run(replica, args))
    out = step(args) if recorded else strategy.run(replica, args)
    found = [[part.numpy() for part in strategy.experimental_local_results(each)] for each in out]
    strategy.close()
    return found


def recorded_as_eager(case: Case, make: Callable[[], CrossDeviceOps], bits: Bits) -> Any:
    """Return what is recorded, once it has the bits of what is not."""
    reduced = reduced_by(case, make(), recorded=True)
    eager = reduced_by(case, make(), recorded=False)
    assert [bits(parts) for parts in reduced] == [bits(parts) for parts in eager]
    return reduced


@pytest.mark.behaviour("packs")
@PARTS
@examples(100)
@given(
    case=cases(st.lists(st.integers(0, 3), max_size=2).map(tuple), 9), hierarchical=st.booleans()
)
def test_recorded_as_eager(bits: Bits, case: Case, hierarchical: bool, is_mine: IsMine) -> None:
    if not is_mine(case):
        return
    case.on_host()
    packed = HierarchicalCopyAllReduce(case.num_packs)
    recorded_as_eager(case, lambda: packed if hierarchical else ReductionToOneDevice(), bits)


@pytest.mark.behaviour("virtual-gpus-nccl")
@PARTS_ON_CARDS
@examples(20)
@given(case=CARDS, hierarchical=st.booleans())
def test_recorded_between_cards(
    cards: Cards, bits: Bits, case: Case, hierarchical: bool, is_mine: IsMine
) -> None:
    """As far from the reference as rounding allows, and with the bits of the eager one."""
    if not is_mine(case):
        return
    make = HierarchicalCopyAllReduce if hierarchical else NcclAllReduce
    cards(*case.split, seed=case.seed)
    reduced = recorded_as_eager(case, lambda: make(case.num_packs), bits)
    wanted = reduced_by(case, ReductionToOneDevice(), recorded=False)
    for inputs, parts, references in zip(case.arrays(), reduced, wanted, strict=True):
        for part, reference in zip(parts, references, strict=True):
            case.check(inputs, part, reference)


@pytest.mark.parametrize("num_packs", [0, 1, 2])
def test_whole_numbers_beyond_the_last_bit_of_a_float(
    spread: Callable[..., list[ops.Tensor]], num_packs: int
) -> None:
    """Sums of integers are exact, and wrap around as the reference's do."""
    mr.config.experimental.set_simulated_gpus(4)
    values = spread([np.array([2**62, 2**31, -1]), *[np.array([2**62, 1, 1])] * 3])
    (parts,) = HierarchicalCopyAllReduce(num_packs).batch_all_reduce("sum", [values])
    assert [part.numpy().tolist() for part in parts] == [[0, 2**31 + 3, 2]] * 4


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_bfloat16(cards: Cards, recorded: bool) -> None:
    pytest.importorskip("ml_dtypes")
    cards(1, 2)
    strategy = MirroredStrategy(cross_device_ops=NcclAllReduce())

    def replica() -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        number = context.replica_id_in_sync_group
        return context.all_reduce("sum", mr.constant([number + 0.5, 2.0], mr.bfloat16))

    out = mr.function(lambda: strategy.run(replica))() if recorded else strategy.run(replica)
    for part in strategy.experimental_local_results(out):
        assert part.dtype == mr.bfloat16
        assert part.numpy().astype(np.float32).tolist() == [4.5, 6.0]


def trained(strategy: MirroredStrategy, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return the weights of a small model after some steps."""
    ops.set_seed(5)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Dense(9, activation="tanh"), mr.layers.Dense(2)])
        model.compile("sgd", "mse")
    model.fit(x, y, batch_size=7, epochs=2, verbose=0, shuffle=False)
    weights = [np.asarray(each) for each in model.get_weights()]
    strategy.close()
    return weights


@pytest.mark.behaviour("virtual-gpus-nccl")
@pytest.mark.parametrize(
    ("split", "num_packs"), [pytest.param([1, 1], 3, marks=pytest.mark.slow), ([2, 1], 1)]
)
def test_training_between_cards(cards: Cards, split: list[int], num_packs: int) -> None:
    """The weights are those of one device, for batches of 7, 7 and 2 over two or three replicas."""
    emulator = cards(*split)
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(16, 5)), rng.normal(size=(16, 2))
    wanted = trained(MirroredStrategy(["GPU:0"]), x, y)
    found = trained(MirroredStrategy(cross_device_ops=NcclAllReduce(num_packs)), x, y)
    for weight, reference in zip(found, wanted, strict=True):
        np.testing.assert_allclose(weight, reference, rtol=1e-5, atol=1e-6)
    assert emulator.nccl.calls["ncclAllReduce"] > 6 * num_packs
