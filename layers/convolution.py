"""Convolutional layers: each output is a weighted sum over a window of the inputs.

Layers of one, two and three spatial axes differ in their number alone.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._numbers import as_integer
from mirrored._types import Identifier, TensorLike
from mirrored.layers import activations, constraints, initializers, regularizers
from mirrored.layers.layer import PlainOptions
from mirrored.layers.shapes import Shape, as_data_format, as_sizes, require_rank, windowed_sizes
from mirrored.layers.spatial import SpatialLayer
from mirrored.layers.weights import add_configured, overridable
from mirrored.ops import Tensor
from mirrored.ops.images import (
    Layout,
    Windows,
    convolved,
    convolved_by_channel,
    sizes_of_transposed,
    transposed_convolution,
)
from mirrored.serialization.constructor_arguments import serialized
from mirrored.variables import Variable

Sizes = int | Sequence[int]


def _positive(argument: str, value: Any) -> int:
    """Return a positive integer, or raise ValueError with Keras' text for these layers."""
    number = as_integer(value)
    if number is None or number < 1:
        raise ValueError(
            f"Invalid value for argument `{argument}`. Expected a strictly positive value. "
            f"Received {argument}={value!r}."
        )
    return number


class _Convolution(SpatialLayer):
    """What all have in common: windows, a bias and an activation."""

    _paddings: ClassVar[tuple[str, ...]] = ("valid", "same")

    filters: int
    bias: Variable | None

    def _set_windows(
        self, kernel_size: Any, strides: Any, padding: Any, data_format: Any, dilation_rate: Any
    ) -> None:
        """Check and keep the arguments that say how windows lie."""
        self.kernel_size = as_sizes("kernel_size", kernel_size, self._rank)
        self.strides = as_sizes("strides", strides, self._rank)
        self.dilation_rate = as_sizes("dilation_rate", dilation_rate, self._rank)
        self.padding = str(padding).lower()
        if self.padding not in self._paddings:
            raise ValueError(
                f"The `padding` argument must be one of {self._paddings}. Received: "
                f"padding={padding!r}"
            )
        self.data_format = as_data_format(data_format)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
                f"strides={self.strides} and dilation_rate={self.dilation_rate}"
            )

    def _set_weights(
        self, activation: Any, use_bias: bool, **settings: tuple[Any, Any, Any]
    ) -> None:
        """Keep the activation, and the initializer, regularizer and constraint of each weight."""
        self.activation = activations.get(activation)
        self.use_bias = use_bias
        for name, (initializer, regularizer, constraint) in settings.items():
            setattr(self, f"{name}_initializer", initializers.get(initializer))
            setattr(self, f"{name}_regularizer", regularizers.get(regularizer))
            setattr(self, f"{name}_constraint", constraints.get(constraint))

    @property
    def _images(self) -> Layout:
        name = "Conv3D" if self._rank == 3 else "Conv2D"
        return Layout(self._rank, self.data_format == "channels_first", name)

    @property
    def _windows(self) -> Windows:
        padding: Any = self.padding.upper()
        if padding == "CAUSAL":
            padding = ((self.dilation_rate[0] * (self.kernel_size[0] - 1), 0),)
        return Windows(self.strides, padding, self.dilation_rate)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        penalty = serialized(self.activity_regularizer)
        return {**super().get_config(), "activity_regularizer": penalty}

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless inputs are such images, with the channels of the weights."""
        require_rank(self.name, input_shape, self._rank + 2, exactly=self._rank + 2)
        channels = self._channels_of(input_shape)
        built_for = self._channels_of(self.__state__.input_shape) if self.built else channels
        if channels is None or channels != built_for:
            axis = 1 if self.data_format == "channels_first" else -1
            wanted = f"have value {built_for}" if self.built else "be known"
            raise ValueError(
                f'Input 0 of layer "{self.name}" is incompatible with the layer: expected axis '
                f"{axis} of input shape to {wanted}, but received input with shape {input_shape}"
            )
        self._sizes(input_shape)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape of the outputs, whose channels are the filters."""
        sizes, channels = self._sizes(input_shape), self._outputs(self._channels_of(input_shape))
        if self.data_format == "channels_first":
            return (input_shape[0], channels, *sizes)
        return (input_shape[0], *sizes, channels)

    def _outputs(self, channels: int) -> int:
        """Return the number of channels of the outputs, for that of the inputs."""
        return self.filters

    def _sizes(self, input_shape: Shape) -> Shape:
        """Return the spatial sizes of the outputs."""
        sizes = self._around(input_shape)[1]
        return windowed_sizes(
            sizes, self.kernel_size, self.strides, self.dilation_rate, self.padding
        )

    def _add_bias(self, channels: int) -> None:
        self.bias = add_configured(self, "bias", (channels,)) if self.use_bias else None

    def _convolved(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activations.

        Args:
            inputs: Floats of shape (batch, spatial axes, channels), or (batch, channels, spatial
                axes) with "channels_first".
        """
        outputs = self._convolved(inputs)
        bias: Any = self.bias
        if bias is not None and self.data_format == "channels_first":
            outputs = outputs + ops.reshape(bias, (1, -1, *(1,) * self._rank))
        elif bias is not None:
            outputs = ops.bias_add(outputs, bias)
        return self.activation(outputs)


class _Filters(_Convolution):
    """A convolution with filters over all channels, or over those of a group."""

    kernel: Variable = overridable()

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        groups: int = 1,
        activation: Identifier | None = None,
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.filters = _positive("filters", filters)
        self.groups = _positive("groups", groups)
        if self.filters % self.groups:
            raise ValueError(
                "The number of filters must be evenly divisible by the number of groups. "
                f"Received: groups={groups}, filters={filters}."
            )
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self._set_weights(
            activation,
            use_bias,
            kernel=(kernel_initializer, kernel_regularizer, kernel_constraint),
            bias=(bias_initializer, bias_regularizer, bias_constraint),
        )

    def build(self, input_shape: Shape) -> None:
        """Create the kernel, and the bias where there is one."""
        channels = self._channels_of(input_shape)
        if channels % self.groups:
            raise ValueError(
                "The number of input channels must be evenly divisible by the number of groups. "
                f"Received groups={self.groups}, but the input has {channels} channels (full "
                f"input shape is {input_shape})."
            )
        shape = (*self.kernel_size, channels // self.groups, self.filters)
        add_configured(self, "kernel", shape)
        self._add_bias(self.filters)

    def convolution_op(self, inputs: Tensor, kernel: TensorLike) -> Tensor:
        """Return the convolution of inputs with a kernel; a subclass may change the kernel.

        Args:
            inputs: The images.
            kernel: The filters.
        """
        return convolved(inputs, kernel, self._images, self._windows)

    def _convolved(self, inputs: Tensor) -> Tensor:
        return self.convolution_op(inputs, self.kernel)


class _Transposed(_Convolution):
    """The gradient of a convolution, as a layer that enlarges images."""

    kernel: Variable = overridable()

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        output_padding: Sizes | None = None,
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: Identifier | None = None,
        use_bias: bool = True,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.filters = _positive("filters", filters)
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self.output_padding = None
        if output_padding is not None:
            self.output_padding = as_sizes("output_padding", output_padding, self._rank, least=0)
            if any(more >= n for more, n in zip(self.output_padding, self.strides, strict=True)):
                raise ValueError(
                    "`output_padding` must be strictly less than `strides` for all dimensions. "
                    f"Received: output_padding={self.output_padding}, strides={self.strides}"
                )
        self._set_weights(
            activation,
            use_bias,
            kernel=(kernel_initializer, kernel_regularizer, kernel_constraint),
            bias=(bias_initializer, bias_regularizer, bias_constraint),
        )

    def build(self, input_shape: Shape) -> None:
        """Create the kernel, and the bias where there is one."""
        shape = (*self.kernel_size, self.filters, self._channels_of(input_shape))
        add_configured(self, "kernel", shape)
        self._add_bias(self.filters)

    def _sizes(self, input_shape: Shape) -> Shape:
        return sizes_of_transposed(
            self._around(input_shape)[1],
            self.kernel_size,
            self.strides,
            self.dilation_rate,
            self.padding.upper(),
            self.output_padding,
        )

    def _convolved(self, inputs: Tensor) -> Tensor:
        sizes: Any = self._sizes(inputs.shape)
        return transposed_convolution(inputs, self.kernel, sizes, self._images, self._windows)


class _Depthwise(_Convolution):
    """A convolution of each channel with filters of its own."""

    kernel: Variable = overridable()

    def __init__(
        self,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        activation: Identifier | None = None,
        use_bias: bool = True,
        depthwise_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        depthwise_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        depthwise_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.depth_multiplier = _positive("depth_multiplier", depth_multiplier)
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self._set_weights(
            activation,
            use_bias,
            depthwise=(depthwise_initializer, depthwise_regularizer, depthwise_constraint),
            bias=(bias_initializer, bias_regularizer, bias_constraint),
        )

    def build(self, input_shape: Shape) -> None:
        """Create the kernel, and the bias where there is one."""
        channels = self._channels_of(input_shape)
        shape = (*self.kernel_size, channels, self.depth_multiplier)
        add_configured(self, "kernel", shape, prefix="depthwise")
        self._add_bias(self._outputs(channels))

    def _convolved(self, inputs: Tensor) -> Tensor:
        return convolved_by_channel(inputs, self.kernel, self._images, self._windows)

    def _outputs(self, channels: int) -> int:
        return channels * self.depth_multiplier


class _Separable(_Convolution):
    """A depthwise convolution, and weighted sums of its channels."""

    depthwise_kernel: Variable = overridable()
    pointwise_kernel: Variable = overridable()

    def __init__(
        self,
        filters: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Sizes = 1,
        depth_multiplier: int = 1,
        activation: Identifier | None = None,
        use_bias: bool = True,
        depthwise_initializer: Identifier = "glorot_uniform",
        pointwise_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        depthwise_regularizer: Identifier | None = None,
        pointwise_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        depthwise_constraint: Identifier | None = None,
        pointwise_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **options)
        self.filters = _positive("filters", filters)
        self.depth_multiplier = _positive("depth_multiplier", depth_multiplier)
        self._set_windows(kernel_size, strides, padding, data_format, dilation_rate)
        self._set_weights(
            activation,
            use_bias,
            depthwise=(depthwise_initializer, depthwise_regularizer, depthwise_constraint),
            pointwise=(pointwise_initializer, pointwise_regularizer, pointwise_constraint),
            bias=(bias_initializer, bias_regularizer, bias_constraint),
        )

    def build(self, input_shape: Shape) -> None:
        """Create both kernels, and the bias where there is one."""
        channels = self._channels_of(input_shape)
        first = (*self.kernel_size, channels, self.depth_multiplier)
        second = (*(1,) * self._rank, channels * self.depth_multiplier, self.filters)
        add_configured(self, "depthwise_kernel", first, prefix="depthwise")
        add_configured(self, "pointwise_kernel", second, prefix="pointwise")
        self._add_bias(self.filters)

    def _convolved(self, inputs: Tensor) -> Tensor:
        images = self._images
        middle = convolved_by_channel(inputs, self.depthwise_kernel, images, self._windows)
        points = Windows((1,) * self._rank, "VALID", (1,) * self._rank)
        return convolved(middle, self.pointwise_kernel, images, points)


class Conv1D(_Filters):
    """Convolves sequences of shape (batch, steps, channels) with filters.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride;
            "causal": no output reads a later step.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        groups: In how many groups of channels and filters the convolution is computed.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv1D(16, 3)(np.ones((4, 10, 3))).shape
        (4, 8, 16)
    """

    _rank = 1
    _paddings = ("valid", "same", "causal")


class Conv2D(_Filters):
    """Convolves images of shape (batch, rows, columns, channels) with filters.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        groups: In how many groups of channels and filters the convolution is computed.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv2D(16, 3)(np.ones((4, 8, 8, 3))).shape
        (4, 6, 6, 16)
    """

    _rank = 2


class Conv3D(_Filters):
    """Convolves volumes of shape (batch, depth, rows, columns, channels) with filters.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        groups: In how many groups of channels and filters the convolution is computed.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv3D(16, 3)(np.ones((2, 5, 5, 5, 1))).shape
        (2, 3, 3, 3, 16)
    """

    _rank = 3


class Conv1DTranspose(_Transposed):
    """Enlarges sequences by the gradient of a convolution.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid" or "same", of the convolution that this is the gradient of.
        output_padding: How much larger the outputs are; None: as the strides say.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv1DTranspose(16, 3, strides=2, padding="same")(np.ones((4, 10, 3))).shape
        (4, 20, 16)
    """

    _rank = 1


class Conv2DTranspose(_Transposed):
    """Enlarges images by the gradient of a convolution.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid" or "same", of the convolution that this is the gradient of.
        output_padding: How much larger the outputs are; None: as the strides say.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv2DTranspose(16, 3, strides=2, padding="same")(np.ones((4, 8, 8, 3))).shape
        (4, 16, 16, 16)
    """

    _rank = 2


class Conv3DTranspose(_Transposed):
    """Enlarges volumes by the gradient of a convolution.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid" or "same", of the convolution that this is the gradient of.
        output_padding: How much larger the outputs are; None: as the strides say.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: What the kernel starts as.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        kernel_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> Conv3DTranspose(16, 3, strides=2, padding="same")(np.ones((2, 5, 5, 5, 1))).shape
        (2, 10, 10, 10, 16)
    """

    _rank = 3


class DepthwiseConv1D(_Depthwise):
    """Convolves each channel of sequences with filters of its own.

    Args:
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        depth_multiplier: How many outputs each channel has.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        depthwise_initializer: What the depthwise kernel starts as.
        bias_initializer: What the bias starts as.
        depthwise_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        depthwise_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> DepthwiseConv1D(3)(np.ones((4, 10, 3))).shape
        (4, 8, 3)
    """

    _rank = 1


class DepthwiseConv2D(_Depthwise):
    """Convolves each channel of images with filters of its own.

    Args:
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        depth_multiplier: How many outputs each channel has.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        depthwise_initializer: What the depthwise kernel starts as.
        bias_initializer: What the bias starts as.
        depthwise_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        depthwise_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> DepthwiseConv2D(3)(np.ones((4, 8, 8, 3))).shape
        (4, 6, 6, 3)
    """

    _rank = 2


class SeparableConv1D(_Separable):
    """Convolves each channel of sequences, and then adds channels up with weights.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        depth_multiplier: How many outputs of the depthwise convolution each channel has.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        depthwise_initializer: What the depthwise kernel starts as.
        pointwise_initializer: What the pointwise kernel starts as.
        bias_initializer: What the bias starts as.
        depthwise_regularizer: The penalty on it, if any.
        pointwise_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        depthwise_constraint: What optimizers bring it back to after a step, if anything.
        pointwise_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> SeparableConv1D(16, 3)(np.ones((4, 10, 3))).shape
        (4, 8, 16)
    """

    _rank = 1


class SeparableConv2D(_Separable):
    """Convolves each channel of images, and then adds channels up with weights.

    Args:
        filters: How many outputs there are at each place.
        kernel_size: The size of a window: an integer, or one for each spatial axis.
        strides: The distance of two windows: likewise.
        padding: "valid": no padding; "same": as many outputs as inputs, divided by the stride
            and rounded up.
        data_format: "channels_last", which None stands for, or "channels_first".
        dilation_rate: The distance of two elements that a window reads.
        depth_multiplier: How many outputs of the depthwise convolution each channel has.
        activation: A name, a function from a tensor to a tensor, or None for none.
        use_bias: Whether there is a bias.
        depthwise_initializer: What the depthwise kernel starts as.
        pointwise_initializer: What the pointwise kernel starts as.
        bias_initializer: What the bias starts as.
        depthwise_regularizer: The penalty on it, if any.
        pointwise_regularizer: The penalty on it, if any.
        bias_regularizer: The penalty on it, if any.
        activity_regularizer: The penalty on the outputs, divided by the number of examples, if any.
        depthwise_constraint: What optimizers bring it back to after a step, if anything.
        pointwise_constraint: What optimizers bring it back to after a step, if anything.
        bias_constraint: What optimizers bring it back to after a step, if anything.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A number is not positive, or arguments do not go together.

    Example:
        >>> import numpy as np
        >>> SeparableConv2D(16, 3)(np.ones((4, 8, 8, 3))).shape
        (4, 6, 6, 16)
    """

    _rank = 2


# Names of Keras 1.
Convolution1D = Conv1D
Convolution1DTranspose = Conv1DTranspose
Convolution2D = Conv2D
Convolution2DTranspose = Conv2DTranspose
Convolution3D = Conv3D
Convolution3DTranspose = Conv3DTranspose
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
