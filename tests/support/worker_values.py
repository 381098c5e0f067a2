"""What several workers sum, gather and send, compared with what NumPy says of the same values.

A program: each worker knows what all others have, and prints what was right.
"""

import functools
import itertools
import warnings
from collections import defaultdict

import ml_dtypes
import numpy as np

from mirrored.workers import connect

warnings.simplefilter("error")
WORKERS = connect()
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "complex64")
# Nothing, one element, what is added up in one go, and more than is added up at a time.
LARGE = ("float32", "bfloat16", "int64")
SIZES = (0, 1, 7, 1000, 4096, 300_001, 1_100_000)


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@functools.cache
def numbers(rank: int, size: int) -> np.ndarray:
    """Return numbers of many sizes, whose sums have other bits in another order."""
    rng = np.random.default_rng([rank, size])
    powers = np.tile(10.0 ** np.arange(-3, 4), size // 7 + 1)[:size]
    return rng.random(size, np.float32) * powers - 0.5


@functools.cache
def values(rank: int, name: str, size: int) -> np.ndarray:
    """Return what a worker adds, which nobody changes."""
    wide = numbers(rank, size)
    wide = wide if dtype_of(name).kind not in "iu" else np.abs(wide) % 50
    found = wide.astype(dtype_of(name))
    found.flags.writeable = False
    return found


def folded(arrays: list[np.ndarray]) -> np.ndarray:
    """Return the sum, from the first on; floats of 16 bits are rounded once."""
    narrow = arrays[0].dtype.itemsize == 2
    total = arrays[0].astype(np.float32) if narrow else arrays[0].copy()
    for array in arrays[1:]:
        total = total + (array.astype(np.float32) if narrow else array)
    return total.astype(arrays[0].dtype)


@functools.cache
def expected(name: str, size: int) -> np.ndarray:
    hosts = defaultdict(list)
    for rank, host in enumerate(WORKERS.hosts):
        hosts[host].append(values(rank, name, size))
    return folded([folded(arrays) for arrays in hosts.values()])


def sums() -> None:
    for name, size in itertools.product(DTYPES, SIZES):
        if (size > 4096 and name not in LARGE) or (size > 300_001 and name != "float32"):
            continue
        mine = values(WORKERS.rank, name, size).copy()
        total = np.full_like(mine, 1)
        WORKERS.sum_in_order(mine, total, f"{name} of {size}")
        right = expected(name, size)
        assert total.tobytes() == right.tobytes(), (name, size)
        assert mine.tobytes() == values(WORKERS.rank, name, size).tobytes(), (name, size)
        WORKERS.sum_in_order(mine, mine, "in its place")
        assert mine.tobytes() == right.tobytes(), (name, size)
    matrix = np.full((3, 4), WORKERS.rank + 1.0)
    WORKERS.sum_in_order(matrix, matrix, "a matrix")
    assert (matrix == WORKERS.count * (WORKERS.count + 1) / 2).all()
    huge = np.full(3, 3e38, np.float32)
    WORKERS.sum_in_order(huge, huge, "an overflow")
    assert np.isinf(huge).all()
    for number in range(60):  # Those that are quick do not overtake the others.
        vector = np.full(5, number * (WORKERS.rank + 1), np.int64)
        WORKERS.sum_in_order(vector, vector, "many")
        assert (vector == number * WORKERS.count * (WORKERS.count + 1) // 2).all()


def sums_meanwhile() -> None:
    sizes = (5, 300_001, 7, 4096) * 3
    vectors = [values(WORKERS.rank, "float32", size).copy() for size in sizes]
    pending = [WORKERS.begin_sum(each, each, "a bucket") for each in vectors]
    # It comes after all of them, on every worker.
    assert WORKERS.gather(WORKERS.rank, "ranks") == list(range(WORKERS.count))
    for each in reversed(pending):
        each.wait()
    for vector, size in zip(vectors, sizes, strict=True):
        assert vector.tobytes() == expected("float32", size).tobytes()


def gathers() -> None:
    assert WORKERS.gather({"of": WORKERS.rank}, "objects") == [
        {"of": rank} for rank in range(WORKERS.count)
    ]
    big = WORKERS.gather("x" * 100_000 * WORKERS.rank, "sizes that differ")
    assert [len(each) for each in big] == [100_000 * rank for rank in range(WORKERS.count)]
    for name in DTYPES:
        found = WORKERS.gather_arrays(values(WORKERS.rank, name, 3 * WORKERS.rank), name)
        for rank, array in enumerate(found):
            assert array.dtype == dtype_of(name)
            assert array.tobytes() == values(rank, name, 3 * rank).tobytes()
    rows = WORKERS.gather_arrays(np.ones((WORKERS.rank, 2), np.float32), "rows")
    assert [array.shape for array in rows] == [(rank, 2) for rank in range(WORKERS.count)]


def broadcasts() -> None:
    rank = WORKERS.rank
    arrays = [values(rank, name, size).copy() for name in DTYPES for size in (0, 1, 5000)]
    transposed = np.arange(6.0).reshape(2, 3).T + rank
    scalar = np.array(7 + rank)
    WORKERS.broadcast([*arrays, transposed, scalar], "weights")
    right = [values(0, name, size) for name in DTYPES for size in (0, 1, 5000)]
    assert [each.tobytes() for each in arrays] == [each.tobytes() for each in right]
    assert (transposed == np.arange(6.0).reshape(2, 3).T).all()
    assert scalar == 7


for part in (sums, sums_meanwhile, gathers, broadcasts):
    part()
    WORKERS.barrier("the next part")
    print(part.__name__, "are right")
print(WORKERS.rank, WORKERS.count, WORKERS.local_rank, WORKERS.is_chief, ",".join(WORKERS.hosts))
