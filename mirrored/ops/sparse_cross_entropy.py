"""The cross-entropy of classes given by index, fused with the softmax in front of it.

Few classes are laid out class by class: a maximum or a sum over them is then a few passes over long
rows instead of one short loop for every example, which takes five times as long.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mirrored._arguments import explained
from mirrored.devices import place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.creation import FILL, ONES_LIKE
from mirrored.ops.cross_entropy import as_rows, infer_rows, softmax_curvature
from mirrored.ops.elementwise import DIV, MUL, SUB
from mirrored.ops.host_tensor import transfer
from mirrored.ops.index_range import check_of_range
from mirrored.ops.op import Check, Grads, Op, OpCall, register
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

_FEW = 32  # Up to so many classes a copy that turns the logits costs less than it saves.


def _infer_sparse(logits: TensorSpec, labels: TensorSpec, *_: TensorSpec) -> TensorSpec:
    name = "SparseSoftmaxCrossEntropyWithLogits"
    check_dtype(name, FLOATS, logits)
    check_dtype(name, INDICES, labels)
    if labels.shape != logits.shape[:1]:
        raise InvalidArgumentError(
            "logits and labels must have the same first dimension, got logits shape "
            f"{shape_text(logits.shape)} and labels shape {shape_text(labels.shape)} [Op:{name}]"
        )
    return infer_rows(name, logits, labels, labels.shape)


def _infer_sparse_grad(logits: TensorSpec, labels: TensorSpec, g: TensorSpec) -> TensorSpec:
    _infer_sparse(logits, labels)
    return logits


def _check_of_labels(logits: Any, labels: Any, *_: Any) -> Check | None:
    return _check_of_range(labels, classes=logits.shape[1])


def _check_of_range(labels: Any, *_: Any, classes: int, **__: Any) -> Check | None:
    def refuse(place: tuple[Any, ...]) -> None:
        raise InvalidArgumentError(
            f"Received a label value of {labels[place]} which is outside the valid range of "
            f"[0, {classes}). Give each example the index of its class. "
            "[Op:SparseSoftmaxCrossEntropyWithLogits]"
        )

    return check_of_range(labels, classes, refuse)


# ---------------------------------------------------------------------------- parts


def _places(xp: Any, out: Any, labels: Any, steps: Any, *, by_class: bool, classes: int) -> None:
    """Write the place of each example's label in the flattened scores into `out`."""
    if by_class:
        xp.multiply(labels, labels.shape[0], out=out)
        xp.add(out, steps, out=out)
    else:
        xp.add(labels, steps, out=out)


def _infer_places(labels: TensorSpec, steps: TensorSpec, **_: Any) -> TensorSpec:
    return steps


def _take(xp: Any, out: Any, scores: Any, places: Any) -> None:
    xp.take(scores.reshape(-1), places, out=out, mode="clip")


def _less_one_at(xp: Any, out: Any, x: Any, places: Any, *, workspace: tuple[Any, ...]) -> None:
    """Write `x`, less 1 in some places, into `out`."""
    picked, flat = workspace[0], out.reshape(-1)
    xp.copyto(out, x)
    xp.take(flat, places, out=picked, mode="clip")
    xp.subtract(picked, 1, out=picked)
    xp.put(flat, places, picked)


PLACES = Op(
    name="SparseSoftmaxCrossEntropyWithLogits",
    infer=_infer_places,
    kernel=_places,
    dtypes=INDICES,
    validate=_check_of_range,
    of_labels=True,
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


# ---------------------------------------------------------------------------- the computation

# Written once, for arrays and for tensors: `run` runs one op. The eager kernel runs the ops'
# kernels in its workspace, one call of them all. A program records them one by one, so that a step
# computes what the loss and its gradient share once, and finds the places' constant part where it
# was left.
_Run = Callable[..., Any]


class _Scratch(NamedTuple):
    """Where arrays are written to; tensors are given their memory by the program."""

    scores: Any = None
    row: Any = None
    places: Any = None
    picked: Any = None
    out: Any = None


def _by_class(logits: Any) -> bool:
    """Whether logits, or their spec, have so few classes that these come first."""
    return bool(logits.shape[1] <= _FEW)


def _start(
    run: _Run, logits: Any, labels: Any, steps: Any, scratch: _Scratch
) -> tuple[Any, Any, dict[str, Any]]:
    """Return scores less the largest of their example, places of labels, and the classes' axis."""
    by_class, classes = _by_class(logits), logits.shape[1]
    axis = {"axis": (0,) if by_class else (1,), "keepdims": not by_class}
    scores = run(TRANSPOSE, logits, perm=(1, 0), out=scratch.scores) if by_class else logits
    shifted = run(SUB, scores, run(MAX, scores, out=scratch.row, **axis), out=scratch.scores)
    places = run(PLACES, labels, steps, by_class=by_class, classes=classes, out=scratch.places)
    return shifted, places, axis


def _loss(run: _Run, logits: Any, labels: Any, steps: Any, scratch: _Scratch) -> Any:
    """Return the logarithm of the sum of exponentials, less the label's score, of each example."""
    shifted, places, axis = _start(run, logits, labels, steps, scratch)
    picked = run(TAKE, shifted, places, out=scratch.picked)
    sums = run(SUM, run(EXP, shifted, out=scratch.scores), out=scratch.row, **axis)
    logs = run(LOG, run(RESHAPE, sums, shape=labels.shape), out=scratch.out)
    return run(SUB, logs, picked, out=scratch.out)


def _slopes(run: _Run, logits: Any, labels: Any, g: Any, steps: Any, scratch: _Scratch) -> Any:
    """Return the gradient: probabilities, less 1 at the label, times the example's `g`."""
    shifted, places, axis = _start(run, logits, labels, steps, scratch)
    exponentials = run(EXP, shifted, out=scratch.scores)
    sums = run(SUM, exponentials, out=scratch.row, **axis)
    probabilities = run(DIV, exponentials, sums, out=scratch.scores)
    less = run(LESS_ONE_AT, probabilities, places, workspace=(scratch.picked,), out=scratch.scores)
    by_example = run(RESHAPE, g, shape=sums.shape)
    if not _by_class(logits):
        return run(MUL, less, by_example, out=scratch.out)
    slopes = run(MUL, less, by_example, out=scratch.scores)
    return run(TRANSPOSE, slopes, perm=(1, 0), out=scratch.out)


# ---------------------------------------------------------------------------- on arrays


def _workspace(logits: TensorSpec, labels: TensorSpec, *_: TensorSpec) -> tuple[TensorSpec, ...]:
    (examples, classes), dtype = logits.shape, logits.dtype
    by_class = _by_class(logits)
    scores = TensorSpec((classes, examples) if by_class else logits.shape, dtype)
    row = TensorSpec((examples,) if by_class else (examples, 1), dtype)
    integers, floats = TensorSpec(labels.shape, int64), TensorSpec(labels.shape, dtype)
    return scores, row, integers, floats, integers


def _on_arrays(xp: Any) -> _Run:
    def run(op: Op, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
        if op.kernel is None:
            return None if op.view is None else op.view(*arrays, **attrs)
        op.kernel(xp, out, *arrays, **attrs)
        return out

    return run


def _count(xp: Any, steps: Any, logits: Any) -> None:
    """Write how far the scores of each example begin from those of the first into `steps`."""
    xp.copyto(steps, 1 if _by_class(logits) else logits.shape[1])
    xp.copyto(steps[:1], 0)
    xp.cumsum(steps, out=steps)


def _sparse_xent(
    xp: Any, out: Any, logits: Any, labels: Any, *, workspace: tuple[Any, ...]
) -> None:
    if not logits.size:
        xp.copyto(out, 0)  # Rows without classes, or no rows.
        return
    scores, row, places, picked, steps = workspace
    _count(xp, steps, logits)
    _loss(_on_arrays(xp), logits, labels, steps, _Scratch(scores, row, places, picked, out))


def _sparse_xent_grad(
    xp: Any, out: Any, logits: Any, labels: Any, g: Any, *, workspace: tuple[Any, ...]
) -> None:
    if not logits.size:
        return
    scores, row, places, picked, steps = workspace
    _count(xp, steps, logits)
    _slopes(_on_arrays(xp), logits, labels, g, steps, _Scratch(scores, row, places, picked, out))


# ---------------------------------------------------------------------------- in programs


def _on_tensors(op: Op, *tensors: Any, out: Any = None, workspace: Any = None, **attrs: Any) -> Any:
    return op(*tensors, **attrs)


def _steps(logits: Tensor) -> Tensor:
    examples, classes = logits.shape
    steps = np.arange(examples) * (1 if _by_class(logits) else classes)
    return transfer(steps, place("Range", ("GPU", "CPU")))


def _lower_sparse_xent(logits: Tensor, labels: Tensor) -> Tensor:
    if not logits.size:
        return FILL(shape=labels.shape, value=0, dtype=logits.dtype)
    loss: Tensor = _loss(_on_tensors, logits, labels, _steps(logits), _Scratch())
    return loss


def _lower_sparse_xent_grad(logits: Tensor, labels: Tensor, g: Tensor) -> Tensor:
    if not logits.size:
        return FILL(shape=logits.shape, value=0, dtype=logits.dtype)
    slopes: Tensor = _slopes(_on_tensors, logits, labels, g, _steps(logits), _Scratch())
    return slopes


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
        validate=_check_of_labels,
        of_labels=True,
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
        validate=_check_of_labels,
        of_labels=True,
        lower=_lower_sparse_xent_grad,
    )
)


@explained
def sparse_softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, name: str | None = None
) -> Tensor:
    """Return the cross-entropy between classes given by index and softmax(logits), a row each.

    Args:
        labels: Int32 or int64 indices of classes, of shape (...).
        logits: Floats of shape (..., classes).
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit, or a label is outside [0, classes).

    Example:
        >>> import mirrored as mr
        >>> mr.nn.sparse_softmax_cross_entropy_with_logits([0], [[0.0, 0.0]]).numpy()
        array([0.6931472], dtype=float32)
    """
    scores, places = adopt(logits, None), adopt(labels, None)
    if scores.ndim == 2 or places.shape != scores.shape[:-1] or not scores.ndim:
        return SPARSE_XENT(scores, places)
    values = SPARSE_XENT(as_rows(scores), RESHAPE(places, shape=(places.size,)))
    return RESHAPE(values, shape=places.shape)
