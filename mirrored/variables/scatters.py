"""Changes of some rows and elements of a variable, and reads of some.

Each is the op on the whole value that gives the new one. A recorded function computes it right
where the variable is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._tracebacks import shorten, shortened
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops import IndexedSlices
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.hooks import RecordedTensor
from mirrored.ops.indices import flat_indices
from mirrored.ops.op import Op
from mirrored.ops.scattering import (
    TENSOR_SCATTER_ADD,
    TENSOR_SCATTER_MAX,
    TENSOR_SCATTER_MIN,
    TENSOR_SCATTER_UPDATE,
    UNSORTED_SEGMENT_PROD,
)
from mirrored.ops.shaping import BROADCAST_TO, RESHAPE
from mirrored.ops.slicing import SLICE_UPDATE, STRIDED_SLICE
from mirrored.ops.spec import FLOATS, NUMBERS, SIGNED, check_dtype, shape_text
from mirrored.ops.tensor import Operators, Tensor, index_items, is_mask

# From the value of a variable to its new one.
Change = Callable[[Tensor], Tensor]


class Scatters(Operators):
    """The methods of variables that change or read a part of the value."""

    __slots__ = ()

    def _change(self, method: str, change: Change) -> Any:
        """Assign the result of a function of the value."""
        raise NotImplementedError

    def _scatter(self, method: str, sparse_delta: Any) -> Any:
        if not isinstance(sparse_delta, IndexedSlices):
            raise TypeError(
                "Argument `sparse_delta` must be a `mr.IndexedSlices`. Received arg: "
                f"{sparse_delta!r}"
            )

        return self._change(method, lambda old: change_of_rows(method, sparse_delta, old))

    def _scatter_nd(self, method: str, indices: Any, updates: Any) -> Any:
        change = getattr(ops, f"tensor_{method}")
        return self._change(method, lambda old: change(old, indices, updates))

    def scatter_add(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Add to some rows and return the variable.

        In a replica what is given is first brought together as the variable's `aggregation` says;
        without one it is refused.

        Args:
            sparse_delta: The rows, an `IndexedSlices`. Several for one index are taken in turn.
            use_locking: Accepted for compatibility.
            name: Accepted for compatibility.

        Raises:
            TypeError: It is something else.
            ValueError: Its rows are of another dtype, or a replica's have no aggregation.
            InvalidArgumentError: Shapes do not fit, or there is no such row.
            NotImplementedError: The variable is brought together on reads.

        Example:
            >>> import mirrored as mr
            >>> v = mr.Variable([1.0, 2.0, 3.0])
            >>> v.scatter_add(mr.IndexedSlices([10.0, 20.0], [0, 2])).numpy()
            array([11.,  2., 23.], dtype=float32)
        """
        return self._scatter("scatter_add", sparse_delta)

    def scatter_sub(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Subtract from some rows; see `scatter_add`."""
        return self._scatter("scatter_sub", sparse_delta)

    def scatter_mul(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Multiply some rows; see `scatter_add`."""
        return self._scatter("scatter_mul", sparse_delta)

    def scatter_div(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Divide some rows; see `scatter_add`. A known divisor 0 raises an error."""
        if isinstance(sparse_delta, IndexedSlices):
            check_divisors(sparse_delta.values)
        return self._scatter("scatter_div", sparse_delta)

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replace some rows; of several updates the last counts; see `scatter_add`.

        Raises:
            NotImplementedError: The variable's `aggregation` is SUM or MEAN; or as above.
        """
        return self._scatter("scatter_update", sparse_delta)

    def scatter_max(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replace elements of some rows by those that are greater; see `scatter_update`."""
        return self._scatter("scatter_max", sparse_delta)

    def scatter_min(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Replace elements of some rows by those that are less; see `scatter_update`."""
        return self._scatter("scatter_min", sparse_delta)

    def scatter_nd_add(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        """Add as `tensor_scatter_nd_add` does, and return the variable.

        Args:
            indices: As there.
            updates: As there.
            name: Accepted for compatibility.

        Raises:
            InvalidArgumentError: As there.
            NotImplementedError: A strategy made the variable.

        Example:
            >>> import mirrored as mr
            >>> v = mr.Variable([[1, 2], [3, 4]])
            >>> v.scatter_nd_add([[0, 1], [1, 0]], [10, 20]).numpy()
            array([[ 1, 12],
                   [23,  4]], dtype=int32)
        """
        return self._scatter_nd("scatter_nd_add", indices, updates)

    def scatter_nd_sub(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        """Subtract as `tensor_scatter_nd_sub` does; see `scatter_nd_add`."""
        return self._scatter_nd("scatter_nd_sub", indices, updates)

    def scatter_nd_update(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        """Replace as `tensor_scatter_nd_update` does; see `scatter_nd_add`."""
        return self._scatter_nd("scatter_nd_update", indices, updates)

    def scatter_nd_max(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        """Replace as `tensor_scatter_nd_max` does; see `scatter_nd_add`."""
        return self._scatter_nd("scatter_nd_max", indices, updates)

    def scatter_nd_min(
        self, indices: TensorLike, updates: TensorLike, name: str | None = None
    ) -> Any:
        """Replace as `tensor_scatter_nd_min` does; see `scatter_nd_add`."""
        return self._scatter_nd("scatter_nd_min", indices, updates)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Return elements or slices of the value; see `gather_nd`."""
        return ops.gather_nd(self, indices)

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> Tensor:
        """Return rows of the value; see `gather`."""
        return ops.gather(self, indices, axis=0)

    def __getitem__(self, index: Any) -> Tensor:
        """Return a part of the value, whose `assign` sets that part of the variable."""
        try:
            part = super().__getitem__(index)
        except Exception as error:
            shorten(error)
            raise
        if not is_mask(index):
            items = index_items(index)

            @shortened
            def assign(
                value: Any, use_locking: bool = False, name: Any = None, read_value: bool = True
            ) -> Any:
                written = self._change("assign", lambda old: _with_part(old, items, value))
                return written if read_value else None

            part._assigns = assign
        return part


def _with_part(old: Tensor, index: tuple[Any, ...], value: Any) -> Tensor:
    """Return a tensor with a value at an index."""
    part = ops.convert_to_tensor(value, old.dtype)
    shape = STRIDED_SLICE.infer(old.spec, index=index).shape
    if part.shape != shape:
        ends = zip(reversed(part.shape), reversed(shape), strict=False)
        if part.ndim > len(shape) or any(size not in (1, own) for size, own in ends):
            raise InvalidArgumentError(
                f"Cannot broadcast input shape {shape_text(part.shape)} into final shape "
                f"{shape_text(shape)} [Op:ResourceStridedSliceAssign]"
            )
        part = BROADCAST_TO(part, shape=shape)
    return SLICE_UPDATE(old, part, index=index)


_ROWS: dict[str, Op] = {
    "scatter_add": TENSOR_SCATTER_ADD,
    "scatter_sub": TENSOR_SCATTER_ADD,
    "scatter_update": TENSOR_SCATTER_UPDATE,
    "scatter_max": TENSOR_SCATTER_MAX,
    "scatter_min": TENSOR_SCATTER_MIN,
}


def change_of_rows(method: str, delta: IndexedSlices, old: Tensor) -> Tensor:
    """Return a tensor with some rows changed."""
    name = "Resource" + "".join(part.capitalize() for part in method.split("_"))
    check_dtype(name, NUMBERS if method != "scatter_update" else frozenset({old.dtype}), old.spec)
    values = ops.convert_to_tensor(delta.values, old.dtype)
    if not old.ndim or values.shape[1:] != old.shape[1:]:
        raise InvalidArgumentError(
            "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {shape_text(values.shape)}, indices.shape "
            f"{shape_text(delta.indices.shape)}, params.shape {shape_text(old.shape)} [Op:{name}]"
        )
    count, width = old.shape[0], old.size // max(1, old.shape[0])
    vectors = RESHAPE(delta.indices, shape=(delta.indices.size, 1))
    places = flat_indices(vectors, (count,), op=name)
    rows = RESHAPE(values, shape=(places.size, width))
    matrix = RESHAPE(old, shape=(count, width))
    if method in ("scatter_mul", "scatter_div"):
        factors = UNSORTED_SEGMENT_PROD(rows, places, num_segments=count)
        new = matrix * factors if method == "scatter_mul" else _quotient(matrix, factors)
    else:
        new = _ROWS[method](matrix, places, _negated(rows) if method == "scatter_sub" else rows)
    return RESHAPE(new, shape=old.shape)


def _negated(rows: Tensor) -> Tensor:
    return -rows if rows.dtype in SIGNED else ZEROS_LIKE(rows) - rows


def _quotient(x: Tensor, y: Tensor) -> Tensor:
    """Return x / y; integer quotients are rounded towards zero."""
    if x.dtype in FLOATS:
        return x / y
    if x.dtype not in SIGNED:
        return x // y
    return (ops.abs(x) // ops.abs(y)) * (ops.sign(x) * ops.sign(y))


def check_divisors(values: Tensor) -> None:
    """Raise an error for a known divisor 0; in a recorded function floats become infinite."""
    if not isinstance(values, RecordedTensor) and (np.asarray(values.numpy()) == 0).any():
        raise InvalidArgumentError("updates must not contain 0 [Op:ResourceScatterDiv]")
