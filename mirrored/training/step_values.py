"""The values of one step of training, run op by op, and which of two steps' values differ.

Values are compared as wholes: single elements of what is nearly zero may differ by much.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored._contexts import Within
from mirrored.autodiff.tape import GradientsMade, telling_of_gradients
from mirrored.distribute.context import replica_number
from mirrored.distribute.global_batch import global_batch
from mirrored.layers.layer import walk
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import active_recorder
from mirrored.ops.spec import FLOATS, is_bfloat16
from mirrored.optim import Optimizer
from mirrored.optim.hyperparameters import check_number
from mirrored.training.run_plan import RunPlan
from mirrored.variables import Variable

# What an event is of, with how a text names it.
NAMES = {
    "output": "the output of the layer {}",
    "loss": "the loss that is differentiated",
    "gradient": "the gradient of {}",
    "log": "{} in the logs",
    "weight": "the weight {}",
    "state": "the state {}",
    "slot": "the optimizer's slot {}",
    "metric": "the metric's variable {}",
}


class Event(NamedTuple):
    """One thing that a step computes.

    Attributes:
        kind: What it is; see `NAMES`.
        name: What that is of.
        number: How many of the same kind and name came before.
    """

    kind: str
    name: str
    number: int = 0

    def __str__(self) -> str:
        again = f" (number {self.number + 1})" if self.number else ""
        return NAMES[self.kind].format(repr(self.name)) + again


class StepNotes:
    """Records the values that a model computes in a step.

    Args:
        plan: The plan of the step; the model's layers and optimizers notify this from now on.
        sizes: The number of examples of each replica's shard.
    """

    def __init__(self, plan: RunPlan, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._weighs = plan.is_custom("train")  # Else a loss is the shard's part of the whole one.
        self._parts: dict[Event, dict[int, np.ndarray[Any, Any]]] = {}
        self._counts: Counter[tuple[str, str, int]] = Counter()
        for layer, _ in plan.layers:
            if layer is not plan.model:
                self._listen_to_layer(layer)
        for optimizer in plan.optimizers:
            self._listen_to_optimizer(optimizer)

    def taken(self) -> Within:
        """Note the losses that tapes differentiate in this context."""
        return telling_of_gradients(self._note_losses)

    def values(self) -> dict[Event, np.ndarray[Any, Any]]:
        """Return the replicas' values, put together, in the order in which they were computed."""
        arrays: dict[Event, np.ndarray[Any, Any]] = {}
        for event, parts in self._parts.items():
            value = self._whole(event, parts)
            if value is not None:
                arrays[event] = value
        return arrays

    def _whole(
        self, event: Event, parts: dict[int, np.ndarray[Any, Any]]
    ) -> np.ndarray[Any, Any] | None:
        if event.kind == "gradient":
            return parts[0]
        shards = {replica: part for replica, part in parts.items() if self._sizes[replica]}
        if event.kind == "loss":
            return np.asarray(sum(shards.values()))
        if any(part.shape[:1] != (self._sizes[replica],) for replica, part in shards.items()):
            return None  # It has no row an example, or rows of several batches.
        rows = [shards[replica] for replica in sorted(shards)]
        alike = {row.shape[1:] for row in rows}
        return np.concatenate(rows) if len(alike) == 1 else None

    def _note(self, kind: str, name: str, replica: int, value: Any) -> None:
        if active_recorder() is not None or not isinstance(value, Tensor):
            return  # Within a recorded function there are no values.
        number = self._counts[kind, name, replica]
        self._counts[kind, name, replica] += 1
        self._parts.setdefault(Event(kind, name, number), {})[replica] = np.asarray(value.numpy())

    def _note_losses(self, targets: list[Any], sources: list[Any]) -> GradientsMade:
        replica = replica_number()
        # The loss of the penalties is not noted: `fit` takes it once for all replicas.
        is_noted = self._weighs or not self._counts["loss", "", replica]
        trains = any(isinstance(source, Variable) and source.trainable for source in sources)

        def note(gradients: list[Any]) -> None:
            batch = global_batch()
            weight = batch.loss_weight(replica) if self._weighs and batch is not None else 1.0
            for target in targets if is_noted and trains else ():
                if is_tensor(target) and target.shape == ():
                    self._note("loss", "", replica, target * weight)

        return note

    def _listen_to_layer(self, layer: Any) -> None:
        call = layer.call

        def noted(*args: Any, **kwargs: Any) -> Any:
            outputs = call(*args, **kwargs)
            for output in _nest.flatten(outputs):
                self._note("output", layer.name, replica_number(), output)
            return outputs

        vars(layer)["call"] = noted

    def _listen_to_optimizer(self, optimizer: Optimizer) -> None:
        prepare = optimizer.prepare

        def noted(variables: Any, gradients: Any, among: Any = None) -> Any:
            for number, variable in enumerate(variables):
                self._note("gradient", plain_name(variable), 0, gradients.values[0][number])
            return prepare(variables, gradients, among)

        vars(optimizer)["prepare"] = noted


def plain_name(variable: Variable) -> str:
    """Return the name of a variable as users gave it.

    Args:
        variable: The variable.
    """
    return variable.name.removesuffix(":0")


Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Value:
    """A value that a step computed.

    Attributes:
        array: The value.
        before: What it was before the step, of variables that were there.
        weight: The name of the weight by whose gradient it was updated.
    """

    array: Array
    before: Array | None = None
    weight: str | None = None


@dataclass(frozen=True)
class Gap:
    """How far two steps agree in one thing.

    Attributes:
        event: The thing.
        agrees: Whether they do.
        difference: By what part of its size it differs.
        base: What the one step made; None: nothing.
        many: What the other one made.
    """

    event: Event
    agrees: bool
    difference: float
    base: Array | None = None
    many: Array | None = None

    def values(self, replicas: int) -> str:
        """Return both values as a text, of arrays those elements that are farthest apart.

        Args:
            replicas: How many replicas the other step ran on.
        """
        there = f"on {replicas} replicas"
        if self.base is None or self.many is None:
            return f"it is only {there if self.base is None else 'on one device'}"
        if self.base.shape != self.many.shape:
            return f"it has the shape {self.base.shape} on one device, {self.many.shape} {there}"
        apart = np.abs(_as_float(self.many) - _as_float(self.base))
        place = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart)), apart.shape)
        at = f"at {[int(index) for index in place]} " if place else ""
        return f"{at}{self.base[place]:.6g} on one device, {self.many[place]:.6g} {there}"


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

    def differences(self, base: dict[Event, Value], many: dict[Event, Value]) -> list[Gap]:
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
        gaps: list[Gap] = []
        for event in {**base, **many}:
            value, other = base.get(event), many.get(event)
            if value is None or other is None:
                arrays = [None if value is None else value.array for value in (value, other)]
                gaps.append(Gap(event, False, np.inf, *arrays))
                continue
            if value.weight is not None and sizes.get(value.weight, np.inf) <= rounding:
                continue
            besides = rounding if event.kind == "gradient" else 0.0
            gaps.append(self._difference(event, value, other, besides))
        return gaps

    def _difference(self, event: Event, value: Value, other: Value, besides: float) -> Gap:
        base, many = value.array, other.array
        if base.shape != many.shape or base.dtype not in FLOATS:
            agrees = np.array_equal(base, many)
            return Gap(event, agrees, 0.0 if agrees else np.inf, base, many)
        if np.array_equal(base, many, equal_nan=True):
            return Gap(event, True, 0.0, base, many)
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
        return Gap(event, agrees, error / scale if scale else np.inf, base, many)


def _as_float(array: Array) -> Array:
    return array.astype(np.float64)


def _amount(array: Array) -> float:
    return float(np.abs(array).sum())


def _norm(array: Array) -> float:
    return float(np.linalg.norm(_as_float(array).reshape(-1)))


def _spacing(dtype: np.dtype[Any]) -> float:
    """Return the distance from 1 to the next number of a dtype."""
    return 2.0**-7 if is_bfloat16(dtype) else float(np.finfo(dtype).eps)
