"""Tensors from and for other libraries, by capsules of DLPack.

What takes the objects themselves, as `np.from_dlpack` does, needs no function of this module.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import constant
from mirrored.ops.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Capsule:  # No tuple: NumPy 2.0 would unpack it.
    """A capsule as an object that has the protocol."""

    capsule: Any

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def to_dlpack(tf_tensor: TensorLike) -> Any:
    """Return a tensor's values as a capsule of DLPack: a copy on the host, to be read once.

    Args:
        tf_tensor: The tensor.

    Raises:
        InvalidArgumentError: It is none.

    Example:
        >>> import mirrored as mr
        >>> capsule = mr.experimental.dlpack.to_dlpack(mr.constant([1.0, 2.0]))
        >>> mr.experimental.dlpack.from_dlpack(capsule).numpy()
        array([1., 2.], dtype=float32)
    """
    if not isinstance(tf_tensor, Tensor):
        raise InvalidArgumentError(
            "The argument to `to_dlpack` must be a tensor, not another Python object. Received: "
            f"{tf_tensor!r:.80}"
        )
    return tf_tensor.__dlpack__()


def from_dlpack(dlcapsule: Any) -> Tensor:
    """Return a tensor of a copy of what a capsule of DLPack holds, which is on the host.

    Args:
        dlcapsule: The capsule. (An array or a tensor of another library goes to
            `convert_to_tensor`.)

    Raises:
        TypeError: It is none, or its dtype is none that tensors have.
        BufferError: It is not on the host.

    Example:
        >>> import numpy as np
        >>> import mirrored as mr
        >>> mr.experimental.dlpack.from_dlpack(np.arange(3).__dlpack__()).numpy()
        array([0, 1, 2])
    """
    if type(dlcapsule).__name__ != "PyCapsule":
        raise TypeError(
            "`from_dlpack` takes a capsule, the result of `x.__dlpack__()`. Received: "
            f"{dlcapsule!r:.80}. Pass an array to mr.convert_to_tensor."
        )
    try:
        array = np.from_dlpack(_Capsule(dlcapsule))
    except (RuntimeError, ValueError) as error:
        raise BufferError(
            f"{error}: a capsule must be on the host and is read only once."
        ) from None
    return constant(array)
