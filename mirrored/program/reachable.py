"""Whether a function can come to an object by another way than its arguments.

It looks where the function's names lead: what that finds may be too much, never what they hold now.
"""

import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from mirrored.devices import Device
from mirrored.ops.tensor import Tensor

_MOST = 20_000  # Objects that are looked at, which takes some milliseconds.


def reaches(roots: Iterable[Any], wanted: Iterable[Any], beside: tuple[type, ...] = ()) -> bool:
    """Return whether functions and objects lead to one of some objects, or to too many to tell.

    Args:
        roots: Where to begin.
        wanted: The objects.
        beside: Types of what is not looked into.
    """
    stack, found, targets = list(roots), set[int](), {id(each) for each in wanted}
    closed = (ModuleType, type, str, bytes, int, float, np.ndarray, Tensor, Device, *beside)
    while stack:
        each = stack.pop()
        if id(each) in targets:
            return True
        if id(each) in found or isinstance(each, closed):
            continue
        found.add(id(each))
        if len(found) > _MOST:
            return True
        is_function = isinstance(each, FunctionType)
        stack += _held_by(each) if is_function else gc.get_referents(each)
    return False


def _held_by(function: FunctionType) -> Iterator[Any]:
    """Yield what a function refers to, of its module only what it names."""
    yield from (function.__closure__, function.__defaults__, function.__kwdefaults__)
    yield function.__dict__
    module = function.__globals__
    yield from (module[name] for name in _names(function.__code__) if name in module)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
