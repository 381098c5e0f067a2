"""Rows of a table by their ids, as embeddings are looked up."""

from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored._types import TensorLike
from mirrored.ops.clipping import clip_by_norm
from mirrored.ops.conversion import adopt
from mirrored.ops.gathering import gather
from mirrored.ops.shaping import concat
from mirrored.ops.tensor import Tensor


@explained
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
            "The parts of a table have as many rows each, and the first ones may have one more. "
            f"Received: {[part.shape for part in parts]}"
        )
    return parts[0] if len(parts) == 1 else concat(parts, 0)
