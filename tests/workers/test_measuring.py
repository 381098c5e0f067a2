"""What is measured of sums: wrong ones are seen on whichever worker they are."""

from typing import Any

import numpy as np

from mirrored.workers.measuring import measure
from mirrored.workers.worker import Workers


class Wrong(Workers):
    """Adds one to the last two elements."""

    def _sum(self, vector: Any, out: Any, what: str) -> None:
        np.copyto(out, vector)
        out[-2:] += 1


def test_wrong_elements_are_counted() -> None:
    rows = list(measure(Wrong(), [4, 4000], turns=1))
    assert [(row.elements, row.wrong) for row in rows] == [(1, 1), (1000, 2)]
    assert all(row.seconds > 0 for row in rows)
    assert [row.wrong for row in measure(Workers(), [4, 4000], turns=1)] == [0, 0]
