"""CUDA driver functions called through ctypes, which releases the GIL.

CuPy holds it while it asks for an event. Where the driver keeps one thread waiting, and with it all
that ask it, the others have to go on in Python: they see to deadlines.
"""

import ctypes
from functools import cache
from typing import Any

from mirrored.backends.cuda import nvml

DONE, NOT_READY = 0, 600  # Of a query. What is neither is an error, numbered as the runtime's are.


@cache
def load() -> Any:
    """Return the driver's library, which is loaded in any process that uses a card."""
    return ctypes.CDLL(nvml.DRIVER)


def query(event: int) -> int:
    """Return what the driver says of an event, given by its handle."""
    return int(load().cuEventQuery(ctypes.c_void_p(event)))
