"""`fit(validate_data=True)`: NaN and infinity are found before anything is trained on them."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.data import arrays as data_arrays
from mirrored.data.arrays import adapt, check_finite

X = np.ones((50, 3), np.float32)
Y = np.ones(50, np.float32)


def with_value(array: np.ndarray, value: float, *places: Any) -> np.ndarray:
    changed = array.copy()
    for place in places:
        changed[place] = value
    return changed


BAD: dict[str, tuple[Any, Any, str]] = {
    "NaN": (with_value(X, np.nan, (17, 2)), Y, r"`x` holds nan in row 17, column 2 \(counted from"),
    "infinity": (X, with_value(Y, -np.inf, 49), r"`y` holds -inf in row 49 \(counted"),
    "several": (
        with_value(X, np.inf, (40, 0), (30, 1), (3, 2)),
        Y,
        r"`x` holds inf in row 3, column 2 .*, and 2 more that are not finite. Replace",
    ),
    "images": (
        with_value(np.ones((50, 4, 4, 2)), np.nan, (9, 3, 2, 1)),
        Y,
        r"in row 9, at \(3, 2, 1\) of it",
    ),
    "a structure": (
        {"a": X, "b": [X, with_value(X, np.nan, (1, 1))]},
        Y,
        r"`x\['b'\]\[1\]` holds nan in row 1, column 1",
    ),
}


@pytest.mark.parametrize(("x", "y", "message"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("bytes_at_once", [1, 100, 1 << 20])
def test_the_first_is_named(
    x: Any, y: Any, message: str, bytes_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_arrays, "_BYTES_AT_ONCE", bytes_at_once)
    with pytest.raises(ValueError, match=message):
        check_finite(adapt(x, y))


def test_what_is_finite_stays() -> None:
    largest = np.finfo(np.float32).max
    arrays = adapt([with_value(X, largest, (1, 1)), np.ones((50, 0)), X > 0], Y.astype(int))
    assert check_finite(arrays) is arrays


def batches(x: Any, y: Any) -> Any:
    return mr.data.Dataset.from_tensor_slices((x, y)).batch(10)


WRONG = with_value(X, np.nan, (25, 1))
FITS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "arrays": (lambda: (WRONG, Y), {}, r"^`x` holds nan in row 25, column 1"),
    "rows": (lambda: (batches(WRONG, Y),), {}, r"^Batch 2 of the data .*: `x` holds nan in row 5"),
    "batches": (
        lambda: (iter(batches(WRONG, Y).as_numpy_iterator()),),
        {},
        r"^Batch 2 of the data .*: `x` holds nan in row 5, column 1",
    ),
    "validation": (lambda: (X, Y), {"validation_data": (WRONG, Y)}, "row 25, column 1"),
    "a split": (lambda: (WRONG, Y), {"validation_split": 0.6}, "row 5, column 1"),
}


@pytest.mark.behaviour("validate-data")
@cases(("data", "options", "message"), FITS.values(), ids=FITS)
def test_fit(data: Any, options: dict[str, Any], message: str) -> None:
    model = mr.Sequential([mr.layers.Input(shape=(3,)), mr.layers.Dense(1)])
    model.compile(mr.optim.SGD(0.0), "mse")
    model.fit(X, Y, verbose=0, validate_data=True)
    with pytest.raises(ValueError, match=message):
        model.fit(*data(), verbose=0, shuffle=False, validate_data=True, **options)
    assert np.isfinite(model.get_weights()[0]).all()
    if "validation_data" not in options:
        with pytest.raises(mr.errors.NonFiniteLossError):
            model.fit(*data(), verbose=0, **({"validation_split": 0.1} if options else {}))
    model.fit(X, Y, verbose=0, validate_data=True)
