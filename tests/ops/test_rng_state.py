"""The states that stand in for the global one, and the seeds that follow from others."""

import itertools

import numpy as np
import pytest

from mirrored import ops
from mirrored.ops import rng_state


def test_seeds_that_follow_differ_and_stay() -> None:
    wheres = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (2**64 - 1,)]
    seeds = {
        (seed, where): rng_state.derived_seed(seed, *where) for seed in (0, 5) for where in wheres
    }
    assert len(set(seeds.values())) == len(seeds)
    assert all(
        rng_state.derived_seed(seed, *where) == each for (seed, where), each in seeds.items()
    )


def test_draws_from_a_state_leave_the_global_one() -> None:
    def own() -> list[float]:
        with rng_state.drawing_from(rng_state.RngState(8)):
            generator = ops.SeedGenerator()
            drawn = [ops.random_uniform(()), ops.random_uniform((), seed=1), generator.uniform(())]
            return [float(each) for each in drawn]

    ops.set_seed(1)
    expected = ops.random_uniform((3,)).numpy()
    ops.set_seed(1)
    first = own()
    np.testing.assert_array_equal(ops.random_uniform((3,)).numpy(), expected)
    ops.set_seed(2)
    assert own() == first
    assert len(set(first)) == 3


def test_the_state_before_is_restored() -> None:
    def fails() -> None:
        with rng_state.drawing_from(rng_state.RngState(2)):
            raise KeyError

    outer = rng_state.RngState(1)
    with rng_state.drawing_from(outer):
        with pytest.raises(KeyError):
            fails()
        assert rng_state.current_rng_state() is outer
    assert rng_state.current_rng_state() is rng_state.global_rng_state()


def test_a_generator_takes_one_draw_however_much_it_gives() -> None:
    stream = rng_state.RngState(1)
    firsts = []
    for count in (1, 1000, 1):
        firsts.append(stream.generator().random(count)[0])
    again = rng_state.RngState(1)
    assert [again.generator().random() for _ in range(3)] == firsts
    assert all(one != other for one, other in itertools.pairwise(firsts))
