"""The number of BLAS's threads is set for a product or a program and restored whatever happens."""

from functools import partial
from threading import Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from case_table import cases
from threadpoolctl import threadpool_info, threadpool_limits

import mirrored as mr
from mirrored.backends import product_settings
from mirrored.backends.product_settings import available_threads, limit, product, run_on_threads


@pytest.fixture(autouse=True)
def all_libraries() -> None:
    """Look for them again: tests of other files may have loaded SciPy's."""
    product_settings._libraries.cache_clear()


def threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@cases("outside", [1, 2])
@cases("inside", [1, 2, None])
def test_it_is_set_and_restored(outside: int, inside: int | None) -> None:
    with threadpool_limits(outside, "blas"):
        before = threads()

        def look(expected: list[int]) -> None:
            assert threads() == expected
            run_on_threads(1, lambda: found.append(set(threads())))
            assert threads() == expected
            raise KeyError

        found: list[set[int]] = []
        with pytest.raises(KeyError):
            run_on_threads(inside, look, before if inside is None else [inside] * len(before))
        assert (found, threads()) == ([{1}], before)


def test_any_thread_sets_it() -> None:
    """Also where another one, which still runs, has set it before."""
    found: list[set[int]] = []

    with threadpool_limits(2, "blas"):
        thread = Thread(target=run_on_threads, args=(1, lambda: found.append(set(threads()))))
        thread.start()
        thread.join()
        assert (found, set(threads())) == ([{1}], {2})


def test_how_many_there_are() -> None:
    """What limits the process counts, wherever it is asked; what limits a program does not."""
    with threadpool_limits(2, "blas"):
        counts = [available_threads()]
        with threadpool_limits(1, "blas"):
            counts.append(available_threads())
        ask = partial(run_on_threads, 1, lambda: counts.append(available_threads()))
        ask()
        run_on_threads(1, ask)
    assert counts == [2, 1, 2, 2]


def test_a_limit_is_what_there_is_from_then_on() -> None:
    with threadpool_limits(2, "blas"):
        limit(1)
        assert set(threads()) == {1}
        assert available_threads() == 1


# The shapes of a and b, and how many of two threads their product uses.
PRODUCTS = [
    (((2, 4096), (4096, 6000)), 1),
    (((2, 4096), (4096, 6200)), 2),
    (((4096,), (4096, 6200)), 1),
    (((1, 2, 4096), (4096, 6200)), 2),
    (((1, 10_000), (10_000, 1)), 1),
    (((1, 2), (2, 1)), 2),  # Here and below BLAS itself starts no thread.
    (((64, 64), (64, 64)), 2),
]


@cases(("shapes", "expected"), PRODUCTS)
def test_how_many_threads_a_product_uses(shapes: Any, expected: int) -> None:
    used: list[set[int]] = []

    def multiply(a: Any, b: Any, out: Any) -> None:
        used.append(set(threads()))

    a, b = (np.broadcast_to(np.float32(1), shape) for shape in shapes)
    out = np.broadcast_to(np.float32(0), (*a.shape[:-1], b.shape[-1]))
    with threadpool_limits(2, "blas"):
        product(SimpleNamespace(dot=multiply, matmul=multiply), a, b, out)
        assert used == [{expected}]
        assert set(threads()) == {2}


def test_an_eager_product_has_the_bits_of_a_recorded_one() -> None:
    rng = np.random.default_rng(0)
    a, b = (mr.constant(rng.normal(size=(300, 300)).astype("float32")) for _ in range(2))
    with threadpool_limits(2, "blas"):
        recorded = mr.function(lambda a, b: a @ b)(a, b)
        assert (a @ b).numpy().tobytes() == recorded.numpy().tobytes()
