"""Arrays in files: read block by block, each row once a pass, and never the whole."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored.data import stored
from mirrored.data.arguments import DataArguments
from mirrored.data.arrays import Arrays, adapt_batch
from mirrored.data.stored import Stored, adapt_all, is_stored

X = np.arange(300, dtype=np.float32).reshape(100, 3) / 100
Y = X.sum(1, keepdims=True)
BLOCK, AT_ONCE = 10, 40  # Rows of X and Y together, of 16 bytes.


class Slices:
    """An array that is nowhere whole; it notes what is read."""

    def __init__(self, array: np.ndarray, chunks: Any = None) -> None:
        self._array, self.shape, self.dtype = array, array.shape, array.dtype
        self.read: list[tuple[int, int]] = []
        if chunks is not None:
            self.chunks = chunks

    def __getitem__(self, rows: slice) -> np.ndarray:
        assert isinstance(rows, slice)
        self.read.append((rows.start, rows.stop))
        return self._array[rows]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, simulate: Callable[..., Any]) -> None:
    simulate(3)
    monkeypatch.setattr(stored, "_BLOCK", BLOCK * 16)
    monkeypatch.setattr(stored, "_AT_ONCE", AT_ONCE * 16)


def memmap(path: Path) -> Any:
    np.save(path / "x.npy", X)
    return np.load(path / "x.npy", mmap_mode="r")


def hdf5(path: Path) -> Any:
    h5py = pytest.importorskip("h5py")
    file = h5py.File(path / "x.h5", "w")
    return file.create_dataset("x", data=X, chunks=(7, 3))


KINDS: dict[str, Callable[[Path], Any]] = {
    "memmap": memmap,
    "hdf5": hdf5,
    "slices": lambda _: Slices(X),
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_rows_of_files(make: Callable[[Path], Any], tmp_path: Path) -> None:
    x = make(tmp_path)
    assert is_stored(x)
    data = adapt_all({"a": x, "b": Y}, [Y, Y], Y[:, 0], for_what="fit")
    assert isinstance(data, Stored)
    assert data.size == 100
    some = data.rows(slice(20, 90)).read([slice(1, 3), slice(60, 61)])
    assert isinstance(some, Arrays)
    np.testing.assert_array_equal(some.x["a"], X[[21, 22, 80]])
    np.testing.assert_array_equal(some.y[1], Y[[21, 22, 80]])
    assert some.sample_weight[0] is some.sample_weight[1]


NOT_STORED: dict[str, Any] = {
    "an array": X,
    "a list": X.tolist(),
    "a tensor": mr.constant,
    "a number": np.float32(3),
    "a dtype": X.dtype,
    "a scalar of a file": np.zeros((), np.float32).view(np.memmap),
}


@pytest.mark.parametrize("value", NOT_STORED.values(), ids=NOT_STORED)
def test_what_is_in_memory(value: Any) -> None:
    assert not is_stored(value(X) if callable(value) else value)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dok"])
@pytest.mark.parametrize("count", [20, 100])
def test_sparse_matrices(form: str, count: int) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for kind in (f"{form}_matrix", f"{form}_array"):
        x = getattr(sparse, kind)(X[:count])
        data = adapt_all({"a": x}, Y[:count], for_what="fit")
        assert isinstance(data, Stored) is (count > AT_ONCE)
        some = data.read([slice(2, 5)]) if isinstance(data, Stored) else data.rows(slice(2, 5))
        np.testing.assert_array_equal(some.x["a"], X[2:5])
        assert adapt_batch((x, Y[:count]), "fit").x.tolist() == X[:count].tolist()


@pytest.mark.parametrize("count", [20, 100])
def test_sparse_matrices_alone(count: int) -> None:
    """As `x` itself they are examples, whether they are read at once or row by row."""
    sparse = pytest.importorskip("scipy.sparse")

    def numbers(x: Any) -> list[Any]:
        mr.keras.utils.set_random_seed(3)
        model = mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
        y = Y[:count]
        history = model.fit(x, y, 8, shuffle=False, validation_data=(x, y), verbose=0).history
        batches = [model.train_on_batch(x, y), *model.predict_on_batch(x).tolist()]
        losses = [model.evaluate(x, y, verbose=0), *history["loss"], *history["val_loss"]]
        return [*losses, *batches, *model.predict(x, verbose=0).tolist()]

    expected = numbers(X[:count])
    for kind in ("csr_matrix", "csc_array", "lil_matrix", "dok_array"):
        assert numbers(getattr(sparse, kind)(X[:count])) == expected, kind
    with pytest.raises(ValueError, match="cardinality is ambiguous"):
        adapt_all(sparse.csr_matrix(X[:20]), Y[:19], for_what="fit")


def test_what_is_small_is_read_at_once() -> None:
    x, y = Slices(X[:30]), Slices(Y[:30])
    data = adapt_all(x, {"a": y}, for_what="fit")
    assert isinstance(data, Arrays)
    assert data.x.tolist() == X[:30].tolist()
    assert x.read == y.read == [(0, 30)]


def batches(data: Stored, size: int, passes: int, **options: Any) -> Iterator[list[np.ndarray]]:
    arguments = DataArguments(use="fit", x=None, batch_size=size, steps=None, **options)
    epochs = arguments.of_arrays(data)
    for _ in range(passes):
        assert epochs.begin()
        yield [batch.x for span in epochs.spans(None) for batch in span]


@pytest.mark.behaviour("files")
@pytest.mark.parametrize("size", [1, 7, 40, 64, 100, 300])
@pytest.mark.parametrize("shuffled", [False, True])
def test_each_row_is_read_once_a_pass(size: int, shuffled: bool) -> None:
    x = Slices(X)
    data = adapt_all(x, Y, for_what="fit").rows(slice(5, 95))
    orders = []
    for given in batches(data, size, 3, shuffle=shuffled):
        assert [len(batch) for batch in given[:-1]] == [size] * (len(given) - 1)
        orders.append((np.concatenate(given)[:, 0] * 100 / 3).round().astype(int).tolist())
        assert sorted(orders[-1]) == list(range(5, 95))
    assert (orders[0] == sorted(orders[0])) is not shuffled
    assert (orders[0] == orders[1]) is not shuffled
    counts = np.zeros(100, int)
    for begin, stop in x.read[1:]:
        counts[begin:stop] += 1
        assert stop - begin <= max(AT_ONCE, size)
    assert set(counts[5:95]) == {3}
    if shuffled:  # Neighbours in a file come close to each other, and not one after the other.
        assert sum(abs(np.diff(orders[0])) == 1) < 40


def test_blocks_are_chunks_of_files() -> None:
    for chunks, rows in [((7, 3), 14), ((16, 3), 16), (((30, 30, 40), (3,)), 30), (None, 10)]:
        data = adapt_all(Slices(X, chunks), Y, for_what="fit")
        assert data.block_rows() == rows
        blocks = data.rows(slice(5, 95)).blocks()
        assert [block.start + 5 for block in blocks[1:]] == list(range(rows, 95, rows))
        assert (blocks[0].start, blocks[-1].stop) == (0, 90)


def test_a_step_goes_on_where_the_last_epoch_ended() -> None:
    data = adapt_all(Slices(X), Y, for_what="fit")
    epochs = DataArguments(use="fit", x=None, batch_size=30, steps=3).of_arrays(data)
    seen = []
    for _ in range(3):
        epochs.begin()
        seen += [len(batch.x) for span in epochs.spans(2) for batch in span]
    assert seen == [30, 30, 30, 10, 30, 30, 30]


# ------------------------------------------------------------------------------ training


def fitted(x: Any, y: Any, replicas: int, **options: Any) -> list[Any]:
    mr.keras.utils.set_random_seed(1)
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        model = mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(1)])
        model.compile(mr.optim.SGD(0.01), "mse")
    history = model.fit(x, y, 16, epochs=2, verbose=0, **options)
    found = [model.evaluate(x, y, verbose=0), model.predict(x, 16, verbose=0).tolist()]
    return [history.history, *found, *[weight.tolist() for weight in model.get_weights()]]


OPTIONS: dict[str, dict[str, Any]] = {
    "a split": {"validation_split": 0.3},
    "weights": {"sample_weight": np.linspace(0, 1, 100)},
    "classes": {"class_weight": {2: 3.0}},
    "steps": {"steps_per_epoch": 5},
    "validation": {"validation_data": (X[:9], Y[:9])},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_training_in_order_is_that_on_arrays(options: dict[str, Any]) -> None:
    expected = fitted(X, Y, 1, shuffle=False, **options)
    if "validation_data" in options:
        options = {"validation_data": (Slices(X[:9]), Y[:9])}
    assert fitted(Slices(X), Slices(Y), 1, shuffle=False, **options) == expected


def test_the_order_is_the_same_on_any_number_of_replicas() -> None:
    one, three = fitted(Slices(X), Y, 1), fitted(Slices(X), Y, 3)
    np.testing.assert_allclose(three[0]["loss"], one[0]["loss"], rtol=1e-5)
    np.testing.assert_allclose(three[-2], one[-2], rtol=1e-4)
    assert one[0] != fitted(Slices(X), Y, 1, shuffle=False)[0]


LIMITED = """
import resource, sys
import h5py, numpy as np
import mirrored as mr
rows, width = 150_000, 1_000
with h5py.File(sys.argv[1], "w") as file:
    x = file.create_dataset("x", (rows, width), "f4")
    for begin in range(0, rows, 1_000):
        x[begin : begin + 1_000] = np.full((1_000, width), begin, "f4")
file = h5py.File(sys.argv[1])
model = mr.Sequential([mr.layers.Input(shape=(width,)), mr.layers.Dense(1)])
model.compile(mr.optim.SGD(0.0), "mse")
model.predict(np.zeros((32, width)), verbose=0)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), -1))
try:
    np.empty((rows, width), "f4")
except MemoryError:
    print("It does not fit.")
history = model.fit(file["x"], np.zeros(rows), 512, verbose=0)
print(len(history.history["loss"]))
"""


@pytest.mark.slow  # It writes a file of 600 MB.
@pytest.mark.skipif(sys.platform != "linux", reason="The limit of memory is Linux'.")
def test_a_file_of_more_than_the_memory_there_is(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "x.h5")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (tmp_path / "x.h5").unlink()
    assert done.stdout.split("\n")[:2] == ["It does not fit.", "1"], done.stderr


ZARR = """
import sys
import numpy as np, zarr
from mirrored.data import stored
array = np.arange(300.0).reshape(100, 3)
stored._AT_ONCE = 960
kept = zarr.create_array(sys.argv[1], data=array, chunks=(7, 3))
data = stored.adapt_all(kept, for_what="predict")
assert data.block_rows() % 7 == 0
assert (data.rows(slice(20, 90)).read([slice(1, 3), slice(60, 61)]).x == array[[21, 22, 80]]).all()
print("read")
"""


@pytest.mark.slow  # It is imported in a process of its own, since its threads stay.
def test_rows_of_zarr(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    command = [sys.executable, "-c", ZARR, str(tmp_path / "x.zarr")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "read\n", done.stderr


# ------------------------------------------------------------------------------ bad input


def test_a_file_that_shrinks() -> None:
    class Shrinks(Slices):
        def __getitem__(self, rows: slice) -> np.ndarray:
            return super().__getitem__(rows)[: max(0, 60 - rows.start)]

    with pytest.raises(ValueError, match=r"Batch \d+ of a pass, .* rows .* no longer exist"):
        fitted(Shrinks(X), Y, 1)


def test_a_mapped_file_that_shrinks(tmp_path: Path) -> None:
    """Reading what is gone would end the process."""
    mapped = memmap(tmp_path)
    data = adapt_all(mapped, Y, for_what="fit")
    assert data.read([slice(90, 91)]).x.tolist() == X[90:91].tolist()
    os.truncate(tmp_path / "x.npy", 600)
    with pytest.raises(ValueError, match=r"became shorter .* of 600 bytes instead of 1328"):
        data.read([slice(90, 91)])
    os.remove(tmp_path / "x.npy")  # What has no name stays as it was.
    assert data.read([slice(1, 2)]).x.tolist() == X[1:2].tolist()


REFUSED: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "lengths": (Slices(X), Y[:50], {}, "Data cardinality is ambiguous.*'x' sizes: 100, 'y' sizes"),
    "strings": (Slices(X.astype(str)), Y, {}, "`x` must hold numbers"),
    "shapes": (Slices(X[:, :2]), Y, {}, "found shape=\\(None, 2\\)"),
    "labels": (Slices(X), Slices(Y), {"class_weight": {0.5: 1.0}}, "integer label"),
    "two weights": (
        Slices(X),
        Y,
        {"class_weight": {0: 1.0}, "sample_weight": Y},
        "cannot be given at the same time",
    ),
    "weights": (
        Slices(X),
        Y,
        {"sample_weight": np.where(np.arange(100) == 90, np.nan, 1)},
        "Batch [0-9] of a pass, or a later one: `sample_weight` must be finite",
    ),
}


@pytest.mark.parametrize(("x", "y", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(x: Any, y: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted(x, y, 1, **options)
