"""Recordings without their variables, which are bound to other variables of the same kinds.

Programs for one kind of call run one at a time, and share the memory that they compute in.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from mirrored.program.arguments import Arguments
from mirrored.program.buffers import Arenas
from mirrored.program.reachable import reaches
from mirrored.program.trace_cache import Trace, TraceCache

if TYPE_CHECKING:
    from mirrored.program.rebinding import Template

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
        from mirrored.program.rebinding import template_of  # Few calls are given variables.

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
