"""Elements of a tensor by their places: slices by an index along one axis, or along several.

Whatever the axes are, what moves is rows of a matrix. Their gradient adds rows where they came
from, which `scattering` does.
"""

import math
from typing import Any

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.clipping import clip_by_norm
from mirrored.ops.conversion import adopt
from mirrored.ops.indices import check_index_dtype, check_of_range, flat_indices, index_text
from mirrored.ops.op import OPS, Check, Grads, OpCall, define_op
from mirrored.ops.shaping import BROADCAST_TO, RESHAPE, concat
from mirrored.ops.spec import TensorSpec, bool_, int64, shape_text
from mirrored.ops.tensor import Tensor

# ---------------------------------------------------------------------------- along one axis


def _infer_gather(x: TensorSpec, indices: TensorSpec, *, axis: int, outside: bool) -> TensorSpec:
    check_index_dtype("GatherV2", indices)
    return TensorSpec((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)


def _gather_workspace(
    x: TensorSpec, indices: TensorSpec, *, axis: int, outside: bool
) -> tuple[TensorSpec, ...]:
    wide = () if indices.dtype == int64 else (TensorSpec(indices.shape, int64),)
    return (*wide, *[TensorSpec(indices.shape, bool_)] * (2 * outside))


def _gather(
    xp: Any, out: Any, x: Any, indices: Any, *, axis: int, outside: bool, workspace: Any
) -> None:
    if not out.size:
        return
    if not x.shape[axis]:  # All of them are outside.
        xp.copyto(out, 0, casting="unsafe")
        return
    if indices.dtype != int64:  # NumPy would make the copy anyway.
        places, *workspace_left = workspace
        xp.copyto(places, indices)
        indices, workspace = places, tuple(workspace_left)
    xp.take(x, indices, axis=axis, out=out, mode="clip")  # Which lets NumPy write right into it.
    if outside:
        below, beyond = workspace
        xp.less(indices, 0, out=below)
        xp.greater_equal(indices, x.shape[axis], out=beyond)
        xp.logical_or(below, beyond, out=below)
        along = below.reshape((*indices.shape, *[1] * (x.ndim - axis - 1)))
        xp.copyto(out, 0, casting="unsafe", where=along)


def _check_gather(x: Any, indices: Any, *, axis: int, outside: bool) -> Check | None:
    size = x.shape[axis]
    moves = math.prod(x.shape[:axis]) * math.prod(x.shape[axis + 1 :])

    def refuse(place: tuple[Any, ...]) -> None:
        raise InvalidArgumentError(
            f"{index_text(place)} = {indices[place]} is not in [0, {size}) [Op:GatherV2]"
        )

    # As in TensorFlow, nothing of nothing is as it should be.
    return None if outside or not moves else check_of_range(indices, size, refuse)


def _grad_gather(call: OpCall, g: Tensor) -> Grads:
    (x, indices), axis = call.inputs, call.attrs["axis"]
    outer, size, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if outer != 1:
        vectors = RESHAPE(indices, shape=(*indices.shape, 1))
        ignore = call.attrs["outside"]
        indices = flat_indices(vectors, (size,), outer=outer, ignore=ignore, op="GatherV2")
    places = RESHAPE(indices, shape=(indices.size,))
    rows = RESHAPE(g, shape=(indices.size, inner))
    sums = OPS["UnsortedSegmentSum"](rows, places, num_segments=outer * size)
    return [RESHAPE(sums, shape=x.shape), None]


# With `outside`, what is outside gives zeros; otherwise it is refused where the host can see it.
GATHER = define_op(
    name="GatherV2",
    infer=_infer_gather,
    kernel=_gather,
    gradient=_grad_gather,
    workspace=_gather_workspace,
    validate=_check_gather,
)


def embedding_lookup(
    params: TensorLike, ids: TensorLike, max_norm: float | None = None, name: str | None = None
) -> Tensor:
    """Return rows of a table, each by its id.

    Args:
        params: The table: a tensor or a variable; or a list of the parts of one, in order, of which
            the first ones may have a row more.
        ids: Int32 or int64 ids, of any shape.
        max_norm: The largest norm that a row may have: a longer one is scaled to it.
        name: Accepted for compatibility.

    Raises:
        ValueError: There is no table, or the sizes of its parts differ by more.
        InvalidArgumentError: There is no row of an id. On a GPU it gives zeros.

    Example:
        >>> import mirrored as mr
        >>> table = mr.Variable([[1.0, 2.0], [3.0, 4.0]])
        >>> mr.nn.embedding_lookup(table, [[1], [0]]).numpy()
        array([[[3., 4.]],
        <BLANKLINE>
               [[1., 2.]]], dtype=float32)
    """
    if params is None:
        raise ValueError("params must be specified")
    places = adopt(ids, None)
    rows = gather(_table(params), places)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, axes=np.arange(places.ndim, rows.ndim).tolist())


def _table(params: Any) -> Tensor:
    if not isinstance(params, list | tuple):
        return adopt(params, None)
    if not params:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    parts = [adopt(param, None) for param in params]
    sizes = [part.shape[0] if part.ndim else 0 for part in parts]
    least, more = divmod(sum(sizes), len(sizes))
    if sizes != [least + (i < more) for i in np.arange(len(sizes))]:
        raise ValueError(
            "The parts of a table must have the same number of rows; only the first parts may "
            f"have one more. Received: {[part.shape for part in parts]}"
        )
    return parts[0] if len(parts) == 1 else concat(parts, 0)


# ---------------------------------------------------------------------------- the functions


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: bool | None = None,
    axis: AxisLike | None = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Return slices of a tensor along an axis, in the order of their indices.

    Args:
        params: The tensor.
        indices: Int32 or int64 numbers of the slices, of any shape, which the result has in the
            place of the axis.
        validate_indices: Accepted for compatibility: the host always looks at them.
        axis: The axis; None: that of the number `batch_dims`, which is the first one behind them.
        batch_dims: How many leading axes both have in common: for each of their elements there are
            slices of its own. As in TensorFlow, none where `axis` is 0.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There is no such axis, an index is outside of it, or the leading axes
            differ. On a GPU what is outside gives zeros.

    Example:
        >>> import mirrored as mr
        >>> mr.gather([[1, 2], [3, 4], [5, 6]], [2, 0]).numpy()
        array([[5, 6],
               [1, 2]], dtype=int32)
        >>> mr.gather([[1, 2], [3, 4], [5, 6]], [[1], [0], [1]], batch_dims=1).numpy()
        array([[2],
               [3],
               [6]], dtype=int32)
    """
    x, places = adopt(params, None), adopt(indices, None)
    check_index_dtype("GatherV2", places.spec)
    if not -places.ndim <= batch_dims <= places.ndim:
        raise InvalidArgumentError(
            f"Expected batch_dims in the range [{-places.ndim}, {places.ndim}], but got "
            f"{batch_dims} [Op:GatherV2]"
        )
    batch = batch_dims + places.ndim if batch_dims < 0 else batch_dims
    along = batch_dims if axis is None else _axis(axis)
    if along == 0:
        batch = 0
    if not x.ndim:
        raise InvalidArgumentError("params must be at least 1 dimensional [Op:GatherV2]")
    least = max(batch, along if along < 0 else along + 1, -along)
    if x.ndim < max(least, batch + 1):
        raise InvalidArgumentError(
            f"Shape must be at least rank {max(least, batch + 1)} but is rank {x.ndim} "
            "[Op:GatherV2]"
        )
    along %= x.ndim
    if along < batch:
        raise InvalidArgumentError(
            f"batch_dims ({batch}) must be less than or equal to axis ({along}) [Op:GatherV2]"
        )
    if not batch:
        return GATHER(x, places, axis=along, outside=False)
    return _gather_of_batch(x, places, along, batch)


def _gather_of_batch(x: Tensor, places: Tensor, axis: int, batch: int) -> Tensor:
    for i in np.arange(batch).tolist():
        if x.shape[i] != places.shape[i]:
            raise InvalidArgumentError(
                f"params.shape[{i}]: {x.shape[i]} should be equal to indices.shape[{i}]: "
                f"{places.shape[i]} [Op:GatherV2]"
            )
    outer, inner = x.shape[batch:axis], x.shape[axis + 1 :]
    flat = flat_indices(
        RESHAPE(places, shape=(*places.shape, 1)),
        x.shape[axis : axis + 1],
        batch=places.shape[:batch],
        outer=math.prod(outer),
        op="GatherV2",
    )
    rows = RESHAPE(x, shape=(math.prod(x.shape[: axis + 1]), math.prod(inner)))
    gathered = GATHER(rows, flat, axis=0, outside=False)
    return RESHAPE(gathered, shape=(*x.shape[:axis], *places.shape[batch:], *inner))


def _axis(axis: Any) -> int:
    spec = adopt(axis, None)
    check_index_dtype("GatherV2", spec.spec, "Taxis")
    if spec.ndim:
        raise InvalidArgumentError("axis must be scalar [Op:GatherV2]")
    return int(spec)


_POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")


def ignores(bad_indices_policy: str, op: str) -> bool:
    """Return whether indices that are outside are left out.

    Raises:
        InvalidArgumentError: There is no such policy.
    """
    if bad_indices_policy not in _POLICIES:
        raise InvalidArgumentError(
            f"Bad indices policy {bad_indices_policy!r} must be one of {_POLICIES} [Op:{op}]"
        )
    return bad_indices_policy == "IGNORE"


def gather_nd(
    params: TensorLike,
    indices: TensorLike,
    batch_dims: int = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> Tensor:
    """Return elements or slices of a tensor, each by its indices along the first axes.

    Args:
        params: The tensor.
        indices: Int32 or int64. The last axis has the indices along the first axes of the tensor;
            the result has the other axes in their place.
        batch_dims: How many leading axes both have in common: for each of their elements there are
            indices of its own.
        name: Accepted for compatibility.
        bad_indices_policy: "IGNORE" gives zeros for indices that are outside.

    Raises:
        InvalidArgumentError: There are more indices than axes, one is outside, or the leading axes
            differ. On a GPU what is outside gives zeros.
        ValueError: `batch_dims` is negative, or not below the ranks.

    Example:
        >>> import mirrored as mr
        >>> mr.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]]).numpy()
        array([2, 3], dtype=int32)
    """
    x, places = adopt(params, None), adopt(indices, None)
    ignore = ignores(bad_indices_policy, "GatherNd")
    check_index_dtype("GatherNd", places.spec)
    _check_gather_nd(x, places, batch_dims)
    depth = places.shape[-1]
    sizes = x.shape[batch_dims : batch_dims + depth]
    batch, inner = places.shape[:batch_dims], x.shape[batch_dims + depth :]
    shape = (*places.shape[:-1], *inner)
    if not depth:  # All of it, each time.
        block = RESHAPE(x, shape=(*batch, *[1] * (places.ndim - 1 - batch_dims), *inner))
        return BROADCAST_TO(block, shape=shape)
    flat = flat_indices(places, sizes, batch=batch, ignore=ignore, op="GatherNd")
    rows = RESHAPE(x, shape=(math.prod((*batch, *sizes)), math.prod(inner)))
    gathered = GATHER(rows, flat, axis=0, outside=ignore)
    return RESHAPE(gathered, shape=shape)


def _check_gather_nd(x: Tensor, places: Tensor, batch: int) -> None:
    if batch < 0:
        raise ValueError("tf.gather_nd does not allow negative batch_dims.")
    for name, tensor in (("params", x), ("indices", places)):
        if not tensor.ndim:
            raise InvalidArgumentError(f"{name} must be at least a vector [Op:GatherNd]")
        if batch and batch >= tensor.ndim:
            raise ValueError(
                f"Argument `batch_dims` = {batch} must be less than rank(`{name}`) = {tensor.ndim}"
            )
    if x.shape[:batch] != places.shape[:batch]:
        raise InvalidArgumentError(
            f"The first {batch} axes of params and indices must be the same. Received: shapes "
            f"{shape_text(x.shape)} and {shape_text(places.shape)} [Op:GatherNd]"
        )
    if places.shape[-1] > x.ndim - batch:
        raise InvalidArgumentError(
            "index innermost dimension length must be <= params rank; saw: "
            f"{places.shape[-1]} vs. {x.ndim - batch} [Op:GatherNd]"
        )


explain_functions(__name__)
