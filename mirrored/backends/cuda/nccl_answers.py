"""NCCL's status codes and version in words, and its own messages.

Errors have all of it, since who sees them hours into a run has nothing else to go by.
"""

import ctypes
from typing import Any

_STATUS = {
    1: "ncclUnhandledCudaError",
    2: "ncclSystemError",
    3: "ncclInternalError",
    4: "ncclInvalidArgument",
    5: "ncclInvalidUsage",
    6: "ncclRemoteError",
    7: "ncclInProgress",
    8: "ncclTimeout",
}


def said(library: Any, function: str, status: int) -> str:
    """Return what a function answered, and NCCL's own words."""
    answer = f"{function} answered {_STATUS.get(status, 'an unknown status')} ({status})"
    text = _last_error(library)
    # It keeps them until it has others.
    return (
        f"{answer}; its last message, perhaps of an earlier call, is {text!r}" if text else answer
    )


def number_of_version(library: Any) -> int:
    """Return the version of a loaded NCCL as it writes it: 22703 is 2.27.3."""
    value = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(value))  # It fails for no pointer alone.
    return value.value


def _last_error(library: Any) -> str:
    """Return NCCL's own words of what went wrong last, an empty string where it has none."""
    function = library.ncclGetLastError
    function.restype = ctypes.c_char_p  # Else a pointer would be cut to an int.
    text = function(ctypes.c_void_p())
    return text.decode(errors="replace").strip() if text else ""
