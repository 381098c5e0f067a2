"""Sequences of different lengths become rows of one array, as Keras pads them.

A model takes arrays, whose rows are equally long.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explained
from mirrored._numbers import as_integer, check_count
from mirrored._types import DTypeLike

_SIDES = ("pre", "post")


@explained
def pad_sequences(
    sequences: Iterable[Sequence[Any]],
    maxlen: int | None = None,
    dtype: DTypeLike = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: float | str = 0.0,
) -> NDArray[Any]:
    """Return sequences as the rows of an array, filled up or cut to one length.

    Args:
        sequences: Lists or arrays of shape (length, ...), alike but for their lengths.
        maxlen: The length of a row; None: that of the longest sequence.
        dtype: The dtype of the array, which need not be one that tensors have.
        padding: Whether shorter ones are filled up before ("pre") or behind ("post").
        truncating: Whether longer ones are cut at their beginning ("pre") or end ("post").
        value: What they are filled up with.

    Returns:
        An array of shape (sequences, maxlen, ...).

    Raises:
        TypeError: `maxlen` is no integer.
        ValueError: There are no sequences, one is none or of another shape, or an
            option is unknown.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.utils.pad_sequences([[1, 2, 3], [4]], maxlen=2)
        array([[2, 3],
               [0, 4]], dtype=int32)
    """
    for name, side in (("Padding", padding), ("Truncating", truncating)):
        if side not in _SIDES:
            raise ValueError(
                f'{name} type "{side}" not understood. Use "pre" or "post". Received: '
                f"{name.lower()}={side!r}"
            )
    if isinstance(value, str) and np.dtype(dtype).kind not in "OSU":
        raise ValueError(
            f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}\nYou should set "
            "`dtype=object` for variable length strings."
        )
    lengths = _lengths(sequences)
    longest = _longest(lengths, maxlen)
    first = next((row for row, length in zip(sequences, lengths, strict=True) if length), ())
    shape = np.asarray(first).shape[1:]
    rows = np.full((len(lengths), longest, *shape), value, dtype)
    for number, (sequence, length) in enumerate(zip(sequences, lengths, strict=True)):
        if not length:
            continue
        kept = min(length, longest)
        part = sequence[length - kept :] if truncating == "pre" else sequence[:kept]
        array = np.asarray(part, dtype)
        if array.shape[1:] != shape:
            raise ValueError(
                f"Shape of sample {array.shape[1:]} of sequence at position {number} is different "
                f"from expected shape {shape}, the shape of the first sample. Use one shape for "
                "all samples."
            )
        if padding == "pre":
            rows[number, longest - kept :] = array
        else:
            rows[number, :kept] = array
    return rows


def _lengths(sequences: Any) -> Sequence[int]:
    if not hasattr(sequences, "__len__"):
        raise ValueError(
            f"`sequences` must be iterable. Received: sequences={sequences!r:.80}. Convert it to "
            "a list."
        )
    lengths = []
    for sequence in sequences:
        if not hasattr(sequence, "__len__"):
            raise ValueError(
                "`sequences` must be a list of iterables. Found non-iterable: "
                f"{sequence!s:.80}. Put single values in lists."
            )
        if isinstance(sequence, str | bytes):
            raise ValueError(
                f"A sequence must not be a string. Received: {sequence!r:.80}. Make a list of it."
            )
        lengths.append(len(sequence))
    return lengths


def _longest(lengths: Sequence[int], maxlen: int | None) -> int:
    if maxlen is None:
        if not lengths:
            raise ValueError("There are no sequences to pad. Received: none. Pass `maxlen`.")
        return max(lengths)
    if as_integer(maxlen) is None:
        raise TypeError(f"`maxlen` must be an integer or None. Received: maxlen={maxlen!r}")
    return check_count("maxlen", maxlen, least=1)
