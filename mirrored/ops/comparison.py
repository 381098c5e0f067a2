"""Comparisons of elements, and logic on the booleans that they give, over axes too.

None of them is differentiable; a gradient passes by the numbers that they choose between.
"""

from collections.abc import Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.ops.conversion import adopt, convert_to_tensor
from mirrored.ops.elementwise import binary, unary
from mirrored.ops.reduction import define, extreme, reduce
from mirrored.ops.spec import ALL_DTYPES, FLOATS, NUMBERS, bool_
from mirrored.ops.tensor import Operators, Tensor, operators

LESS = binary("Less", "less", None, NUMBERS, bool_)
LESS_EQUAL = binary("LessEqual", "less_equal", None, NUMBERS, bool_)
GREATER = binary("Greater", "greater", None, NUMBERS, bool_)
GREATER_EQUAL = binary("GreaterEqual", "greater_equal", None, NUMBERS, bool_)
EQUAL = binary("Equal", "equal", None, ALL_DTYPES, bool_)
NOT_EQUAL = binary("NotEqual", "not_equal", None, ALL_DTYPES, bool_)
LOGICAL_AND = binary("LogicalAnd", "logical_and", None, frozenset({bool_}))
LOGICAL_OR = binary("LogicalOr", "logical_or", None, frozenset({bool_}))
IS_NAN = unary("IsNan", "isnan", None, FLOATS, bool_)
IS_INF = unary("IsInf", "isinf", None, FLOATS, bool_)
IS_FINITE = unary("IsFinite", "isfinite", None, FLOATS, bool_)
LOGICAL_NOT = unary("LogicalNot", "logical_not", None, frozenset({bool_}))


ALL = define("All", extreme("minimum", lambda _: True), dtypes=frozenset({bool_}))
ANY = define("Any", extreme("maximum", lambda _: False), dtypes=frozenset({bool_}))


def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x == y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.equal([1, 2], 2).numpy()
        array([False,  True])
    """
    return EQUAL(x, y)


def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x != y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.not_equal([1, 2], 2).numpy()
        array([ True, False])
    """
    return NOT_EQUAL(x, y)


def less(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x < y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.less([1, 2], 2).numpy()
        array([ True, False])
    """
    return LESS(x, y)


def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x <= y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.less_equal([1, 2], 1).numpy()
        array([ True, False])
    """
    return LESS_EQUAL(x, y)


def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x > y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.greater([1, 2], 1).numpy()
        array([False,  True])
    """
    return GREATER(x, y)


def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x >= y, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.greater_equal([1, 2], 2).numpy()
        array([False,  True])
    """
    return GREATER_EQUAL(x, y)


def logical_not(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the negation of booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.logical_not([True, False]).numpy()
        array([False,  True])
    """
    return LOGICAL_NOT(x)


def logical_and(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where both x and y are true.

    Example:
        >>> import mirrored as mr
        >>> mr.logical_and([True, False], True).numpy()
        array([ True, False])
    """
    return LOGICAL_AND(x, y)


def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return where x or y is true.

    Example:
        >>> import mirrored as mr
        >>> mr.logical_or([True, False], True).numpy()
        array([ True,  True])
    """
    return LOGICAL_OR(x, y)


def logical_xor(x: TensorLike, y: TensorLike, name: str | None = "LogicalXor") -> Tensor:
    """Return where one of x and y is true, and the other is not.

    Example:
        >>> import mirrored as mr
        >>> mr.math.logical_xor([True, False], True).numpy()
        array([False,  True])
    """
    return LOGICAL_AND(LOGICAL_OR(x, y), LOGICAL_NOT(LOGICAL_AND(x, y)))


operators["xor"] = logical_xor


def is_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Return where elements are no numbers, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.math.is_nan([1.0, float("nan"), float("inf")]).numpy()
        array([False,  True, False])
    """
    return IS_NAN(x)


def is_inf(x: TensorLike, name: str | None = None) -> Tensor:
    """Return where elements are infinite, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.math.is_inf([1.0, float("nan"), float("inf")]).numpy()
        array([False, False,  True])
    """
    return IS_INF(x)


def is_finite(x: TensorLike, name: str | None = None) -> Tensor:
    """Return where elements are neither infinite nor NaN, as booleans.

    Example:
        >>> import mirrored as mr
        >>> mr.math.is_finite([1.0, float("nan"), float("inf")]).numpy()
        array([ True, False, False])
    """
    return IS_FINITE(x)


def reduce_all(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return whether all booleans over axes are true; of none they are.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> mr.reduce_all([[True, False], [True, True]], axis=1).numpy()
        array([False,  True])
    """
    return reduce(ALL, _booleans(input_tensor), axis, keepdims)


def reduce_any(
    input_tensor: TensorLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return whether one of the booleans over axes is true; of none there is none.

    Args and errors: as for `reduce_sum`.

    Example:
        >>> import mirrored as mr
        >>> mr.reduce_any([[True, False], [False, False]], axis=1).numpy()
        array([ True, False])
    """
    return reduce(ANY, _booleans(input_tensor), axis, keepdims)


def _booleans(x: Any) -> Tensor:
    """Return booleans, of Python's values alone: a tensor of another dtype is refused by the op."""
    return adopt(x, None) if isinstance(x, Operators) else convert_to_tensor(x, bool_)


explain_functions(__name__)
