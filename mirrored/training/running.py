"""Which models run just now: these are neither copied nor lose their devices meanwhile.

It is known for all threads, since what one of them runs another one could take away.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirrored.devices import refuse_reset_where

_running: list[tuple[Any, str]] = []


@contextmanager
def running(model: Any, method: str) -> Iterator[None]:
    """Within this context a model runs.

    Args:
        model: The model.
        method: The name of the method, as in "fit".
    """
    entry = (model, method)
    _running.append(entry)
    try:
        yield
    finally:
        _running.remove(entry)


def what_runs(model: Any) -> str | None:
    """Return the name of the method that a model runs, the outermost one; None: it is at rest.

    Args:
        model: The model.
    """
    return next((method for each, method in _running if each is model), None)


refuse_reset_where(lambda: f"a running `{_running[0][1]}`" if _running else None)
