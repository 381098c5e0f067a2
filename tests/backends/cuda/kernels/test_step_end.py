"""The check that losses are finite, on the emulated card."""

from typing import Any

import numpy as np
from case_table import cases

from mirrored.backends.cuda.kernels.step_end import ALL_FINITE

INF, NAN = np.inf, np.nan


@cases("dtypes", [("float32",), ("float64",), ("float32", "float64")], clean=False)
@cases("before", [0, 1], clean=False)
@cases(
    ("values", "finite"),
    [
        ([], True),
        ([1.0], True),
        ([NAN], False),
        ([1.0, -INF], False),
        ([INF, -INF], False),
        ([3e38, 3e38, 3e38], True),
        ([1.0] * 33, True),
        ([1.0] * 16 + [NAN] + [1.0] * 16, False),
        ([1.0] * 32 + [INF], False),
    ],
    clean=False,
)
def test_clears_the_flag_unless_all_are_finite(
    card: Any, values: list[float], finite: bool, before: int, dtypes: tuple[str, ...]
) -> None:
    # The first number of each array counts alone.
    arrays = [
        card.array(np.array([value, NAN], dtypes[i % len(dtypes)]))
        for i, value in enumerate(values)
    ]
    flag = card.array(np.array([before], np.int32))
    card.backend.run(ALL_FINITE, card.backend.xp, flag, *arrays)
    assert card.backend.to_host(flag)[0] == (before and finite)
