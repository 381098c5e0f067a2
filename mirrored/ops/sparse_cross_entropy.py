"""The cross-entropy of classes given by index, fused with the softmax in front of it.

Few classes are laid out class by class: a maximum or a sum over them is then a few passes over long
rows instead of one short loop for every example, which takes five times as long.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mirrored._arguments import explained
from mirrored.devices import place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, transfer
from mirrored.ops.creation import FILL, ONES_LIKE
from mirrored.ops.cross_entropy import infer_rows, softmax_curvature
from mirrored.ops.elementwise import DIV, MUL, SUB
from mirrored.ops.op import Op, OpCall, register
from mirrored.ops.powers import EXP, LOG
from mirrored.ops.reduction import MAX, SUM
from mirrored.ops.shaping import RESHAPE, TRANSPOSE
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    TensorSpec,
    check_dtype,
    int64,
    shape_text,
)
from mirrored.ops.tensor import Tensor

Grads = Sequence[Tensor | None]

_FEW = 32  # Up to so many classes a copy that turns the logits costs less than it saves.


def _infer_sparse(logits: TensorSpec, labels: TensorSpec, *_: TensorSpec) -> TensorSpec:
    name = "SparseSoftmaxCrossEntropyWithLogits"
    check_dtype(name, logits.dtype, FLOATS)
    check_dtype(name, labels.dtype, INDICES)
    if labels.shape != logits.shape[:1]:
        raise InvalidArgumentError(
            "logits and labels must have the same first dimension, got logits shape "
            f"{shape_text(logits.shape)} and labels shape {shape_text(labels.shape)} [Op:{name}]"
        )
    return infer_rows(name, logits, labels)


def _infer_sparse_grad(logits: TensorSpec, labels: TensorSpec, g: TensorSpec) -> TensorSpec:
    _infer_sparse(logits, labels)
    return logits


def _check_labels(logits: Any, labels: Any, *_: Any) -> None:
    _check_in_range(labels, logits.shape[1])


def _check_in_range(labels: Any, classes: int) -> None:
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        wrong = int(labels[(labels < 0) | (labels >= classes)][0])
        raise InvalidArgumentError(
            f"Received a label value of {wrong} which is outside the valid range of "
            f"[0, {classes}). Give each example the index of its class. "
            "[Op:SparseSoftmaxCrossEntropyWithLogits]"
        )


# ---------------------------------------------------------------------------- kernels


def _by_class(logits: Any) -> bool:
    """Whether logits, or their spec, have so few classes that these come first."""
    return bool(logits.shape[1] <= _FEW)


def _layout(logits: TensorSpec) -> tuple[TensorSpec, TensorSpec]:
    """Return the specs of the scores as they are laid out, and of one value an example beside."""
    examples, classes = logits.shape
    if _by_class(logits):
        return TensorSpec((classes, examples), logits.dtype), TensorSpec((examples,), logits.dtype)
    return logits, TensorSpec((examples, 1), logits.dtype)


def _workspace(logits: TensorSpec, labels: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    integers, floats = TensorSpec(labels.shape, int64), TensorSpec(labels.shape, logits.dtype)
    return (*_layout(logits), integers, integers, floats)


def _shift(xp: Any, scores: Any, row: Any, logits: Any) -> None:
    """Write the logits, less the largest of their example, into `scores`."""
    if _by_class(logits):
        xp.copyto(scores, logits.T)
        xp.max(scores, axis=0, out=row)
        xp.subtract(scores, row, out=scores)
    else:
        xp.max(logits, axis=1, keepdims=True, out=row)
        xp.subtract(logits, row, out=scores)


def _sum(xp: Any, scores: Any, row: Any) -> None:
    if row.ndim == 1:
        xp.sum(scores, axis=0, out=row)
    else:
        xp.sum(scores, axis=1, keepdims=True, out=row)


def _find(xp: Any, out: Any, labels: Any, steps: Any, scores: Any, row: Any) -> None:
    """Write the place of each example's label in the flattened scores into `out`."""
    xp.copyto(steps, 1 if row.ndim == 1 else scores.shape[1])
    xp.copyto(steps[:1], 0)
    xp.cumsum(steps, out=steps)
    _places(xp, out, labels, steps, by_class=row.ndim == 1, classes=0)


def _places(xp: Any, out: Any, labels: Any, steps: Any, *, by_class: bool, classes: int) -> None:
    if by_class:
        xp.multiply(labels, labels.shape[0], out=out)
        xp.add(out, steps, out=out)
    else:
        xp.add(labels, steps, out=out)


def _take(xp: Any, out: Any, scores: Any, places: Any) -> None:
    xp.take(scores.reshape(-1), places, out=out, mode="clip")


def _less_one_at(xp: Any, out: Any, x: Any, places: Any, *, workspace: tuple[Any, ...]) -> None:
    """Write `x`, less 1 in some places, into `out`."""
    picked, flat = workspace[0], out.reshape(-1)
    xp.copyto(out, x)
    xp.take(flat, places, out=picked, mode="clip")
    xp.subtract(picked, 1, out=picked)
    xp.put(flat, places, picked)


def _sparse_xent(
    xp: Any, out: Any, logits: Any, labels: Any, *, workspace: tuple[Any, ...]
) -> None:
    if not logits.size:
        xp.copyto(out, 0)  # Rows without classes, or no rows.
        return
    scores, row, places, steps, picked = workspace
    _shift(xp, scores, row, logits)
    _find(xp, places, labels, steps, scores, row)
    _take(xp, picked, scores, places)
    xp.exp(scores, out=scores)
    _sum(xp, scores, row)
    xp.log(row.reshape(-1), out=out)
    xp.subtract(out, picked, out=out)


def _sparse_xent_grad(
    xp: Any, out: Any, logits: Any, labels: Any, g: Any, *, workspace: tuple[Any, ...]
) -> None:
    if not logits.size:
        return
    scores, row, places, steps, picked = workspace
    _shift(xp, scores, row, logits)
    xp.exp(scores, out=scores)
    _sum(xp, scores, row)
    xp.divide(scores, row, out=scores)
    _find(xp, places, labels, steps, scores, row)
    _less_one_at(xp, scores, scores, places, workspace=(picked,))
    xp.multiply(scores, g.reshape(row.shape), out=scores)
    xp.copyto(out, scores.T if row.ndim == 1 else scores)


# ---------------------------------------------------------------------------- in programs

# The kernels above in parts, so that a recorded step computes what the loss and its gradient share
# once, and finds the places' constant part where it was left.


def _infer_places(labels: TensorSpec, steps: TensorSpec, **_: Any) -> TensorSpec:
    return steps


PLACES = Op(
    name="SparseSoftmaxCrossEntropyWithLogits",
    infer=_infer_places,
    kernel=_places,
    dtypes=INDICES,
    validate=lambda labels, steps, *, by_class, classes: _check_in_range(labels, classes),
)
TAKE = Op(
    name="SparseSoftmaxCrossEntropyWithLogits",
    infer=lambda scores, places: TensorSpec(places.shape, scores.dtype),
    kernel=_take,
)
LESS_ONE_AT = Op(
    name="SparseSoftmaxCrossEntropyGrad",
    infer=lambda x, places: x,
    kernel=_less_one_at,
    may_alias=(0,),
    workspace=lambda x, places: (TensorSpec(places.shape, x.dtype),),
)


class _Parts(NamedTuple):
    """What the loss and its gradient share."""

    shifted: Tensor
    exponentials: Tensor
    sums: Tensor
    places: Tensor


def _parts(logits: Tensor, labels: Tensor) -> _Parts:
    by_class, (examples, classes) = _by_class(logits), logits.shape
    scores = TRANSPOSE(logits, perm=(1, 0)) if by_class else logits
    axes = {"axis": (0,) if by_class else (1,), "keepdims": not by_class}
    shifted = SUB(scores, MAX(scores, **axes))
    steps = np.arange(examples) * (1 if by_class else classes)
    places = PLACES(
        labels, transfer(steps, place("Range", ("GPU", "CPU"))), by_class=by_class, classes=classes
    )
    exponentials = EXP(shifted)
    return _Parts(shifted, exponentials, SUM(exponentials, **axes), places)


def _lower_sparse_xent(logits: Tensor, labels: Tensor) -> Tensor:
    if not logits.size:
        return FILL(shape=labels.shape, value=0, dtype=logits.dtype)
    parts = _parts(logits, labels)
    picked = TAKE(parts.shifted, parts.places)
    return SUB(LOG(RESHAPE(parts.sums, shape=labels.shape)), picked)


def _lower_sparse_xent_grad(logits: Tensor, labels: Tensor, g: Tensor) -> Tensor:
    if not logits.size:
        return FILL(shape=logits.shape, value=0, dtype=logits.dtype)
    parts = _parts(logits, labels)
    probabilities = DIV(parts.exponentials, parts.sums)
    slopes = MUL(LESS_ONE_AT(probabilities, parts.places), RESHAPE(g, shape=parts.sums.shape))
    return TRANSPOSE(slopes, perm=(1, 0)) if _by_class(logits) else slopes


# ---------------------------------------------------------------------------- the ops


def _grad_sparse_xent(call: OpCall, g: Tensor) -> Grads:
    return [SPARSE_XENT_GRAD(*call.inputs, g), None]


def _grad_sparse_xent_grad(call: OpCall, g: Tensor) -> Grads:
    logits, labels, upstream = call.inputs
    rows = SPARSE_XENT_GRAD(logits, labels, ONES_LIKE(upstream))
    by_upstream = SUM(g * rows, axis=(1,), keepdims=False)
    return [softmax_curvature(logits, g, upstream[:, None]), None, by_upstream]


SPARSE_XENT = register(
    Op(
        name="SparseSoftmaxCrossEntropyWithLogits",
        infer=_infer_sparse,
        kernel=_sparse_xent,
        gradient=_grad_sparse_xent,
        workspace=_workspace,
        validate=_check_labels,
        lower=_lower_sparse_xent,
    )
)
SPARSE_XENT_GRAD = register(
    Op(
        name="SparseSoftmaxCrossEntropyGrad",
        infer=_infer_sparse_grad,
        kernel=_sparse_xent_grad,
        gradient=_grad_sparse_xent_grad,
        workspace=_workspace,
        validate=_check_labels,
        lower=_lower_sparse_xent_grad,
    )
)


@explained
def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """Return the cross-entropy between classes given by index and softmax(logits), a row each.

    Args:
        labels: Int32 or int64 indices of classes, of shape (batch,).
        logits: Floats of shape (batch, classes).
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or a label is outside [0, classes).

    Example:
        >>> import mirrored as mr
        >>> mr.nn.sparse_softmax_cross_entropy_with_logits([0], [[0.0, 0.0]]).numpy()
        array([0.6931472], dtype=float32)
    """
    return SPARSE_XENT(adopt(logits, None), adopt(labels, None))
