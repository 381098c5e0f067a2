"""Sparse values: some rows of a tensor, and where in it they belong.

The gradient of a large table touches a few rows; summing those alone is less to add and to send.
"""

from collections.abc import Sequence

from mirrored import devices
from mirrored._types import TensorLike
from mirrored.devices import Device
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt
from mirrored.ops.shaping import expand_dims
from mirrored.ops.spec import INDICES, DType, as_shape
from mirrored.ops.tensor import Tensor


class IndexedSlices:
    """Rows of a tensor whose other rows are zero. Ops take it as that tensor.

    Args:
        values: The rows, of shape (n, ...).
        indices: Where each row belongs, of shape (n,) and an integer dtype. Rows with the same
            index count together.
        dense_shape: The shape of the whole tensor; None: not known, and no op takes it.

    Raises:
        InvalidArgumentError: Shapes that do not go together, or indices that are not integers.
        TypeError: `dense_shape` is not made of integers.

    Example:
        >>> import mirrored as mr
        >>> slices = mr.distribute.IndexedSlices([[1.0, 2.0]], [1], dense_shape=(3, 2))
        >>> mr.convert_to_tensor(slices).numpy()
        array([[0., 0.],
               [1., 2.],
               [0., 0.]], dtype=float32)
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(
        self, values: TensorLike, indices: TensorLike, dense_shape: Sequence[int] | None = None
    ) -> None:
        self.values = adopt(values, None)
        with devices.device(self.values._device):
            self.indices = adopt(indices, None)
        self.dense_shape = None if dense_shape is None else as_shape(dense_shape)
        rows = self.values.shape[:1]
        if self.indices.dtype not in INDICES or not rows or self.indices.shape != rows:
            raise InvalidArgumentError(
                "IndexedSlices must have one integer index per row. Received: values of shape "
                f"{self.values.shape} and indices of shape {self.indices.shape} and dtype "
                f"{self.indices.dtype.name}."
            )
        if self.dense_shape is not None and (
            not self.dense_shape or self.dense_shape[1:] != self.values.shape[1:]
        ):
            raise InvalidArgumentError(
                "The rows of IndexedSlices must have the shape of the rows of `dense_shape`. "
                f"Received: values of shape {self.values.shape} and "
                f"dense_shape={self.dense_shape}."
            )

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self.values.dtype

    @property
    def device(self) -> str:
        """The full name of the logical device that holds the rows."""
        return self.values.device

    def copy_to(self, device: Device) -> "IndexedSlices":
        """Return these rows where they are on `device` already, else a copy there."""
        values, indices = self.values.copy_to(device), self.indices.copy_to(device)
        return IndexedSlices(values, indices, self.dense_shape)

    def _as_tensor(self) -> Tensor:
        """Return the whole tensor, on the device of the rows."""
        from mirrored.ops.scattering import scatter_nd  # Needed here only.

        shape = self.dense_shape
        if shape is None:
            raise ValueError(
                f"Tensor conversion requested for IndexedSlices without dense_shape: {self!r}. "
                "Pass `dense_shape`."
            )

        with devices.device(self.values._device):
            return scatter_nd(expand_dims(self.indices, 1), self.values, shape)

    def __repr__(self) -> str:
        return (
            f"IndexedSlices(indices={self.indices!s}, values={self.values!s}, "
            f"dense_shape={self.dense_shape})"
        )
