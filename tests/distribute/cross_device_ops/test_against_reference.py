"""Every collective against the reference, on random devices, shapes, dtypes and ways to pack.

Where the order of the sum is the reference's, so are the bits; else N rounding errors are allowed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import CrossDeviceOps, HierarchicalCopyAllReduce, ReductionToOneDevice
from mirrored.distribute.experimental import CommunicationOptions

Spread = Callable[..., list[ops.Tensor]]
DTYPES = ["float32", "float64", "int32", "int64"]
SAME_ORDER = 3  # Up to so many replicas, both halves are added in replica order.


@dataclass(frozen=True)
class Case:
    """A batch, where it lies, and how it is packed."""

    replicas: int
    kind: str
    reduce_op: str
    tensors: tuple[tuple[tuple[int, ...], str], ...]
    num_packs: int
    bytes_per_pack: int
    seed: int

    def arrays(self) -> list[list[np.ndarray]]:
        """Return for each value its arrays, by replica."""
        rng = np.random.default_rng(self.seed)
        return [
            [(rng.normal(size=shape) * 100).astype(dtype) for _ in range(self.replicas)]
            for shape, dtype in self.tensors
        ]


SMALL = st.lists(st.integers(0, 4), max_size=3).map(tuple)


def cases(shapes: st.SearchStrategy[tuple[int, ...]], most: int) -> st.SearchStrategy[Case]:
    """Return cases of tensors of some shapes, in at most so many packs."""
    return st.builds(
        Case,
        replicas=st.integers(1, 5),
        kind=st.sampled_from(["CPU", "GPU"]),
        reduce_op=st.sampled_from(["SUM", "mean"]),
        tensors=st.lists(st.tuples(shapes, st.sampled_from(DTYPES)), max_size=6).map(tuple),
        num_packs=st.one_of(st.integers(0, 5), st.just(most)),
        bytes_per_pack=st.sampled_from([0, 0, 4000 // most, 24, 100, 1 << 20]),
        seed=st.integers(0, 1 << 20),
    )


def prepare(case: Case) -> None:
    """Make the devices that a case needs."""
    devices.reset_devices()
    if case.kind == "GPU":
        mr.config.experimental.set_simulated_gpus(case.replicas)
    else:
        mr.config.set_logical_device_configuration(
            mr.config.list_physical_devices("CPU")[0],
            [mr.config.LogicalDeviceConfiguration()] * case.replicas,
        )


def check(case: Case, arrays: Sequence[Any], got: np.ndarray, wanted: np.ndarray) -> None:
    """Hold one result to the reference's."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if case.replicas <= SAME_ORDER or arrays[0].dtype.kind == "i":
        assert got.tobytes() == wanted.tobytes()
        return
    size = np.sum(np.abs(arrays), axis=0)
    allowed = case.replicas * np.finfo(got.dtype).eps * size
    assert (np.abs(got - wanted) <= allowed).all()


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(case=cases(st.one_of(SMALL, st.just((1000,))), most=3000))
def test_hierarchical_copy(spread: Spread, case: Case) -> None:
    prepare(case)
    arrays = case.arrays()
    batch = [spread(values, case.kind) for values in arrays]
    options = CommunicationOptions(bytes_per_pack=case.bytes_per_pack)
    wanted = ReductionToOneDevice().batch_all_reduce(case.reduce_op, batch)
    collective = HierarchicalCopyAllReduce(case.num_packs)
    reduced = collective.batch_all_reduce(case.reduce_op, batch, options)
    for inputs, values, results, references in zip(arrays, batch, reduced, wanted, strict=True):
        assert [each.device for each in results] == [each.device for each in values]
        for result, reference in zip(results, references, strict=True):
            check(case, inputs, np.asarray(result.numpy()), np.asarray(reference.numpy()))


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    case=cases(st.lists(st.integers(0, 3), max_size=2).map(tuple), 9), hierarchical=st.booleans()
)
def test_recorded_as_eager(
    spread: Spread,
    record: Callable[..., Any],
    bits: Callable[[Any], list[Any]],
    case: Case,
    hierarchical: bool,
) -> None:
    """A recorded collective has the bits of the eager one, whichever it is."""
    prepare(case)
    collective: CrossDeviceOps = (
        HierarchicalCopyAllReduce(case.num_packs) if hierarchical else ReductionToOneDevice()
    )
    options = CommunicationOptions(bytes_per_pack=case.bytes_per_pack)
    arrays = case.arrays()
    names = [f"{case.kind}:{i}" for i in range(case.replicas)]
    where = [devices.get_device(name) for name in names]

    def reduce(*inputs: ops.Tensor) -> list[ops.Tensor]:
        rows = [inputs[i : i + case.replicas] for i in range(0, len(inputs), case.replicas)]
        batch = [[t.copy_to(place) for t, place in zip(row, where, strict=True)] for row in rows]
        reduced = collective.batch_all_reduce(case.reduce_op, batch, options)
        return [part for parts in reduced for part in parts]

    flat = [array for values in arrays for array in values]
    eager = reduce(*[mr.constant(array) for array in flat])
    if flat:
        assert bits(record(reduce, flat)(*flat)) == bits([each.numpy() for each in eager])


@pytest.mark.parametrize("num_packs", [0, 1, 2])
def test_whole_numbers_beyond_the_last_bit_of_a_float(spread: Spread, num_packs: int) -> None:
    """Sums of integers are exact, and wrap around as the reference's do."""
    mr.config.experimental.set_simulated_gpus(4)
    values = spread([np.array([2**62, 2**31, -1]), *[np.array([2**62, 1, 1])] * 3])
    (parts,) = HierarchicalCopyAllReduce(num_packs).batch_all_reduce("sum", [values])
    assert [part.numpy().tolist() for part in parts] == [[0, 2**31 + 3, 2]] * 4
