"""Libraries of C functions that are written in Python, as ctypes gives them.

Calls go through C, so that an argument of the wrong width is as wrong as with the real library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from typing import Any

Function = Callable[..., int]


class Library:
    """What `ctypes.CDLL` would return.

    Args:
        functions: For each name the types of the parameters, and what is called with them; it
            returns a status.
        texts: The names of those that return the address of text instead. Who calls them has to
            set their `restype`, as with the real library.
    """

    def __init__(
        self,
        functions: dict[str, tuple[list[Any], Function]],
        texts: Collection[str] = (),
    ) -> None:
        plain = ctypes.CDLL(None)
        for name, (types, function) in functions.items():
            returned = ctypes.c_void_p if name in texts else ctypes.c_int
            callback = ctypes.CFUNCTYPE(returned, *types)(function)
            address = ctypes.cast(callback, ctypes.c_void_p).value or 0
            made: Any = plain._FuncPtr(address)
            made.called = callback  # Whoever keeps the one keeps the other.
            setattr(self, name, made)


def write(pointer: int | None, value: Any) -> None:
    """Write a value of ctypes to where a pointer points."""
    if pointer:
        ctypes.memmove(pointer, ctypes.addressof(value), ctypes.sizeof(value))


def write_text(pointer: int | None, length: int, text: str) -> bool:
    """Write text and the 0 behind it; return whether there is room."""
    data = text.encode() + b"\0"
    if not pointer or len(data) > length:
        return False
    ctypes.memmove(pointer, data, len(data))
    return True
