"""Values for many variables, of which all are assigned or none.

What a device has no room for is known before the first one is written.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mirrored._interrupt import InterruptGuard
from mirrored.program.variable_access import variable_writes
from mirrored.variables.variable import Variable


def assign_together(values: Iterable[tuple[Variable, Any]]) -> None:
    """Assign values to variables, all of them or none.

    Args:
        values: As `assigned_together` takes them.
    """
    with assigned_together(values):
        pass


@contextmanager
def assigned_together(values: Iterable[tuple[Variable, Any]]) -> Iterator[None]:
    """Assign values to variables; interrupts wait until the context ends too.

    Args:
        values: Variables and arrays that fit them. Each array is let go before the next one is
            asked for, so that a file need not be in memory as a whole.
    """
    with variable_writes:
        prepared = [
            pair for variable, value in values for pair in variable.prepare("assign", value)
        ]
        with InterruptGuard(whole=True):  # Half of the state would be none.
            for copy, value in prepared:
                copy.commit(value)
            prepared.clear()
            yield
