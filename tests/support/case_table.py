"""A test of many small cases as one: pytest takes longer to set up a test than most cases run.

`cases` is used as `pytest.mark.parametrize` is. A failure names its case in a note.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

_Test = Callable[..., None]


def cases(
    names: str | Sequence[str],
    rows: Iterable[Any],
    ids: Iterable[Any] | Callable[[Any], Any] = repr,
    *,
    clean: bool = True,
) -> Callable[[_Test], _Test]:
    """Return a decorator that runs a test for each row, all of them.

    Args:
        names: The parameters that a row has values for, with commas in between or as a sequence.
        rows: Tuples of values; single values for a single name.
        ids: Names of the rows, for errors, or a function of each value that returns its name.
        clean: Whether each starts from a clean state, or all share the devices of the fixtures.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    single = len(parameters) == 1 and (not isinstance(names, str) or "," not in names)
    listed = list(rows)
    if any(isinstance(row, type(pytest.param())) for row in listed):
        raise TypeError(
            "`cases` knows no pytest.param. Name the rows in `ids`; for marks, leave it."
        )
    table = [dict(zip(parameters, [row] if single else row, strict=True)) for row in listed]
    labels = None if callable(ids) else list(ids)

    def label(index: int) -> str:
        if labels is None:
            return ", ".join(str(ids(value)) for value in table[index].values())  # type: ignore[operator]
        return str(labels[index])

    def decorator(test: _Test) -> _Test:
        signature = inspect.signature(test)
        kept = {
            name: parameter
            for name, parameter in signature.parameters.items()
            if name not in parameters
        }
        own_reset = "reset" not in kept
        if own_reset:
            kept["reset"] = inspect.Parameter("reset", inspect.Parameter.KEYWORD_ONLY)

        @functools.wraps(test)
        def run(*, reset: Callable[[], None], **fixtures: Any) -> None:
            if not own_reset:
                fixtures["reset"] = reset
            errors: list[BaseException] = []
            for index, values in enumerate(table):
                if clean:
                    reset()
                try:
                    test(**fixtures, **values)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    error.add_note(f"It was the case {label(index)}")
                    errors.append(error)
            if len(errors) == 1:
                raise errors[0]
            if errors:
                raise BaseExceptionGroup(f"{len(errors)} of {len(table)} cases fail", errors)

        run.__signature__ = signature.replace(parameters=list(kept.values()))  # type: ignore[attr-defined]
        return run

    return decorator
