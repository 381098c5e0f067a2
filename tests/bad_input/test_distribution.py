"""Mistakes with replicas: each is one clear error that changes nothing and leaves no thread."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.distribute import PerReplica, get_replica_context
from mirrored.errors import InvalidArgumentError

Context = mr.distribute.ReplicaContext
Act = Callable[["Bench"], Any]
FULL = "/job:localhost/replica:0/task:0/device:"
REPLICAS = 3


def context() -> Context:
    """Return the context of the running replica, which there must be."""
    found = get_replica_context()
    assert found is not None
    return found


def number() -> int:
    """Return the number of the running replica."""
    return context().replica_id_in_sync_group


class Bench:
    """A strategy of three replicas, with variables of each kind."""

    def __init__(self) -> None:
        self.strategy = mr.MirroredStrategy()
        with self.strategy.scope():
            self.mirrored = mr.Variable(
                [1.0, 2.0], name="w", aggregation=mr.VariableAggregation.SUM
            )
            self.plain = mr.Variable([1.0, 2.0], name="plain")
            self.counter = mr.Variable(
                [3.0, 4.0],
                name="seen",
                synchronization=mr.VariableSynchronization.ON_READ,
                aggregation=mr.VariableAggregation.SUM,
            )
        self.parts = PerReplica([mr.constant([float(i), 1.0]) for i in range(REPLICAS)])

    def run(self, fn: Callable[..., Any], *args: Any) -> Any:
        """Run a function on all replicas."""
        return self.strategy.run(fn, args)

    def state(self) -> list[Any]:
        """Return the values of all copies."""
        variables = (self.mirrored, self.plain, self.counter)
        return [copy.numpy().tolist() for v in variables for copy in v.copies]


@pytest.fixture
def bench(simulate: Callable[..., Any]) -> Iterator[Bench]:
    """Return the bench, and check that it works as ever afterwards."""
    simulate(REPLICAS)
    bench = Bench()
    before = bench.state()
    threads = set(threading.enumerate())
    yield bench
    assert bench.state() == before
    assert set(threading.enumerate()) == threads
    assert not mr.distribute.has_strategy()
    totals = bench.run(lambda x: context().all_reduce("sum", x), bench.parts)
    assert [total.numpy().tolist() for total in totals.values] == [[3.0, 3.0]] * REPLICAS


def uneven_merges(bench: Bench) -> None:
    def replica() -> None:
        bench.counter.read_value()
        for _ in range(1 + (number() == 1)):
            context().merge_call(lambda strategy: None)

    bench.run(replica)


def one_raises(when: str) -> Act:
    def replica() -> None:
        if when == "after":
            context().all_reduce("sum", mr.constant(1.0))
        if number() == 1:
            raise KeyError("mine")
        context().all_reduce("sum", mr.constant(1.0))

    return lambda bench: bench.run(replica)


# What goes wrong, the class of the error, and what its text contains.
CASES: dict[str, tuple[Act, type[Exception], list[str]]] = {
    "structures that differ": (
        lambda b: b.run(lambda: {"a": [1.0] * (2 if number() == 2 else 1)}),
        ValueError,
        ["differ at ['a']: replica 0 has a list of 1, replica 2 has a list of 2", "Return or pass"],
    ),
    "keys that differ": (
        lambda b: b.run(lambda: {"ab"[number() % 2]: 1.0}),
        ValueError,
        ["at the top: replica 0 has a dict with the keys ['a'], replica 1 has a dict with"],
    ),
    "a tensor or nothing": (
        lambda b: b.run(lambda: [mr.constant(1.0)] if number() else None),
        ValueError,
        ["replica 0 has a NoneType, replica 1 has a list of 1"],
    ),
    "different numbers of merge_call": (
        uneven_merges,
        RuntimeError,
        [
            "Some replicas made a different number of replica_context().merge_call() calls.",
            "replicas [1] wait",
        ],
    ),
    "all_reduce in one replica only": (
        lambda b: b.run(lambda: number() or context().all_reduce("sum", mr.constant(1.0))),
        RuntimeError,
        ["Some replicas made a different number of replica_context().merge_call() calls."],
    ),
    "all_reduce of different shapes": (
        lambda b: b.run(lambda: context().all_reduce("sum", mr.ones((1 + number(),)))),
        InvalidArgumentError,
        [
            "Replicas can reduce only tensors of the same shape and dtype",
            "(2,) float32 from replica 1",
        ],
    ),
    "all_reduce of different structures": (
        lambda b: b.run(lambda: context().all_reduce("sum", [mr.ones(())] * (1 + number()))),
        ValueError,
        ["replica 0 has a list of 1, replica 1 has a list of 2"],
    ),
    "an unknown reduction": (
        lambda b: b.strategy.reduce("PROD", b.parts, axis=None),
        ValueError,
        ["'PROD' is not a valid ReduceOp"],
    ),
    "a per-replica value as an operand": (
        lambda b: mr.constant([1.0, 1.0]) + b.parts,
        InvalidArgumentError,
        ["A value with 3 parts, one per replica, cannot be used as one tensor", "strategy.reduce"],
    ),
    "a per-replica value in a function": (
        lambda b: mr.reduce_sum(b.parts),
        InvalidArgumentError,
        ["cannot be used as one tensor. Received: PerReplica:{"],
    ),
    "a per-replica value assigned to a plain variable": (
        lambda b: mr.Variable([0.0, 0.0]).assign(b.parts),
        InvalidArgumentError,
        ["cannot be used as one tensor"],
    ),
    "a per-replica value inside a replica": (
        lambda b: b.run(lambda: b.counter.assign_add(b.parts)),
        InvalidArgumentError,
        ["cannot be used as one tensor"],
    ),
    "an argument of another number of parts": (
        lambda b: b.run(lambda x: x, PerReplica([1.0, 2.0])),
        ValueError,
        ["A per-replica value must have one part per replica, here 3. Received: 2 parts."],
    ),
    "an assign of another number of parts": (
        lambda b: b.mirrored.assign(PerReplica([[1.0, 1.0]] * 2)),
        ValueError,
        ["one part per replica, here 3. Received: 2 parts for the variable 'w:0'"],
    ),
    "an assign of another number of parts, on read": (
        lambda b: b.counter.assign(PerReplica([[1.0, 1.0]] * 4)),
        ValueError,
        ["one part per replica, here 3. Received: 4 parts for the variable 'seen:0'"],
    ),
    "an assign of parts of which one does not fit": (
        lambda b: b.counter.assign(PerReplica([[1.0, 1.0], [1.0, 1.0], [1.0]])),
        ValueError,
        ["Cannot assign value to variable ' seen/replica_2:0': Shape mismatch."],
    ),
    "an assign that does not fit in the last replica": (
        lambda b: b.run(lambda: b.mirrored.assign(mr.ones((2 if number() < 2 else 3,)))),
        InvalidArgumentError,
        [
            "Replicas can reduce only tensors of the same shape and dtype",
            "(3,) float32 from replica 2",
        ],
    ),
    "an assign without an aggregation": (
        lambda b: b.run(lambda: b.plain.assign([5.0, float(number())])),
        InvalidArgumentError,
        [
            "You must specify an aggregation method to update a MirroredVariable in Replica "
            "Context.",
            "'plain:0'",
        ],
    ),
    "one number from all to be summed": (
        lambda b: b.run(lambda: b.mirrored.assign_add(5.0)),
        ValueError,
        ["A non-DistributedValues value 5.0 cannot be reduced with the given reduce op"],
    ),
    "adding to a sum outside of replicas": (
        lambda b: b.counter.assign_add([1.0, 1.0]),
        ValueError,
        [
            "SyncOnReadVariable does not support `assign_add` in cross-replica context when "
            "aggregation is set to `mr.VariableAggregation.SUM`."
        ],
    ),
    "reducing over an absent axis": (
        lambda b: b.strategy.reduce("mean", b.parts, axis=1),
        ValueError,
        ["`axis` = 1 out of range for `value` with rank 1"],
    ),
    "reducing over an axis that one part lacks": (
        lambda b: b.strategy.reduce("sum", PerReplica([mr.ones(2), mr.ones(2), 1.0]), axis=0),
        ValueError,
        ["`axis` = 0 out of range for `value` with rank 0"],
    ),
    "gathering along an absent axis": (
        lambda b: b.run(lambda x: context().all_gather(x, -2), b.parts),
        ValueError,
        ["`axis` = -2 out of range for `value` with rank 1"],
    ),
    "reducing inside a replica": (
        lambda b: b.run(lambda x: b.strategy.reduce("sum", x, axis=None), b.parts),
        RuntimeError,
        ["use get_replica_context().all_reduce() instead"],
    ),
    "gathering inside a replica, from outside": (
        lambda b: b.run(lambda x: b.strategy.gather(x, axis=0), b.parts),
        RuntimeError,
        ["Strategy.gather method requires cross-replica context, use get_replica_context().all_ga"],
    ),
    "running inside a replica": (
        lambda b: b.run(lambda: b.strategy.run(print)),
        RuntimeError,
        ["strategy.run must be called in the cross-replica context"],
    ),
    "a variable inside one replica": (
        lambda b: b.run(lambda: context().replica_id_in_sync_group and mr.Variable(1.0, name="v")),
        RuntimeError,
        ["Tried to create variable v with mismatching name on device 1"],
    ),
    "the context of a replica that has ended": (
        lambda b: b.run(lambda: PerReplica([context()])).values[0].values[0].merge_call(print),
        RuntimeError,
        ["The context of replica 0 is not the one that is running"],
    ),
    "arguments that are no list": (
        lambda b: b.strategy.run(print, mr.constant(1.0)),
        ValueError,
        ["positional args must be a list or tuple, got <class"],
    ),
    "an unbatched dataset": (
        lambda b: b.strategy.experimental_distribute_dataset(mr.data.Dataset.range(4)),
        ValueError,
        ["Unable to get batched dataset from the input dataset", "`dataset.batch(global_batch_"],
    ),
    "an unbatched dataset of pairs": (
        lambda b: b.strategy.experimental_distribute_dataset(
            mr.data.Dataset.from_tensor_slices((np.ones((4, 2)), np.ones(4)))
        ),
        ValueError,
        ["needs to be called on the input dataset. Received: elements of shapes [(2,), ()]"],
    ),
    "an unbatched list": (
        lambda b: list(b.strategy.experimental_distribute_dataset([1.0, 2.0])),
        ValueError,
        ["Unable to get batched dataset from the input dataset"],
    ),
    "an unbatched dataset from a function": (
        lambda b: list(b.strategy.distribute_datasets_from_function(lambda c: [1.0, 2.0])),
        ValueError,
        ["Unable to get batched dataset from the input dataset"],
    ),
    "parts of a batch of differing sizes": (
        lambda b: list(b.strategy.experimental_distribute_dataset([(np.ones(3), np.ones(4))])),
        ValueError,
        ["must have the same number of examples. Received: parts of shapes [(3,), (4,)]"],
    ),
    "an empty structure": (
        lambda b: list(b.strategy.experimental_distribute_dataset([()])),
        ValueError,
        ["Unable to get batched dataset"],
    ),
    "no dataset": (
        lambda b: b.strategy.experimental_distribute_dataset(3),
        TypeError,
        ["A dataset must be iterable. Received: a int."],
    ),
    "no dataset from a function": (
        lambda b: b.strategy.distribute_datasets_from_function(lambda c: None),
        TypeError,
        ["A dataset must be iterable. Received: a NoneType."],
    ),
    "no function of a dataset": (
        lambda b: b.strategy.distribute_datasets_from_function([[1.0]]),
        TypeError,
        ["`dataset_fn` must be a function of an InputContext. Received: [[1.0]]"],
    ),
    "batches of different structures for the replicas": (
        lambda b: list(
            b.strategy.distribute_datasets_from_function(
                lambda c: [{"a": np.ones(1)}, {"b": np.ones(1)}, {"a": np.ones(1)}]
            )
        ),
        ValueError,
        ["replica 0 has a dict with the keys ['a'], replica 1 has a dict with the keys ['b']"],
    ),
    "per-replica values for a dataset": (
        lambda b: list(b.strategy.experimental_distribute_dataset([b.parts])),
        InvalidArgumentError,
        ["cannot be used as one tensor"],
    ),
    "a dataset of text": (
        lambda b: list(b.strategy.experimental_distribute_dataset([["a", "b", "c"]])),
        TypeError,
        ["Strings cannot be copied to devices."],
    ),
    "a strategy inside another": (
        lambda b: mr.distribute.OneDeviceStrategy("GPU:0").run(lambda: b.run(print)),
        RuntimeError,
        ["strategy.run must be called in the cross-replica context"],
    ),
}


@pytest.mark.behaviour("unbatched-dataset", "no-hang", "different-structures")
@pytest.mark.parametrize(("act", "error", "texts"), CASES.values(), ids=CASES)
def test_mistakes(bench: Bench, act: Act, error: type[Exception], texts: list[str]) -> None:
    with pytest.raises(error) as caught:
        act(bench)
    assert type(caught.value) is error
    for text in texts:
        assert text in str(caught.value)


RECORDED = [name for name in CASES if "dataset" not in name and "merge_call" not in name]


@pytest.mark.parametrize("name", RECORDED)
def test_mistakes_in_recorded_functions(bench: Bench, name: str) -> None:
    act, error, texts = CASES[name]
    function = mr.function(lambda: act(bench))
    for _ in range(2):  # What failed is not kept.
        with pytest.raises(error) as caught:
            function()
        for text in texts:
            assert text in str(caught.value)


@pytest.mark.behaviour("no-hang")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_what_one_replica_raises(bench: Bench, when: str, recorded: bool) -> None:
    """It reaches the caller as it is, with the replica and the device; the others are released."""
    act = one_raises(when)
    call = mr.function(lambda: act(bench)) if recorded else lambda: act(bench)
    with pytest.raises(KeyError, match="mine") as caught:
        call()
    assert caught.value.__notes__ == [f"Raised in replica 1 on {FULL}GPU:1."]


def test_losses_in_the_cross_replica_context(bench: Bench) -> None:
    for function in (mr.nn.compute_average_loss, mr.nn.scale_regularization_loss):
        with (
            bench.strategy.scope(),
            pytest.raises(RuntimeError, match=f"`{function.__name__}` in cross replica context"),
        ):
            function([1.0])


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "recorded"])
def test_a_dataset_that_ends_in_the_middle_of_a_step(bench: Bench, recorded: bool) -> None:
    """The replicas left get nothing, and count for nothing: it is no mistake."""
    strategy = bench.strategy
    dataset = strategy.distribute_datasets_from_function(
        lambda context: [np.full(2, float(i)) for i in range(4)]
    )

    def mean(batch: Any) -> Any:
        losses = strategy.run(lambda x: x * 2.0, (batch,))
        return strategy.reduce("mean", losses, axis=0)

    step = mr.function(mean) if recorded else mean
    assert [float(step(batch)) for batch in dataset] == [2.0, 6.0]
