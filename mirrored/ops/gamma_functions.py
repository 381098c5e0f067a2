"""The logarithm of the gamma function and its derivatives, which NumPy has not.

They are computed on the host, in double precision, and rounded once.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.ops.conversion import adopt
from mirrored.ops.op import Op, OpCall, register
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor

Array = NDArray[np.float64]

_PIECE = 512  # Elements at a time: what is computed with them stays small.
_FAR = 10  # From here on eight terms of the asymptotic series are exact to the last bit.
_EULER = 0.5772156649015329
# The Bernoulli numbers of the series in Abramowitz and Stegun, Handbook of Mathematical Functions,
# 6.1.40, 6.3.18 and 6.4.11, from the second on.
_BERNOULLI = [
    Fraction(*ratio)
    for ratio in (
        *((1, 6), (-1, 30), (1, 42), (-1, 30)),
        *((5, 66), (-691, 2730), (7, 6), (-3617, 510)),
    )
]
_OF_LOGARITHM = [float(b / (2 * n * (2 * n - 1))) for n, b in enumerate(_BERNOULLI, 1)]
_OF_FIRST = [float(b / (2 * n)) for n, b in enumerate(_BERNOULLI, 1)]


def _zeta_less_one(k: int, last: int = 30) -> float:
    """Return what comes after 1 in the sum of all 1 / n^k, its end by Euler and Maclaurin."""
    sizes = [float(n) ** -k for n in range(2, last)]
    ends = [last ** (1.0 - k) / (k - 1), last ** -float(k) / 2]
    for n, b in enumerate(_BERNOULLI[:4], 1):
        rising = math.prod(range(k, k + 2 * n - 1))
        ends.append(float(b) * rising / math.factorial(2 * n) * last ** (1.0 - k - 2 * n))
    return math.fsum([*sizes, *ends])


# Of w, the logarithm of gamma(2 + w), for |w| up to 1/2: Abramowitz and Stegun, 6.1.33.
_NEAR_TWO = [1.0 - _EULER, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 30))]


def _polynomial(x: Array, terms: list[float]) -> Array:
    """Return the sum of powers of x, from the first on, without the constant."""
    total = np.zeros_like(x)
    for term in reversed(terms):
        total = (total + term) * x
    return total


def _logarithm(x: Array) -> Array:
    """Return the logarithm of |gamma(x)|."""
    below = x < 0.5
    y = np.where(below, 1.0 - x, x)  # By reflection.
    near, near_one = y < 2.5, y < 1.5  # Near 1, gamma(2 + w) is a factor of 1 + w away.
    w = np.where(near_one, y - 1.0, np.where(near, y - 2.0, 0.0))
    close = _polynomial(w, _NEAR_TWO) - np.where(near_one, np.log1p(w), 0.0)
    product = np.ones_like(y)
    for _ in range(_FAR - 2):
        small = y < _FAR
        product *= np.where(small, y, 1.0)
        y = y + small
    far = (y - 0.5) * np.log(y) - y + 0.5 * math.log(2.0 * math.pi)
    far += _polynomial(1.0 / (y * y), _OF_LOGARITHM) * y - np.log(product)
    result = np.where(near, close, far)
    off = x - np.rint(x)
    reflection = math.log(math.pi) - np.log(np.abs(np.sin(math.pi * off)))
    result = np.where(below, reflection - result, result)
    result[np.isinf(x) | ((x <= 0.0) & (off == 0.0))] = np.inf
    return result


def _first(x: Array) -> Array:
    """Return the derivative of `_logarithm`."""
    below, off = x <= 0.0, x - np.rint(x)
    y, result = np.where(below, 1.0 - x, x), np.zeros_like(x)
    for _ in range(_FAR):
        small = y < _FAR
        result -= np.where(small, 1.0 / y, 0.0)
        y = y + small
    result += np.log(y) - 0.5 / y - _polynomial(1.0 / (y * y), _OF_FIRST)
    result = np.where(below, result - math.pi / np.tan(math.pi * off), result)
    result[below & (off == 0.0)] = np.nan
    return result


def _later(x: Array, order: int) -> Array:
    """Return a derivative of `_first`: of order 1, or a higher one."""
    below, off = x <= 0.0, x - np.rint(x)
    y, result, sign = np.where(below, 1.0 - x, x), np.zeros_like(x), (-1.0) ** (order + 1)
    for _ in range(_FAR + order):
        small = y < _FAR + order
        result += np.where(small, math.factorial(order) * y ** -(order + 1.0), 0.0)
        y = y + small
    rising = [math.factorial(2 * n + order - 1) / math.factorial(2 * n) for n in range(1, 9)]
    series = _polynomial(
        1.0 / (y * y), [float(b) * r for b, r in zip(_BERNOULLI, rising, strict=True)]
    )
    result += math.factorial(order - 1) * y ** -float(order) * (1.0 + 0.5 * order / y)
    result = sign * (result + series * y ** -float(order))
    slope = math.pi ** (order + 1) * np.polyval(_of_cotangent(order), 1.0 / np.tan(math.pi * off))
    result = np.where(below, -sign * result - slope, result)
    result[(x == -np.inf) | (below & (off == 0.0))] = np.inf if order % 2 else np.nan
    return result


def _of_cotangent(order: int) -> Array:
    """Return a derivative of the cotangent, as powers of the cotangent from the highest on."""
    terms = np.array([1.0, 0.0])
    for _ in range(order):
        terms = np.polymul([-1.0, 0.0, -1.0], np.polyder(terms))
    return terms


def _op(
    name: str, function: Callable[..., Array], gradient: Callable[[OpCall, Tensor], Tensor]
) -> Op:
    def kernel(xp: Any, out: Any, x: Any, **attrs: Any) -> None:
        results, inputs = out.reshape(-1), x.reshape(-1)
        with np.errstate(all="ignore"):
            for begin in range(0, results.size, _PIECE):
                piece = inputs[begin : begin + _PIECE].astype(np.float64)
                results[begin : begin + _PIECE] = function(piece, **attrs)

    return Op(
        name=name,
        infer=lambda x, **_: x,
        kernel=kernel,
        gradient=lambda call, g: [gradient(call, g)],
        devices=("CPU",),
        dtypes=FLOATS,
        may_alias=(0,),
        whole=True,
    )


def _next(call: OpCall, g: Tensor) -> Tensor:
    return g * _POLYGAMMA(call.inputs[0], order=call.attrs.get("order", 0) + 1)


LGAMMA = register(_op("Lgamma", _logarithm, lambda call, g: g * DIGAMMA(call.inputs[0])))
DIGAMMA: Op = register(_op("Digamma", _first, _next))
_POLYGAMMA: Op = _op("Polygamma", _later, _next)  # In no table: gradients alone call it.


def lgamma(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithm of the absolute value of the gamma function, of each element.

    It is computed on the host.

    Args:
        x: The tensor, of floats.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: It is of another dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.math.lgamma([0.0, 1.0, 2.0, 10.0]).numpy()
        array([      inf,  0.      ,  0.      , 12.801827], dtype=float32)
    """
    return LGAMMA(x)


def digamma(x: Any, name: str | None = None) -> Tensor:
    """Return the derivative of `lgamma`, of each element; NaN where that has none.

    Arguments, errors and place as of `lgamma`.

    Example:
        >>> import mirrored as mr
        >>> mr.math.digamma([0.0, 1.0, 10.0]).numpy()
        array([       nan, -0.5772157,  2.2517526], dtype=float32)
    """
    return DIGAMMA(x)


def lbeta(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithm of the beta function of the numbers along the last axis.

    Args:
        x: The tensor, of floats, none of which is negative.
        name: Accepted for compatibility; eager ops have no name.

    Returns:
        One number for each line along that axis; minus infinity for one without elements.

    Raises:
        InvalidArgumentError: It is of another dtype, or has no axis.

    Example:
        >>> import mirrored as mr
        >>> round(float(mr.math.lbeta([1.0, 2.0])), 4)
        -0.6931
    """
    values = adopt(x, None)
    return reduce_sum(LGAMMA(values), axis=-1) - LGAMMA(reduce_sum(values, axis=-1))
