"""Cross-entropies computed from logits, fused with the softmax or sigmoid in front of them.

From logits they are exact and finite where the probabilities would round to 0 or 1. Classes are
vectors of probabilities, or integers in the sparse one.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.devices import place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.activations import RELU, SIGMOID
from mirrored.ops.comparison import LESS_EQUAL, LOGICAL_AND
from mirrored.ops.conversion import adopt
from mirrored.ops.creation import ONES_LIKE, ZEROS_LIKE
from mirrored.ops.elementwise import ABS, DIV, MUL, SUB
from mirrored.ops.host_tensor import transfer
from mirrored.ops.indices import check_of_range
from mirrored.ops.op import Check, Full, Grads, Op, OpCall, define_op
from mirrored.ops.powers import EXP, LOG, LOG1P
from mirrored.ops.reduction import MAX, SUM
from mirrored.ops.select import SELECT
from mirrored.ops.shaping import (
    BROADCAST_TO,
    RESHAPE,
    TRANSPOSE,
    cast,
    normalize_axis,
    reshape,
    transpose,
)
from mirrored.ops.softmax import LOG_SOFTMAX, SOFTMAX, row_spec, softmax_into
from mirrored.ops.spec import (
    FLOATS,
    INDICES,
    Shape,
    TensorSpec,
    check_dtype,
    check_same_dtype,
    int64,
    shape_text,
)
from mirrored.ops.tensor import Tensor


def infer_rows(
    name: str, logits: TensorSpec, labels: TensorSpec, labels_shape: Shape
) -> TensorSpec:
    """Return the spec of one value a row of logits, whose labels have the right shape."""
    if len(logits.shape) != 2 or labels.shape != labels_shape:
        raise InvalidArgumentError(
            "logits and labels must be broadcastable: logits_size="
            f"{shape_text(logits.shape)} labels_size={shape_text(labels.shape)} [Op:{name}]"
        )
    return TensorSpec(logits.shape[:1], logits.dtype)


def softmax_curvature(logits: Tensor, g: Tensor, scale: Tensor) -> Tensor:
    """Return the product of g with the Jacobian of softmax(logits), times `scale` a row."""
    p = SOFTMAX(logits, axis=1)
    weighted = p * g
    return scale * (weighted - p * SUM(weighted, axis=(1,), keepdims=True))


def _infer_xent(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    name = "SoftmaxCrossEntropyWithLogits"
    check_same_dtype(name, logits, labels)
    return infer_rows(name, logits, labels, logits.shape)


def _xent(xp: Any, out: Any, logits: Any, labels: Any, *, workspace: Any) -> None:
    if not logits.size:
        xp.copyto(out, 0)  # Rows without classes, or no rows.
        return
    scratch, row = workspace
    xp.maximum.reduce(logits, axis=1, keepdims=True, out=row)
    xp.subtract(logits, row, out=scratch)
    xp.exp(scratch, out=scratch)
    xp.add.reduce(scratch, axis=1, out=out)
    xp.log(out, out=out)
    xp.add(out, row[:, 0], out=out)  # The logarithm of the sum of exp(logits), without overflow.
    xp.subtract(out[:, None], logits, out=scratch)
    xp.multiply(scratch, labels, out=scratch)
    xp.add.reduce(scratch, axis=1, out=out)


def _xent_grad(xp: Any, out: Any, logits: Any, labels: Any, g: Any, *, workspace: Any) -> None:
    if not logits.size:
        return
    # As in TensorFlow, that of distributions: where labels do not sum to 1 it is not the slope.
    softmax_into(xp, out, logits, workspace[0], 1)
    xp.subtract(out, labels, out=out)
    xp.multiply(out, g[:, None], out=out)


def _grad_xent(call: OpCall, g: Tensor) -> Grads:
    logits, labels = call.inputs
    return [
        lambda: XENT_GRAD(logits, labels, g),
        lambda: -(g[:, None] * LOG_SOFTMAX(logits, axis=1)),
    ]


def _grad_xent_grad(call: OpCall, g: Tensor) -> Grads:
    logits, labels, upstream = call.inputs
    p = SOFTMAX(logits, axis=1)
    scale = upstream[:, None]
    by_upstream = SUM(g * (p - labels), axis=(1,), keepdims=False)
    return [softmax_curvature(logits, g, scale), -(scale * g), by_upstream]


XENT = define_op(
    name="SoftmaxCrossEntropyWithLogits",
    infer=_infer_xent,
    kernel=_xent,
    gradient=_grad_xent,
    dtypes=FLOATS,
    workspace=lambda logits, labels: (logits, row_spec(logits, 1)),
)
XENT_GRAD = define_op(
    name="SoftmaxCrossEntropyGrad",
    infer=lambda logits, labels, g: logits,
    kernel=_xent_grad,
    gradient=_grad_xent_grad,
    dtypes=FLOATS,
    workspace=lambda logits, labels, g: (row_spec(logits, 1),),
)


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Tensor:
    """Return the cross-entropy between distributions over classes and softmax(logits), a row each.

    Args:
        labels: Numbers of shape (..., classes), each row a distribution. They are cast to the
            logits' dtype. The gradient is softmax less labels also where a row does not sum to 1.
        logits: Floats of the same shape, or of one that the labels' broadcasts to.
        axis: The axis of the classes.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: Shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 0.0]]).numpy()
        array([0.6931472], dtype=float32)
    """
    logits = adopt(logits, None)
    labels = cast(adopt(labels, logits.dtype), logits.dtype)
    if axis != -1:
        logits, labels = _classes_last(logits, axis), _classes_last(labels, axis)
    if logits.ndim == 2 and logits.shape == labels.shape:
        return XENT(logits, labels)
    rows, label_rows = as_rows(logits), as_rows(labels)
    pairs = list(zip(rows.shape, label_rows.shape, strict=False))
    if rows.shape != label_rows.shape and all(a == b or 1 in (a, b) for a, b in pairs):
        shape = tuple(b if a == 1 else a for a, b in pairs)
        rows, label_rows = BROADCAST_TO(rows, shape=shape), BROADCAST_TO(label_rows, shape=shape)
    return reshape(XENT(rows, label_rows), logits.shape[:-1])


def as_rows(x: Tensor) -> Tensor:
    """Return a tensor as rows of its last axis; a number stays one."""
    return RESHAPE(x, shape=(math.prod(x.shape[:-1]), x.shape[-1])) if x.ndim else x


def _classes_last(x: Tensor, axis: int) -> Tensor:
    axis = normalize_axis(XENT.name, axis, x.ndim)
    if axis == x.ndim - 1:
        return x
    return transpose(x, (*(i for i in range(x.ndim) if i != axis), axis))


def _infer_sigmoid_xent(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    name = "SigmoidCrossEntropyWithLogits"
    check_same_dtype(name, logits, labels)
    if logits.shape != labels.shape:
        raise InvalidArgumentError(
            "`logits` and `labels` must have the same shape, received "
            f"({shape_text(logits.shape)} vs {shape_text(labels.shape)}) [Op:{name}]"
        )
    return logits


def _sigmoid_xent(xp: Any, out: Any, logits: Any, labels: Any, *, workspace: Any) -> None:
    # (max(z, 0) - z y) + log(1 + exp(-|z|)): no exponential that can overflow. In this order, since
    # where z is large and right, the difference is 0 and the logarithm tiny.
    scratch = workspace[0]
    xp.maximum(logits, 0, out=scratch)
    xp.multiply(logits, labels, out=out)
    xp.subtract(scratch, out, out=scratch)
    xp.absolute(logits, out=out)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    xp.log1p(out, out=out)
    xp.add(out, scratch, out=out)


def _grad_sigmoid_xent(call: OpCall, g: Tensor) -> Grads:
    logits, labels = call.inputs
    return [lambda: g * (SIGMOID(logits) - labels), lambda: -(g * logits)]


SIGMOID_XENT = define_op(
    name="SigmoidCrossEntropyWithLogits",
    infer=_infer_sigmoid_xent,
    kernel=_sigmoid_xent,
    gradient=_grad_sigmoid_xent,
    dtypes=FLOATS,
    workspace=lambda logits, labels: (logits,),
)


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """Return the cross-entropy between probabilities and sigmoid(logits), element by element.

    Args:
        labels: Floats in [0, 1].
        logits: Floats of the same shape and dtype.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: Shapes or dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.sigmoid_cross_entropy_with_logits([1.0], [0.0]).numpy()
        array([0.6931472], dtype=float32)
    """
    return SIGMOID_XENT(logits, labels)


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Tensor:
    """Return the cross-entropy of sigmoid(logits), where positive labels count `pos_weight` times.

    It is -labels log(p) pos_weight - (1 - labels) log(1 - p), without overflow.

    Args:
        labels: Floats in [0, 1].
        logits: Floats of the same shape and dtype.
        pos_weight: A number, or a tensor of a shape that broadcasts.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        ValueError: The shapes differ.
        InvalidArgumentError: The dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.weighted_cross_entropy_with_logits([1.0], [0.0], 2.0).numpy()
        array([1.3862944], dtype=float32)
    """
    z, y = _of_one_shape("logits", adopt(logits, None), "labels", adopt(labels, None))
    factor: Any = pos_weight  # A list cannot be subtracted from.
    weight = 1.0 + adopt(factor - 1.0, y.dtype) * y
    return (1.0 - y) * z + weight * (LOG1P(EXP(-ABS(z))) + RELU(-z))


def log_poisson_loss(
    targets: TensorLike, log_input: bool, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Return exp(log_input) - log_input targets: the loss of counts whose rate is exp(log_input).

    Args:
        targets: The counts, floats.
        log_input: The logarithms of the rates, of the same shape and dtype.
        compute_full_loss: Whether to add what depends on `targets` alone: Stirling's approximation
            of log(targets!) above 1.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        ValueError: The shapes differ.
        InvalidArgumentError: The dtypes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.log_poisson_loss([2.0], [0.0]).numpy()
        array([1.], dtype=float32)
    """
    rate, count = _of_one_shape(
        "log_input", adopt(log_input, None), "targets", adopt(targets, None)
    )
    result = EXP(rate) - rate * count
    if not compute_full_loss:
        return result
    stirling = count * LOG(count) - count + 0.5 * LOG(2.0 * math.pi * count)
    few = LOGICAL_AND(count >= 0.0, LESS_EQUAL(count, 1.0))
    return result + SELECT(few, ZEROS_LIKE(count), stirling)


def _of_one_shape(name: str, x: Tensor, other: str, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors whose shapes have to be the same."""
    if x.shape != y.shape:
        raise ValueError(
            f"`{name}` and `{other}` must have the same shape, received "
            f"({shape_text(x.shape)} vs {shape_text(y.shape)})."
        )
    return x, y


_FEW = 32  # Up to this number of classes, a transposed copy of the logits costs less than it saves.


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
            f"Received a label value of {labels[place]} which is outside the valid range of [0, "
            f"{classes}). Pass the index of the class for each example. "
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


def _take(xp: Any, out: Any, scores: Any, places: Any) -> None:
    xp.take(scores.reshape(-1), places, out=out, mode="clip")


def _less_one_at(xp: Any, out: Any, x: Any, places: Any, *, workspace: Any) -> None:
    """Write `x`, less 1 in some places, into `out`."""
    picked, flat = workspace[0], out.reshape(-1)
    xp.copyto(out, x)
    xp.take(flat, places, out=picked, mode="clip")
    xp.subtract(picked, 1, out=picked)
    xp.put(flat, places, picked)


PLACES = Op(
    name="SparseSoftmaxCrossEntropyWithLogits",
    infer=lambda labels, steps, **_: steps,
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


def _sparse_xent(xp: Any, out: Any, logits: Any, labels: Any, *, workspace: Any) -> None:
    if not logits.size:
        xp.copyto(out, 0)  # Rows without classes, or no rows.
        return
    scores, row, places, picked, steps = workspace
    _count(xp, steps, logits)
    _loss(_on_arrays(xp), logits, labels, steps, _Scratch(scores, row, places, picked, out))


def _sparse_xent_grad(
    xp: Any, out: Any, logits: Any, labels: Any, g: Any, *, workspace: Any
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


def _lower_sparse_xent(full: Full, logits: Tensor, labels: Tensor) -> Tensor:
    if not logits.size:
        return full(TensorSpec(labels.shape, logits.dtype), 0)
    loss: Tensor = _loss(_on_tensors, logits, labels, _steps(logits), _Scratch())
    return loss


def _lower_sparse_xent_grad(full: Full, logits: Tensor, labels: Tensor, g: Tensor) -> Tensor:
    if not logits.size:
        return full(logits.spec, 0)
    slopes: Tensor = _slopes(_on_tensors, logits, labels, g, _steps(logits), _Scratch())
    return slopes


# ---------------------------------------------------------------------------- the ops


def _grad_sparse_xent_grad(call: OpCall, g: Tensor) -> Grads:
    logits, labels, upstream = call.inputs
    rows = SPARSE_XENT_GRAD(logits, labels, ONES_LIKE(upstream))
    by_upstream = SUM(g * rows, axis=(1,), keepdims=False)
    return [softmax_curvature(logits, g, upstream[:, None]), None, by_upstream]


SPARSE_XENT_GRAD = define_op(
    name="SparseSoftmaxCrossEntropyGrad",
    infer=_infer_sparse_grad,
    kernel=_sparse_xent_grad,
    gradient=_grad_sparse_xent_grad,
    workspace=_workspace,
    validate=_check_of_labels,
    of_labels=True,
    lower=_lower_sparse_xent_grad,
)
SPARSE_XENT = define_op(
    name="SparseSoftmaxCrossEntropyWithLogits",
    infer=_infer_sparse,
    kernel=_sparse_xent,
    gradient=lambda call, g: [SPARSE_XENT_GRAD(*call.inputs, g), None],
    workspace=_workspace,
    validate=_check_of_labels,
    of_labels=True,
    lower=_lower_sparse_xent,
)


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
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


explain_functions(__name__, all_but="as_rows infer_rows softmax_curvature")
