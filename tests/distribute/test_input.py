"""Batches for replicas: cut from a dataset's or given out one by one, and what is refused."""

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases
from hypothesis import given, settings
from hypothesis import strategies as st

import mirrored as mr
from mirrored import devices
from mirrored.distribute import (
    InputContext,
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    get_strategy,
)
from mirrored.errors import OutOfRangeError

Simulate = Callable[..., list[mr.config.LogicalDevice]]
FULL = "/job:localhost/replica:0/task:0/device:"
REPLICAS = 3


def parts(value: Any) -> Any:
    """Return a structure of per-replica values with lists of their parts' values for leaves."""
    if isinstance(value, dict):
        return {key: parts(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(parts(each) for each in value)
    return [part.numpy().tolist() for part in value.values]


class Pair(NamedTuple):
    """Two values with names."""

    first: Any
    second: Any


class Fresh:
    """A dataset that makes its batches anew, and counts how often.

    Args:
        batches: The batches.
    """

    def __init__(self, *batches: Any) -> None:
        self.batches = batches
        self.made = self.taken = 0

    def __iter__(self) -> Iterator[Any]:
        self.made += 1
        for batch in self.batches:
            self.taken += 1
            yield batch


# A global batch in parts


@pytest.mark.behaviour("distribute-dataset", "shard-sizes")
@pytest.mark.parametrize(
    ("examples", "sizes"),
    [(7, [3, 2, 2]), (4, [2, 1, 1]), (3, [1] * 3), (1, [1, 0, 0]), (0, [0] * 3)],
)
@pytest.mark.parametrize(
    "dataset",
    [
        lambda rows: [rows],
        lambda rows: [rows.tolist() or rows],
        lambda rows: (rows,),
        lambda rows: rows[None],
        lambda rows: iter([rows]),
        lambda rows: Fresh(rows),
        lambda rows: [mr.constant(rows)],
        lambda rows: mr.data.Dataset.from_tensors(rows),
        lambda rows: mr.data.Dataset.from_generator(lambda: iter([rows])),
    ],
    ids=["list", "lists", "tuple", "array", "iterator", "own", "tensors", "Dataset", "generator"],
)
def test_parts_of_a_batch(
    strategy: MirroredStrategy, examples: int, sizes: list[int], dataset: Any
) -> None:
    rows = np.arange(2.0 * examples, dtype=np.float32).reshape(-1, 2)
    (batch,) = strategy.experimental_distribute_dataset(dataset(rows))
    assert type(batch) is PerReplica
    assert [part.shape for part in batch.values] == [(size, 2) for size in sizes]
    assert [part.device for part in batch.values] == [f"{FULL}GPU:{i}" for i in range(REPLICAS)]
    assert batch.values[0].dtype == mr.float32
    np.testing.assert_array_equal(strategy.gather(batch, 0).numpy(), rows)
    assert batch.first_examples == (0, sizes[0], sizes[0] + sizes[1])


@settings(max_examples=25)
@given(examples=st.integers(0, 20), batch_size=st.integers(1, 9), replicas=st.integers(1, 4))
def test_no_example_is_lost_or_seen_twice(examples: int, batch_size: int, replicas: int) -> None:
    devices.reset_devices()
    mr.config.experimental.set_simulated_gpus(replicas)
    strategy = MirroredStrategy()
    dataset = mr.data.Dataset.range(examples).batch(batch_size)
    distributed = strategy.experimental_distribute_dataset(dataset)
    batches = [strategy.gather(batch, 0).numpy().tolist() for batch in distributed]
    assert batches == [list(batch) for batch in dataset.as_numpy_iterator()]
    assert len(distributed) == len(batches)


@pytest.mark.behaviour("distribute-dataset")
def test_structures(strategy: MirroredStrategy) -> None:
    batch = ({"b": [1, 2, 3, 4], "a": np.ones((4, 1))}, ([True, False, True, True],))
    distributed = strategy.experimental_distribute_dataset([batch])
    (found,) = distributed
    assert parts(found) == (
        {"b": [[1, 2], [3], [4]], "a": [[[1.0], [1.0]], [[1.0]], [[1.0]]]},
        ([[True, False], [True], [True]],),
    )
    assert list(found[0]) == ["b", "a"]
    dtypes = [part.values[2].dtype for part in (found[0]["b"], found[0]["a"], found[1][0])]
    assert dtypes == ["int32", "float64", "bool"]
    total = strategy.run(lambda x, y: mr.reduce_sum(x["a"]) + 0.0, found)
    assert [float(each) for each in total.values] == [2.0, 1.0, 1.0]


def test_named_tuples_stay_named(strategy: MirroredStrategy) -> None:
    pair = Pair(np.arange(3), {"y": np.ones(3)})
    for dataset in ([pair], mr.data.Dataset.from_tensors(pair)):
        (found,) = strategy.experimental_distribute_dataset(dataset)
        assert type(found) is Pair
        assert parts(found.first) == [[0], [1], [2]]
    (found,) = strategy.distribute_datasets_from_function(lambda context: [pair])
    assert parts(found.first) == [[0, 1, 2], [], []]


def test_what_a_dataset_says_of_itself(strategy: MirroredStrategy) -> None:
    dataset = mr.data.Dataset.range(7).batch(4)
    distributed = strategy.experimental_distribute_dataset(dataset)
    assert len(distributed) == 2
    assert distributed.element_spec == dataset.element_spec
    plain = strategy.experimental_distribute_dataset([[1.0]])
    assert (len(plain), plain.element_spec) == (1, None)
    with pytest.raises(TypeError, match="len"):
        len(strategy.experimental_distribute_dataset(iter([[1.0]])))


def test_dropout_is_that_of_one_device(strategy: MirroredStrategy) -> None:
    """Random numbers go by an example's position in the global batch, which the parts know."""
    rows = np.ones((7, 5), np.float32)

    def masks(strategy: Any) -> np.ndarray:
        mr.random.set_seed(4)
        layer = mr.layers.Dropout(0.5)
        (batch,) = strategy.experimental_distribute_dataset([(rows, rows)])
        masked = strategy.run(lambda x, _: layer(x, training=True), batch)
        return strategy.gather(masked, 0).numpy()

    np.testing.assert_array_equal(masks(strategy), masks(OneDeviceStrategy("CPU:0")))


# One after the other


def test_iterators_go_their_own_ways(strategy: MirroredStrategy) -> None:
    dataset = Fresh([1, 2, 3], [4, 5, 6])
    distributed = strategy.experimental_distribute_dataset(dataset)
    one, other = iter(distributed), iter(distributed)
    assert (dataset.made, dataset.taken) == (0, 0)
    assert parts(next(one)) == parts(other.get_next()) == [[1], [2], [3]]
    assert (dataset.made, dataset.taken) == (2, 2)  # Nothing is made before it is asked for.
    assert parts(one.get_next()) == parts(next(other)) == [[4], [5], [6]]
    assert iter(one) is one
    for ended in (one.get_next, lambda: next(other), one.get_next):
        with pytest.raises(OutOfRangeError, match="End of sequence") as caught:
            ended()
        assert isinstance(caught.value, StopIteration)
    assert [parts(batch) for batch in distributed] == [[[1], [2], [3]], [[4], [5], [6]]]


def test_each_replica_may_ask_for_itself(strategy: MirroredStrategy) -> None:
    batches = iter(strategy.experimental_distribute_dataset([[1, 2, 3], [4, 5, 6], [7, 8, 9]]))
    taken = strategy.run(lambda: [next(batches)])
    assert [parts(each) for each in taken[0].values] == [
        [[1], [2], [3]],
        [[4], [5], [6]],
        [[7], [8], [9]],
    ]
    with pytest.raises(OutOfRangeError):
        next(batches)


def test_batches_are_copies(simulate: Simulate) -> None:
    """Neither what the dataset does to its arrays later nor what is done to a batch shows."""
    simulate(2)
    rows = np.arange(4.0)
    batches = iter(MirroredStrategy().experimental_distribute_dataset([rows, rows]))
    first = next(batches)
    rows[:] = 9.0
    assert parts(first) == [[0.0, 1.0], [2.0, 3.0]]
    values = first.values[0].numpy()
    values[:] = 7.0
    v = mr.Variable(first.values[1])
    v.assign_add([1.0, 1.0])
    assert parts(first) == [[0.0, 1.0], [2.0, 3.0]]
    assert parts(next(batches)) == [[9.0, 9.0], [9.0, 9.0]]


# How one part of a batch is used.
USES: dict[str, Callable[[mr.Tensor], Any]] = {
    "numpy": lambda x: x.numpy() * 2,
    "an array": lambda x: np.asarray(x) * 2,
    "an op": lambda x: (x * 2).numpy(),
    "fed to a function": lambda x: mr.function(lambda fed: fed * 2)(x).numpy(),
    "a constant of a function": lambda x: mr.function(lambda: x * 2)().numpy(),
    "copied": lambda x: (mr.identity(x) * 2).numpy(),
}


@pytest.mark.parametrize("use", USES)
def test_rows_that_wait_to_be_gathered(strategy: MirroredStrategy, use: str) -> None:
    """Batches of many bytes are rows of the dataset's arrays until something reads them."""
    x = np.arange(7.0 * 2048).reshape(7, 2048)
    dataset = mr.data.Dataset.from_tensor_slices({"x": x}).shuffle(7, seed=1).batch(5)
    found = [
        USES[use](part)
        for batch in strategy.experimental_distribute_dataset(dataset)
        for part in strategy.experimental_local_results(batch["x"])
    ]
    assert [len(each) for each in found] == [2, 2, 1, 1, 1, 0]
    assert np.array_equal(np.sort(np.concatenate(found), axis=0), x * 2)


def test_rows_are_gathered_for_a_card(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    x = np.arange(6.0 * 2048).reshape(6, 2048)
    dataset = mr.data.Dataset.from_tensor_slices(x).shuffle(6, seed=1).batch(3)
    double = mr.function(lambda x: x * 2)
    batches = OneDeviceStrategy("GPU:0").experimental_distribute_dataset(dataset)
    found = np.concatenate([double(batch).numpy() for batch in batches])
    assert np.array_equal(np.sort(found, axis=0), x * 2)


def test_a_batch_takes_a_devices_memory_when_it_is_used(simulate: Simulate) -> None:
    simulate(2, memory_limit=1)
    strategy = MirroredStrategy()
    rows = np.ones((2, 1 << 16), np.float32)  # A quarter of the limit a replica.
    pool = devices.get_device("GPU:1").pool
    batches = list(strategy.experimental_distribute_dataset([rows] * 8))
    assert pool.current == 0
    for _ in range(8):
        batch = batches.pop()
        for _ in range(3):  # One copy serves all that compute with it.
            assert [float(part) for part in strategy.run(mr.reduce_sum, (batch,)).values] == [
                1 << 16,
                1 << 16,
            ]
            assert pool.current == rows[1].nbytes
        del batch
        assert pool.current == 0


@pytest.mark.usefixtures("no_thread_left")
@pytest.mark.parametrize("way", ["close", "forget", "exhaust"])
def test_threads_of_a_dataset_end_with_the_iterator(strategy: MirroredStrategy, way: str) -> None:
    dataset = mr.data.Dataset.range(100).batch(5).prefetch(2)
    batches = iter(strategy.experimental_distribute_dataset(dataset))
    before = threading.active_count()
    assert parts(next(batches)) == [[0, 1], [2, 3], [4]]
    assert threading.active_count() == before + 1
    if way == "exhaust":
        assert len(list(batches)) == 19
    elif way == "close":
        batches.close()
        with pytest.raises(OutOfRangeError):
            next(batches)
    else:
        del batches
        gc.collect()


# A batch for each replica


@pytest.mark.behaviour("datasets-from-function")
@pytest.mark.parametrize(
    ("sizes", "steps"),
    [
        ([2] * 6, [[2, 2, 2]] * 2),
        ([3, 1, 2], [[3, 1, 2]]),
        ([2, 2, 2, 5], [[2, 2, 2], [5, 0, 0]]),
        ([2, 2, 2, 5, 1], [[2, 2, 2], [5, 1, 0]]),
        ([4], [[4, 0, 0]]),
        ([], []),
    ],
)
def test_a_dataset_that_ends_in_the_middle_of_a_step(
    strategy: MirroredStrategy, sizes: list[int], steps: list[list[int]]
) -> None:
    rows = np.arange(2.0 * sum(sizes)).reshape(-1, 2)
    cuts = np.split(rows, np.cumsum(sizes)[:-1]) if sizes else []
    seen: list[InputContext] = []

    def make(context: InputContext) -> Any:
        seen.append(context)
        return [(cut, {"y": cut[:, 0]}) for cut in cuts]

    found = list(strategy.distribute_datasets_from_function(make))
    assert [[part.shape for part in x.values] for x, _ in found] == [
        [(size, 2) for size in step] for step in steps
    ]
    assert [x.first_examples for x, _ in found] == [
        (0, step[0], step[0] + step[1]) for step in steps
    ]
    if found:
        joined = [strategy.gather(x, 0).numpy() for x, _ in found]
        np.testing.assert_array_equal(np.concatenate(joined), rows)
        assert [part.device for part in found[-1][1]["y"].values] == [
            f"{FULL}GPU:{i}" for i in range(REPLICAS)
        ]
        mean = strategy.reduce("mean", found[-1][0], axis=0)  # Empty parts count for nothing.
        np.testing.assert_allclose(mean.numpy(), joined[-1].mean(0), rtol=1e-15)
    assert seen == [InputContext(1, 0, REPLICAS)]


@pytest.mark.behaviour("per-replica-batch-size")
@cases("replicas", [1, 2, 4])
def test_the_batch_size_of_a_replica(replicas: int) -> None:
    context = InputContext(num_replicas_in_sync=replicas)
    assert context.get_per_replica_batch_size(64) == 64 // replicas
    assert (context.num_input_pipelines, context.input_pipeline_id) == (1, 0)
    if replicas > 1:
        match = f"`global_batch_size` 7 is not divisible by `num_replicas_in_sync` {replicas} "
        with pytest.raises(ValueError, match=f"The {match}"):
            context.get_per_replica_batch_size(7)


# A value for each replica


@pytest.mark.behaviour("values-from-function")
def test_values_from_a_function(strategy: MirroredStrategy) -> None:
    distribute = strategy.experimental_distribute_values_from_function
    found = distribute(
        lambda context: {
            "number": context.replica_id_in_sync_group,
            "count": [context.num_replicas_in_sync],
            "one": 1.0,
        }
    )
    assert found["number"].values == (0, 1, 2)
    # One and the same from each is a value for each all the same.
    assert (found["count"][0].values, found["one"].values) == ((3, 3, 3), (1.0, 1.0, 1.0))
    assert float(strategy.reduce("sum", found["one"])) == 3.0
    doubled = strategy.run(lambda x, number: 2 * x + number, (found["one"], found["number"]))
    assert doubled.values == (2.0, 3.0, 4.0)
    with pytest.raises(ValueError, match=r"differ at the top: replica 0 has a list of 0"):
        distribute(lambda context: [0] * context.replica_id_in_sync_group)
    with pytest.raises(TypeError, match="`value_fn` must be a function of a ValueContext"):
        distribute(3)


# One replica


@cases(
    "make",
    [get_strategy, lambda: OneDeviceStrategy("GPU:1"), lambda: MirroredStrategy(["GPU:1"])],
    ids=["default", "one device", "mirrored"],
)
def test_one_replica_gets_whole_batches(simulate: Simulate, make: Callable[[], Any]) -> None:
    simulate(2)
    strategy = make()
    place = strategy.extended.worker_devices[0]
    batches = [([1.0, 2.0], {"y": [3, 4]}), ([5.0], {"y": [6]})]
    for found in (
        strategy.experimental_distribute_dataset(batches),
        strategy.distribute_datasets_from_function(lambda context: batches),
    ):
        assert [(x.numpy().tolist(), y["y"].numpy().tolist()) for x, y in found] == [
            ([1.0, 2.0], [3, 4]),
            ([5.0], [6]),
        ]
        for x, _ in found:
            assert isinstance(x, mr.Tensor)
            assert x.device == place
            assert strategy.run(lambda a: a * 2.0, (x,)).device == place


@pytest.mark.parametrize(
    ("kind", "devices"), [("rows", 3), ("map", 2), ("function", 2), ("repeat", 3)]
)
def test_an_iterator_continues_from_a_checkpoint(
    kind: str, devices: int, simulate: Simulate, tmp_path: Path
) -> None:
    """Also on another number of devices, and in another program."""
    simulate(3)

    def iterator(count: int) -> Any:
        mr.random.set_seed(3)
        strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(count)])
        dataset = mr.data.Dataset.range(24).shuffle(7)
        if kind == "map":
            dataset = dataset.map(lambda x: mr.cast(x, "float32") + mr.random.uniform(()))
        if kind == "function":
            distributed = strategy.distribute_datasets_from_function(lambda _: dataset.batch(2))
        else:
            batches = dataset.batch(6).repeat(2 if kind == "repeat" else 1)
            distributed = strategy.experimental_distribute_dataset(batches)
        return strategy, iter(distributed)

    def values(strategy: Any, batch: Any) -> Any:
        return np.concatenate([part.numpy() for part in strategy.experimental_local_results(batch)])

    strategy, batches = iterator(2)
    saved = mr.train.Checkpoint(batches=batches)
    next(batches)
    batches.peek(0)  # Made, and not taken.
    path = saved.save(tmp_path / "ckpt")
    rest = [values(strategy, batch) for batch in batches]
    strategy, batches = iterator(devices)
    mr.train.Checkpoint(batches=batches).restore(path).assert_consumed()
    for batch, expected in zip(batches, rest, strict=True):
        np.testing.assert_array_equal(values(strategy, batch), expected)


def test_an_iterator_over_what_only_python_knows(simulate: Simulate, tmp_path: Path) -> None:
    simulate(2)
    strategy = mr.MirroredStrategy(["GPU:0", "GPU:1"])
    batches = iter(strategy.experimental_distribute_dataset([np.arange(4)]))
    with pytest.raises(ValueError, match="only Python knows"):
        mr.train.Checkpoint(batches=batches).save(tmp_path / "ckpt")
