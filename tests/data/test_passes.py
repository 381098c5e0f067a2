"""Where batches come from: how many a pass has, and batches of PyTorch's loaders."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.data.arguments import DataArguments
from mirrored.data.passes import PassesOfWorkers, cardinality_of, passes_of

X = np.arange(14, dtype=np.float32).reshape(7, 2)
Y = np.arange(7)


class Sized:
    """Stands for PyTorch's datasets and what they are loaded by, where it is not installed."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


class Tensor:
    """Stands for a tensor on another device, in a graph: only what `cpu` returns is an array."""

    def __init__(self, array: Any, *, there: bool = True) -> None:
        self.array, self.there, self.shape = array, there, array.shape

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return Tensor(self.array, there=False)

    def numpy(self) -> Any:
        if self.there:
            raise TypeError("It is on another device.")
        return self.array


class DataLoader(Sized):
    __module__ = "torch.utils.data.dataloader"

    def __init__(self, dataset: Any) -> None:
        super().__init__(3)
        self.dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        for begin in (0, 3, 6):
            yield [Tensor(X[begin : begin + 3]), Tensor(Y[begin : begin + 3])]


class Batches(mr.keras.utils.PyDataset):
    def __len__(self) -> int:
        return 5


KNOWN: dict[str, tuple[Any, int]] = {
    "a dataset": (mr.data.Dataset.range(7).batch(3), 3),
    "a dataset without end": (mr.data.Dataset.range(7).repeat(), -1),
    "a generator": ((each for each in ()), -2),
    "a cycle": (itertools.cycle([(X, Y)]), -1),
    "one batch without end": (itertools.repeat((X, Y)), -1),
    "one batch, and again": (itertools.repeat((X, Y), 2), -2),
    "a PyDataset": (Batches(), 5),
    "a loader": (DataLoader(Sized(7)), 3),
    "a loader of what has no length": (DataLoader(object()), -2),
    "something else of a size": (Sized(7), -2),
}


@cases(("data", "count"), KNOWN.values(), ids=KNOWN)
def test_cardinality(data: Any, count: int) -> None:
    assert cardinality_of(data) == count


def check_read(data: Any) -> None:
    epochs = DataArguments(use="fit", x=data, batch_size=None, steps=None).epochs()
    assert epochs.steps == 3
    for _ in range(2):
        assert epochs.begin()
        batches = [batch for span in epochs.spans(None) for batch in span]
        assert [batch.x.tolist() for batch in batches] == [X[i : i + 3].tolist() for i in (0, 3, 6)]
        assert [batch.y.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    epochs.close()


def test_batches_of_what_stands_for_a_loader() -> None:
    check_read(DataLoader(Sized(7)))


@pytest.mark.slow  # Importing PyTorch takes seconds.
def test_batches_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    check_read(torch.utils.data.DataLoader(dataset, batch_size=3))
    with_gradient = torch.from_numpy(X).requires_grad_()
    loader = torch.utils.data.DataLoader([with_gradient], batch_size=None)
    model = mr.Sequential([mr.layers.Input(shape=(2,)), mr.layers.Dense(1)])
    np.testing.assert_array_equal(model.predict(loader), model.predict(X))
    named = [{"a": x, "b": x} for x in with_gradient]
    (batch,) = torch.utils.data.DataLoader(named, batch_size=7)
    assert set(batch) == {"a", "b"}


ROWS = np.arange(6.0).reshape(3, 2)


def beside(counts: list[int], shape: tuple[int, ...] = (2,)) -> PassesOfWorkers:
    """Return passes over two batches, beside another process with batches of so many examples."""
    others = iter(counts)

    def gather(told: Any, what: str) -> list[Any]:
        count = next(others)
        return [told, ((count,), (("float64", shape),) if count else None)]

    own = passes_of([ROWS[:2], ROWS[2:]], "predict", None)
    return PassesOfWorkers(own, lambda count: (count,), gather)


def test_a_pass_goes_on_until_no_process_has_more() -> None:
    passes = beside([3, 1, 4, 0, 2, 0, 0])
    first = list(iter(lambda: passes.read(9), None))
    assert [span.sizes for span in first] == [(2, 3), (1, 1), (0, 4)]
    assert [batch.x.tolist() for span in first for batch in span] == [
        ROWS[:2].tolist(),
        ROWS[2:].tolist(),
        [],
    ]
    assert [span.count for span in first] == [1, 1, 1]
    assert (passes.is_open, passes.batches_read) == (False, 0)
    assert passes.has_next()
    assert passes.has_next()  # They met for it once.
    second = list(iter(lambda: passes.read(9), None))
    assert [span.sizes for span in second] == [(2, 2), (1, 0)]


def test_a_pass_that_is_left_begins_anew() -> None:
    passes = beside([1, 1, 1])
    assert passes.checked(lambda arrays: arrays.copied()).read(1) is not None
    assert passes.has_next()
    assert (passes.is_open, passes.batches_read) == (True, 1)
    passes.close()
    assert (passes.is_open, passes.batches_read) == (False, 0)
    span = passes.read(1)
    assert span is not None
    assert next(iter(span)).x.tolist() == ROWS[:2].tolist()


def test_examples_of_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"\('float64', \(3,\)\).*`padded_shapes`"):
        beside([1], (3,)).read(1)
    # Who has ended takes the shape that the others have.
    passes = beside([0, 0, 5], (3,))
    assert [span.sizes for span in (passes.read(1), passes.read(1)) if span] == [(2, 0), (1, 0)]
    last = passes.read(1)
    assert last is not None
    assert next(iter(last)).x.shape == (0, 3)
