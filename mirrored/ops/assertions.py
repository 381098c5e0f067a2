"""Comparisons of tensors that raise where they do not hold, as `tf.debugging` has them.

In a recorded function they look at the values in each run, before anything is written.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.ops.checks import FEW, listed, require
from mirrored.ops.comparison import equal, greater, greater_equal, less, less_equal, not_equal
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import ABS, ADD, MUL, SUB
from mirrored.ops.hooks import only
from mirrored.ops.spec import FLOATS, bool_, is_bfloat16
from mirrored.ops.tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., None])


def _compare(
    sign: str, function: Callable[..., Tensor], x: Any, y: Any, message: Any, summarize: Any
) -> None:
    """Raise InvalidArgumentError unless a comparison holds for all elements."""
    shown = FEW if summarize is None else summarize

    def text(held: Any, x: Any, y: Any) -> str:
        x, y = np.asarray(x), np.asarray(y)
        lines = [] if message is None else [f"{message}"]
        lines.append(f"Condition x {sign} y did not hold.")
        if x.shape == y.shape and x.ndim:
            places = np.argwhere(~np.asarray(held))
            places = places if shown < 0 else places[:shown]
            at = tuple(places.T)
            lines.append(f"Indices of first {len(places)} different values:\n{places}")
            lines.append(f"Corresponding x values:\n{x[at]}\nCorresponding y values:\n{y[at]}")
        for name, array in (("x", x), ("y", y)):
            first = array.ravel() if shown < 0 else array.ravel()[:shown]
            lines.append(f"First {first.size} elements of {name}:\n{first}")
        return "\n".join(lines)

    with only():
        left, right = convert_to_tensor(x), convert_to_tensor(y)
        require(text, function(left, right), left, right)


def assert_equal(
    x: TensorLike,
    y: TensorLike,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise unless `x` and `y` are equal, element by element; one of them may broadcast.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        y: Another one, of the same dtype.
        message: What the error begins with.
        summarize: Of how many elements it tells: 3 for None, all for a negative number.
        name: Accepted for compatibility; nothing has names here.

    Raises:
        InvalidArgumentError: They are not, or have other shapes or dtypes.
        OperatorNotAllowedInGraphError: It is in a function that is recorded for a real GPU.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_equal([1, 2], [1, 3], message="Not so.")
        Traceback (most recent call last):
        mirrored.errors.InvalidArgumentError: Not so.
        Condition x == y did not hold.
        Indices of first 1 different values:
        [[1]]
        ...
    """
    if x is not y:
        _compare("==", equal, x, y, message, summarize)


def assert_none_equal(
    x: TensorLike,
    y: TensorLike,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise unless each element of `x` differs from that of `y`; otherwise as `assert_equal`.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        y: Another one, of the same dtype.
        summarize: Of how many elements the error tells.
        message: What it begins with.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Some are equal, or the shapes or dtypes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_none_equal([1, 2], [2, 1])
    """
    _compare("!=", not_equal, x, y, message, summarize)


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: TensorLike | None = None,
    atol: TensorLike | None = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise unless |x - y| < atol + rtol * |y|, element by element; one of them may broadcast.

    Args:
        x: Floats.
        y: Others, of the same dtype.
        rtol: The relative tolerance; None: ten times the distance from 1 to the next number.
        atol: The absolute tolerance; likewise.
        message: What the error begins with.
        summarize: Of how many elements it tells.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It is not so, or the shapes or dtypes do not fit.
        ValueError: They are integers or bfloat16, of which NumPy knows no such distance.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_near([1.0, 2.0], [1.0, 2.0000001])
    """
    with only():
        left = convert_to_tensor(x)
        right = adopt(y, left.dtype)
        if left.dtype not in FLOATS or is_bfloat16(left.dtype):
            raise ValueError(
                f"data type {left.dtype.name} not inexact. Compare its values by assert_equal."
            )
        epsilon = 10 * np.finfo(left.dtype).eps
        relative, absolute = (epsilon if value is None else value for value in (rtol, atol))
        tolerance = ADD(MUL(ABS(right), adopt(relative, left.dtype)), adopt(absolute, left.dtype))

        def text(held: Any, x: Any, y: Any) -> str:
            said = f"x and y not equal to tolerance rtol = {relative}, atol = {absolute}"
            return _summarized(message, said, {"x": x, "y": y}, summarize)

        require(text, less(ABS(SUB(left, right)), tolerance), left, right)


def _summarized(
    message: str | None, said: str, named: dict[str, Any], summarize: int | None
) -> str:
    """Return an error's text with some values of arrays in it."""
    lines = ["" if message is None else f"{message}.  ", said]
    for name, array in named.items():
        array = np.asarray(array)
        lines.append(f"{name} (shape={array.shape} dtype={array.dtype.name}) = ")
        lines.append(listed(array, summarize))
    return "\n".join(lines)


def _compare_with_zero(
    sign: str, function: Callable[..., Tensor], x: Any, message: Any, summarize: Any
) -> None:
    said = f"Condition x {sign} 0 did not hold element-wise:"

    def text(held: Any, x: Any) -> str:
        return _summarized(message, said, {"x": x}, summarize)

    with only():
        tensor = convert_to_tensor(x)
        if tensor.dtype == bool_:
            raise TypeError("Cannot convert 0 to a tensor of dtype bool: it has no sign.")
        require(text, function(tensor, 0), tensor)


def assert_positive(
    x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise unless all elements are greater than 0.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        message: What the error begins with.
        summarize: Of how many elements it tells.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: Some are not.
        TypeError: They are booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_positive([1.0, 2.0])
    """
    _compare_with_zero(">", greater, x, message, summarize)


def _like(
    assertion: _Function,
    name: str,
    sign: str,
    function: Callable[..., Tensor],
    words: str,
    example: str,
) -> _Function:
    """Return an assertion with another comparison, and with the arguments of one that there is."""

    def of_two(
        x: TensorLike,
        y: TensorLike,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> None:
        _compare(sign, function, x, y, message, summarize)

    def of_one(
        x: TensorLike,
        message: str | None = None,
        summarize: int | None = None,
        name: str | None = None,
    ) -> Any:
        _compare_with_zero(sign, function, x, message, summarize)

    check: Any = of_two if assertion is assert_equal else of_one
    _, _, arguments = str(assertion.__doc__).partition("\n")
    arguments, _, _ = arguments.partition(">>> mr.debugging")
    check.__doc__ = (
        f"Raise unless each element {words}; otherwise as `{assertion.__name__}`.\n{arguments}"
        f">>> mr.debugging.{name}({example})\n    "
    )
    check.__name__ = check.__qualname__ = name
    comparing: _Function = check
    return comparing


_THAN = "of `x` is {} that of `y`"
assert_less = _like(assert_equal, "assert_less", "<", less, _THAN.format("less than"), "[1, 2], 3")
assert_less_equal = _like(
    assert_equal, "assert_less_equal", "<=", less_equal, _THAN.format("at most"), "[1, 2], 2"
)
assert_greater = _like(
    assert_equal, "assert_greater", ">", greater, _THAN.format("greater than"), "[1, 2], 0"
)
assert_greater_equal = _like(
    assert_equal, "assert_greater_equal", ">=", greater_equal, _THAN.format("at least"), "[1, 2], 1"
)
assert_negative = _like(
    assert_positive, "assert_negative", "<", less, "is less than 0", "[-1.0, -2.0]"
)
assert_non_negative = _like(
    assert_positive, "assert_non_negative", ">=", greater_equal, "is 0 or more", "[0, 1]"
)
assert_non_positive = _like(
    assert_positive, "assert_non_positive", "<=", less_equal, "is 0 or less", "[0, -1]"
)


explain_functions(__name__)
