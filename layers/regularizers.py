"""Penalties on weights, and on what layers return, added to the training loss.

A regularizer is a function from a tensor to a scalar; a layer keeps one beside each weight.
"""

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._absent import public_module as _public_module
from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._reprs import made_with
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import Configured, serialized
from mirrored.serialization.registry import Registry, spelt
from mirrored.variables import Variable

Penalty = Callable[[Any], Tensor]  # What a regularizer is to a layer.


class Regularizer(Configured):
    """Base of regularizers that have settings; a function of a tensor is one as well.

    Example:
        >>> import mirrored as mr
        >>> class Spread(mr.keras.regularizers.Regularizer):
        ...     def __init__(self, factor):
        ...         self.factor = factor
        ...
        ...     def __call__(self, x):
        ...         return self.factor * (mr.reduce_max(x) - mr.reduce_min(x))
        >>> float(Spread(0.5)(mr.constant([1.0, 4.0])))
        1.5
    """

    def __repr__(self) -> str:
        return made_with(self, always=("l1", "l2", "factor", "mode"))

    def __call__(self, x: Any) -> Any:
        """Return the penalty, a scalar; that of the base is 0.

        Args:
            x: The weight, or the output, that is penalised.
        """
        return 0.0

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name.

        Raises:
            NotImplementedError: The subclass does not say.
        """
        from mirrored.serialization.class_names import public_base  # Few programs need it.

        if public_base(type(self)) is Regularizer:
            raise NotImplementedError(f"{self} does not implement get_config()")
        return super().get_config()


class L1L2(Regularizer):
    """Penalises a weight by l1 * sum(abs(weight)) + l2 * sum(square(weight)).

    Args:
        l1: The factor of the sum of absolute values; 0 for None.
        l2: The factor of the sum of squares; 0 for None.

    Raises:
        ValueError: A factor is negative or not a finite number.

    Example:
        >>> import mirrored as mr
        >>> float(L1L2(l1=1.0, l2=0.5)(mr.Variable([1.0, -2.0])).numpy())
        5.5
    """

    def __init__(self, l1: float | None = 0.0, l2: float | None = 0.0) -> None:
        self.l1 = 0.0 if l1 is None else _check_factor("l1", l1)
        self.l2 = 0.0 if l2 is None else _check_factor("l2", l2)

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
        return reduce(ops.add, terms) if terms else ops.zeros((), dtype=weight.dtype)


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
        super().__init__(l1=_check_factor("l1", l1))

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name: as Keras keeps them."""
        return {"l1": _rounded(self.l1)}


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
        super().__init__(l2=_check_factor("l2", l2))


class OrthogonalRegularizer(Regularizer):
    """Penalises the rows of a matrix, or its columns, for being alike in direction.

    That is factor times the mean over all pairs of them of abs(cosine of the angle between them).

    Args:
        factor: The factor.
        mode: "rows" or "columns".

    Raises:
        ValueError: The factor is negative or not a finite number, or there is no such mode.

    Example:
        >>> import mirrored as mr
        >>> float(OrthogonalRegularizer(1.0)(mr.constant([[1.0, 0.0], [0.0, 4.0]])))
        0.0
    """

    def __init__(self, factor: float = 0.01, mode: str = "rows") -> None:
        self.factor = _check_factor("factor", factor)
        if mode not in ("rows", "columns"):
            raise ValueError(
                'Invalid value for argument `mode`. Expected one of {"rows", "columns"}. '
                f"Received: mode={mode}"
            )
        self.mode = mode

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make one like it, by name: as Keras keeps them."""
        return {**super().get_config(), "factor": _rounded(self.factor)}

    def __call__(self, inputs: Variable | Tensor) -> Tensor:
        """Return the penalty; NaN where there is one row alone, or one column.

        Args:
            inputs: A floating-point matrix.

        Raises:
            ValueError: It has not two axes.
        """
        if len(inputs.shape) != 2:
            raise ValueError(
                "Inputs to OrthogonalRegularizer must have rank 2. Received: "
                f"inputs.shape={tuple(inputs.shape)}"
            )
        by_rows = self.mode == "rows"
        # Keras' least length of a row is 1e-7.
        units = ops.l2_normalize(inputs, axis=1 if by_rows else 0, epsilon=1e-14)
        products = ops.matmul(units, units, transpose_a=not by_rows, transpose_b=by_rows)
        count = products.shape[0]
        others = products * (1.0 - ops.eye(count, dtype=products.dtype))
        # Each pair is there twice.
        pairs = ops.constant(count * (count - 1.0), dtype=products.dtype)
        return ops.reduce_sum(ops.abs(others)) * self.factor / pairs


def _rounded(factor: float) -> float:
    """Return a factor as the number of `floatx` that Keras has for it."""
    return float(np.dtype(ops.floatx()).type(factor))


def _check_factor(name: str, value: object) -> float:
    """Return ``value`` as a factor, or say what is wrong with it."""
    factor = as_real(value)
    if factor is None or not math.isfinite(factor) or factor < 0:
        raise ValueError(
            f"Invalid value for argument {name}: expected a non-negative float. "
            f"Received: {name}={value!r}"
        )
    return factor


# TensorFlow's other names, as in `regularizers.l2(1e-4)`.
l1, l2, l1_l2, orthogonal_regularizer = L1, L2, L1L2, OrthogonalRegularizer

_CLASSES = ("L1", "L2", "L1L2", "OrthogonalRegularizer", "Regularizer")
_REGISTRY: Registry[Penalty] = Registry("regularizer", __name__, spelt(dict.fromkeys(_CLASSES, ())))


def get(identifier: object) -> Penalty | None:
    """Return the regularizer that ``identifier`` stands for, None for None.

    Args:
        identifier: A name (with Keras' factor, 0.01), a class, a function from a tensor to a
            scalar, or a name and arguments: ``{"class_name": ..., "config": ...}``.

    Raises:
        ValueError: There is no regularizer of that name.
        TypeError: It does not take these arguments.

    Example:
        >>> get("l2")
        L2(l2=0.01)
    """
    return None if identifier is None else _REGISTRY.resolve(identifier)


def serialize(regularizer: Any) -> Any:
    """Return the configuration of a regularizer; None for None.

    Args:
        regularizer: The regularizer.

    Example:
        >>> import mirrored as mr
        >>> serialize(get("l2"))["config"]
        {'l2': 0.01}
    """
    return serialized(regularizer)


def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the regularizer that a configuration describes.

    Args:
        config: What `serialize` returned, or a name.
        custom_objects: Classes and functions that it may name, by these names.

    Example:
        >>> import mirrored as mr
        >>> deserialize(serialize(L2(0.5))).l2
        0.5
    """
    return _REGISTRY.deserialize(config, custom_objects)


_public_module("tf.keras.regularizers", __name__, constants=("Penalty",))


explain_functions(__name__, all_but="serialize")
