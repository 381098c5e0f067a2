"""Layers that pad, crop and enlarge sequences, images and volumes.

Layers of one, two and three spatial axes differ in their number alone.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._numbers import as_integer
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, as_data_format, as_sizes, require_rank
from mirrored.ops import Tensor

Margins = int | Sequence[int | Sequence[int]]


class SpatialLayer(Layer):
    """A layer of one input that has a batch axis, spatial axes and channels.

    Its subclasses say how many spatial axes there are, and what the arguments are.
    """

    _rank: ClassVar[int]
    data_format = "channels_last"

    @property
    def _spatial_axes(self) -> tuple[int, ...]:
        first = 2 if self.data_format == "channels_first" else 1
        return tuple(range(first, first + self._rank))

    def _channels_of(self, shape: Shape) -> Any:
        return shape[1 if self.data_format == "channels_first" else -1]

    def _around(self, shape: Shape) -> tuple[Shape, Shape, Shape]:
        """Return the sizes before the spatial axes, of these, and behind them."""
        start, end = self._spatial_axes[0], self._spatial_axes[-1] + 1
        return shape[:start], shape[start:end], shape[end:]

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has these axes, in the sizes that it needs."""
        require_rank(self.name, input_shape, self._rank + 2, exactly=self._rank + 2)
        self.compute_output_shape(input_shape)


class _Margins(SpatialLayer):
    """A layer that adds or removes elements at both ends of each spatial axis."""

    _keeps_integers = True
    _argument: ClassVar[str]
    _sign: ClassVar[int]

    def __init__(
        self, margins: Margins, data_format: str | None, /, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)
        setattr(self, self._argument, _as_margins(self._argument, margins, self._rank))

    def _pairs(self) -> dict[int, tuple[int, int]]:
        """Return the numbers of elements before and behind each spatial axis."""
        margins = getattr(self, self._argument)
        pairs = (margins,) if self._rank == 1 else margins
        return dict(zip(self._spatial_axes, pairs, strict=True))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape with the new sizes of the spatial axes."""
        pairs = self._pairs()
        return tuple(
            None if size is None else size + self._sign * sum(pairs.get(axis, ()))
            for axis, size in enumerate(input_shape)
        )


def _as_margins(argument: str, value: Any, count: int) -> Any:
    """Return a pair of numbers for each spatial axis, or the pair where there is one axis.

    Args:
        argument: The argument's name.
        value: One number for both ends of all axes, or one or two for each.
        count: The number of spatial axes.

    Raises:
        ValueError: It is neither, or a number is negative.
    """
    if count == 1 or as_integer(value) is not None:
        pair = as_sizes(argument, value, 2, least=0)
        return pair if count == 1 else (pair,) * count
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
        raise ValueError(
            f"`{argument}` should be either an int, a tuple of {count} ints (the same for both "
            f"ends of an axis), or a tuple of {count} tuples of 2 ints. Received: "
            f"{argument}={value}"
        )
    names = ("1st", "2nd", "3rd")
    return tuple(
        as_sizes(f"{name} entry of {argument}", entry, 2, least=0)
        for name, entry in zip(names, value, strict=False)
    )


class _ZeroPadding(_Margins):
    """Adds zeros."""

    _argument = "padding"
    _sign = 1

    padding: Any

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs`` with zeros at the ends of the spatial axes."""
        pairs = self._pairs()
        return ops.pad(inputs, [pairs.get(axis, (0, 0)) for axis in range(inputs.ndim)])


class ZeroPadding1D(_ZeroPadding):
    """Adds zeros before and behind the steps of sequences.

    Args:
        padding: The number of steps to add: an integer for both ends, or (before, behind).
        data_format: "channels_last", the default: inputs of shape (batch, steps, channels); or
            "channels_first": (batch, channels, steps).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative, or there is no such ``data_format``.

    Example:
        >>> ZeroPadding1D((1, 0))([[[1.0], [2.0]]]).numpy().tolist()
        [[[0.0], [1.0], [2.0]]]
    """

    _rank = 1

    def __init__(
        self,
        padding: int | Sequence[int] = 1,
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(padding, data_format, **options)


class ZeroPadding2D(_ZeroPadding):
    """Adds zeros around images.

    Args:
        padding: The number of rows and columns to add: an integer for all ends, (rows, columns),
            or ((above, below), (left, right)).
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative, there are more or fewer of them, or there is no such
            ``data_format``.

    Example:
        >>> import numpy as np
        >>> ZeroPadding2D(((1, 0), (2, 2)))(np.ones((5, 8, 8, 3))).shape
        (5, 9, 12, 3)
    """

    _rank = 2

    def __init__(
        self,
        padding: Margins = (1, 1),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(padding, data_format, **options)


class ZeroPadding3D(_ZeroPadding):
    """Adds zeros around volumes.

    Args:
        padding: The number of elements to add: an integer for all ends, one for each spatial axis,
            or a pair (before, behind) for each.
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative, there are more or fewer of them, or there is no such
            ``data_format``.

    Example:
        >>> import numpy as np
        >>> ZeroPadding3D((1, 0, 2))(np.ones((5, 4, 4, 4, 3))).shape
        (5, 6, 4, 8, 3)
    """

    _rank = 3

    def __init__(
        self,
        padding: Margins = ((1, 1), (1, 1), (1, 1)),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(padding, data_format, **options)


class _Cropping(_Margins):
    """Removes elements."""

    _argument = "cropping"
    _sign = -1

    cropping: Any

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs`` without the ends of the spatial axes."""
        index = [slice(None)] * inputs.ndim
        for axis, (before, behind) in self._pairs().items():
            index[axis] = slice(before, -behind or None)
        return inputs[tuple(index)]

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape with the new sizes of the spatial axes.

        Raises:
            ValueError: Nothing would be left along an axis.
        """
        shape = super().compute_output_shape(input_shape)
        sizes = [shape[axis] for axis in self._spatial_axes]
        if any(size is not None and size < 1 for size in sizes):
            rule = "Values in `cropping` argument should be smaller than the corresponding spatial "
            rule += "dimension of the input"
            if self._rank == 1:
                rule = "`cropping` parameter of `Cropping1D` layer must be smaller than the input "
                rule += "length"
            raise ValueError(
                f"{rule}. Received: input_shape={input_shape}, cropping={self.cropping}"
            )
        return shape


class Cropping1D(_Cropping):
    """Removes steps at the ends of sequences of shape (batch, steps, channels).

    Args:
        cropping: The number of steps to remove: an integer for both ends, or (before, behind).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative.

    Example:
        >>> Cropping1D((1, 0))([[[1.0], [2.0], [3.0]]]).numpy().tolist()
        [[[2.0], [3.0]]]
    """

    _rank = 1

    def __init__(
        self, cropping: int | Sequence[int] = (1, 1), **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(cropping, "channels_last", **options)


class Cropping2D(_Cropping):
    """Removes rows and columns at the borders of images.

    Args:
        cropping: The number of rows and columns to remove: an integer for all ends, (rows,
            columns), or ((above, below), (left, right)).
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative, there are more or fewer of them, or there is no such
            ``data_format``.

    Example:
        >>> import numpy as np
        >>> Cropping2D(((1, 0), (2, 2)))(np.ones((5, 8, 8, 3))).shape
        (5, 7, 4, 3)
    """

    _rank = 2

    def __init__(
        self,
        cropping: Margins = ((0, 0), (0, 0)),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(cropping, data_format, **options)


class Cropping3D(_Cropping):
    """Removes elements at the borders of volumes.

    Args:
        cropping: The number of elements to remove: an integer for all ends, one for each spatial
            axis, or a pair (before, behind) for each.
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is negative, there are more or fewer of them, or there is no such
            ``data_format``.

    Example:
        >>> import numpy as np
        >>> Cropping3D((1, 0, (0, 3)))(np.ones((5, 4, 4, 4, 3))).shape
        (5, 2, 4, 1, 3)
    """

    _rank = 3

    def __init__(
        self,
        cropping: Margins = ((1, 1), (1, 1), (1, 1)),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(cropping, data_format, **options)


class _UpSampling(SpatialLayer):
    """Repeats each element."""

    _keeps_integers = True
    size: int | tuple[int, ...]

    def _factors(self) -> dict[int, int]:
        """Return how often elements are repeated along each spatial axis."""
        sizes = (self.size,) if isinstance(self.size, int) else self.size
        return dict(zip(self._spatial_axes, sizes, strict=True))

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs`` with each element repeated along the spatial axes."""
        factors = self._factors()
        apart: list[int] = []  # With an axis of repetitions behind each spatial one.
        spread: list[int] = []
        for axis, size in enumerate(inputs.shape):
            factor = factors.get(axis)
            apart += [size] if factor is None else [size, 1]
            spread += [size] if factor is None else [size, factor]
        repeated = ops.broadcast_to(ops.reshape(inputs, apart), spread)
        shape: Any = self.compute_output_shape(inputs.shape)
        return ops.reshape(repeated, shape)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape with the spatial axes times their factors."""
        factors = self._factors()
        return tuple(
            None if size is None else size * factors.get(axis, 1)
            for axis, size in enumerate(input_shape)
        )


class UpSampling1D(_UpSampling):
    """Repeats each step of sequences of shape (batch, steps, channels).

    Args:
        size: How often, 1 or more.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``size`` is no integer.
        ValueError: ``size`` is less than 1.

    Example:
        >>> UpSampling1D(2)([[[1.0], [2.0]]]).numpy().tolist()
        [[[1.0], [1.0], [2.0], [2.0]]]
    """

    _rank = 1

    def __init__(self, size: int = 2, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        factor = as_integer(size)
        if factor is None:
            raise TypeError(f"Expected an integer value for `size`, got {type(size)}.")
        if factor < 1:
            raise ValueError(f"Argument `size` should be a positive integer. Received: size={size}")
        self.size = factor


_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5", "area")


class UpSampling2D(_UpSampling):
    """Enlarges images by repeating each row and column, or by interpolation.

    Args:
        size: How often, 1 or more: an integer, or (rows, columns).
        data_format: "channels_last", the default: inputs of shape (batch, rows, columns, channels);
            or "channels_first": (batch, channels, rows, columns).
        interpolation: "nearest", which repeats, "bilinear", "bicubic", "lanczos3", "lanczos5" or
            "area".
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is less than 1, or there is no such ``data_format`` or ``interpolation``.

    Example:
        >>> UpSampling2D((1, 2))([[[[1.0], [2.0]]]]).numpy()[0, 0, :, 0].tolist()
        [1.0, 1.0, 2.0, 2.0]
    """

    _rank = 2

    def __init__(
        self,
        size: int | Sequence[int] = (2, 2),
        data_format: str | None = None,
        interpolation: str = "nearest",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)
        self.size = as_sizes("size", size, self._rank)
        self.interpolation = str(interpolation).lower()
        if self.interpolation not in _INTERPOLATIONS:
            raise ValueError(
                f"The `interpolation` argument must be one of {_INTERPOLATIONS}. Received: "
                f"interpolation={interpolation!r}"
            )

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs`` enlarged along the spatial axes."""
        if self.interpolation == "nearest":
            return super().call(inputs)
        from mirrored.ops.image_transforms import fitted  # Few models need it.

        shape = self.compute_output_shape(inputs.shape)
        size = [shape[axis] for axis in self._spatial_axes]
        return fitted(inputs, size, self.interpolation, data_format=self.data_format)


class UpSampling3D(_UpSampling):
    """Enlarges volumes by repeating each element along the spatial axes.

    Args:
        size: How often, 1 or more: an integer, or one for each spatial axis.
        data_format: "channels_last", the default: the channels' axis is the last one; or
            "channels_first": it is the one behind the batch's.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is less than 1, or there is no such ``data_format``.

    Example:
        >>> import numpy as np
        >>> UpSampling3D((1, 2, 3))(np.ones((5, 4, 4, 4, 3))).shape
        (5, 4, 8, 12, 3)
    """

    _rank = 3

    def __init__(
        self,
        size: int | Sequence[int] = (2, 2, 2),
        data_format: str | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.data_format = as_data_format(data_format)
        self.size = as_sizes("size", size, self._rank)
