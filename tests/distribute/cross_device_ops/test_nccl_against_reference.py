"""NCCL between emulated cards against the reference: on random cards, shapes, dtypes and packs.

The order of its sums is its own, so N rounding errors are allowed, and none for integers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import ops
from mirrored.distribute import MirroredStrategy, NcclAllReduce, ReductionToOneDevice
from mirrored.distribute.experimental import CommunicationOptions

Cards = Callable[..., Any]
DTYPES = ["float32", "float64", "int32", "int64"]


@dataclass(frozen=True)
class Case:
    """A batch, the logical GPUs of each card, the order of the replicas, and the packing."""

    split: tuple[int, ...]
    order: int
    reduce_op: str
    tensors: tuple[tuple[tuple[int, ...], str], ...]
    num_packs: int
    bytes_per_pack: int
    seed: int

    @property
    def replicas(self) -> list[int]:
        """The GPU of each replica."""
        return np.random.default_rng(self.order).permutation(sum(self.split)).tolist()

    def arrays(self) -> list[list[np.ndarray]]:
        """Return for each value its arrays, by replica."""
        rng = np.random.default_rng(self.seed)
        return [
            [(rng.normal(size=shape) * 100).astype(dtype) for _ in range(sum(self.split))]
            for shape, dtype in self.tensors
        ]


CASES = st.builds(
    Case,
    split=st.lists(st.integers(1, 2), min_size=1, max_size=3).map(tuple),
    order=st.integers(0, 100),
    reduce_op=st.sampled_from(["SUM", "mean"]),
    tensors=st.lists(
        st.tuples(st.lists(st.integers(0, 4), max_size=2).map(tuple), st.sampled_from(DTYPES)),
        max_size=5,
    ).map(tuple),
    num_packs=st.integers(0, 3),
    bytes_per_pack=st.sampled_from([0, 0, 24, 100]),
    seed=st.integers(0, 1 << 20),
)


def check(arrays: Sequence[Any], got: np.ndarray, wanted: np.ndarray) -> None:
    """Hold a result to the reference's: N rounding errors are allowed."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if arrays[0].dtype.kind == "i":
        assert got.tobytes() == wanted.tobytes()
        return
    allowed = len(arrays) * np.finfo(got.dtype).eps * np.sum(np.abs(arrays), axis=0)
    assert (np.abs(got - wanted) <= allowed).all()


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=CASES)
def test_eager(cards: Cards, case: Case) -> None:
    emulator = cards(*case.split, seed=case.seed)
    collective = NcclAllReduce(case.num_packs)
    arrays, batch = case.arrays(), []
    for values in arrays:
        batch.append([])
        for array, number in zip(values, case.replicas, strict=True):
            with mr.device(f"GPU:{number}"):
                batch[-1].append(mr.constant(array))
    options = CommunicationOptions(bytes_per_pack=case.bytes_per_pack)
    wanted = ReductionToOneDevice().batch_all_reduce(case.reduce_op, batch)
    reduced = collective.batch_all_reduce(case.reduce_op, batch, options)
    for inputs, values, results, references in zip(arrays, batch, reduced, wanted, strict=True):
        assert [each.device for each in results] == [each.device for each in values]
        for result, reference in zip(results, references, strict=True):
            check(inputs, np.asarray(result.numpy()), np.asarray(reference.numpy()))
    collective.close()
    several = len(case.split) > 1 and any(np.size(values[0]) for values in arrays)
    assert emulator.nccl.calls["ncclCommInitAll"] == several
    assert emulator.nccl.calls["ncclAllReduce"] % len(case.split) == 0


def reduced_by(
    strategy: MirroredStrategy,
    arrays: Sequence[Sequence[np.ndarray]],
    reduce_op: str,
    recorded: bool = True,
) -> list[list[np.ndarray]]:
    """Return for each value its reduction on each replica."""

    def replica(*values: ops.Tensor) -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce(reduce_op, list(values))

    args = tuple(
        strategy.experimental_distribute_values_from_function(
            lambda context, values=values: values[context.replica_id_in_sync_group]
        )
        for values in arrays
    )
    step = mr.function(lambda args: strategy.run(replica, args))
    out = step(args) if recorded else strategy.run(replica, args)
    return [[part.numpy() for part in strategy.experimental_local_results(each)] for each in out]


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=CASES)
def test_recorded(cards: Cards, bits: Callable[[Any], list[Any]], case: Case) -> None:
    """As far from the reference as rounding allows, and with the bits of the eager one."""
    cards(*case.split, seed=case.seed)
    names = [f"GPU:{number}" for number in case.replicas]
    arrays = case.arrays()
    options = CommunicationOptions(bytes_per_pack=case.bytes_per_pack)
    given: dict[str, Any] = {"devices": names, "communication_options": options}
    strategy = MirroredStrategy(**given, cross_device_ops=NcclAllReduce(case.num_packs))
    reduced = reduced_by(strategy, arrays, case.reduce_op)
    eager = reduced_by(strategy, arrays, case.reduce_op, recorded=False)
    strategy.close()
    reference = MirroredStrategy(**given, cross_device_ops=ReductionToOneDevice())
    wanted = reduced_by(reference, arrays, case.reduce_op)
    for inputs, parts, same, references in zip(arrays, reduced, eager, wanted, strict=True):
        assert bits(parts) == bits(same)
        for part, each in zip(parts, references, strict=True):
            check(inputs, np.asarray(part), np.asarray(each))


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


@pytest.mark.parametrize("split", [[1, 1], [2, 1]])
@pytest.mark.parametrize("num_packs", [1, 3])
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
