"""The error function and its complement, which NumPy has not.

Both stand on one series for the tail, of as many terms as the dtype has digits.
"""

import math
from collections.abc import Sequence
from typing import Any

from mirrored.ops.op import OpCall
from mirrored.ops.piecewise import piecewise
from mirrored.ops.powers import EXP, SQUARE
from mirrored.ops.spec import float32
from mirrored.ops.tensor import Tensor

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


def erf(x: Any, name: str | None = None) -> Tensor:
    """Return the error function of each element: 2 / sqrt(pi) times the integral of exp(-t^2).

    The integral is that from 0 to the element.

    Example:
        >>> import mirrored as mr
        >>> mr.math.erf([0.0, 10.0, -10.0]).numpy()
        array([ 0.,  1., -1.], dtype=float32)
    """
    return ERF(x)


def erfc(x: Any, name: str | None = None) -> Tensor:
    """Return 1 - erf(x), element by element, with all digits where that is small.

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfc([0.0, 100.0, -100.0]).numpy()
        array([1., 0., 2.], dtype=float32)
    """
    return ERFC(x)
