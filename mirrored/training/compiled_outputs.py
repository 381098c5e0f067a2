"""A model's outputs, each with what `compile` was given for it: a loss, its weight, and metrics.

Targets and sample weights come in the outputs' structure, by their names, or one for all.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirrored import _nest
from mirrored.layers.shapes import is_shape
from mirrored.training.losses import Loss
from mirrored.training.metrics import Mean, Metric

Shape = tuple[int | None, ...]


@dataclass
class CompiledOutput:
    """One output, with what it is compared by.

    Attributes:
        name: What logs call it; None where it is the only one, or has no name.
        shape: Its shape, (None, ...).
        loss: Its loss; None where it has none.
        weight: What its loss counts by in the model's; None: as it is.
        metrics: Its metrics, each with whether sample weights count.
        tracker: The mean of its loss, where several outputs have one.
    """

    name: str | None
    shape: Shape
    loss: Loss | None
    weight: float | None
    metrics: list[tuple[Metric, bool]] = field(default_factory=list)
    tracker: Mean | None = None


# An output with its target, its prediction and its weights.
OutputPart = tuple[CompiledOutput, Any, Any, Any]


def metrics_of(parts: Sequence[OutputPart]) -> Iterator[tuple[Any, tuple[Any, Any, Any]]]:
    """Yield the metrics in the order of logs, each with target, prediction and weights, if any.

    Args:
        parts: The outputs' parts.
    """
    for weighted in (False, True):
        for output, target, prediction, weights in parts:
            for metric, weighs in output.metrics:
                if weighs is weighted:
                    yield metric, (target, prediction, weights if weighs else None)


class CompiledOutputs:
    """All outputs of a model, flat, in the order of its outputs' leaves.

    Args:
        outputs: The outputs.
        structure: How they lie in what the model returns: numbers in place of tensors.
        names: What each is called, the only one too; None: it has no name.
    """

    def __init__(
        self, outputs: Sequence[CompiledOutput], structure: Any, names: Sequence[str | None]
    ) -> None:
        self.outputs = list(outputs)
        self._structure = structure
        self._names = list(names)
        self.named_metrics = dict(_by_log_name(self.outputs))

    @property
    def with_losses(self) -> list[CompiledOutput]:
        """The outputs that have a loss."""
        return [output for output in self.outputs if output.loss is not None]

    @property
    def trackers(self) -> list[Mean]:
        """The means of the outputs' losses, where several outputs have one."""
        return [output.tracker for output in self.outputs if output.tracker is not None]

    def flat(self, argument: str, value: Any) -> list[Any]:
        """Return what was given for each output, such as its target; None for what has none.

        Args:
            argument: What it is, for errors: "y" or "sample_weight".
            value: One value, for the only output or for all; or a structure like the model's
                outputs, which may leave out those without a loss; or a dict by outputs' names.

        Raises:
            ValueError: Its structure is another.
        """
        if len(self.outputs) == 1 and not isinstance(value, dict | list | tuple):
            return [value]
        leaves = self._named(value) if isinstance(value, dict) else self._in_order(argument, value)
        if leaves is not None:
            return leaves
        label = "y_true" if argument == "y" else argument
        raise ValueError(
            f"{label} and y_pred have different structures.\n{label}: {_outlined(value)}\n"
            f"y_pred: {_outlined(self._structure)}\nGive `{argument}` in the structure of the "
            "model's outputs, or in a dict by their names."
        )

    def _in_order(self, argument: str, value: Any) -> list[Any] | None:
        count = len(self.outputs)
        leaves = _nest.flatten(value)
        if len(leaves) == 1 and (count == 1 or (argument != "y" and leaves[0] is value)):
            return leaves * count
        if len(leaves) == count:
            return leaves if _names_agree(value, self._structure) else None
        used = [i for i, output in enumerate(self.outputs) if output.loss is not None]
        if len(leaves) != len(used):
            return None
        values: list[Any] = [None] * count
        for i, leaf in zip(used, leaves, strict=True):
            values[i] = leaf
        return values

    def _named(self, value: dict[str, Any]) -> list[Any] | None:
        """Return what a dict has for each output; None where it has others, or lacks some."""
        structure = self._structure
        if not isinstance(structure, dict):
            named: dict[Any, Any] = value
            known = named.keys() <= set(self._names)
            return [named.get(name) for name in self._names] if known else None
        compared = {k for k, v in structure.items() if self._has_loss(v)}
        if not compared <= value.keys() <= structure.keys():
            return None
        filled = {
            key: _none_for(v) if value.get(key) is None else value[key]
            for key, v in structure.items()
        }
        leaves = _nest.flatten(filled)
        agree = len(leaves) == len(self.outputs) and _names_agree(filled, structure)
        return leaves if agree else None

    def _has_loss(self, part: Any) -> bool:
        return any(self.outputs[i].loss is not None for i in _nest.flatten(part))

    def parts(self, y: Any, y_pred: Any, sample_weight: Any) -> list[OutputPart]:
        """Return each output with its target, its prediction and its weights.

        Args:
            y: The targets.
            y_pred: What the model returned.
            sample_weight: The weights, or None.

        Raises:
            ValueError: The structures differ, or an output with a loss has no target.
        """
        predictions = _nest.flatten(y_pred)
        targets = self.flat("y", y)
        weights = self.flat("sample_weight", sample_weight)
        parts = list(zip(self.outputs, targets, predictions, weights, strict=True))
        for part in parts:
            if part[1] is None and (part[0].loss is not None or part[0].metrics):
                raise ValueError(
                    "An output with a loss or metrics needs targets. Received: none for the output "
                    f"{part[0].name or 0!r}. Give them in `y`."
                )
        return parts


def numbered(shapes: Any) -> Any:
    """Return a structure of shapes with their numbers in their places, in the order of leaves.

    Args:
        shapes: A shape, or a structure of shapes.

    Example:
        >>> numbered({"b": (None, 1), "a": [(None, 2), (None,)]})
        {'b': 2, 'a': [0, 1]}
    """
    count = itertools.count()

    def number(part: Any) -> Any:
        if is_shape(part):
            return next(count)
        if isinstance(part, dict):
            numbers = {key: number(part[key]) for key in _nest.sorted_keys(part)}
            return {key: numbers[key] for key in part}
        return _nest.rebuild(part, [number(item) for item in part])

    return number(shapes)


def _by_log_name(outputs: Sequence[CompiledOutput]) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics by what logs call them, as Keras does: acc, weighted_acc, acc_1, b_acc."""
    taken = {"loss"}
    for weighted in (False, True):
        for output in outputs:
            for metric in (candidate for candidate, weighs in output.metrics if weighs is weighted):
                prefix = "" if output.name is None else f"{output.name}_"
                plain = f"{prefix}{metric.name}"
                if weighted and plain in taken:
                    plain = f"{prefix}weighted_{metric.name}"
                name, number = plain, 0
                while name in taken:
                    number += 1
                    name = f"{plain}_{number}"
                taken.add(name)
                yield name, metric


def _names_agree(value: Any, structure: Any) -> bool:
    """Return whether dicts have the names that stand in their places."""
    if isinstance(value, dict):
        alike = isinstance(structure, dict) and value.keys() == structure.keys()
        return alike and all(_names_agree(value[key], structure[key]) for key in value)
    if isinstance(value, list | tuple) and isinstance(structure, list | tuple):
        return all(_names_agree(*pair) for pair in zip(value, structure, strict=False))
    return True


def _none_for(part: Any) -> Any:
    return _nest.map_structure(lambda _: None, part)


def _outlined(structure: Any) -> Any:
    return _nest.map_structure(lambda _: "*", structure)
