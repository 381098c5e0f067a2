"""A model's outputs, each with what `compile` was given for it: a loss, its weight, and metrics.

Targets and sample weights come in the outputs' structure, by their names, or one for all.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mirrored import _nest
from mirrored._naming import free_name
from mirrored._numbers import as_real
from mirrored.layers.shapes import map_shapes
from mirrored.training import losses
from mirrored.training import metrics as metrics_module
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

    @cached_property  # Is not in pickles of earlier versions.
    def trackers(self) -> list[Mean]:
        """The means of the outputs' losses, if several outputs have one."""
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
            f"{label} and y_pred have different structures.\n{label}: {_outlined(value)}\ny_pred: "
            f"{_outlined(self._structure)}\nPass `{argument}` with the structure of the model's "
            "outputs, or as a dict keyed by output name."
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
        values = dict(zip(used, leaves, strict=True))
        return [values.get(i) for i in range(count)]

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
            key: _nest.map_structure(lambda _: None, v) if value.get(key) is None else value[key]
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
                    "An output with a loss or metrics needs targets. Received: none for the "
                    f"output {part[0].name or 0!r}. Pass them in `y`."
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
    return _nest.pack_like(map_shapes(lambda _: 0, shapes), itertools.count())


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
                name = free_name(plain, taken)
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


def _outlined(structure: Any) -> Any:
    return _nest.map_structure(lambda _: "*", structure)


def compile_outputs(
    shapes: Sequence[Shape],
    names: Sequence[str] | None,
    structure: Any,
    loss: Any,
    loss_weights: Any,
    metrics: Any,
    weighted_metrics: Any,
) -> CompiledOutputs:
    """Return what `compile` was given for each output; metrics are made in the scope in force.

    Args:
        shapes: The outputs' shapes, (None, ...), flat.
        names: Their names; None: they have none but their keys in dicts.
        structure: How they lie in what the model returns: numbers in place of tensors.
        loss: One loss for all, or one an output in a list, a dict by names or the structure.
        loss_weights: As `loss`; numbers.
        metrics: For one output a list; else a list an output, or a dict by names.
        weighted_metrics: Likewise.

    Raises:
        ValueError: A name is unknown, or something is given for an output that there is not.
    """
    count = len(shapes)
    known = _paths(structure, names)
    criteria = [_loss(entry) for entry in _for_each("loss", loss, known, structure, shared=True)]
    weights = _weights(loss_weights, known, structure, criteria)
    outputs = [
        CompiledOutput(name if count > 1 else None, shape, criterion, weight)
        for name, shape, criterion, weight in zip(known, shapes, criteria, weights, strict=True)
    ]
    for argument, value in (("metrics", metrics), ("weighted_metrics", weighted_metrics)):
        of_outputs = _metrics_for_each(argument, value, known)
        for output, identifiers in zip(outputs, of_outputs, strict=True):
            for item in identifiers:
                metric = metrics_module.resolve(item, output.loss, output.shape)
                output.metrics.append((metric, argument == "weighted_metrics"))
    several = [(item, item.loss) for item in outputs if item.loss is not None]
    taken: set[str] = set()
    for output, output_loss in several if len(several) > 1 else []:
        # Outputs without names: Keras shows the last one of these.
        name = free_name(output.name or output_loss.name, taken, len(taken))
        taken.add(name)
        output.tracker = Mean(name=f"{name}_loss")
    return CompiledOutputs(outputs, structure, known)


def check_names(loss: Any, loss_weights: Any, metrics: Any, weighted_metrics: Any) -> None:
    """Look up all that has a name, while it is not known yet what the outputs are.

    Args:
        loss: As for `compile_outputs`, as all others.
        loss_weights: Numbers.
        metrics: Metrics.
        weighted_metrics: Metrics.

    Raises:
        ValueError: A name is unknown.
    """
    for identifier in _nest.flatten(loss):
        _loss(identifier)
    for identifier in _nest.flatten([metrics, weighted_metrics]):
        if identifier is not None and identifier not in metrics_module.AUTOMATIC:
            metrics_module.get(identifier)
    for identifier in _nest.flatten(loss_weights):
        if identifier is not None:
            _weight(identifier)


def _paths(structure: Any, names: Sequence[str] | None) -> list[str | None]:
    """Return what each output is called, in their order: its keys, or its name in the model."""
    paths = {number: path for path, number in _nest.paths(structure)}
    return [_called(paths[i], None if names is None else names[i]) for i in range(len(paths))]


def _called(path: tuple[Any, ...], name: str | None) -> str | None:
    if not path or isinstance(path[-1], int):
        if name is None:
            return None
        path = (*path[:-1], name)
    return "/".join(map(str, path))


def _loss(identifier: Any) -> Loss | None:
    if identifier is None:
        return None
    loss = losses.as_loss(identifier)
    if loss.reduction == losses.Reduction.NONE:
        raise ValueError(
            f"Training minimises one number per batch. Received: the loss {loss.name!r} with "
            "reduction='none'. Use 'sum_over_batch_size', the default, or 'sum'."
        )
    return loss


def _for_each(
    argument: str, value: Any, names: list[str | None], structure: Any, *, shared: bool
) -> list[Any]:
    """Return what an argument says for each output."""
    count = len(names)
    if value is None:
        return [None] * count
    if not isinstance(value, list | tuple | dict):
        return [value] * count if shared or count == 1 else _refuse(argument, value, names)
    if isinstance(value, dict):
        by_name = {name: i for i, name in enumerate(names) if name is not None}
        if isinstance(structure, dict) and not value.keys() <= by_name.keys():
            return _like(argument, value, names, structure)
        unknown = value.keys() - by_name.keys()
        if unknown or (not isinstance(structure, dict) and shared and len(value) != count):
            raise ValueError(
                f"Expected keys {list(by_name)} in {argument} dict, but found "
                f"{argument}.keys()={list(value)}"
            )
        return [value.get(name) for name in names]
    if len(value) == count and not any(isinstance(item, list | tuple | dict) for item in value):
        return list(value)
    return _like(argument, value, names, structure)


def _like(argument: str, value: Any, names: list[str | None], structure: Any) -> list[Any]:
    """Return the leaves of what was given in the structure of the outputs."""
    try:
        return _nest.flatten(_nest.map_structure(lambda _, leaf: leaf, structure, value))
    except ValueError:
        return _refuse(argument, value, names)


def _refuse(argument: str, value: Any, names: list[str | None]) -> list[Any]:
    called = f", {names}" if any(names) else ""
    raise ValueError(
        f"`{argument}` should match the model's {len(names)} "
        f"output{'s' if len(names) > 1 else ''}{called}: pass a list with one item per output, a "
        "dict keyed by output name, or the structure of the outputs. Received: "
        f"{argument}={value!r}"
    )


def _weights(
    value: Any, names: list[str | None], structure: Any, criteria: list[Loss | None]
) -> list[float | None]:
    with_loss = [i for i, loss in enumerate(criteria) if loss is not None]
    if isinstance(value, list | tuple) and len(value) == len(with_loss) != len(names):
        by_place = dict(zip(with_loss, value, strict=True))
        value = [by_place.get(i) for i in range(len(names))]
    each_one = _for_each("loss_weights", value, names, structure, shared=False)
    return [None if number is None else _weight(number) for number in each_one]


def _weight(value: Any) -> float:
    number = as_real(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"A loss weight must be a finite number. Received: loss_weights={value!r}")
    return number


def _metrics_for_each(argument: str, value: Any, names: list[str | None]) -> list[list[Any]]:
    """Return the metrics of each output."""
    each_one: list[Any]
    if value is None or len(names) == 1:
        each_one = [value] * len(names)
    elif not isinstance(value, list | tuple | dict):
        raise ValueError(
            f"Expected `{argument}` argument to be a list, tuple, or dict. Received instead: "
            f"{argument}={value!r} of type {type(value)}"
        )
    elif isinstance(value, dict) and value.keys() <= set(names):
        each_one = [value.get(name) for name in names]
    elif isinstance(value, list | tuple) and len(value) in (0, len(names)):
        each_one = list(value) or [None] * len(names)
    else:
        each_one = _refuse(argument, value, names)
    return [[metric for metric in _nest.flatten(entry) if metric is not None] for entry in each_one]
