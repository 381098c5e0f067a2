"""The inverses of the error functions and of the normal distribution, which NumPy has not.

The host computes them: Wichura, "Algorithm AS 241: The Percentage Points of the Normal
Distribution", Applied Statistics 37 (1988), whose second version has the digits of float64.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mirrored.ops.conversion import adopt
from mirrored.ops.error_functions import polynomial
from mirrored.ops.op import Op, OpCall
from mirrored.ops.piecewise import Function, piecewise
from mirrored.ops.powers import EXP, SQUARE
from mirrored.ops.spec import WIDE_FLOATS
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


def ndtri(x: Any, name: str | None = None) -> Tensor:
    """Return the number below which a normal number is with each probability.

    It is computed on the host. NaN outside of [0, 1].

    Example:
        >>> import mirrored as mr
        >>> mr.math.ndtri([0.0, 0.5, 1.0]).numpy()
        array([-inf,   0.,  inf], dtype=float32)
    """
    return NDTRI(x)


def erfinv(x: Any, name: str | None = None) -> Tensor:
    """Return the number whose error function each element is.

    It is computed on the host. NaN outside of [-1, 1].

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfinv([-1.0, 0.0, 1.0]).numpy()
        array([-inf,   0.,  inf], dtype=float32)
    """
    return ERFINV(x)


def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """Return the number whose complementary error function each element is.

    It is computed on the host. NaN outside of [0, 2].

    Example:
        >>> import mirrored as mr
        >>> mr.math.erfcinv([0.0, 2.0]).numpy()
        array([ inf, -inf], dtype=float32)
    """
    return -NDTRI(adopt(x, None) * 0.5) * math.sqrt(0.5)
