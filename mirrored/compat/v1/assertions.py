"""TensorFlow 1's assertions: operations that look at values, and stop a run with wrong ones.

They run where somebody waits for them, as by `control_dependencies`.
"""

from collections.abc import Callable
from typing import Any

from mirrored import debugging
from mirrored.compat.v1.elements import Operation
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.sources import converted

# The comparisons of two tensors, what is asked of one, and what is asked of its number of axes.
OF_TWO = (
    *("assert_equal", "assert_none_equal", "assert_less", "assert_less_equal"),
    *("assert_greater", "assert_greater_equal"),
)
OF_ONE = (*("assert_positive", "assert_negative", "assert_non_positive", "assert_non_negative"),)
OF_RANK = ("assert_rank", "assert_rank_at_least")


def assertion(name: str) -> Callable[..., Operation]:
    """Return the function of a name.

    Args:
        name: One of the tables'.
    """
    function = getattr(debugging, name)
    if name in OF_ONE:
        return _of_one(name, function)
    return _of_two(name, function) if name in OF_TWO else _of_rank(name, function)


def _of_two(default: str, function: Callable[..., Any]) -> Callable[..., Operation]:
    def check(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        """Draw an operation that raises InvalidArgumentError unless all elements are so.

        Args:
            x: A tensor.
            y: Another one.
            data: Accepted for compatibility: the values of both are told.
            summarize: How many of them.
            message: What the error begins with.
            name: Its name.
        """
        told = {"message": message, "summarize": summarize}
        return _drawn(function, {"x": x, "y": y}, told, name or default)

    check.__name__ = default
    return check


def _of_one(default: str, function: Callable[..., Any]) -> Callable[..., Operation]:
    def check(
        x: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        """Draw an operation that raises InvalidArgumentError unless all elements are so.

        Args:
            x: A tensor.
            data: Accepted for compatibility: the values are told.
            summarize: How many of them.
            message: What the error begins with.
            name: Its name.
        """
        told = {"message": message, "summarize": summarize}
        return _drawn(function, {"x": x}, told, name or default)

    check.__name__ = default
    return check


def _of_rank(default: str, function: Callable[..., Any]) -> Callable[..., Operation]:
    def check(
        x: Any,
        rank: int,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Operation:
        """Draw an operation that raises ValueError unless a tensor has so many axes.

        Args:
            x: A tensor.
            rank: How many.
            data: Accepted for compatibility, like the next one.
            summarize: Accepted for compatibility.
            message: What the error begins with.
            name: Its name.
        """
        told = {"message": message}
        return _drawn(lambda x, **told: function(x, rank, **told), {"x": x}, told, name or default)

    check.__name__ = default
    return check


def _drawn(
    function: Callable[..., Any], given: dict[str, Any], told: dict[str, Any], name: str
) -> Operation:
    graph = graph_of(given)
    with graph.as_default(), graph.name_scope(name) as scope:
        tensors = [converted(value, name=each) for each, value in given.items()]

        def check(*values: Any) -> None:
            function(*values, **told)

        operation: Operation = graph.draw(check, tensors, kind="Assert", name=scope, runs_only=True)
        return operation
