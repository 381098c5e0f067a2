"""Backpropagation: from the gradients of outputs to the gradients of inputs.

Tapes note the way forward as nodes; here each node's rule is asked, from the last to the first.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.devices import Device
from mirrored.devices import device as device_scope
from mirrored.ops.conversion import adopt, from_host
from mirrored.ops.hooks import CustomCall
from mirrored.ops.op import OpCall
from mirrored.ops.shaping import sum_to_shape
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor


@dataclass(eq=False, slots=True)
class Read:
    """The value of a variable when it was read.

    Attributes:
        variable: The variable.
        output: What was read.
    """

    variable: Any
    output: Tensor


Node = OpCall | Read | CustomCall


def backpropagate(
    nodes: list[Node], grads: dict[int, list[Tensor]], wanted: set[int]
) -> dict[int, Tensor]:
    """Walk the nodes backwards and return the gradients for the wanted ids.

    Nodes are taken off the list, so that what only they hold is let go of on the way.

    Args:
        nodes: What was computed, the latest last.
        grads: By id of a result the gradients that flow into it from outside.
        wanted: Ids of tensors and variables.
    """
    by_id: dict[int, Tensor] = {}
    device: Device | None = None
    with ExitStack() as scope:
        while nodes:
            node = nodes.pop()
            if isinstance(node, CustomCall):
                _through_custom_call(node, grads, wanted, by_id)
                continue
            key = node.output._id
            parts = grads.pop(key, None)
            if parts is None:
                continue
            if node.output._device is not device:  # Most nodes have that of the one before.
                scope.close()
                device = node.output._device
                scope.enter_context(device_scope(device))
            g = _summed(parts)
            if key in wanted:
                by_id[key] = g
            if isinstance(node, Read):
                grads.setdefault(node.variable._id, []).append(g)
                continue
            rule = node.op.gradient
            results = rule(node, g) if rule is not None else ()
            for tensor, needed, result in zip(node.inputs, node.needed, results, strict=True):
                if needed and result is not None:
                    part = result() if callable(result) else result
                    if part._spec.shape != tensor._spec.shape:
                        part = sum_to_shape(part, tensor._spec.shape)
                    grads.setdefault(tensor._id, []).append(part)
    for key in sorted(wanted & grads.keys()):  # In one order in all processes.
        by_id[key], *others = grads[key]
        if others:
            with on_device_of(by_id[key]):
                by_id[key] = _summed(grads[key])
    return by_id


def _through_custom_call(
    node: CustomCall, grads: dict[int, list[Tensor]], wanted: set[int], by_id: dict[int, Tensor]
) -> None:
    """Call a function's custom rule with a gradient per result: zeros if there is none.

    Args:
        node: The call.
        grads: The gradients by id; those of its results are taken out, those of its inputs added.
        wanted: The ids whose gradients are kept.
        by_id: The gradients so far, by the ids of tensors.
    """
    parts = [grads.pop(tensor._id, None) for tensor in node.outputs]
    if not any(parts):
        return
    with on_device_of(node.outputs[0]):
        upstream = []
        for output, summands in zip(node.outputs, parts, strict=True):
            g = ops.zeros_like(output) if summands is None else _summed(summands)
            if summands is not None and output._id in wanted:
                by_id[output._id] = g
            upstream.append(g)
        for source, result in zip(node.inputs, node.rule(upstream), strict=True):
            if source is not None and result is not None:
                grads.setdefault(source._id, []).append(adopt(result, source.dtype))


def zeros_for(value: Any, shape: Sequence[int]) -> Tensor:
    """Return zeros on the device of a tensor or variable and of its dtype, without reading it.

    Args:
        value: The tensor or variable.
        shape: The shape of the zeros.
    """
    with on_device_of(value):
        return ops.zeros(shape, value.dtype)


def on_device_of(value: Any) -> AbstractContextManager[None]:
    """Return the scope of the device of `value`, on which its gradient is computed."""
    return device_scope(value._device if isinstance(value, Tensor) else value.device)


def _summed(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.add_n(parts)


# From a gradient that flows into the target, and ids, to the gradients by these.
WayBack = Callable[[Tensor, set[int]], dict[int, Tensor]]


def jacobian_of(back: WayBack, target: Any, sources: Sequence[Any]) -> list[Tensor | None]:
    """Return the gradients of a target's elements by every source; None if there are none.

    Args:
        back: The way back from the target.
        target: The target.
        sources: The sources.
    """
    wanted = {tensor._id for tensor in sources}
    # Of a target without elements, too, something is to be known: what it depends on.
    count = (target.size or 1) if target.dtype in FLOATS else 0
    rows = [back(_one_at(target, i, 1), wanted) for i in range(count)]
    results: list[Tensor | None] = []
    for source in sources:
        parts = [row[source._id] for row in rows if source._id in row]
        results.append(_stacked(parts, target, source) if parts else None)
    return results


def _stacked(parts: Sequence[Tensor], target: Any, source: Any) -> Tensor:
    shape = (*target.shape, *source.shape)
    if not target.size:
        return zeros_for(source, shape)
    with on_device_of(source):
        return ops.reshape(ops.stack(parts), shape)


def batch_jacobian_of(back: Callable[[Any], WayBack], target: Any, source: Any) -> Tensor:
    """Return the gradients of each example's target by the same example's source.

    Args:
        back: From the target to the way back from it.
        target: A tensor of shape (batch, ...).
        source: A tensor or variable of shape (batch, ...).

    Raises:
        ValueError: The shapes are others.
    """
    for tensor in (target, source):
        if tensor.ndim < 2:
            raise ValueError(
                f"Shape {tensor.shape} must have rank at least 2. A batch_jacobian is of examples, "
                "by the first axis; use `jacobian` for a tensor without them."
            )
    if target.shape[0] != source.shape[0]:
        raise ValueError(
            f"Need first dimension of target shape ({target.shape}) and source shape "
            f"({source.shape}) to match."
        )
    batch, shape = target.shape[0], (*target.shape, *source.shape[1:])
    if not target.size or target.dtype not in FLOATS:
        return zeros_for(target, shape)
    way, wanted = back(target), {source._id}
    count = target.size // batch
    columns = [way(_one_at(target, i, batch), wanted).get(source._id) for i in range(count)]
    parts = [part for part in columns if part is not None]
    if not parts:
        return zeros_for(target, shape)
    with on_device_of(source):
        return ops.reshape(ops.stack(parts, axis=1), shape)


def _one_at(target: Any, position: int, rows: int) -> Tensor:
    """Return a gradient for a target: 1 at one position of every row, 0 elsewhere."""
    ones = np.zeros(target.shape, target.dtype)
    if ones.size:
        ones.reshape(rows, -1)[:, position] = 1
    with on_device_of(target):
        return from_host(ones)
