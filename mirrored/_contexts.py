"""A context in which a context variable has a value, and afterwards the one before.

Contexts that are entered with every operation use it: it takes less time than a generator.
"""

from contextvars import ContextVar
from typing import Any, TypeVar

_T = TypeVar("_T")


class Within:
    """The context in which a context variable has a value. It is entered once.

    Args:
        variable: The variable.
        value: The value.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        self._variable: ContextVar[Any] = variable
        self._value = value

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)
