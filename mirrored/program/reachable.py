"""Whether a function can reach an object in another way than by its arguments.

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
_OWN = __name__.partition(".")[0]  # What has no user's objects in its modules.
# What a function asks of objects that tells one from its like: `id(v)` and `v.name`.
_TELLING = frozenset(("id", "name"))


def reaches(roots: Iterable[Any], wanted: Iterable[Any], beside: tuple[type, ...] = ()) -> bool:
    """Return whether functions and objects lead to one of some objects, or may do.

    They may where they lead to too many to tell, or ask what tells one object from its like.

    Args:
        roots: Where to begin.
        wanted: The objects.
        beside: Types of what is not looked into.
    """
    stack, seen, targets = list(roots), set[int](), {id(target) for target in wanted}
    closed = (ModuleType, type, str, bytes, int, float, np.ndarray, Tensor, Device, *beside)
    while stack:
        node = stack.pop()
        if id(node) in targets:
            return True
        if id(node) in seen or issubclass(type(node), closed):  # A proxy says that it is another.
            continue
        seen.add(id(node))
        if len(seen) > _MOST:
            return True
        if not isinstance(node, FunctionType):
            stack += gc.get_referents(node)
            continue
        stack += (node.__closure__, node.__defaults__, node.__kwdefaults__, node.__dict__)
        if str(node.__module__).partition(".")[0] != _OWN:
            names, module = set(_names(node.__code__)), node.__globals__
            if not names.isdisjoint(_TELLING):
                return True
            stack += [module[name] for name in names if name in module]
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
