"""How fast `fit` reads each kind of data, and the memory that it takes.

`python -m benchmarks.feeding` prints the figures of docs/howto/feed-data.md. It runs each kind of
data in a separate process. The memory is the peak of the resident memory during `fit`, minus the
resident memory before. Linux includes the pages of mapped files.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import machine

BATCH = 1024
COLUMNS = "abcdefgh"
Array = np.ndarray[Any, Any]
Data = tuple[Any, ...]  # Positional arguments of `fit`.


class Source(NamedTuple):
    """A kind of data.

    Attributes:
        name: Its name in the table.
        prepare: Returns the arguments of `fit` for the examples `x` and `y`.
        share: The part of the examples that is enough: slow ones have fewer.
    """

    name: str
    prepare: Callable[[Array, Array], Data]
    share: float = 1.0


def arrays(x: Array, y: Array) -> Data:
    """Return the arrays."""
    return x, y


def frame(x: Array, y: Array) -> Data:
    """Return a data frame and a series of its targets."""
    import pandas as pd

    return pd.DataFrame(x, columns=list(COLUMNS)), pd.Series(y[:, 0])


def files(x: Array, y: Array) -> Data:
    """Return arrays in files that are mapped."""
    for name, array in ("x", x), ("y", y):
        np.save(f"{name}.npy", array)
    return tuple(np.load(f"{name}.npy", mmap_mode="r") for name in "xy")


def csv_file(x: Array, y: Array) -> Data:
    """Return a dataset that reads a CSV file."""
    import mirrored as mr

    header = ",".join([*COLUMNS, "target"])
    np.savetxt(
        "table.csv", np.hstack([x, y]), fmt="%.6g", delimiter=",", header=header, comments=""
    )
    dataset = mr.data.experimental.make_csv_dataset(
        "table.csv", batch_size=BATCH, label_name="target", num_epochs=1, shuffle_seed=0
    )

    def stack(columns: dict[str, Any], target: Any) -> tuple[Any, Any]:
        return mr.stack(list(columns.values()), axis=1), mr.expand_dims(target, 1)

    return (dataset.map(stack),)


def generator(x: Array, y: Array) -> Data:
    """Return a generator of batches."""

    def batches() -> Iterator[tuple[Array, Array]]:
        for start in range(0, len(x), BATCH):
            yield x[start : start + BATCH], y[start : start + BATCH]

    return (batches(),)


def by_index(x: Array, y: Array) -> Data:
    """Return a `PyDataset` of batches."""
    import mirrored as mr

    class Rows(mr.keras.utils.PyDataset):
        def __len__(self) -> int:
            return -(-len(x) // BATCH)

        def __getitem__(self, index: int) -> tuple[Array, Array]:
            rows = slice(BATCH * index, BATCH * index + BATCH)
            return x[rows], y[rows]

    return (Rows(),)


def dataset_of_slices(x: Array, y: Array) -> Data:
    """Return a `Dataset` of batches."""
    import mirrored as mr

    return (mr.data.Dataset.from_tensor_slices((x, y)).batch(BATCH),)


def mapped_dataset(x: Array, y: Array) -> Data:
    """Return a `Dataset` that calls a function for each example."""
    import mirrored as mr

    dataset = mr.data.Dataset.from_tensor_slices((x, y)).map(lambda x, y: (x * 2.0, y))
    return (dataset.batch(BATCH),)


SOURCES = (
    Source("arrays in memory", arrays),
    Source("a data frame", frame),
    Source("arrays in a file", files),
    Source("a CSV file", csv_file, share=0.05),
    Source("a Python generator", generator),
    Source("batches by index", by_index),
    Source("slices of arrays in batches", dataset_of_slices),
    Source("a function per example", mapped_dataset, share=0.05),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--examples", type=int, default=4_000_000, help="number of examples (default: 4000000)"
    )
    options = parser.parse_args()
    facts = machine.describe()
    os.environ["MIRRORED_LOG_LEVEL"] = "WARNING"
    print(", ".join([*facts.values(), f"NumPy {np.__version__}"]))
    print("| data | examples | million examples per second | MiB more |")
    print("| --- " + "| ---: " * 3 + "|")
    for index, source in enumerate(SOURCES):
        examples = int(options.examples * source.share)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            seconds, size = process.submit(measure, index, examples).result()
        rate = examples / seconds / 1e6
        print(f"| {source.name} | {examples:,} | {rate:.2f} | {size / 2**20:.0f} |", flush=True)


def measure(index: int, examples: int) -> tuple[float, int]:
    """Return the seconds of `fit` and the bytes that its memory grows by.

    Args:
        index: The place of the kind of data in `SOURCES`.
        examples: The number of examples.
    """
    import mirrored as mr

    mr.config.experimental.set_simulated_gpus(2)
    with mr.MirroredStrategy().scope():
        model = mr.keras.Sequential([mr.layers.Input((len(COLUMNS),)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).standard_normal((examples, len(COLUMNS)), np.float32)
    y = x.sum(axis=1, keepdims=True)
    with tempfile.TemporaryDirectory() as folder:
        here = Path.cwd()
        os.chdir(folder)
        data = SOURCES[index].prepare(x, y)
        if SOURCES[index].prepare in (files, csv_file):
            del x, y  # They are in the file.
        size = {"batch_size": BATCH} if len(data) == 2 else {}
        model.fit(np.zeros((BATCH, len(COLUMNS))), np.zeros((BATCH, 1)), verbose=0)
        before = start_peak()
        started = time.perf_counter()
        model.fit(*data, verbose=0, **size)
        seconds = time.perf_counter() - started
        more = memory("VmHWM") - before
        os.chdir(here)
    return seconds, more


def start_peak() -> int:
    """Reset the peak of the resident memory, and return the resident memory."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> int:
    """Return a size in bytes from the memory facts of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"This system does not say {name} in /proc/self/status.")


if __name__ == "__main__":
    main()
