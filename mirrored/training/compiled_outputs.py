"""A model's outputs, each with what `compile` was given for it: a loss, its weight, and metrics.

Targets and sample weights come in the outputs' structure, by their names, or one for all.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirrored import _nest
from mirrored._numbers import as_real
from mirrored.layers.shapes import is_shape
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
    """

    def __init__(self, outputs: Sequence[CompiledOutput], structure: Any) -> None:
        self.outputs = list(outputs)
        self._structure = structure
        self.named_metrics = dict(_by_log_name(self.outputs))

    @property
    def with_losses(self) -> list[CompiledOutput]:
        """The outputs that have a loss."""
        return [each for each in self.outputs if each.loss is not None]

    @property
    def trackers(self) -> list[Mean]:
        """The means of the outputs' losses, where several outputs have one."""
        return [each.tracker for each in self.outputs if each.tracker is not None]

    def flat(self, argument: str, given: Any) -> list[Any]:
        """Return what was given for each output, such as its target; None for what has none.

        Args:
            argument: What it is, for errors: "y" or "sample_weight".
            given: One value, for the only output or for all; or a structure like the model's
                outputs, which may leave out those without a loss; or a dict by outputs' names.

        Raises:
            ValueError: Its structure is another.
        """
        count = len(self.outputs)
        leaves = _nest.flatten(given)
        if len(leaves) == 1 and (count == 1 or (argument != "y" and leaves[0] is given)):
            return leaves * count
        if isinstance(given, dict) and not isinstance(self._structure, dict):
            named = {each.name: each for each in self.outputs}
            if given.keys() <= named.keys():
                return [given.get(each.name) for each in self.outputs]
            leaves = []
        if isinstance(given, dict) and isinstance(self._structure, dict):
            compared = {k for k, v in self._structure.items() if self._has_loss(v)}
            if compared <= given.keys() <= self._structure.keys():
                filled = {key: given.get(key, _none_for(v)) for key, v in self._structure.items()}
                leaves = _nest.flatten(filled)
        if len(leaves) == count:
            return leaves
        used = [i for i, each in enumerate(self.outputs) if each.loss is not None]
        if len(leaves) == len(used):
            found: list[Any] = [None] * count
            for i, leaf in zip(used, leaves, strict=True):
                found[i] = leaf
            return found
        what = "y_true" if argument == "y" else argument
        raise ValueError(
            f"{what} and y_pred have different structures.\n{what}: {_outlined(given)}\n"
            f"y_pred: {_outlined(self._structure)}\nGive `{argument}` in the structure of the "
            "model's outputs, or in a dict by their names."
        )

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
    paths = _paths(structure, names)
    known = [paths[i] for i in range(count)]
    found = [_loss(each) for each in _for_each("loss", loss, known, structure, shared=True)]
    weights = _weights(loss_weights, known, structure, found)
    outputs = [
        CompiledOutput(name if count > 1 else None, shape, one, weight)
        for name, shape, one, weight in zip(known, shapes, found, weights, strict=True)
    ]
    for argument, given, weighted in (
        ("metrics", metrics, False),
        ("weighted_metrics", weighted_metrics, True),
    ):
        for output, each in zip(
            outputs, _metrics_for_each(argument, given, known, structure), strict=True
        ):
            output.metrics += [
                (metrics_module.resolve(one, output.loss, output.shape), weighted) for one in each
            ]
    several = [(each, each.loss) for each in outputs if each.loss is not None]
    taken: set[str] = set()
    for output, one in several if len(several) > 1 else []:
        plain = name = output.name or one.name
        while name in taken:  # Outputs without names: Keras shows the last one of these.
            name = f"{plain}_{len(taken)}"
        taken.add(name)
        output.tracker = Mean(name=f"{name}_loss")
    return CompiledOutputs(outputs, structure)


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
            found = {key: number(part[key]) for key in _nest.sorted_keys(part)}
            return {key: found[key] for key in part}
        return _nest.rebuild(part, [number(each) for each in part])

    return number(shapes)


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
    for each in _nest.flatten(loss):
        _loss(each)
    for given in (metrics, weighted_metrics):
        for each in _nest.flatten(given):
            if each is not None and each not in metrics_module.AUTOMATIC:
                metrics_module.get(each)
    for each in _nest.flatten(loss_weights):
        if each is not None:
            _weight(each)


def _paths(structure: Any, names: Sequence[str] | None) -> dict[int, str | None]:
    """Return what each output is called, by its number: its keys, or its name in the model."""
    found: dict[int, str | None] = {}

    def look(part: Any, path: tuple[Any, ...]) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                look(value, (*path, key))
        elif isinstance(part, list | tuple):
            for i, value in enumerate(part):
                look(value, (*path, i))
        else:
            found[part] = _called(path, None if names is None else names[part])

    look(structure, ())
    return found


def _called(path: tuple[Any, ...], name: str | None) -> str | None:
    if not path or isinstance(path[-1], int):
        if name is None:
            return None
        path = (*path[:-1], name)
    return "/".join(map(str, path))


def _loss(identifier: Any) -> Loss | None:
    if identifier is None:
        return None
    loss = losses.get(identifier)
    if loss.reduction == losses.Reduction.NONE:
        raise ValueError(
            f"Training minimises one number a batch. Received: the loss {loss.name!r} with "
            "reduction='none'. Use 'sum_over_batch_size', the default, or 'sum'."
        )
    return loss


def _for_each(
    argument: str, given: Any, names: list[str | None], structure: Any, *, shared: bool
) -> list[Any]:
    """Return what an argument says for each output."""
    count = len(names)
    if given is None:
        return [None] * count
    if not isinstance(given, list | tuple | dict):
        return [given] * count if shared or count == 1 else _refuse(argument, given, names)
    if isinstance(given, dict):
        by_name = {name: i for i, name in enumerate(names) if name is not None}
        if isinstance(structure, dict) and not given.keys() <= by_name.keys():
            return _like(argument, given, names, structure)
        unknown = given.keys() - by_name.keys()
        if unknown or (not isinstance(structure, dict) and shared and len(given) != count):
            raise ValueError(
                f"Expected keys {list(by_name)} in {argument} dict, but found "
                f"{argument}.keys()={list(given)}"
            )
        return [given.get(name) for name in names]
    flat = list(given)
    if len(flat) == count and not any(isinstance(each, list | tuple | dict) for each in flat):
        return flat
    return _like(argument, given, names, structure)


def _like(argument: str, given: Any, names: list[str | None], structure: Any) -> list[Any]:
    """Return the leaves of what was given in the structure of the outputs."""
    try:
        matched = _nest.map_structure(lambda number, each: (number, each), structure, given)
    except ValueError:
        return _refuse(argument, given, names)
    pairs = dict(_pairs(matched, structure))
    return [pairs[i] for i in range(len(names))]


def _pairs(matched: Any, structure: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(structure, dict):
        for key in structure:
            yield from _pairs(matched[key], structure[key])
    elif isinstance(structure, list | tuple):
        for part, inner in zip(matched, structure, strict=True):
            yield from _pairs(part, inner)
    else:
        yield matched


def _refuse(argument: str, given: Any, names: list[str | None]) -> list[Any]:
    called = f", {names}" if any(names) else ""
    raise ValueError(
        f"`{argument}` should match the model's {len(names)} "
        f"output{'s' if len(names) > 1 else ''}{called}: give a list with an item for each, a "
        f"dict by their names, or the structure of the outputs. Received: {argument}={given!r}"
    )


def _weights(
    given: Any, names: list[str | None], structure: Any, found: list[Loss | None]
) -> list[float | None]:
    with_loss = [i for i, each in enumerate(found) if each is not None]
    if isinstance(given, list | tuple) and len(given) == len(with_loss) != len(names):
        spread: list[Any] = [None] * len(names)
        for i, each in zip(with_loss, given, strict=True):
            spread[i] = each
        given = spread
    each_one = _for_each("loss_weights", given, names, structure, shared=False)
    return [None if each is None else _weight(each) for each in each_one]


def _weight(value: Any) -> float:
    number = as_real(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"A weight of a loss is a finite number. Received: loss_weights={value!r}")
    return number


def _metrics_for_each(
    argument: str, given: Any, names: list[str | None], structure: Any
) -> list[list[Any]]:
    """Return the metrics of each output."""
    count = len(names)
    if given is None:
        return [[] for _ in names]
    if count == 1:
        return [[each for each in _nest.flatten(given) if each is not None]]
    if not isinstance(given, list | tuple | dict):
        raise ValueError(
            f"Expected `{argument}` argument to be a list, tuple, or dict. Received instead: "
            f"{argument}={given!r} of type {type(given)}"
        )
    if isinstance(given, list | tuple) and len(given) == count:
        each_one: list[Any] = list(given)
    elif isinstance(given, dict) and given.keys() <= set(names):
        each_one = [given.get(name) for name in names]
    elif not given:
        each_one = [None] * count
    else:
        each_one = _refuse(argument, given, names)
    return [[one for one in _nest.flatten(each) if one is not None] for each in each_one]


def _by_log_name(outputs: Sequence[CompiledOutput]) -> Iterator[tuple[str, Metric]]:
    """Yield the metrics by what logs call them, as Keras does: acc, weighted_acc, acc_1, b_acc."""
    taken = {"loss"}
    for weighted in (False, True):
        for output in outputs:
            for metric in (each for each, weighs in output.metrics if weighs is weighted):
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


def _none_for(part: Any) -> Any:
    return _nest.map_structure(lambda _: None, part)


def _outlined(structure: Any) -> Any:
    return _nest.map_structure(lambda _: "*", structure)
