"""Layers that make one tensor of several, element by element.

Inputs of fewer axes are given axes of size 1 behind the batch's, as in Keras.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any, ClassVar, Unpack

import numpy as np

from mirrored import ops
from mirrored._arguments import explained_only
from mirrored._types import TensorLike
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, Shapes, is_shape
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor_views import masked


class Merge(Layer):
    """What layers of several inputs have in common: a subclass says how two become one."""

    _makes_masks = False
    _infers = True  # Integers stay integers, and beside floats they become such.
    _pair: ClassVar[Any]  # From two tensors to one.
    _exactly: ClassVar[int | None] = None

    def build(self, input_shape: Shapes) -> None:
        """Check the shapes.

        Args:
            input_shape: The shapes of the inputs, in a list.

        Raises:
            ValueError: There is one shape, batches differ, or shapes do not broadcast.
        """
        if is_shape(input_shape) or isinstance(input_shape, dict):
            raise ValueError(
                "A merge layer should be called on a list of inputs. Received: "
                f"input_shape={input_shape} (not a list of shapes)"
            )
        if len({shape[0] for shape in input_shape if shape} - {None}) > 1:
            raise ValueError(
                "Cannot merge tensors with different batch sizes. Received tensors with shapes "
                f"{input_shape}"
            )
        self.compute_output_shape(input_shape)
        if self._exactly is not None and len(input_shape) != self._exactly:
            raise ValueError(
                f"A `{type(self).__name__}` layer should be called on exactly {self._exactly} "
                f"inputs. Received: input_shape={input_shape}"
            )

    def compute_output_shape(self, input_shape: Shapes) -> Shape:
        """Return the shape that the inputs broadcast to, the batch axis apart.

        Args:
            input_shape: The shapes of the inputs, in a list.

        Raises:
            ValueError: They do not broadcast.
        """
        sizes = reduce(_broadcast, [tuple(shape[1:]) for shape in input_shape])
        batches = {shape[0] for shape in input_shape if shape} - {None}
        return (batches.pop() if len(batches) == 1 else None, *sizes)

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return what becomes of the inputs.

        Args:
            inputs: Tensors, in a list.
        """
        if not isinstance(inputs, list | tuple):
            raise ValueError(
                "A merge layer should be called on a list of inputs. Received: "
                f"inputs={inputs} (not a list of tensors)"
            )
        rank = max(value.ndim for value in inputs)
        tensors = [_with_rank(value, rank) for value in self._of_one_dtype(inputs)]
        for tensor in tensors:
            if tensor._keras_mask is not None:
                return self._merged_by_masks(tensors)
        return self._merged(tensors)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return which steps one of the masks leaves; None where an input has none.

        Args:
            inputs: The inputs, in a list.
            mask: Their masks, in a list.

        Raises:
            ValueError: There is one mask, or not one for each input.
        """
        masks = check_masks(inputs, mask)
        if masks is None or any(input_mask is None for input_mask in masks):
            return None
        return reduce(ops.logical_or, masks)

    def _merged(self, inputs: list[Tensor]) -> Tensor:
        return reduce(type(self)._pair, inputs)

    def _merged_by_masks(self, inputs: list[Tensor]) -> Tensor:
        """Merge inputs of which some have masks; subclasses leave out what masks leave out."""
        return self._merged(inputs)

    def _of_one_dtype(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return tensors of the dtype that all of them promote to."""
        dtypes = {tensor.dtype for tensor in inputs}
        if len(dtypes) == 1:
            return list(inputs)
        floats = any(dtype in FLOATS for dtype in dtypes)
        dtype = self.compute_dtype if floats else np.result_type(*dtypes)
        return [masked(ops.cast(tensor, dtype), tensor._keras_mask) for tensor in inputs]


def _with_rank(x: Tensor, rank: int) -> Tensor:
    if x.ndim == rank:
        return x
    return ops.reshape(x, (*x.shape[:1], *[1] * (rank - x.ndim), *x.shape[1:]))


def _broadcast(left: Shape, other: Shape) -> Shape:
    """Return the shape that two shapes without the batch axis broadcast to."""
    if len(left) < len(other):
        left, other = other, left
    sizes: list[int | None] = []
    for size, its in zip_longest(reversed(left), reversed(other), fillvalue=1):
        if size is None or its is None:
            sizes.append(None)
        elif size == its or 1 in (size, its):
            sizes.append(its if size == 1 else size)
        else:
            raise ValueError(f"Inputs have incompatible shapes. Received shapes {left} and {other}")
    return tuple(reversed(sizes))


class Add(Merge):
    """Returns the sum of its inputs.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> Add()([[[1.0, 2.0]], [[3.0, 4.0]]])
        Traceback (most recent call last):
        ValueError: A merge layer should be called on a list of inputs. Received: ...
        >>> from mirrored import ops
        >>> Add()([ops.ones((1, 2)), ops.ones((1, 2))]).numpy().tolist()
        [[2.0, 2.0]]
    """

    _pair = staticmethod(ops.add)


class Subtract(Merge):
    """Returns the first of two inputs less the second.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Subtract()([ops.ones((1, 2)), ops.zeros((1, 2))]).numpy().tolist()
        [[1.0, 1.0]]
    """

    _pair = staticmethod(ops.subtract)
    _exactly = 2


class Multiply(Merge):
    """Returns the product of its inputs.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Multiply()([ops.ones((1, 2)), ops.zeros((1, 2))]).numpy().tolist()
        [[0.0, 0.0]]
    """

    _pair = staticmethod(ops.multiply)

    def _merged_by_masks(self, inputs: list[Tensor]) -> Tensor:
        masks = masks_as_wide(inputs)
        one, zero = (ops.constant(number, inputs[0].dtype) for number in (1, 0))
        product = self._merged(
            [
                tensor if mask is None else ops.where(mask, tensor, one)
                for tensor, mask in zip(inputs, masks, strict=True)
            ]
        )
        known = [mask for mask in masks if mask is not None]
        if len(known) < len(masks):
            return product
        counts: Tensor = reduce(ops.logical_or, known)
        return masked(ops.where(counts, product, zero), ops.reduce_any(counts, -1))


class Average(Merge):
    """Returns the mean of its inputs.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Average()([ops.ones((1, 2)), ops.zeros((1, 2))]).numpy().tolist()
        [[0.5, 0.5]]
    """

    _pair = staticmethod(ops.add)

    def _merged(self, inputs: list[Tensor]) -> Tensor:
        return super()._merged(inputs) / len(inputs)


class Extreme(Merge):
    """The largest or the smallest of inputs: of those that masks leave, where there are masks."""

    def _merged_by_masks(self, inputs: list[Tensor]) -> Tensor:
        (output, *others), (counts, *masks) = inputs, masks_as_wide(inputs)
        for other, mask in zip(others, masks, strict=True):
            candidate = other if mask is None else ops.where(mask, other, output)
            output = type(self)._pair(
                output if counts is None else ops.where(counts, output, candidate), candidate
            )
            if counts is not None:
                counts = None if mask is None else ops.logical_or(counts, mask)
        return output if counts is None else masked(output, ops.reduce_any(counts, -1))


class Maximum(Extreme):
    """Returns the largest of its inputs, element by element.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Maximum()([ops.ones((1, 2)), ops.zeros((1, 2))]).numpy().tolist()
        [[1.0, 1.0]]
    """

    _pair = staticmethod(ops.maximum)


class Minimum(Extreme):
    """Returns the smallest of its inputs, element by element.

    Args:
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Minimum()([ops.ones((1, 2)), ops.zeros((1, 2))]).numpy().tolist()
        [[0.0, 0.0]]
    """

    _pair = staticmethod(ops.minimum)


@explained_only
def add(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the sum of inputs: `Add`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.add([mr.layers.Input((3,)), mr.layers.Input((3,))]).shape
        (None, 3)
    """
    return Add(**kwargs)(inputs)


@explained_only
def subtract(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the first of two inputs less the second: `Subtract`, made and called.

    Args:
        inputs: Two tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.subtract([mr.ones((1, 2)), mr.ones((1, 2))]).numpy().tolist()
        [[0.0, 0.0]]
    """
    return Subtract(**kwargs)(inputs)


@explained_only
def multiply(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the product of inputs: `Multiply`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.multiply([mr.ones((1, 2)), mr.ones((1, 2))]).numpy().tolist()
        [[1.0, 1.0]]
    """
    return Multiply(**kwargs)(inputs)


@explained_only
def average(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the mean of inputs: `Average`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.average([mr.ones((1, 2)), mr.zeros((1, 2))]).numpy().tolist()
        [[0.5, 0.5]]
    """
    return Average(**kwargs)(inputs)


@explained_only
def maximum(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the largest of inputs: `Maximum`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.maximum([mr.ones((1, 2)), mr.zeros((1, 2))]).numpy().tolist()
        [[1.0, 1.0]]
    """
    return Maximum(**kwargs)(inputs)


@explained_only
def minimum(inputs: Sequence[TensorLike], **kwargs: Unpack[LayerOptions]) -> Any:
    """Return the smallest of inputs: `Minimum`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.minimum([mr.ones((1, 2)), mr.zeros((1, 2))]).numpy().tolist()
        [[0.0, 0.0]]
    """
    return Minimum(**kwargs)(inputs)


def check_masks(inputs: Any, masks: Any) -> Any:
    """Return the masks of several inputs; refuse others than one each.

    Args:
        inputs: The inputs.
        masks: Their masks; None where there are none.

    Raises:
        ValueError: They are no lists, or of unequal lengths.
    """
    if masks is not None and not isinstance(masks, list | tuple):
        raise ValueError(f"`mask` should be a list. Received: mask={masks}")
    if masks is not None and not isinstance(inputs, list | tuple):
        raise ValueError(f"`inputs` should be a list. Received: inputs={inputs}")
    if masks is not None and len(masks) != len(inputs):
        raise ValueError(
            "The lists `inputs` and `mask` should have the same length. Received: inputs of length "
            f"{len(inputs)}, and mask of length {len(masks)}"
        )
    return None if masks is None else [_as_booleans(mask) for mask in masks]


def masks_as_wide(inputs: list[Tensor]) -> list[Tensor | None]:
    """Return the masks of inputs in the inputs' shapes, None for those without.

    Args:
        inputs: The inputs, each with one axis more than its mask.
    """
    masks = [(tensor, _as_booleans(tensor._keras_mask)) for tensor in inputs]
    return [
        None if mask is None else ops.broadcast_to(ops.expand_dims(mask, -1), tensor.shape)
        for tensor, mask in masks
    ]


def _as_booleans(mask: Any) -> Any:
    """Return a mask as booleans, of which users' may be none."""
    return mask if mask is None or mask.dtype == ops.bool_ else ops.cast(mask, ops.bool_)


def mask_of_rank(x: Any, mask: Any) -> Any:
    """Return a mask with as many axes as its input, to be joined as the inputs are.

    Args:
        x: The input.
        mask: Its mask; None: all of it counts.
    """
    if mask is None:
        return ops.ones_like(x, dtype=ops.bool_)
    if mask.ndim < x.ndim:
        return ops.logical_or(ops.expand_dims(mask, -1), ops.zeros_like(x, dtype=ops.bool_))
    return mask
