"""In which order variables are brought together, and what comes of it."""

import numpy as np

import mirrored as mr
from mirrored.optim.packing import alike, packing_order, summed


def variables(*sizes: int) -> list[mr.Variable]:
    return [mr.Variable(np.zeros(size, np.float32)) for size in sizes]


def test_the_last_come_first_but_whole_cache_lines_before_all() -> None:
    assert packing_order(variables(32, 3, 160, 10)) == [2, 0, 3, 1]
    assert packing_order([]) == []


def test_each_dtype_is_a_group_of_its_own() -> None:
    single, double = variables(16, 5), [mr.Variable(np.zeros(3))]
    groups = alike([*single, *double])
    assert [[id(each) for each in group] for group in groups] == [
        [id(single[0]), id(single[1])],
        [id(double[0])],
    ]


def test_gradients_are_summed_in_the_order_of_the_update() -> None:
    seen: list[str] = []

    def batch_sum(gradients: list[str]) -> list[str]:
        seen.extend(gradients)
        return [each.upper() for each in gradients]

    assert summed(variables(32, 3, 160, 10), ["a", "b", "c", "d"], batch_sum) == [*"ABCD"]
    assert seen == [*"cadb"]
    assert summed([], [], batch_sum) == []
