"""Layers that join several tensors along an axis, or multiply two along axes of theirs.

Both check shapes as Keras does, before anything is computed.
"""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained_only
from mirrored._types import TensorLike
from mirrored.layers.layer import LayerOptions
from mirrored.layers.merging import Merge, check_masks, mask_of_rank
from mirrored.layers.shapes import Shape, Shapes, is_shape
from mirrored.ops import Tensor


class Concatenate(Merge):
    """Joins its inputs along an axis.

    Args:
        axis: The axis; negative ones count from the end.
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Example:
        >>> from mirrored import ops
        >>> Concatenate()([ops.ones((1, 2)), ops.zeros((1, 1))]).numpy().tolist()
        [[1.0, 1.0, 0.0]]
    """

    _makes_masks = False

    def __init__(self, axis: int = -1, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.axis = axis

    def build(self, input_shape: Shapes) -> None:
        """Check the shapes, which may differ along the axis alone.

        Args:
            input_shape: The shapes of the inputs, in a list.

        Raises:
            ValueError: There is one shape, or others differ.
        """
        if is_shape(input_shape) or isinstance(input_shape, dict):
            raise ValueError(
                "A `Concatenate` layer should be called on a list of at least 1 input. Received: "
                f"input_shape={input_shape}"
            )
        others = [[*shape] for shape in input_shape]
        for shape in others:
            if -len(shape) <= self.axis < len(shape):
                del shape[self.axis]
        if len({len(shape) for shape in others}) > 1 or any(
            len({*sizes} - {None}) > 1 for sizes in zip(*others, strict=True)
        ):
            raise ValueError(
                "A `Concatenate` layer requires inputs with matching shapes except for the "
                f"concatenation axis. Received: input_shape={input_shape}"
            )

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the inputs, joined.

        Args:
            inputs: Tensors, in a list.
        """
        return ops.concat(self._of_one_dtype(inputs), axis=self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return the masks, joined; what has none counts as a whole.

        Args:
            inputs: The inputs, in a list.
            mask: Their masks, in a list.

        Raises:
            ValueError: There is one mask, or not one for each input.
        """
        masks = check_masks(inputs, mask)
        if masks is None or all(input_mask is None for input_mask in masks):
            return None
        wide = [mask_of_rank(*pair) for pair in zip(inputs, masks, strict=True)]
        return ops.reduce_any(ops.concat(wide, axis=self.axis), -1)

    def compute_output_shape(self, input_shape: Shapes) -> Shape:
        """Return the shape of the first input, with the sizes along the axis added up.

        Args:
            input_shape: The shapes of the inputs, in a list.
        """
        if is_shape(input_shape):
            raise ValueError(
                "A `Concatenate` layer should be called on a list of inputs. Received: "
                f"input_shape={input_shape}"
            )
        sizes = [shape[self.axis] for shape in input_shape]
        joined = [*input_shape[0]]
        joined[self.axis] = None if None in sizes else sum(sizes)
        return tuple(joined)


class Dot(Merge):
    """Multiplies two inputs, example by example, and sums along an axis of each.

    Args:
        axes: The axis of both inputs, or that of each; not the batch axis.
        normalize: Whether both are divided by their L2 norms along the axis before.
        **options: ``activity_regularizer``, ``name``, ``trainable`` and ``dtype``, as for every
            layer.

    Raises:
        TypeError: ``axes`` is neither an integer nor a list.
        ValueError: It is a list of something else than two integers.

    Example:
        >>> from mirrored import ops
        >>> Dot(axes=1)([ops.ones((1, 3)), ops.ones((1, 3))]).numpy().tolist()
        [[3.0]]
    """

    _makes_masks = False

    def __init__(
        self,
        axes: int | tuple[int, int] | list[int],
        normalize: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(axes, int | list | tuple):
            raise TypeError(
                "Invalid type for argument `axes`: it should be a list or an int. Received: "
                f"axes={axes}"
            )
        if not isinstance(axes, int):
            if len(axes) != 2:
                raise ValueError(
                    "Invalid format for argument `axes`: it should contain two elements. "
                    f"Received: axes={axes}"
                )
            if not all(isinstance(axis, int) for axis in axes):
                raise ValueError(
                    "Invalid format for argument `axes`: list elements should be integers. "
                    f"Received: axes={axes}"
                )
        self.axes = axes
        self.normalize = normalize

    def build(self, input_shape: Shapes) -> None:
        """Check the shapes.

        Args:
            input_shape: The two shapes, in a list.

        Raises:
            ValueError: There are not two, or the sizes along the axes differ.
        """
        first, other = self.__two(input_shape)
        axes = self.__axes(len(first), len(other))
        if first[axes[0]] != other[axes[1]]:
            raise ValueError(
                f"Incompatible input shapes: axis values {first[axes[0]]} (at axis {axes[0]}) != "
                f"{other[axes[1]]} (at axis {axes[1]}). Full input shapes: {first}, {other}"
            )
        for shape in (first, other):
            if len(shape) < 2:
                raise ValueError(
                    "Cannot do batch_dot on inputs with rank < 2. Received inputs with shapes "
                    f"{first} and {other}."
                )
        if 0 in axes:
            raise ValueError(
                "Cannot perform batch_dot over axis 0. If your inputs are not batched, add a "
                f"dummy batch dimension to your inputs. Received: axes={self.axes}"
            )

    def call(self, inputs: Sequence[Tensor]) -> Tensor:
        """Return the products.

        Args:
            inputs: Two tensors, in a list.
        """
        first, other = self._of_one_dtype(inputs)
        axes = self.__axes(first.ndim, other.ndim)
        if self.normalize:
            first, other = (
                ops.l2_normalize(operand, axis=axis)
                for operand, axis in zip((first, other), axes, strict=True)
            )
        kept = [
            [axis for axis in range(1, operand.ndim) if axis != summed]
            for operand, summed in zip((first, other), axes, strict=True)
        ]
        batch, size = first.shape[0], first.shape[axes[0]]
        sizes = [
            [term.shape[axis] for axis in of] for term, of in zip((first, other), kept, strict=True)
        ]
        rows = ops.transpose(first, (0, *kept[0], axes[0]))
        columns = ops.transpose(other, (0, axes[1], *kept[1]))
        products = ops.matmul(
            ops.reshape(rows, (batch, math.prod(sizes[0]), size)),
            ops.reshape(columns, (batch, size, math.prod(sizes[1]))),
        )
        return ops.reshape(products, (batch, *(sizes[0] + sizes[1] or [1])))

    def compute_output_shape(self, input_shape: Shapes) -> Shape:
        """Return the sizes of both inputs but for those along the axes.

        Args:
            input_shape: The two shapes, in a list.

        Raises:
            ValueError: There are not two.
        """
        first, other = ([*shape] for shape in self.__two(input_shape))
        axes = self.__axes(len(first), len(other))
        del first[axes[0]], other[axes[1]]
        shape = (*first, *other[1:])
        return shape if len(shape) > 1 else (*shape, 1)

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Return None: the axes that are left have no mask.

        Args:
            inputs: The inputs, in a list.
            mask: Their masks, in a list.
        """

    def __two(self, shapes: Shapes) -> list[Shape]:
        if is_shape(shapes) or isinstance(shapes, dict) or len(shapes) != 2:
            raise ValueError(
                "A `Dot` layer should be called on a list of 2 inputs. Received: "
                f"input_shape={shapes}"
            )
        return list(shapes)

    def __axes(self, *ranks: int) -> list[int]:
        """Return the axes, counted from the first, of inputs of these numbers of axes."""
        axes = [self.axes] * 2 if isinstance(self.axes, int) else self.axes
        return [axis % rank if axis < 0 else axis for axis, rank in zip(axes, ranks, strict=True)]


@explained_only
def concatenate(
    inputs: Sequence[TensorLike], axis: int = -1, **kwargs: Unpack[LayerOptions]
) -> Any:
    """Return inputs joined along an axis: `Concatenate`, made and called.

    Args:
        inputs: Tensors or placeholders, in a list.
        axis: The axis.
        **kwargs: The layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.concatenate([mr.layers.Input((3,)), mr.layers.Input((4,))]).shape
        (None, 7)
    """
    return Concatenate(axis, **kwargs)(inputs)


@explained_only
def dot(inputs: Sequence[TensorLike], axes: int | tuple[int, int] = -1, **kwargs: Any) -> Any:
    """Return the products of two inputs along an axis of each: `Dot`, made and called.

    Args:
        inputs: Two tensors or placeholders, in a list.
        axes: The axis of both, or that of each.
        **kwargs: ``normalize``, and the layer's options.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.dot([mr.ones((1, 3)), mr.ones((1, 3))], axes=1).numpy().tolist()
        [[3.0]]
    """
    return Dot(axes, **kwargs)(inputs)
