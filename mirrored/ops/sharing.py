"""Tensors' memory for other libraries: to be read where it is, since tensors do not change.

Those that cannot be told so are given a copy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class _Lent:
    """What an array on a tensor's memory keeps: the tensor, and where its values are."""

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: Any) -> None:
        interface = np.asarray(tensor._array).__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], True)}
        self._tensor = tensor


def is_readable(tensor: Any) -> bool:
    """Return whether the host can read a tensor's memory.

    Args:
        tensor: The tensor.
    """
    return bool(tensor._device.backend.host_readable)


def shared(tensor: Any) -> NDArray[Any]:
    """Return the values where they are, for reading; their memory is counted as long.

    Args:
        tensor: The tensor, which the host can read.
    """
    tensor._device.backend.synchronize()
    return np.asarray(_Lent(tensor)).view(tensor.dtype)


def capsule(
    tensor: Any,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[Any, int] | None,
    copy: bool | None,
) -> Any:
    """Return the values as a capsule of DLPack; the arguments are those of its protocol."""
    is_told = max_version is not None and max_version[0] >= 1
    if copy is not True and is_told and is_readable(tensor):
        array = shared(tensor)
    elif copy is False:
        raise BufferError(
            "A tensor does not change, so its memory is shared with those alone that can be told "
            "so, on the host. Received: copy=False. Leave `copy` unset."
        )
    else:
        array = np.asarray(tensor.numpy())
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device}
    keywords = {name: value for name, value in options.items() if value is not None}
    return array.__dlpack__(**keywords)
