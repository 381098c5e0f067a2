"""The interface of the collectives: what it checks, and what a subclass need not define."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import devices, ops
from mirrored.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    IndexedSlices,
    MirroredStrategy,
    ReduceOp,
    ReductionToOneDevice,
    get_replica_context,
)
from mirrored.distribute.cross_device_ops.collectives import reduce_slices
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import InvalidArgumentError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
Spread = Callable[..., list[ops.Tensor]]
EACH = pytest.mark.parametrize("make", [ReductionToOneDevice, HierarchicalCopyAllReduce])


class SumByHand(CrossDeviceOps):
    """As little as a subclass can define: tensors are added one by one."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[ops.Tensor],
        destination: devices.Device,
        options: CommunicationOptions,
    ) -> ops.Tensor:
        self.calls.append((reduce_op, len(values), destination.name, options.bytes_per_pack))
        with devices.device(destination):
            total = values[0]
            for value in values[1:]:
                total = total + value
            return total / float(len(values)) if reduce_op is ReduceOp.MEAN else total


@EACH
def test_a_batch_keeps_its_order(
    simulate: Simulate, spread: Spread, make: Callable[[], CrossDeviceOps]
) -> None:
    simulate(2)
    batch = [spread([1.0, 2.0]), spread([[1], [2]]), spread([[[5.0]], [[6.0]]])]
    reduced = make().batch_all_reduce("sum", batch)
    assert [[part.numpy().tolist() for part in parts] for parts in reduced] == [
        [3.0, 3.0],
        [[3], [3]],
        [[[11.0]], [[11.0]]],
    ]


@EACH
def test_inputs_are_left_as_they_are(
    simulate: Simulate, spread: Spread, make: Callable[[], CrossDeviceOps]
) -> None:
    simulate(2)
    values = spread([[1.0, 2.0], [3.0, 4.0]])
    make().batch_all_reduce("mean", [values])
    assert [value.numpy().tolist() for value in values] == [[1.0, 2.0], [3.0, 4.0]]


@EACH
def test_tapes_do_not_follow_the_copies(
    simulate: Simulate, spread: Spread, make: Callable[[], CrossDeviceOps]
) -> None:
    simulate(2)
    values = spread([1.0, 2.0])
    with mr.GradientTape() as tape:
        tape.watch(values)
        total = make().reduce("sum", values, "CPU:0")
    assert tape.gradient(total, values) == [None, None]


@pytest.mark.behaviour("collectives")
def test_a_subclass_defines_one_method(simulate: Simulate, spread: Spread) -> None:
    simulate(3)
    collective = SumByHand()
    a, b = spread([1.0, 2.0, 6.0]), spread([[1.0], [2.0], [3.0]])[1:]
    options = CommunicationOptions(bytes_per_pack=8)
    assert float(collective.reduce("mean", a, "GPU:2", options)) == 3.0
    first, second = collective.batch_reduce("SUM", [(a, "GPU:1"), (b, "CPU:0")])
    assert [float(first), second.numpy().tolist()] == [9.0, [5.0]]
    assert [first.device[-5:], second.device[-5:]] == ["GPU:1", "CPU:0"]
    reduced = collective.batch_all_reduce(ReduceOp.SUM, [b, a])
    assert [[part.numpy().tolist() for part in parts] for parts in reduced] == [
        [[5.0]] * 2,
        [9] * 3,
    ]
    assert [[part.device[-1] for part in parts] for parts in reduced] == [["1", "2"], [*"012"]]
    assert collective.calls == [
        (ReduceOp.MEAN, 3, "/device:GPU:2", 8),
        (ReduceOp.SUM, 3, "/device:GPU:1", 0),
        (ReduceOp.SUM, 2, "/device:CPU:0", 0),
        (ReduceOp.SUM, 2, "/device:GPU:1", 0),
        (ReduceOp.SUM, 3, "/device:GPU:0", 0),
    ]


def test_broadcast(simulate: Simulate) -> None:
    simulate(2)
    copies = ReductionToOneDevice().broadcast(mr.constant([1.0, 2.0]), ["GPU:1", "CPU:0", "GPU:1"])
    assert [copy.device[-5:] for copy in copies] == ["GPU:1", "CPU:0", "GPU:1"]
    assert [copy.numpy().tolist() for copy in copies] == [[1.0, 2.0]] * 3


@cases("axis", [0, 1, 2, -1, -3])
@cases("dtype", ["float64", "int64", "bool"])
def test_gather(simulate: Simulate, spread: Spread, axis: int, dtype: str) -> None:
    simulate(3)
    arrays = []
    for size in (2, 0, 3):
        shape = [2, 2, 2]
        shape[axis] = size
        arrays.append(np.arange(np.prod(shape)).reshape(shape).astype(dtype))
    gathered = ReductionToOneDevice().gather(spread(arrays), "GPU:1", axis)
    assert gathered.device[-5:] == "GPU:1"
    assert gathered.dtype == dtype
    np.testing.assert_array_equal(gathered.numpy(), np.concatenate(arrays, axis))


@pytest.mark.behaviour("gather-numbers")
def test_numbers_of_gather(simulate: Simulate, spread: Spread) -> None:
    simulate(4)
    values = spread([np.zeros((1, 2, 3))] * 4)
    shapes = [ReductionToOneDevice().gather(values, "CPU:0", axis).shape for axis in range(3)]
    assert shapes == [(4, 2, 3), (1, 8, 3), (1, 2, 12)]


@cases(
    ("values", "axis", "error", "match"),
    [
        ([], 0, InvalidArgumentError, "no values"),
        (
            [1.0, 2.0],
            0,
            InvalidArgumentError,
            r"rank, which must be at least 1.*\(\) from replica 0",
        ),
        ([[1.0], [[1.0]]], 0, InvalidArgumentError, r"\(1,\) from replica 0 and \(1, 1\)"),
        ([[1.0], [1]], 0, InvalidArgumentError, "float32 from replica 0 and int32 from replica 1"),
        (
            [[[1.0, 2.0]], [[1.0, 2.0, 3.0]]],
            0,
            InvalidArgumentError,
            r"Dimension 1 in both shapes must be equal.*\(1, 2\) from replica 0 and \(1, 3\)",
        ),
        ([[1.0], [2.0]], 1, ValueError, "`axis` = 1 out of range for `value` with rank 1"),
        ([[1.0], [2.0]], -2, ValueError, "`axis` = -2 out of range for `value` with rank 1"),
        ([[1.0], [2.0]], None, ValueError, "`axis` = None out of range"),
        ([[1.0], [2.0]], True, ValueError, "`axis` = True out of range"),
    ],
)
def test_gather_refuses(
    simulate: Simulate,
    spread: Spread,
    values: list[Any],
    axis: Any,
    error: type[Exception],
    match: str,
) -> None:
    simulate(2)
    tensors = spread(values)
    with pytest.raises(error, match=match):
        ReductionToOneDevice().gather(tensors, "CPU:0", axis)


@EACH
@cases(
    ("values", "match"),
    [
        ([], "nothing to reduce"),
        ([[1.0], [1.0, 2.0]], r"\(1,\) float32 from replica 0 and \(2,\) float32 from replica 1"),
        ([1.0, 1], r"\(\) float32 from replica 0 and \(\) int32 from replica 1"),
    ],
)
def test_values_that_do_not_go_together(
    simulate: Simulate,
    spread: Spread,
    make: Callable[[], CrossDeviceOps],
    values: list[Any],
    match: str,
) -> None:
    simulate(2)
    tensors, fine = spread(values), spread([1.0, 2.0])
    with pytest.raises(InvalidArgumentError, match=match):
        make().reduce("sum", tensors, "CPU:0")
    with pytest.raises(InvalidArgumentError, match=match):
        make().batch_all_reduce("sum", [fine, tensors])
    with pytest.raises(InvalidArgumentError, match=match):
        make().batch_reduce("sum", [(fine, "CPU:0"), (tensors, "CPU:0")])


ONE = ReductionToOneDevice()


@cases(
    ("make", "error", "match"),
    [
        (
            lambda t: ONE.reduce("PROD", [t], "CPU:0"),
            ValueError,
            "'PROD' is not a valid ReduceOp",
        ),
        (
            lambda t: ONE.reduce("sum", [t], "GPU:7"),
            InvalidArgumentError,
            "GPU:7 unknown device.*All available devices",
        ),
        (
            lambda t: ONE.broadcast(t, ["GPU:7"]),
            InvalidArgumentError,
            "GPU:7 unknown device.*All available devices",
        ),
        (lambda t: ONE.broadcast(t, "CPU:0"), InvalidArgumentError, "destinations='CPU:0'"),
        (lambda t: ONE.broadcast(t, []), InvalidArgumentError, r"destinations=\[\]"),
        (lambda t: ONE.broadcast(1.0, ["CPU:0"]), InvalidArgumentError, "Received: 1.0"),
        (
            lambda t: ONE.reduce("sum", [t, 2.0], "CPU:0"),
            InvalidArgumentError,
            "Received: 2.0 from replica 1.*mr.convert_to_tensor",
        ),
        (
            lambda t: ONE.batch_all_reduce("sum", [mr.distribute.PerReplica([t])]),
            InvalidArgumentError,
            "(?s)list of tensors, one per replica.*experimental_local_results",
        ),
        (
            lambda t: ONE.reduce("sum", [t], "CPU:0", {"bytes_per_pack": 1}),
            ValueError,
            (
                "`options` must be a mr.distribute.experimental.CommunicationOptions. Received: "
                "{'bytes"
            ),
        ),
        (
            lambda t: CrossDeviceOps().reduce("sum", [t], "CPU:0"),
            NotImplementedError,
            "CrossDeviceOps has no `reduce_implementation`",
        ),
    ],
)
def test_refused(make: Callable[[ops.Tensor], Any], error: type[Exception], match: str) -> None:
    tensor = mr.constant(1.0)
    with pytest.raises(error, match=match):
        make(tensor)


@pytest.mark.behaviour("collectives")
def test_a_strategy_uses_the_collectives_it_is_given(simulate: Simulate) -> None:
    simulate(2)
    collective = SumByHand()
    strategy = MirroredStrategy(cross_device_ops=collective)

    def replica() -> Any:
        context = get_replica_context()
        assert context is not None
        return context.all_reduce("sum", [mr.constant(1.0), mr.constant([2.0])])

    total = strategy.run(replica)
    strategy.reduce("mean", total[0])
    assert collective.calls == [
        (ReduceOp.SUM, 2, "/device:GPU:0", 0),
        (ReduceOp.SUM, 2, "/device:GPU:0", 0),
        (ReduceOp.MEAN, 2, "/device:CPU:0", 0),
    ]


@pytest.mark.usefixtures("one_blas_thread")
@pytest.mark.parametrize(
    "make",
    [
        SumByHand,
        pytest.param(HierarchicalCopyAllReduce, marks=pytest.mark.slow),
        pytest.param(lambda: HierarchicalCopyAllReduce(num_packs=0), marks=pytest.mark.slow),
        lambda: HierarchicalCopyAllReduce(num_packs=5),
        pytest.param(lambda: ReductionToOneDevice("GPU:1"), marks=pytest.mark.slow),
    ],
    ids=["by hand", "one pack", "no packs", "five packs", "on GPU:1"],
)
def test_fit_recorded_and_eager_have_the_same_bits(
    simulate: Simulate, make: Callable[[], CrossDeviceOps]
) -> None:
    simulate(5)
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(23, 3)).astype("f4"), rng.normal(size=(23, 2)).astype("f4")

    def weights(collective: CrossDeviceOps | None, **options: Any) -> list[np.ndarray]:
        mr.random.set_seed(1)
        strategy = MirroredStrategy(cross_device_ops=collective)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(4, "tanh")])
            model.add(mr.layers.Dense(2))
            model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", **options)
        model.fit(x, y, batch_size=8, verbose=0)
        copies = [strategy.experimental_local_results(each) for each in model.variables]
        assert all((a.numpy() == b.numpy()).all() for a, *rest in copies for b in rest)
        return [np.asarray(each) for each in model.get_weights()]

    recorded, eager = weights(make()), weights(make(), run_eagerly=True)
    for a, b, reference in zip(recorded, eager, weights(None), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, reference, rtol=1e-5, atol=1e-6)


def test_a_subclass_may_refuse_devices(simulate: Simulate, spread: Spread) -> None:
    class OnPairs(SumByHand):
        def check_devices(self, devices: Sequence[devices.Device]) -> None:
            if len(devices) != 2:
                raise InvalidArgumentError(f"Pairs only. Received: {len(devices)} devices.")

    simulate(3)
    collective, three = OnPairs(), spread([1.0, 2.0, 3.0])
    assert float(collective.reduce("sum", three[:2], "CPU:0")) == 3.0
    for call in (
        lambda: collective.reduce("sum", three, "CPU:0"),
        lambda: collective.batch_reduce("sum", [(three[:2], "CPU:0"), (three, "CPU:0")]),
        lambda: collective.batch_all_reduce("sum", [three[:2], three]),
        lambda: MirroredStrategy(cross_device_ops=collective),
    ):
        with pytest.raises(InvalidArgumentError, match=r"Pairs only.*3 devices"):
            call()
    assert len(collective.calls) == 1
    assert MirroredStrategy(["GPU:0", "GPU:2"], cross_device_ops=collective) is not None


def two_replicas() -> list[IndexedSlices]:
    with mr.device("GPU:0"):
        first = IndexedSlices([[1.0, 2.0]], [1], dense_shape=(5, 2))
    with mr.device("GPU:1"):
        second = IndexedSlices([[3.0, 4.0], [5.0, 6.0]], [1, 3], dense_shape=(5, 2))
    return [first, second]


@pytest.mark.behaviour("sparse-sums")
@cases("collective", [ReductionToOneDevice(), HierarchicalCopyAllReduce()])
@cases(
    ("reduce_op", "rows"), [("sum", [[4.0, 6.0], [5.0, 6.0]]), ("mean", [[2.0, 3.0], [2.5, 3.0]])]
)
def test_numbers(simulate: Simulate, collective: Any, reduce_op: str, rows: Any) -> None:
    simulate(2)
    slices = two_replicas()
    one = collective.reduce(reduce_op, slices, "GPU:1")
    with mr.device("GPU:0"):
        dense = [mr.constant(1.0), mr.constant(2.0)]
    batch = [dense, slices, dense, slices]
    _, both, _, again = collective.batch_all_reduce(reduce_op, batch)
    for each, device in [(one, 1), (both[0], 0), (both[1], 1), (again[0], 0), (again[1], 1)]:
        assert each.values.numpy().tolist() == rows
        assert each.indices.numpy().tolist() == [1, 3]
        assert each.dense_shape == (5, 2)
        assert each.device[-5:] == each.indices.device[-5:] == f"GPU:{device}"


@pytest.mark.behaviour("sparse-sums")
@pytest.mark.parametrize("collective", [ReductionToOneDevice(), HierarchicalCopyAllReduce()])
def test_a_strategy_reduces_it(simulate: Simulate, collective: Any) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy(cross_device_ops=collective)
    slices = two_replicas()
    total = strategy.reduce("sum", mr.distribute.PerReplica(slices))

    def replica() -> Any:
        context = mr.distribute.get_replica_context()
        assert context is not None
        return context.all_reduce("sum", slices[context.replica_id_in_sync_group])

    everywhere = strategy.experimental_local_results(strategy.run(replica))
    for each in (total, *everywhere):
        dense = mr.convert_to_tensor(each).numpy().tolist()
        assert dense == [[0.0, 0.0], [4.0, 6.0], [0.0, 0.0], [5.0, 6.0], [0.0, 0.0]]


def test_dense_values_beside_sparse_ones_keep_their_places(simulate: Simulate) -> None:
    simulate(2)
    a, b = [mr.constant(1.0)] * 2, [mr.constant([2])] * 2
    got = ReductionToOneDevice().batch_all_reduce("sum", [a, two_replicas(), b])
    assert float(got[0][1]) == 2.0
    assert isinstance(got[1][0], IndexedSlices)
    assert got[2][0].numpy().tolist() == [4]


ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=6)


@settings(max_examples=25)
@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from(list(ReduceOp)))
def test_as_the_dense_sum(replicas: list[list[tuple[int, int]]], reduce_op: ReduceOp) -> None:
    slices, dense = [], np.zeros((5, 2))
    for rows in replicas:
        indices = np.array([i for i, _ in rows], np.int64)
        values = np.array([[v, v / 2] for _, v in rows]).reshape(-1, 2)
        slices.append(IndexedSlices(values, indices, (5, 2)))
        for i, row in zip(indices, values, strict=True):
            dense[i] += row
    if reduce_op is ReduceOp.MEAN:
        dense /= len(replicas)
    reduced = reduce_slices(reduce_op, slices, devices.get_device("CPU:0"))
    indices = reduced.indices.numpy().tolist()
    assert indices == sorted({i for rows in replicas for i, _ in rows})
    assert reduced.indices.dtype == "int64"
    np.testing.assert_array_equal(mr.convert_to_tensor(reduced).numpy(), dense)


def test_ops_take_it_as_a_tensor(simulate: Simulate) -> None:
    simulate(2)
    slices = two_replicas()[1]
    total = mr.reduce_sum(slices, axis=1)
    assert total.numpy().tolist() == [0.0, 7.0, 0.0, 11.0, 0.0]
    assert mr.convert_to_tensor(slices).device[-5:] == "GPU:1"
    assert (slices.dtype, slices.dense_shape) == (mr.float32, (5, 2))


def test_repr() -> None:
    slices = IndexedSlices([[1.0]], [2])
    assert repr(slices) == (
        "IndexedSlices(indices=mr.Tensor([2], shape=(1,), dtype=int32), "
        "values=mr.Tensor([[1.]], shape=(1, 1), dtype=float32), dense_shape=None)"
    )


@cases(
    ("make", "error", "match"),
    [
        (
            lambda: IndexedSlices([1.0], [1, 2]),
            InvalidArgumentError,
            r"shape \(1,\) .*shape \(2,\)",
        ),
        (lambda: IndexedSlices(1.0, 1), InvalidArgumentError, "one integer index per row"),
        (lambda: IndexedSlices([1.0], [1.0]), InvalidArgumentError, "dtype float32"),
        (lambda: IndexedSlices([1.0], [1], (3, 2)), InvalidArgumentError, r"dense_shape=\(3, 2\)"),
        (lambda: IndexedSlices([1.0], [1], ()), InvalidArgumentError, r"dense_shape=\(\)"),
        (lambda: IndexedSlices([1.0], [1], (-3,)), InvalidArgumentError, ">= 0"),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [1])),
            ValueError,
            "Tensor conversion requested for IndexedSlices without dense_shape: Indexed",
        ),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [3], (3,))),
            InvalidArgumentError,
            r"indices\[0\] = \[3\] does not index into shape \[3\]",
        ),
        (
            lambda: mr.convert_to_tensor(IndexedSlices([1.0], [-1], (3,))),
            InvalidArgumentError,
            r"indices\[0\] = \[-1\] does not index",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [IndexedSlices([1.0], [0], (2,)), IndexedSlices([1.0], [0], (3,))], "CPU:0"
            ),
            InvalidArgumentError,
            "the same dtype, row shape and dense shape.*from replica 1",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [IndexedSlices([1.0], [0], (2,)), mr.constant([1.0, 2.0])], "CPU:0"
            ),
            InvalidArgumentError,
            "Replicas can reduce only IndexedSlices",
        ),
        (
            lambda: ReductionToOneDevice().reduce(
                "sum", [mr.constant([1.0, 2.0]), IndexedSlices([1.0], [0], (2,))], "CPU:0"
            ),
            InvalidArgumentError,
            "Collectives take tensors.*from replica 1",
        ),
        (
            lambda: ReductionToOneDevice().gather([IndexedSlices([1.0], [0], (2,))], "CPU:0", 0),
            InvalidArgumentError,
            "Collectives take tensors",
        ),
    ],
)
def test_refused_slices(make: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()
