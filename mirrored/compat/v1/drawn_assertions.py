"""TensorFlow 1's assertions: operations that look at values, and stop a run with wrong ones.

They run where somebody waits for them, as by `control_dependencies`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mirrored._types import TensorLike
from mirrored.compat.v1.drawn_calls import eager_name, named_arguments
from mirrored.compat.v1.graph import drawing
from mirrored.compat.v1.graph_elements import Operation
from mirrored.compat.v1.sources import converted

_OF_TWO = (
    *("assert_equal", "assert_none_equal", "assert_less", "assert_less_equal"),
    *("assert_greater", "assert_greater_equal"),
)
_OF_ONE = ("assert_positive", "assert_negative", "assert_non_positive", "assert_non_negative")
_OF_RANK = ("assert_rank", "assert_rank_at_least")
# The arguments of each in TensorFlow 1's order.
ASSERTIONS = {
    **dict.fromkeys(_OF_TWO, "x y data summarize message name"),
    **dict.fromkeys(_OF_ONE, "x data summarize message name"),
    **dict.fromkeys(_OF_RANK, "x rank data summarize message name"),
    "assert_near": "x y rtol atol data summarize message name",
    "assert_rank_in": "x ranks data summarize message name",
}
_TENSORS = ("x", "y")


def assertion(name: str) -> Callable[..., Operation]:
    """Return the function of a name: it draws an operation that raises for wrong values.

    Args:
        name: One of the table's.
    """
    function = eager_name("debugging", name)
    order = {parameter: parameter for parameter in ASSERTIONS[name].split()}
    takes = inspect.signature(function).parameters

    def check(*args: Any, **kwargs: Any) -> Operation:
        arguments = named_arguments(name, order, args, kwargs)
        for parameter in arguments.keys() - order:
            raise TypeError(f"{name}() got an unexpected keyword argument {parameter!r}")
        called = arguments.pop("name", None) or name
        tensors = {key: arguments.pop(key) for key in _TENSORS if key in arguments}
        settings = {key: value for key, value in arguments.items() if key in takes}
        with drawing(called, tensors) as (graph, scope):
            inputs = [converted(value, name=key) for key, value in tensors.items()]
            compute = functools.partial(function, **settings)
            return graph.draw(compute, inputs, kind="Assert", name=scope, runs_only=True)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(parameter, kind) for parameter in order]
    vars(check)["__signature__"] = inspect.Signature(parameters)
    check.__name__ = name
    check.__doc__ = f"Draw an operation that raises unless `debugging.{name}` holds in a run."
    return check


def Assert(
    condition: TensorLike,
    data: Sequence[Any],
    summarize: int | None = None,
    name: str | None = None,
) -> Operation:
    """Draw an operation that raises InvalidArgumentError in a run unless a condition is true.

    Args:
        condition: A boolean tensor.
        data: A list of what the error shows: tensors, numbers and texts.
        summarize: The number of elements shown of each; None: 3.
        name: The operation's name.

    Raises:
        TypeError: `data` is no list.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [])
        ...     with tf.control_dependencies([tf.Assert(x > 0.0, ["x is", x])]):
        ...         root = tf.sqrt(x)
        ...     float(session.run(root, {x: 4.0}))
        2.0
    """
    if not isinstance(data, list | tuple):
        raise TypeError(f"`data` must be a list of values for the error. Received: {data!r:.100}")
    with drawing(name or "Assert", condition, data) as (graph, scope):
        held = converted(condition, "bool", "condition")
        shown = [
            value if isinstance(value, str) else converted(value, name=f"data_{index}")
            for index, value in enumerate(data)
        ]

        def check(held: Any, *values: Any) -> None:
            eager_name("debugging", "Assert")(held, values, summarize)

        return graph.draw(check, (held, *shown), kind="Assert", name=scope, runs_only=True)


def __getattr__(name: str) -> Any:
    if name in ASSERTIONS:
        return assertion(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
