"""The error function, gamma functions, and quantiles of the normal distribution."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._types import TensorLike
from mirrored.ops.conversion import adopt
from mirrored.ops.elementwise import Function, piecewise
from mirrored.ops.op import Op, OpCall, register
from mirrored.ops.powers import EXP, SQUARE
from mirrored.ops.reduction import reduce_sum
from mirrored.ops.spec import FLOATS, WIDE_FLOATS, float32
from mirrored.ops.tensor import Tensor

_CENTRAL, _SHIFT = 0.425, 0.180625  # To here from 1/2, and its square.
_FAR = 5.0  # From here on the root of -log(p) belongs to the last of the three quotients.
# The numerators and denominators, lowest powers first.
_MIDDLE = (
    (
        *(3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3),
        *(1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4),
        *(3.3430575583588128105e4, 2.5090809287301226727e3),
    ),
    (
        *(1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3),
        *(2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4),
        5.2264952788528545610e3,
    ),
)
_NEAR_TAIL = (
    (
        *(1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0),
        *(3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1),
        *(2.27238449892691845833e-2, 7.74545014278341407640e-4),
    ),
    (
        *(1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1),
        *(1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4),
        1.05075007164441684324e-9,
    ),
)
_FAR_TAIL = (
    (
        *(6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0),
        *(2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3),
        *(2.71155556874348757815e-5, 2.01033439929228813265e-7),
    ),
    (
        *(1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2),
        *(7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7),
        2.04426310338993978564e-15,
    ),
)

Terms = tuple[Sequence[float], Sequence[float]]


def _quotient(xp: Any, out: Any, x: Any, terms: Terms, scratch: Any) -> None:
    polynomial(xp, out, x, terms[0])
    polynomial(xp, scratch, x, terms[1])
    xp.divide(out, scratch, out=out)


def _quantile(xp: Any, out: Any, q: Any, tail: Any, vectors: tuple[Any, ...]) -> None:
    """Write the normal quantile of 1/2 + q, where the smaller of the two tails has this weight."""
    root, part, scratch, mask = vectors
    xp.log(tail, out=root)
    xp.negative(root, out=root)
    xp.sqrt(root, out=root)
    # Of the tails: each where it holds, and finite elsewhere.
    xp.minimum(root, _FAR, out=tail)
    xp.subtract(tail, 1.6, out=tail)
    _quotient(xp, out, tail, _NEAR_TAIL, scratch)
    xp.less_equal(root, _FAR, out=mask)
    xp.multiply(out, mask, out=out)
    xp.maximum(root, _FAR, out=tail)
    xp.minimum(tail, 30.0, out=tail)  # Farther out there is no number but 0.
    xp.subtract(tail, _FAR, out=tail)
    _quotient(xp, part, tail, _FAR_TAIL, scratch)
    xp.greater(root, _FAR, out=mask)
    xp.multiply(part, mask, out=part)
    xp.add(out, part, out=out)
    xp.less(root, math.inf, out=mask)
    xp.divide(out, mask, out=out)  # By 0 at the ends, where the quantile is infinite.
    xp.copysign(out, q, out=out)
    # Instead of them the middle.
    xp.absolute(q, out=scratch)
    xp.greater(scratch, _CENTRAL, out=mask)
    xp.minimum(scratch, _CENTRAL, out=tail)
    xp.square(tail, out=tail)
    xp.subtract(_SHIFT, tail, out=tail)
    _quotient(xp, part, tail, _MIDDLE, scratch)
    xp.multiply(part, q, out=part)
    xp.multiply(out, mask, out=out)
    xp.subtract(1.0, mask, out=mask)
    xp.multiply(part, mask, out=part)
    xp.add(out, part, out=out)


def _ndtri(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    q, tail, *others = scratch
    xp.subtract(x, 0.5, out=q)
    xp.subtract(1.0, x, out=tail)
    xp.minimum(tail, x, out=tail)
    _quantile(xp, out, q, tail, tuple(others))


def _erfinv(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    q, tail, *others = scratch
    xp.multiply(x, 0.5, out=q)
    xp.absolute(q, out=tail)
    xp.subtract(0.5, tail, out=tail)
    _quantile(xp, out, q, tail, tuple(others))
    xp.multiply(out, math.sqrt(0.5), out=out)


def _grad_ndtri(call: OpCall, g: Tensor) -> Tensor:
    return g * math.sqrt(2.0 * math.pi) * EXP(SQUARE(call.output) / 2.0)


def _grad_erfinv(call: OpCall, g: Tensor) -> Tensor:
    return g * (math.sqrt(math.pi) / 2.0) * EXP(SQUARE(call.output))


def _define(name: str, function: Function, gradient: Callable[[OpCall, Tensor], Tensor]) -> Op:
    return piecewise(name, function, gradient, 6, ("CPU",), WIDE_FLOATS)


NDTRI = _define("Ndtri", _ndtri, _grad_ndtri)
ERFINV = _define("Erfinv", _erfinv, _grad_erfinv)


# ---------------------------------------------------------------------------- public functions


def ndtri(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number below which a normal number is with each probability.

    It is computed on the host. NaN outside of [0, 1].

    Example:
        >>> import mirrored as mr
        >>> mr.math.ndtri([0.0, 0.5, 1.0]).numpy()
        array([-inf,   0.,  inf], dtype=float32)
    """
    return NDTRI(x)


def erfinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number whose error function each element is.

    It is computed on the host. NaN outside of [-1, 1].

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfinv([-1.0, 0.0, 1.0]).numpy()
        array([-inf,   0.,  inf], dtype=float32)
    """
    return ERFINV(x)


def erfcinv(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the number whose complementary error function each element is.

    It is computed on the host. NaN outside of [0, 2].

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfcinv([0.0, 2.0]).numpy()
        array([ inf, -inf], dtype=float32)
    """
    return -NDTRI(adopt(x, None) * 0.5) * math.sqrt(0.5)


# exp(y^2) erfc(y) (1 + 2 y) for all y >= 0, as powers of (y - 3.75) / (y + 3.75). They are the
# Chebyshev series, to 14 and to 25 terms, of Shepherd and Laframboise, "Chebyshev approximation of
# (1 + 2 x) exp(x^2) erfc x in 0 <= x < infinity", Mathematics of Computation 36 (1981).
_CENTRE = 3.75
_SINGLE = (
    *(1.2375126300326993, -0.14024059953590887, 0.00358549531406309, 0.08227677399009918),
    *(-0.10880522754949953, 0.09230393753827405, -0.05868544049363111, 0.028364105117372054),
    *(-0.009770087183368234, 0.0017511576292398034, 0.00033016745627228067),
    *(-0.00028431307575109806, 2.2046718905694024e-05, 1.8521947386750102e-05),
)
_DOUBLE = (
    *(1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452),
    *(-0.10880393014174886, 0.09230432116037748, -0.05869339858963677, 0.028362277418956406),
    *(-0.009746579558029276, 0.0017556258528952954, 0.0002937136655913448),
    *(-0.0002901540805408417, 5.164909889268241e-05, 2.238423915508223e-05),
    *(-1.1444146237700524e-05, -9.73559896736775e-07, 1.751637648849062e-06),
    *(-5.7218230603224086e-08, -2.5866850716155884e-07, 2.3263508708859124e-08),
    *(3.8675334242222354e-08, -3.744210080962018e-09, -5.1739902140113095e-09),
    *(3.1114333809799254e-10, 4.2514714447963895e-10),
)
_LAST = 28.0  # From here on erfc is 0 in any dtype.
# Up to here erf is its own series, since of 1 - erfc the digits would be lost.
_NEAR = 0.5
_SLOPE = 2.0 / math.sqrt(math.pi)


def _near_terms(count: int) -> list[float]:
    """Return the first terms of erf(x) / x in powers of x^2."""
    return [_SLOPE * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(count)]


_NEAR_SINGLE, _NEAR_DOUBLE = _near_terms(8), _near_terms(14)


def polynomial(xp: Any, out: Any, x: Any, terms: Sequence[float]) -> None:
    """Write a sum of powers of `x`, by Horner's rule."""
    xp.multiply(x, terms[-1], out=out)
    for term in terms[-2:0:-1]:
        xp.add(out, term, out=out)
        xp.multiply(out, x, out=out)
    xp.add(out, terms[0], out=out)


def _tail(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    """Write erfc(|x|); all of the scratch is spoilt."""
    y, high, square, rest = scratch
    terms, splitter = (_SINGLE, 2.0**12 + 1) if x.dtype == float32 else (_DOUBLE, 2.0**27 + 1)
    _size(xp, y, x)
    xp.add(y, _CENTRE, out=square)
    xp.subtract(y, _CENTRE, out=high)
    xp.divide(high, square, out=high)
    # Less 1, beside which it is small: what is added to 1 at last brings little rounding along.
    polynomial(xp, out, high, (terms[0] - 1.0, *terms[1:]))
    # What the square of y lost by rounding, from y's upper and lower half (Dekker, 1971): at 25 it
    # would cost two digits of exp(-y^2).
    xp.multiply(y, splitter, out=high)
    xp.subtract(high, y, out=rest)
    xp.subtract(high, rest, out=high)
    xp.square(y, out=square)
    xp.subtract(y, high, out=y)
    xp.square(high, out=rest)
    xp.subtract(rest, square, out=rest)
    xp.multiply(high, 2.0, out=high)
    xp.add(high, y, out=high)
    xp.multiply(high, y, out=high)
    xp.add(rest, high, out=rest)
    # exp(-y^2) / (1 + 2 y), times 1 and what is left of the polynomial.
    xp.negative(square, out=square)
    xp.exp(square, out=square)
    _size(xp, y, x)
    xp.multiply(y, 2.0, out=y)
    xp.add(y, 1.0, out=y)
    xp.divide(square, y, out=square)
    xp.add(out, 1.0, out=high)
    xp.multiply(high, rest, out=high)
    xp.subtract(out, high, out=out)
    xp.multiply(out, square, out=out)
    xp.add(out, square, out=out)


def _size(xp: Any, out: Any, x: Any) -> None:
    xp.absolute(x, out=out)
    xp.minimum(out, _LAST, out=out)


def _split(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> tuple[Any, Any]:
    """Clear `out` near 0; return erf(|x|) there and 0 elsewhere, and 1 there and 0 elsewhere."""
    size, near, mask, _ = scratch
    xp.absolute(x, out=size)
    xp.less_equal(size, _NEAR, out=mask)
    xp.minimum(size, _NEAR, out=size)
    xp.multiply(size, mask, out=mask)
    xp.square(size, out=size)
    polynomial(xp, near, size, _NEAR_SINGLE if x.dtype == float32 else _NEAR_DOUBLE)
    xp.multiply(near, mask, out=near)
    xp.absolute(x, out=size)
    xp.greater(size, _NEAR, out=mask)
    xp.multiply(out, mask, out=out)
    xp.less_equal(size, _NEAR, out=mask)
    return near, mask


def _erf(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    _tail(xp, out, x, scratch)
    xp.subtract(1.0, out, out=out)
    near, _ = _split(xp, out, x, scratch)
    xp.add(out, near, out=out)
    xp.copysign(out, x, out=out)


def _erfc(xp: Any, out: Any, x: Any, scratch: tuple[Any, ...]) -> None:
    _tail(xp, out, x, scratch)
    sign = scratch[0]
    xp.copysign(1.0, x, out=sign)
    xp.multiply(out, sign, out=out)
    xp.subtract(1.0, sign, out=sign)  # 2 less the tail, left of 0.
    xp.add(out, sign, out=out)
    near, mask = _split(xp, out, x, scratch)
    xp.copysign(near, x, out=near)
    xp.subtract(mask, near, out=near)
    xp.add(out, near, out=out)


def _slope(call: OpCall, g: Tensor) -> Tensor:
    return g * _SLOPE * EXP(-SQUARE(call.inputs[0]))


ERF = piecewise("Erf", _erf, _slope, scratch=4)
ERFC = piecewise("Erfc", _erfc, lambda call, g: -_slope(call, g), scratch=4)


# ---------------------------------------------------------------------------- public functions


def erf(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the error function of each element: 2 / sqrt(pi) times the integral of exp(-t^2).

    The integral is that from 0 to the element.

    Example:
        >>> import mirrored as mr
        >>> mr.math.erf([0.0, 10.0, -10.0]).numpy()
        array([ 0.,  1., -1.], dtype=float32)
    """
    return ERF(x)


def erfc(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 - erf(x), element by element, with all digits where that is small.

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfc([0.0, 100.0, -100.0]).numpy()
        array([1., 0., 2.], dtype=float32)
    """
    return ERFC(x)


Array = NDArray[np.float64]

_PIECE = 512  # Elements at a time: what is computed with them stays small.
_LARGE = 10  # From here on eight terms of the asymptotic series are exact to the last bit.
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
    for _ in range(_LARGE - 2):
        small = y < _LARGE
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
    for _ in range(_LARGE):
        small = y < _LARGE
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
    for _ in range(_LARGE + order):
        small = y < _LARGE + order
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


def lgamma(x: TensorLike, name: str | None = None) -> Tensor:
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


def digamma(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the derivative of `lgamma`, of each element; NaN where that has none.

    Arguments, errors and place as of `lgamma`.

    Example:
        >>> import mirrored as mr
        >>> mr.math.digamma([0.0, 1.0, 10.0]).numpy()
        array([       nan, -0.5772157,  2.2517526], dtype=float32)
    """
    return DIGAMMA(x)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
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
