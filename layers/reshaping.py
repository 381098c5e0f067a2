"""Layers that give each example another shape, and change no number.

The batch axis stays, whatever its size.
"""

import math
from collections.abc import Sequence
from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import as_integer
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, as_data_format, require_rank
from mirrored.ops import Tensor


class Reshape(Layer):
    """Gives each example another shape of as many elements.

    Args:
        target_shape: The shape of an example; one of its sizes may be -1, for what is left.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is no integer, or more than one is -1.

    Example:
        >>> import numpy as np
        >>> Reshape((2, -1))(np.ones((5, 6))).shape
        (5, 2, 3)
    """

    _keeps_integers = True
    _built_from_start = True

    def __init__(self, target_shape: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        sizes = [as_integer(size) for size in target_shape]
        known = tuple([size for size in sizes if size is not None and size >= -1])
        if len(known) != len(sizes) or known.count(-1) > 1:
            raise ValueError(
                "`target_shape` must be a shape of integers; one of them may be -1. Received: "
                f"target_shape={tuple(target_shape)}"
            )
        self.target_shape = known

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless an example has as many elements as the shape."""
        require_rank(self.name, input_shape, 1)
        self.compute_output_shape(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), as (batch, *target_shape)."""
        shape: Any = self.compute_output_shape(inputs.shape)
        return ops.reshape(inputs, (inputs.shape[0], *shape[1:]))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch's size and ``target_shape``, what is left in place of -1."""
        known = [size for size in input_shape[1:] if size is not None]
        rest: int | None = None
        if len(known) == len(input_shape) - 1:
            elements, wanted = math.prod(known), math.prod(s for s in self.target_shape if s != -1)
            rest = elements // wanted if wanted and -1 in self.target_shape else 1
            if rest * wanted != elements:
                raise ValueError(
                    "The total size of the tensor must be unchanged. Received: input_shape="
                    f"{input_shape[1:]}, target_shape={self.target_shape}"
                )
        return (input_shape[0], *(rest if size == -1 else size for size in self.target_shape))


class Permute(Layer):
    """Puts each example's axes into another order.

    Args:
        dims: The axes in their new order, counted from 1.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: These are not all the axes from 1 on, each once.

    Example:
        >>> import numpy as np
        >>> Permute((2, 1))(np.ones((5, 2, 3))).shape
        (5, 3, 2)
    """

    _keeps_integers = True

    def __init__(self, dims: Sequence[int], **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(
                "Invalid permutation argument `dims` for Permute Layer. The set of indices in "
                f"`dims` must be consecutive and start from 1. Received dims={dims}"
            )

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has these axes and the batch's."""
        require_rank(self.name, input_shape, 1, exactly=len(self.dims) + 1)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), with its axes in the new order."""
        return ops.transpose(inputs, (0, *self.dims))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the sizes in the new order."""
        return (input_shape[0], *(input_shape[axis] for axis in self.dims))


class RepeatVector(Layer):
    """Repeats each example, which is a vector, along a new axis.

    Args:
        n: How often, 1 or more.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``n`` is no integer.
        ValueError: ``n`` is less than 1.

    Example:
        >>> RepeatVector(2)([[1.0, 2.0]]).numpy().tolist()
        [[[1.0, 2.0], [1.0, 2.0]]]
    """

    _keeps_integers = True

    def __init__(self, n: int, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        count: Any = as_integer(n)
        if count is None:
            raise TypeError(f"Expected an integer value for `n`, got {type(n)}.")
        if count < 1:
            raise ValueError(f"Argument `n` should be a positive integer. Received: n={n!r}")
        self.n = int(count)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless each example is a vector."""
        require_rank(self.name, input_shape, 2, exactly=2)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, features), as (batch, n, features)."""
        batch, features = inputs.shape
        repeated = ops.reshape(inputs, (batch, 1, features))
        return ops.broadcast_to(repeated, (batch, self.n, features))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return (batch, n, features)."""
        return (input_shape[0], self.n, input_shape[1])


class Flatten(Layer):
    """Joins all axes but the first into one.

    Args:
        data_format: "channels_last", the default; or "channels_first": axis 1 becomes the last one
            before, so that the vector is that of the other order.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> Flatten()(np.ones((32, 8, 8))).shape
        (32, 64)
    """

    _keeps_integers = True

    def __init__(self, data_format: str | None = None, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is a batch axis."""
        require_rank(self.name, input_shape, 1)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of shape (batch, ...), as (batch, product of the other sizes)."""
        if self.data_format == "channels_first" and inputs.ndim > 2:
            inputs = ops.transpose(inputs, (0, *range(2, inputs.ndim), 1))
        return ops.reshape(inputs, (inputs.shape[0], math.prod(inputs.shape[1:])))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch's size, and the product of the others: None where one is None."""
        known = [size for size in input_shape[1:] if size is not None]
        unknown = len(known) < len(input_shape) - 1
        return (input_shape[0], None if unknown else math.prod(known))
