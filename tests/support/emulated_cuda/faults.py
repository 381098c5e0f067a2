"""Errors of the emulator: CUDA's own, which the library has to cope with, and its mistakes.

The classes of CUDA's are CuPy's, so that what catches them cannot tell the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

from cupy.cuda import driver
from cupy.cuda.runtime import CUDARuntimeError

# cudaError_t, of what is raised by name here.
INVALID_VALUE = 1
MEMORY_ALLOCATION = 2
INVALID_DEVICE = 101
INVALID_CONTEXT = 201
PEER_ACCESS_UNSUPPORTED = 217
INVALID_RESOURCE_HANDLE = 400
ILLEGAL_STATE = 401
NOT_READY = 600
ILLEGAL_ADDRESS = 700
PEER_ACCESS_ALREADY_ENABLED = 704
CAPTURE_UNSUPPORTED = 900
CAPTURE_INVALIDATED = 901
CAPTURE_MERGE = 902
CAPTURE_UNMATCHED = 903
CAPTURE_UNJOINED = 904
CAPTURE_ISOLATION = 905
CAPTURE_IMPLICIT = 906
CAPTURED_EVENT = 907
CAPTURE_WRONG_THREAD = 908

# Every later call on the card gives these again, until the process ends.
STICKY = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999})


class EmulatorError(AssertionError):
    """What a real GPU would do wrong, or crash at, without a word."""


def error(status: int, *, launch: bool = False) -> RuntimeError:
    """Return CuPy's error for a status; kernels are launched through the driver's functions."""
    plain: RuntimeError = CUDARuntimeError(status)
    if not launch:
        return plain
    # Its constructor asks the driver for the text, and there is none here.
    made: RuntimeError = driver.CUDADriverError.__new__(driver.CUDADriverError)
    name, _, text = str(plain).partition(": ")
    made.args = (f"{name}: {text}",)
    made.status = status  # type: ignore[attr-defined]
    return made


@dataclass
class Injected:
    """Failures to come.

    Args:
        functions: The names of the functions, as `cupy.cuda.runtime` has them; 'launchKernel' for
            kernels.
        status: What they give.
        after: How many calls of them are left, the first failing one included.
        times: How many calls fail, one after the other.
    """

    functions: tuple[str, ...]
    status: int
    after: int
    times: float = 1
