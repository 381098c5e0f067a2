"""The number of BLAS's threads is set for a program and restored whatever happens."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mirrored.program.blas import BlasThreads, available_threads


def threads() -> list[int]:
    np.ones((2, 2)) @ np.ones((2, 2))
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


@pytest.mark.parametrize("outside", [1, 2])
@pytest.mark.parametrize("inside", [1, 2, None])
def test_it_is_set_and_restored(outside: int, inside: int | None) -> None:
    with threadpool_limits(outside, "blas"):
        before = threads()
        with BlasThreads(inside):
            assert threads() == (before if inside is None else [inside] * len(before))
            with BlasThreads(1):
                assert set(threads()) == {1}
        assert threads() == before
        with pytest.raises(KeyError), BlasThreads(inside):
            raise KeyError
        assert threads() == before


def test_how_many_there_are() -> None:
    assert available_threads() >= 1
