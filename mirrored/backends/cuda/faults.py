"""Translates CUDA's errors: out of memory, a lost device, and all others.

They are told apart without importing CuPy: where it was never imported it raised nothing.
"""

import sys
from types import TracebackType

from mirrored.backends.backend import OutOfPoolMemory
from mirrored.errors import DeviceLostError

# Where CuPy defines the errors that carry a status of CUDA's, which are numbered alike.
_WITH_A_STATUS = (
    ("cupy_backends.cuda.api.runtime", "CUDARuntimeError"),
    ("cupy_backends.cuda.api.driver", "CUDADriverError"),
)
_OUT_OF_MEMORY = ("cupy.cuda.memory", "OutOfMemoryError")

_TOO_LITTLE_MEMORY = 2

# Those of which CUDA's documentation says that the process must end, and two of the hardware after
# which nothing on the card can be trusted: 214, memory that cannot be corrected, and 999.
_STICKY = frozenset({214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999})

_ADVICE = {
    3: "A process that was forked from one that uses CUDA cannot use it: start processes with "
    "multiprocessing's method 'spawn'.",
    46: "Another program has the card for itself: end it, or see `nvidia-smi -q -d COMPUTE`.",
    100: "`nvidia-smi` shows which cards the driver has, and CUDA_VISIBLE_DEVICES may hide them.",
    101: "CUDA does not see the card: set CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER before the "
    "devices are listed, and do not change them after.",
    209: "The kernels were compiled for another card. Install the newest CuPy.",
    803: "The NVIDIA driver was upgraded while the machine ran: restart it.",
    804: "The compatibility libraries of this container do not support the card: use an image for "
    "the driver's version of CUDA.",
}
_OTHERWISE = (
    "If it happens again, please report it with the output of `python -m mirrored devices`."
)


class translated:
    """A context whose CUDA errors leave it as errors of the library.

    It has no state, so one may be entered again, inside itself and on several threads.

    Args:
        device: What to call the device in messages.
        asked: The bytes that are asked for inside, for errors of memory.

    Raises:
        OutOfPoolMemory: The card has too little memory.
        DeviceLostError: The card, or this process's work on it, cannot go on.
        RuntimeError: Any other error of CUDA's.

    Example:
        >>> with translated("NVIDIA H200 at 0000:01:00.0"):
        ...     raise ValueError("no error of CUDA's")
        Traceback (most recent call last):
        ValueError: no error of CUDA's
    """

    __slots__ = ("_asked", "_device")

    def __init__(self, device: str, *, asked: int = 0) -> None:
        self._device = device
        self._asked = asked

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        known = None if error is None else translation(error, self._device, self._asked)
        if known is not None:
            try:
                raise known from error
            finally:
                del known  # Else it would keep this frame, which keeps it, and arrays with both.


def translation(error: BaseException, device: str, asked: int = 0) -> Exception | None:
    """Return an error of CUDA's as one of the library; None for any other error."""
    status = _status(error)
    if status is None:
        return None
    if status == _TOO_LITTLE_MEMORY:
        return OutOfPoolMemory(asked, None)
    if status in _STICKY:
        return DeviceLostError(
            f"{device} failed, and this process cannot use it any more. Received: "
            f"{error}. End the process and start it again; what is on the host, such as a "
            "checkpoint that was read or data, can still be saved."
        )
    return RuntimeError(
        f"{device} refused what was asked of it. Received: {error}. {advice(status)}"
    )


def advice(status: int | None) -> str:
    """Return what to do about a status of CUDA's.

    Example:
        >>> advice(803)
        'The NVIDIA driver was upgraded while the machine ran: restart it.'
    """
    return _ADVICE.get(status, _OTHERWISE) if status is not None else _OTHERWISE


def _status(error: BaseException) -> int | None:
    """Return the status of an error of CUDA's, None for any other error."""
    for module, name in _WITH_A_STATUS:
        if _is_a(error, module, name):
            return int(error.status)  # type: ignore[attr-defined]
    return _TOO_LITTLE_MEMORY if _is_a(error, *_OUT_OF_MEMORY) else None


def _is_a(error: BaseException, module: str, name: str) -> bool:
    defined = getattr(sys.modules.get(module), name, None)
    return isinstance(defined, type) and isinstance(error, defined)
