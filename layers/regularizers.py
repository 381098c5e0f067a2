"""Penalties on the size of weights, added to the training loss.

A regularizer is a function from a weight to a scalar; a layer keeps one beside each weight.
"""

import math
from collections.abc import Callable

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explained
from mirrored._numbers import as_real
from mirrored.layers.identifiers import resolve
from mirrored.ops import Tensor
from mirrored.variables import Variable

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "Regularizer",
    "get",
]

_public_module("tf.keras.regularizers", __name__)

Regularizer = Callable[[Variable], Tensor]


@explained
class L1L2:
    """Penalises a weight by l1 * sum(abs(weight)) + l2 * sum(square(weight)).

    Args:
        l1: The factor of the sum of absolute values.
        l2: The factor of the sum of squares.

    Raises:
        ValueError: A factor is negative or not a finite number.

    Example:
        >>> import mirrored as mr
        >>> float(L1L2(l1=1.0, l2=0.5)(mr.Variable([1.0, -2.0])).numpy())
        5.5
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1 = _check_factor("l1", l1)
        self.l2 = _check_factor("l2", l2)

    def __call__(self, weight: Variable | Tensor) -> Tensor:
        """Return the penalty.

        Args:
            weight: The floating-point variable or tensor to penalise, any shape.

        Returns:
            A scalar of the weight's dtype.
        """
        terms = []
        if self.l1:
            terms.append(ops.multiply(ops.reduce_sum(ops.abs(weight)), self.l1))
        if self.l2:
            terms.append(ops.multiply(ops.reduce_sum(ops.square(weight)), self.l2))
        if not terms:
            return ops.zeros((), dtype=weight.dtype)
        return terms[0] if len(terms) == 1 else ops.add(terms[0], terms[1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(l1={self.l1}, l2={self.l2})"


@explained
class L1(L1L2):
    """Penalises a weight by l1 * sum(abs(weight)), which drives small weights to zero.

    Args:
        l1: The factor.

    Raises:
        ValueError: It is negative or not a finite number.

    Example:
        >>> import mirrored as mr
        >>> float(L1(1.0)(mr.Variable([1.0, -2.0])).numpy())
        3.0
    """

    def __init__(self, l1: float = 0.01) -> None:
        super().__init__(l1=l1)

    def __repr__(self) -> str:
        return f"L1(l1={self.l1})"


@explained
class L2(L1L2):
    """Penalises a weight by l2 * sum(square(weight)), which keeps weights small.

    Args:
        l2: The factor.

    Raises:
        ValueError: It is negative or not a finite number.

    Example:
        >>> import mirrored as mr
        >>> float(L2(0.5)(mr.Variable([1.0, -2.0])).numpy())
        2.5
    """

    def __init__(self, l2: float = 0.01) -> None:
        super().__init__(l2=l2)

    def __repr__(self) -> str:
        return f"L2(l2={self.l2})"


def _check_factor(name: str, value: object) -> float:
    """Return ``value`` as a factor, or say what is wrong with it."""
    factor = as_real(value)
    if factor is None or not math.isfinite(factor) or factor < 0:
        raise ValueError(
            f"Invalid value for argument {name}: expected a non-negative float. "
            f"Received: {name}={value}"
        )
    return factor


l1, l2, l1_l2 = L1, L2, L1L2  # TensorFlow's other names, as in `regularizers.l2(1e-4)`.

_NAMES: dict[str, type[L1L2]] = {
    "l1": L1,
    "l2": L2,
    "L1": L1,
    "L2": L2,
    "L1L2": L1L2,
}


@explained
def get(identifier: object) -> Regularizer | None:
    """Return the regularizer that ``identifier`` stands for, None for None.

    Args:
        identifier: A name (with Keras' factor, 0.01), a class, or a function from a weight to a
            scalar tensor.

    Raises:
        ValueError: There is no regularizer of that name.

    Example:
        >>> get("l2")
        L2(l2=0.01)
    """
    if identifier is None:
        return None
    found = resolve("regularizer", identifier, _NAMES)
    return found() if isinstance(found, type) else found
