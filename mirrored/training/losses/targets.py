"""Checks of targets against a model's output, on the host and before training begins.

A target of the wrong shape would be broadcast and a label out of range would index other memory,
both without a word, so each is an error here.
"""

from typing import Any

import numpy as np

OutputShape = tuple[int | None, ...]


RESHAPE = "Reshape them, or change the units of the last layer."


def match_output(
    loss: str, y: np.ndarray, output_shape: OutputShape, *, hint: str = RESHAPE
) -> np.ndarray:
    """Return `y` in the shape of the model's output; only a last axis of size 1 may differ.

    Raises:
        ValueError: The shapes do not fit.
    """
    aligned = align_last_axis(y, output_shape)
    is_column = len(output_shape) == 1 and y.shape[1:] == (1,)
    if not (is_column or _fits(aligned.shape, output_shape)):
        raise ValueError(
            f"The loss {loss!r} compares targets and outputs element by element, so the targets "
            f"must have the model's output shape {output_shape}. "
            f"Received: y with shape {y.shape}. {hint}"
        )
    return aligned


def align_last_axis(y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
    """Return `y` with a last axis of size 1 more or less, where outputs have as many.

    A column stays one beside a vector: as in Keras each row of it is an example of losses.
    """
    if len(output_shape) == y.ndim + 1 and output_shape[-1] == 1:
        return y[..., np.newaxis]
    if 1 < len(output_shape) == y.ndim - 1 and y.shape[-1] == 1:
        return y[..., 0]
    return y


def check_probabilities(loss: str, y: np.ndarray) -> np.ndarray:
    """Return `y`, whose values must be within [0, 1].

    Raises:
        ValueError: A value is outside, or is not a number.
    """
    if y.size and not (y.min() >= 0 and y.max() <= 1):  # False for NaN too.
        wrong = y[~((y >= 0) & (y <= 1))][0]
        raise ValueError(
            f"Received a label value of {wrong} which is outside the valid range of [0, 1]. "
            f"The targets of {loss!r} are probabilities: map the two classes to 0 and 1."
        )
    return y


def check_labels(loss: str, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
    """Return class indices as int32, int64 or uint8 of the output's shape without its last axis.

    Raises:
        ValueError: The shape does not fit, or a label is no integer in [0, classes).
    """
    expected, classes = output_shape[:-1], output_shape[-1]
    labels = y[..., 0] if y.ndim == len(output_shape) and y.shape[-1] == 1 else y
    if not _fits(labels.shape, expected):
        raise ValueError(
            f"The loss {loss!r} needs one integer label for each of the model's predictions, "
            f"shape {expected} for the output shape {output_shape}. Received: y with shape "
            f"{y.shape}. For one-hot targets use 'categorical_crossentropy'."
        )
    if labels.dtype.kind == "f" and not (labels == np.floor(labels)).all():
        raise ValueError(
            f"The loss {loss!r} needs integer labels. Received: a label value of "
            f"{labels[labels != np.floor(labels)][0]}. For targets that are not classes use "
            "another loss."
        )
    if classes is not None and labels.size:
        low, high = labels.min(), labels.max()
        if low < 0 or high >= classes:
            raise ValueError(_out_of_range(low if low < 0 else high, classes))
    is_small = labels.dtype in (np.int32, np.uint8)
    return labels if is_small else labels.astype(np.int64, copy=False)


def _out_of_range(label: Any, classes: int) -> str:
    advice = "renumber the labels from 0"
    if np.isfinite(label) and label >= classes:
        advice += f", or use at least {int(label) + 1} units in the last layer"
    return (
        f"Received a label value of {label} which is outside the valid range of [0, {classes}). "
        f"Labels are indices of the model's {classes} outputs: {advice}."
    )


def _fits(shape: tuple[int, ...], expected: OutputShape) -> bool:
    """Whether shapes agree but for the first axis, the examples, and sizes that are not known."""
    if len(shape) != len(expected):
        return False
    sizes = zip(shape[1:], expected[1:], strict=True)
    return all([wanted in (None, size) for size, wanted in sizes])
