"""A context in which a context variable has a value, and afterwards the one before.

Contexts that are entered with every operation use it: it takes less time than a generator.
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")
Context = AbstractContextManager[None]


class Within:
    """The context in which a context variable has a value. It is entered once.

    Args:
        variable: The variable.
        value: The value.
        *others: Contexts that are entered and left with it, and that raise nothing.
    """

    __slots__ = ("_others", "_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_T], value: _T, *others: Context) -> None:
        self._variable: ContextVar[Any] = variable
        self._value, self._others = value, others

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)
        for other in self._others:
            other.__enter__()

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            other.__exit__(None, None, None)
        self._variable.reset(self._token)


@contextmanager
def without_collector() -> Iterator[None]:
    """Within this context nothing looks for garbage in reference cycles, unless code asks for it.

    Where a program is recorded, most new objects stay, and looking through all of them takes long.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
