"""Jacobians: one backpropagation for each element of the target."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored.autodiff.backpropagation import on_device_of, zeros_for
from mirrored.ops.conversion import from_host
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor

# From a gradient that flows into the target, and ids, to the gradients by these.
WayBack = Callable[[Tensor, set[int]], dict[int, Tensor]]


def jacobian_of(back: WayBack, target: Any, sources: Sequence[Any]) -> list[Tensor | None]:
    """Return for each source the gradients of a target's elements; None where there are none.

    Args:
        back: The way back from the target.
        target: The target.
        sources: The sources.
    """
    wanted = {tensor._id for tensor in sources}
    rows: list[dict[int, Tensor]] = []
    if target.dtype in FLOATS:
        # Of a target without elements, too, something is to be known: what it depends on.
        for i in range(target.size or 1):
            rows.append(back(_one_at(target, i, 1), wanted))
    results: list[Tensor | None] = []
    for source in sources:
        parts = [row[source._id] for row in rows if source._id in row]
        results.append(_stacked(parts, target, source) if parts else None)
    return results


def _stacked(parts: Sequence[Tensor], target: Any, source: Any) -> Tensor:
    if not target.size:
        return zeros_for(source, target.shape)
    with on_device_of(source):
        return ops.reshape(ops.stack(parts), (*target.shape, *source.shape))


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
    batch, inner = target.shape[0], source.shape[1:]
    shape = (*target.shape, *inner)
    if not target.size or target.dtype not in FLOATS:
        return _zeros(target, shape)
    way, wanted = back(target), {source._id}
    count = target.size // batch
    columns = [way(_one_at(target, i, batch), wanted).get(source._id) for i in range(count)]
    parts = [part for part in columns if part is not None]
    if not parts:
        return _zeros(target, shape)
    with on_device_of(source):
        return ops.reshape(ops.stack(parts, axis=1), shape)


def _zeros(target: Any, shape: Sequence[int]) -> Tensor:
    with on_device_of(target):
        return ops.zeros(shape, target.dtype)


def _one_at(target: Any, position: int, rows: int) -> Tensor:
    """Return a gradient for a target: one at a position of each of its rows, else zeros."""
    ones = np.zeros(target.shape, target.dtype)
    if ones.size:
        ones.reshape(rows, -1)[:, position] = 1
    with on_device_of(target):
        return from_host(ones)
