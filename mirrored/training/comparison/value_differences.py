"""Which of the values that two steps made differ by more than rounding does.

Values are compared as wholes: single elements of what is nearly zero may differ by much.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored.layers.layer import walk
from mirrored.ops.spec import FLOATS, is_bfloat16
from mirrored.optim.hyperparameters import check_number
from mirrored.training.comparison.step_notes import Event

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Value:
    """What a step made.

    Attributes:
        array: The value.
        before: What it was before the step, of variables that were there.
        weight: The name of the weight by whose gradient it was updated.
    """

    array: Array
    before: Array | None = None
    weight: str | None = None


@dataclass(frozen=True)
class Found:
    """How far two steps agree in one thing.

    Attributes:
        event: The thing.
        agrees: Whether they do.
        difference: By what part of its size it differs.
        one: What the one step made; None: nothing.
        many: What the other one made.
    """

    event: Event
    agrees: bool
    difference: float
    one: Array | None = None
    many: Array | None = None

    def values(self, replicas: int) -> str:
        """Return both values as a text, of arrays those elements that are farthest apart.

        Args:
            replicas: How many replicas the other step ran on.
        """
        there = f"on {replicas} replicas"
        if self.one is None or self.many is None:
            return f"it is only {there if self.one is None else 'on one device'}"
        if self.one.shape != self.many.shape:
            return f"it has the shape {self.one.shape} on one device, {self.many.shape} {there}"
        apart = np.abs(_as_float(self.many) - _as_float(self.one))
        place = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart)), apart.shape)
        at = f"at {[int(index) for index in place]} " if place else ""
        return f"{at}{self.one[place]:.6g} on one device, {self.many[place]:.6g} {there}"


class Tolerances:
    """How far values of one model may differ.

    Args:
        model: The model.
        rtol: By what part of their norm; None: by the dtypes of the model.
        atol: By how much an element besides; None likewise.

    Raises:
        ValueError: One of them is negative.
    """

    def __init__(self, model: Any, rtol: float | None, atol: float | None) -> None:
        dtypes = [layer.compute_dtype for layer in walk(model)]
        outputs = model.required_compilation().outputs
        dtypes += [entry.loss.dtype for entry in outputs.outputs if entry.loss] if outputs else []
        self._spacing = max(_spacing(dtype) for dtype in dtypes)
        # Of 250 random models, sums in another order move gradients by a fifteenth of it at most.
        self._rtol = self._spacing**0.6 if rtol is None else check_number("rtol", rtol)
        self._atol = 10 * self._spacing if atol is None else check_number("atol", atol)

    def differences(self, base: dict[Event, Value], many: dict[Event, Value]) -> list[Found]:
        """Return how far two steps agree, by the order of the first one.

        Args:
            base: What it made.
            many: What the other one made.
        """
        gradients = {gradient.name: gradient for gradient in base if gradient.kind == "gradient"}
        sizes = {name: _norm(base[event].array) for name, event in gradients.items()}
        all_gradients = float(np.linalg.norm(list(sizes.values()))) if sizes else 0.0
        # A gradient may be rounding alone, as that of a bias before a normalization is.
        rounding = min(100 * self._spacing, self._spacing**0.5 / 10) * all_gradients
        gaps: list[Found] = []
        for event in {**base, **many}:
            value, other = base.get(event), many.get(event)
            if value is None or other is None:
                gaps.append(Found(event, False, np.inf, _array(value), _array(other)))
                continue
            if value.weight is not None and sizes.get(value.weight, np.inf) <= rounding:
                continue
            besides = rounding if event.kind == "gradient" else 0.0
            gaps.append(self._difference(event, value, other, besides))
        return gaps

    def _difference(self, event: Event, value: Value, other: Value, besides: float) -> Found:
        base, many = value.array, other.array
        if base.shape != many.shape or not _is_float(base):
            agrees = np.array_equal(base, many)
            return Found(event, agrees, 0.0 if agrees else np.inf, base, many)
        if np.array_equal(base, many, equal_nan=True):
            return Found(event, True, 0.0, base, many)
        a, b = _as_float(base), _as_float(many)
        # An optimizer may make a whole step of an element of a gradient that is rounding alone: in
        # sums of amounts few of them are nothing, while squares would bring them out.
        size = _norm if value.weight is None else _amount
        error, scale = size(b - a), size(a)
        if value.weight is None and value.before is None:
            allowed = self._rtol * scale + self._atol * base.size**0.5
        else:
            rounded = 4 * _spacing(base.dtype) * scale
            scale = size(a - (0.0 if value.before is None else _as_float(value.before)))
            allowed = 10 * self._rtol * scale + rounded
        agrees = bool(error <= allowed + besides)
        scale = max(scale, besides / self._rtol if self._rtol else 0.0)
        return Found(event, agrees, error / scale if scale else np.inf, base, many)


def _array(value: Value | None) -> Array | None:
    return None if value is None else value.array


def _is_float(array: Array) -> bool:
    return array.dtype in FLOATS


def _as_float(array: Array) -> Array:
    return array.astype(np.float64)


def _amount(array: Array) -> float:
    return float(np.abs(array).sum())


def _norm(array: Array) -> float:
    return float(np.linalg.norm(_as_float(array).reshape(-1)))


def _spacing(dtype: np.dtype[Any]) -> float:
    """Return what a dtype can tell from 1."""
    return 2.0**-7 if is_bfloat16(dtype) else float(np.finfo(dtype).eps)
