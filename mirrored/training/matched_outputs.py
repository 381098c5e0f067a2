"""What `compile` is given for a model's outputs, matched with these: losses, weights, metrics.

They come in the outputs' structure, by their names, or as one for all.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from mirrored import _nest
from mirrored._numbers import as_real
from mirrored.training import losses
from mirrored.training import metrics as metrics_module
from mirrored.training.compiled_outputs import CompiledOutput, CompiledOutputs, Shape
from mirrored.training.losses import Loss
from mirrored.training.metrics import Mean


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
    criteria = [_loss(entry) for entry in _for_each("loss", loss, known, structure, shared=True)]
    weights = _weights(loss_weights, known, structure, criteria)
    outputs = [
        CompiledOutput(name if count > 1 else None, shape, criterion, weight)
        for name, shape, criterion, weight in zip(known, shapes, criteria, weights, strict=True)
    ]
    for argument, value, weighted in (
        ("metrics", metrics, False),
        ("weighted_metrics", weighted_metrics, True),
    ):
        for output, own in zip(
            outputs, _metrics_for_each(argument, value, known, structure), strict=True
        ):
            output.metrics += [
                (metrics_module.resolve(item, output.loss, output.shape), weighted) for item in own
            ]
    several = [(item, item.loss) for item in outputs if item.loss is not None]
    taken: set[str] = set()
    for output, output_loss in several if len(several) > 1 else []:
        plain = name = output.name or output_loss.name
        while name in taken:  # Outputs without names: Keras shows the last one of these.
            name = f"{plain}_{len(taken)}"
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
    for value in (metrics, weighted_metrics):
        for identifier in _nest.flatten(value):
            if identifier is not None and identifier not in metrics_module.AUTOMATIC:
                metrics_module.get(identifier)
    for identifier in _nest.flatten(loss_weights):
        if identifier is not None:
            _weight(identifier)


def _paths(structure: Any, names: Sequence[str] | None) -> dict[int, str | None]:
    """Return what each output is called, by its number: its keys, or its name in the model."""
    paths: dict[int, str | None] = {}

    def look(part: Any, path: tuple[Any, ...]) -> None:
        if isinstance(part, dict):
            for key, value in part.items():
                look(value, (*path, key))
        elif isinstance(part, list | tuple):
            for i, value in enumerate(part):
                look(value, (*path, i))
        else:
            paths[part] = _called(path, None if names is None else names[part])

    look(structure, ())
    return paths


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
            f"Training minimises one number a batch. Received: the loss {loss.name!r} with "
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
    flat = list(value)
    if len(flat) == count and not any(isinstance(item, list | tuple | dict) for item in flat):
        return flat
    return _like(argument, value, names, structure)


def _like(argument: str, value: Any, names: list[str | None], structure: Any) -> list[Any]:
    """Return the leaves of what was given in the structure of the outputs."""
    try:
        matched = _nest.map_structure(lambda number, leaf: (number, leaf), structure, value)
    except ValueError:
        return _refuse(argument, value, names)
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


def _refuse(argument: str, value: Any, names: list[str | None]) -> list[Any]:
    called = f", {names}" if any(names) else ""
    raise ValueError(
        f"`{argument}` should match the model's {len(names)} "
        f"output{'s' if len(names) > 1 else ''}{called}: give a list with an item for each, a "
        f"dict by their names, or the structure of the outputs. Received: {argument}={value!r}"
    )


def _weights(
    value: Any, names: list[str | None], structure: Any, criteria: list[Loss | None]
) -> list[float | None]:
    with_loss = [i for i, loss in enumerate(criteria) if loss is not None]
    if isinstance(value, list | tuple) and len(value) == len(with_loss) != len(names):
        spread: list[Any] = [None] * len(names)
        for i, weight in zip(with_loss, value, strict=True):
            spread[i] = weight
        value = spread
    each_one = _for_each("loss_weights", value, names, structure, shared=False)
    return [None if number is None else _weight(number) for number in each_one]


def _weight(value: Any) -> float:
    number = as_real(value)
    if number is None or not math.isfinite(number):
        raise ValueError(f"A weight of a loss is a finite number. Received: loss_weights={value!r}")
    return number


def _metrics_for_each(
    argument: str, value: Any, names: list[str | None], structure: Any
) -> list[list[Any]]:
    """Return the metrics of each output."""
    count = len(names)
    if value is None:
        return [[] for _ in names]
    if count == 1:
        return [[metric for metric in _nest.flatten(value) if metric is not None]]
    if not isinstance(value, list | tuple | dict):
        raise ValueError(
            f"Expected `{argument}` argument to be a list, tuple, or dict. Received instead: "
            f"{argument}={value!r} of type {type(value)}"
        )
    if isinstance(value, list | tuple) and len(value) == count:
        each_one: list[Any] = list(value)
    elif isinstance(value, dict) and value.keys() <= set(names):
        each_one = [value.get(name) for name in names]
    elif not value:
        each_one = [None] * count
    else:
        each_one = _refuse(argument, value, names)
    return [[metric for metric in _nest.flatten(entry) if metric is not None] for entry in each_one]
