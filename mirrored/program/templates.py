"""Recordings without their variables, which are bound to other variables of the same kinds.

Programs for one kind of call run one at a time, and share the memory that they compute in. Whether
a function reaches a variable in another way than by its arguments is looked for where its names
lead: what that finds may be too much, never what they hold now.
"""

import gc
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored.devices import Device
from mirrored.ops.tensor import Tensor
from mirrored.program.buffers import Arenas
from mirrored.program.function_arguments import Arguments
from mirrored.program.trace_cache import Trace, TraceCache

if TYPE_CHECKING:  # Most machines never need it.
    from mirrored.program.rewriting import Template


_MOST_OBJECTS = 20_000  # Objects that are looked at, which takes some milliseconds.
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
        if len(seen) > _MOST_OBJECTS:
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


_MOST = 64


class Templates:
    """A function's recordings without the variables that they were made for, by kinds of calls."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: OrderedDict[Any, tuple[Template, Trace]] = OrderedDict()

    def add(self, key: Any, trace: Trace, arguments: Arguments) -> Trace:
        """Keep a recording without its variables where it serves others; return that of the call.

        Args:
            key: The kind of the call.
            trace: The recording, which is not to be used from now on.
            arguments: What it was made for.
        """
        from mirrored.program.rewriting import template_of  # Few calls are given variables.

        template = template_of(trace.graph, arguments.copies())
        if template is None:
            return trace
        trace.arenas = Arenas()
        bound = _bound(template, trace, arguments)
        bound.outline = trace.outline
        bound.program(bound.arenas)  # Where there is no room for it, neither is kept.
        self._known[key] = template, trace
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return bound

    def bound(self, key: Any, arguments: Arguments) -> Trace | None:
        """Return a recording bound to the variables of a call, where there is one for its kind.

        Args:
            key: The kind of the call.
            arguments: The call's arguments.

        Raises:
            ResourceExhaustedError: A device has no room for it.
        """
        known = self._known.get(key)
        if known is None or not known[0].takes(arguments.copies()):
            return None
        self._known.move_to_end(key)
        bound = _bound(*known, arguments)
        bound.program(bound.arenas)
        return bound


def may_share(function: Any, arguments: Arguments) -> bool:
    """Return whether a function comes to the variables of a call by its arguments alone.

    Args:
        function: The function of Python.
        arguments: The call's arguments.
    """
    variables = [*arguments.variables, *arguments.copies()]
    return not reaches([function, *arguments.known], variables, (TraceCache, Templates))


def _bound(template: "Template", source: Trace, arguments: Arguments) -> Trace:
    graph = template.bound(arguments.copies())
    trace = Trace(graph, source.replicas, source.results, source.kept, None, source.arenas)
    trace.watch(arguments.variables)
    return trace
