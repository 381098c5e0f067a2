"""How datasets are looked at: lengths, structures, iterators of tensors and of arrays."""

import itertools
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import _nest
from mirrored.data.arrays import take
from mirrored.data.dataset_iterators import elements_of
from mirrored.data.row_transforms import open_batches

Dataset = mr.data.Dataset
F4, I4, I8 = mr.float32, mr.int32, mr.int64


def spec(shape: Any, dtype: Any) -> mr.TensorSpec:
    return mr.TensorSpec(shape, dtype)


def rows() -> mr.data.Dataset:
    return Dataset.from_tensor_slices((np.zeros((3, 2), np.float32), {"a": [1, 2, 3]}))


SPECS: dict[str, tuple[Callable[[], mr.data.Dataset], Any]] = {
    "rows": (rows, (spec((2,), F4), {"a": spec((), I4)})),
    "one element": (lambda: Dataset.from_tensors([1.0]), spec((1,), F4)),
    "range": (lambda: Dataset.range(3), spec((), I8)),
    "batches": (lambda: Dataset.range(3).batch(2), spec((None,), I8)),
    "whole batches": (lambda: Dataset.range(3).batch(2, True), spec((2,), I8)),
    "batches of batches": (lambda: Dataset.range(3).batch(2).batch(2), spec((None, None), I8)),
    "unbatch": (
        lambda: rows().batch(2).unbatch().shuffle(2).repeat().prefetch(1).cache(),
        (spec((2,), F4), {"a": spec((), I4)}),
    ),
    "zip": (
        lambda: Dataset.zip({"a": Dataset.range(1), "b": Dataset.range(2).batch(1)}),
        {"a": spec((), I8), "b": spec((None,), I8)},
    ),
    "enumerate": (
        lambda: Dataset.from_tensors(1.0).enumerate(),
        (spec((), I8), spec((), F4)),
    ),
    "map": (lambda: Dataset.range(3).map(lambda x: (x, 1.5)), (spec((), I8), spec((), F4))),
    "generator": (lambda: Dataset.from_generator(lambda: [[1, 2]]), spec((2,), I4)),
    "signature": (
        lambda: Dataset.from_generator(list, output_signature=spec((None, 3), F4)).batch(2),
        spec((None, None, 3), F4),
    ),
    "no rank": (lambda: Dataset.from_generator(list, output_types=F4).batch(2), spec(None, F4)),
}


@cases(("make", "expected"), SPECS.values(), ids=SPECS)
def test_element_spec(make: Callable[[], mr.data.Dataset], expected: Any) -> None:
    assert make().element_spec == expected


def test_the_structure_of_nothing_is_not_known() -> None:
    with pytest.raises(ValueError, match="of an empty dataset is not known"):
        _ = Dataset.range(0).map(lambda x: x).element_spec


# What comes after a shuffled dataset, whose element takes a call of a function to know.
AFTER: dict[str, Callable[[mr.data.Dataset], mr.data.Dataset]] = {
    "map": lambda dataset: dataset.map(lambda x: x + 1),
    "map of batches": lambda dataset: dataset.batch(5).map(lambda x: x + 1),
    "map of whole batches": lambda dataset: dataset.batch(5, True).map(lambda x: x + 1),
    "map of more": lambda dataset: (
        dataset.enumerate().batch(3).unbatch().map(lambda i, x: x).prefetch(1).cache()
    ),
    "map of other batches": lambda dataset: dataset.batch(2).rebatch(5).map(lambda x: x + 1),
    "map of padded batches": lambda dataset: dataset.padded_batch(5).map(lambda x: x + 1),
    "map of windows": lambda dataset: dataset.window(4).map(
        lambda window: window.batch(4).get_single_element()
    ),
    "zip": lambda dataset: Dataset.zip(dataset, dataset).map(lambda x, y: x),
}


@cases("after", AFTER.values(), ids=AFTER)
def test_asking_for_the_structure_shuffles_nothing(
    after: Callable[[mr.data.Dataset], mr.data.Dataset],
) -> None:
    def order(ask: bool) -> list[Any]:
        dataset = after(Dataset.from_tensor_slices(np.arange(20)).shuffle(20, seed=1))
        expected = dataset.element_spec if ask else None
        elements = list(dataset)
        if ask:
            assert expected == mr.TensorSpec(elements[0].shape, elements[0].dtype)
        return [element.numpy().tolist() for element in elements]

    assert order(True) == order(False)


def test_lengths() -> None:
    dataset = Dataset.range(5)
    assert (len(dataset), bool(dataset.take(0))) == (5, True)
    cardinality = dataset.cardinality()
    assert (cardinality.dtype, cardinality.shape) == (mr.int64, ())
    with pytest.raises(TypeError, match=r"The dataset is infinite\."):
        len(dataset.repeat())
    with pytest.raises(TypeError, match=r"The dataset length is unknown\."):
        len(dataset.filter(lambda x: x > 1))


def test_repr() -> None:
    dataset = Dataset.range(5)
    assert repr(dataset.batch(2)) == "<mr.data.Dataset: Batched, 3 elements>"
    assert repr(dataset.repeat()) == "<mr.data.Dataset: Repeated, without end>"


def test_elements_are_tensors_on_the_cpu(simulate: Callable[..., Any]) -> None:
    simulate(1)
    ((x, y),) = rows().take(1)
    assert all(isinstance(each, mr.Tensor) for each in (x, y["a"]))
    assert (x.device, x.shape, y["a"].dtype) == (
        "/job:localhost/replica:0/task:0/device:CPU:0",
        (2,),
        mr.int32,
    )


def test_arrays_may_be_written_to() -> None:
    dataset = rows().batch(2).cache()
    for _ in range(2):
        for x, y in dataset.as_numpy_iterator():
            assert x.sum() == 0
            x += 1
            y["a"][:] = 0
    assert type(next(iter(Dataset.range(1).as_numpy_iterator()))) is np.int64


def test_iterating_again_starts_anew_and_iterators_are_independent() -> None:
    dataset = Dataset.range(4).map(lambda x: x + 1)
    first, second = iter(dataset), iter(dataset)
    assert [int(next(first)), int(next(first)), int(next(second))] == [1, 2, 1]
    assert [int(each) for each in first] == [3, 4]
    assert [int(each) for each in dataset] == [1, 2, 3, 4]


def test_batches_of_rows_are_views() -> None:
    """Nothing is copied between the arrays of the dataset and who uses its batches inside."""
    dataset = Dataset.from_tensor_slices(np.zeros((10, 3)))
    batches = list(elements_of(dataset.batch(4)._transform))
    assert [batch.shape for batch in batches] == [(4, 3), (4, 3), (2, 3)]
    assert len({id(batch.base) for batch in batches}) == 1
    assert all(batch.base is not None and not batch.flags.writeable for batch in batches)


def test_names() -> None:
    assert (mr.data.AUTOTUNE, mr.data.INFINITE_CARDINALITY, mr.data.UNKNOWN_CARDINALITY) == (
        -1,
        -1,
        -2,
    )


@cases(("width", "most"), [(1, 32), (256, 4), (2048, 32)])
def test_batches_are_read_together_but_not_many(width: int, most: int) -> None:
    """A dataset may have no end, and small batches are gathered, no more than a cache holds."""
    x = np.arange(6 * width, dtype=np.float32).reshape(6, width)

    def batches() -> mr.data.Dataset:
        return Dataset.from_tensor_slices(x).shuffle(6, seed=1).repeat().batch(4)

    with closing(elements_of(batches()._transform)) as elements:
        expected = np.concatenate(list(itertools.islice(elements, 2 * most)))
    transform = batches()._transform
    slices = transform.batched_slices
    assert slices is not None
    chunks = list(itertools.islice(open_batches(transform, slices, transform.begin()), 2))
    found = [take(leaves[0], rows) for leaves, rows in chunks]
    assert [len(each) for each in found] == [4 * most] * 2
    assert all((len(leaves[0]) == 6) == (width == 2048) for leaves, _ in chunks)
    assert np.array_equal(np.concatenate(found), expected)
    passes = expected[: len(expected) // 6 * 6].reshape(-1, 6, width)
    assert np.array_equal(np.sort(passes, axis=1), np.broadcast_to(x, passes.shape))


Make = Callable[[], mr.data.Dataset]


def noisy(x: Any) -> Any:
    return mr.cast(x, mr.float32) + mr.random.uniform(())


def numbers() -> mr.data.Dataset:
    return Dataset.from_tensor_slices(np.arange(20))


PIPELINES: dict[str, Make] = {
    "range": lambda: Dataset.range(20),
    "rows": lambda: numbers().shuffle(20).repeat(2).batch(3),
    "batches that are repeated": lambda: (
        numbers().shuffle(20).batch(3).repeat(9).with_options(mr.data.Options())
    ),
    "a small buffer": lambda: numbers().shuffle(4).map(noisy).batch(2).prefetch(2),
    "the same order": lambda: numbers().shuffle(20, reshuffle_each_iteration=False).repeat(),
    "passes": lambda: Dataset.range(5).map(lambda x: x).shuffle(5).repeat(),
    "a cache": lambda: numbers().shuffle(20).cache().repeat(),
    "pairs": lambda: Dataset.zip(numbers().shuffle(20), Dataset.random()).enumerate(),
    "nested": lambda: (
        numbers().shuffle(9).flat_map(lambda x: Dataset.range(4).shuffle(4).map(noisy))
    ),
    "windows": lambda: numbers().shuffle(9).window(3, 1).flat_map(lambda w: w.shuffle(2).batch(3)),
    "by turns": lambda: numbers().interleave(lambda x: Dataset.random().take(4), 3),
    "mixed": lambda: Dataset.sample_from_datasets([numbers().shuffle(20), Dataset.random()]),
    "a state": lambda: numbers().shuffle(20).scan(0, lambda s, x: (s + 1, noisy(x))),
    "an end": lambda: Dataset.range(4),
}


def taken(iterator: Any, count: int) -> list[Any]:
    """Return the next elements as plain values, or as many as there are."""
    pairs = zip(range(count), iterator, strict=False)
    return [_nest.map_structure(lambda leaf: leaf.numpy().tolist(), each) for _, each in pairs]


@pytest.mark.behaviour("iterator-position")
@pytest.mark.parametrize("make", PIPELINES.values(), ids=PIPELINES)
def test_an_iterator_goes_on(make: Make, tmp_path: Path) -> None:
    dataset = make()
    taken(dataset, 30)  # What was iterated over before counts.
    iterator = iter(dataset)
    checkpoint = mr.train.Checkpoint(iterator=iterator, step=mr.Variable(3))
    taken(iterator, 4)
    path = checkpoint.save(tmp_path / "ckpt")
    expected = taken(iterator, 5)
    checkpoint.restore(path).assert_consumed()
    assert taken(iterator, 5) == expected
    # In another program, with other seeds, which has read on already.
    mr.random.set_seed(99)
    again = iter(make())
    taken(again, 2)
    mr.train.Checkpoint(iterator=again, step=mr.Variable(0)).restore(path).assert_consumed()
    assert taken(again, 5) == expected
    iterator.close()
    again.close()


def test_iterations_after_it_are_those_that_came_after(tmp_path: Path) -> None:
    def make() -> mr.data.Dataset:
        return numbers().shuffle(20, seed=7)

    dataset = make()
    taken(dataset, 20)
    iterator = iter(dataset)
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    taken(iterator, 4)
    path = checkpoint.save(tmp_path / "ckpt")
    expected = taken(dataset, 20)
    other = make()
    mr.train.Checkpoint(iterator=iter(other)).restore(path)
    assert taken(other, 20) == expected


def test_one_that_has_not_begun_begins_again(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(5))
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    path = checkpoint.save(tmp_path / "ckpt")
    assert taken(iterator, 3) == [0, 1, 2]
    checkpoint.restore(path)
    assert taken(iterator, 3) == [0, 1, 2]


def test_what_a_recorded_function_looked_at_was_not_taken(tmp_path: Path) -> None:
    iterator = iter(Dataset.range(9))
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    following = mr.function(lambda each: next(each) * 10)
    assert int(following(iterator)) == 0
    iterator.peek(2)
    path = checkpoint.save(tmp_path / "ckpt")
    assert [int(following(iterator)) for _ in range(3)] == [10, 20, 30]
    checkpoint.restore(path)
    assert [int(following(iterator)) for _ in range(3)] == [10, 20, 30]


def from_python() -> mr.data.Dataset:
    return Dataset.from_generator(lambda: iter(range(9)))


@pytest.mark.behaviour("iterator-position")
@pytest.mark.parametrize(
    "make",
    [
        from_python,
        lambda: Dataset.zip(Dataset.range(9), from_python().batch(2)),
        lambda: Dataset.range(9).flat_map(lambda x: from_python()),
    ],
)
def test_the_state_of_a_generator_is_not_known(make: Make, tmp_path: Path) -> None:
    iterator = iter(make())
    next(iterator)
    checkpoint = mr.train.Checkpoint(iterator=iterator)
    with pytest.raises(ValueError, match="with `from_generator` cannot be saved"):
        checkpoint.save(tmp_path / "ckpt")
    assert mr.train.latest_checkpoint(tmp_path) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dataset.range(9).map(abs),
        lambda: Dataset.range(9).shuffle(9),
        lambda: Dataset.range(9).take(3).batch(2),
    ],
)
def test_another_pipeline_is_refused(make: Make, tmp_path: Path) -> None:
    """Before anything changes."""
    path = mr.train.Checkpoint(iterator=iter(Dataset.range(9)), step=mr.Variable(1)).save(
        tmp_path / "ckpt"
    )
    step = mr.Variable(5)
    with pytest.raises(mr.errors.WeightsFileError, match="iterator"):
        mr.train.Checkpoint(iterator=iter(make()), step=step).restore(path)
    assert int(step) == 5


@pytest.mark.parametrize("change", [(1, 2**63), (1, 1), (2, 2)])
def test_a_position_that_there_is_not_is_refused(change: tuple[int, int]) -> None:
    iterator = iter(Dataset.range(3))
    words = [*iterator.state]
    words[change[0]] = change[1]
    with pytest.raises(ValueError, match="No iterator has the position"):
        iterator.check(words)
    assert int(next(iterator)) == 0
