"""Sequences are padded and cut as Keras does it; a sentence says what cannot be."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored.data.padded_sequences import pad_sequences

GIVEN = [[1, 2, 3], [4], [5, 6], []]
# What Keras 3.15 returned.
PADDED: dict[str, tuple[dict[str, Any], list[list[float]]]] = {
    "before": ({}, [[1, 2, 3], [0, 0, 4], [0, 5, 6], [0, 0, 0]]),
    "behind": ({"padding": "post"}, [[1, 2, 3], [4, 0, 0], [5, 6, 0], [0, 0, 0]]),
    "cut before": ({"maxlen": 2}, [[2, 3], [0, 4], [5, 6], [0, 0]]),
    "cut behind": ({"maxlen": 2, "truncating": "post"}, [[1, 2], [0, 4], [5, 6], [0, 0]]),
    "longer": (
        {"maxlen": np.int64(4), "value": -1},
        [[-1, 1, 2, 3], [-1, -1, -1, 4], [-1, -1, 5, 6], [-1] * 4],
    ),
    "floats": (
        {"dtype": "float32", "value": 0.5, "maxlen": 2, "padding": "post"},
        [[2, 3], [4, 0.5], [5, 6], [0.5, 0.5]],
    ),
}


@cases(("options", "expected"), PADDED.values(), ids=PADDED)
@cases("kind", [list, tuple, np.array])
def test_padded(options: dict[str, Any], expected: list[Any], kind: Any) -> None:
    padded = pad_sequences([kind(each) for each in GIVEN], **options)
    assert padded.tolist() == expected
    assert padded.dtype == options.get("dtype", "int32")


def test_rows_of_vectors_and_of_texts() -> None:
    vectors = pad_sequences([np.ones((2, 3)), [], np.ones((1, 3))], dtype="float64")
    assert vectors[:, :, 0].tolist() == [[1, 1], [0, 0], [0, 1]]
    assert vectors.shape == (3, 2, 3)
    texts = pad_sequences([["a"], ["b", "c"]], dtype=object, value="<pad>")
    assert texts.tolist() == [["<pad>", "a"], ["b", "c"]]
    assert pad_sequences([], maxlen=2).shape == (0, 2)
    assert pad_sequences([[], []]).shape == (2, 0)


REFUSED: dict[str, tuple[Any, dict[str, Any], type[Exception], str]] = {
    "no sequences": ([], {}, ValueError, "no sequences to pad"),
    "a generator": ((each for each in GIVEN), {}, ValueError, "must be iterable. Received"),
    "numbers": ([1, 2], {}, ValueError, "a list of iterables. Found non-iterable: 1"),
    "None": ([None], {}, ValueError, "Found non-iterable: None"),
    "texts": (
        ["ab"],
        {"dtype": object},
        ValueError,
        "A sequence must not be a string. Received: 'ab'",
    ),
    "shapes": (
        [np.ones((2, 3)), np.ones((2, 2))],
        {},
        ValueError,
        r"Shape of sample \(2,\) of sequence at position 1 is different from expected shape \(3,\)",
    ),
    "side": (GIVEN, {"padding": "left"}, ValueError, 'Padding type "left" not understood'),
    "end": (GIVEN, {"truncating": "x"}, ValueError, 'Truncating type "x" not understood'),
    "a text as value": (GIVEN, {"value": "a"}, ValueError, "You should set `dtype=object`"),
    "no length": (GIVEN, {"maxlen": 0}, ValueError, "maxlen=0"),
    "half a length": (
        GIVEN,
        {"maxlen": 2.0},
        TypeError,
        "an integer or None. Received",
    ),
}


@cases(("given", "options", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(given: Any, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        pad_sequences(given, **options)
