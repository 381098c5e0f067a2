"""TensorFlow 1's `tf.layers`, as its documentation of 1.15 describes them."""

import math
from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._types import AxisLike, PartialShapeLike, TensorLike
from mirrored.compat.v1.control_flow import smart_cond
from mirrored.compat.v1.drawn_calls import drawn, named_call
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.initializers import ones_initializer, zeros_initializer
from mirrored.compat.v1.listing import list_names, named
from mirrored.compat.v1.scopes import get_variable, variable_scope
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.special import dropout as _dropped
from mirrored.compat.v1.variables import GraphKeys, Variable
from mirrored.layers.shapes import as_data_format, as_sizes, windowed_sizes
from mirrored.ops.convolution_functions import check_not_both
from mirrored.ops.images import FORMATS, sizes_of_transposed


def dense(
    inputs: TensorLike,
    units: int,
    activation: Callable[..., Any] | None = None,
    use_bias: bool = True,
    kernel_initializer: Callable[..., Any] | None = None,
    bias_initializer: Callable[..., Any] | None = None,
    kernel_regularizer: Callable[..., Any] | None = None,
    bias_regularizer: Callable[..., Any] | None = None,
    activity_regularizer: Callable[..., Any] | None = None,
    kernel_constraint: Callable[..., Any] | None = None,
    bias_constraint: Callable[..., Any] | None = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
) -> Any:
    """Return inputs times weights, with a bias added, through an activation.

    Args:
        inputs: A tensor of shape (..., features).
        units: How many features the result has.
        activation: A function of a tensor.
        use_bias: Whether a bias is added.
        kernel_initializer: What the weights begin with; None: the scope's, Glorot's by default.
        bias_initializer: What the bias begins with; None: zeros.
        kernel_regularizer: What makes a loss of the weights.
        bias_regularizer: What makes a loss of the bias.
        activity_regularizer: Not provided.
        kernel_constraint: Not provided.
        bias_constraint: Not provided.
        trainable: Whether optimizers change the variables.
        name: The scope of the variables; None: one that no other has.
        reuse: Whether the variables are those of a call before of that name.

    Raises:
        ValueError: The number of features is not known, or what is not provided is given.
    """
    _check_absent(activity_regularizer, kernel_constraint, bias_constraint)
    inputs = converted(inputs)
    features = inputs._shape[-1] if inputs._shape else None
    if features is None:
        raise ValueError(
            "The last dimension of the inputs to `Dense` should be defined. Found `None`."
        )
    with variable_scope(name, "dense", reuse=reuse):
        kernels = inputs._dtype, kernel_initializer, kernel_regularizer, trainable
        kernel = get_variable("kernel", [features, units], *kernels)
        biases = bias_initializer, bias_regularizer, trainable
        bias = _bias(inputs, units, *biases) if use_bias else None
        if len(inputs._shape) == 2:
            outputs = drawn(ops.matmul, (inputs, kernel), "MatMul", "MatMul")
        else:
            outputs = drawn(ops.tensordot, (inputs, kernel, 1), "Tensordot", "Tensordot")
        return _finished(outputs, bias, activation)


def _check_absent(*settings: Any) -> None:
    """Raise ValueError where a setting is not None that no layer here has."""
    if any(setting is not None for setting in settings):
        raise ValueError(
            "`activity_regularizer`, `kernel_constraint` and `bias_constraint` are not provided. "
            "Leave them out."
        )


def _bias(inputs: Tensor, units: int, initializer: Any, regularizer: Any, trainable: bool) -> Any:
    begin = zeros_initializer() if initializer is None else initializer
    return get_variable("bias", [units], inputs._dtype, begin, regularizer, trainable)


def _finished(outputs: Any, bias: Any, activation: Any, *data_format: str) -> Any:
    """Return outputs with a bias added, through an activation."""
    if bias is not None:
        outputs = drawn(ops.bias_add, (outputs, bias, *data_format), "BiasAdd", "BiasAdd")
    return outputs if activation is None else activation(outputs)


def _convolution(rank: int, transposed: bool = False) -> Callable[..., Any]:
    """Return a layer of convolutions with a number of spatial axes, or of transposed ones."""
    called = f"conv{rank}d{'_transpose' * transposed}"
    kind = f"Conv{max(rank, 2)}D{'BackpropInput' * transposed}"

    def layer(
        inputs: TensorLike,
        filters: int,
        kernel_size: AxisLike,
        strides: AxisLike = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: AxisLike = 1,
        activation: Callable[..., Any] | None = None,
        use_bias: bool = True,
        kernel_initializer: Callable[..., Any] | None = None,
        bias_initializer: Callable[..., Any] | None = None,
        kernel_regularizer: Callable[..., Any] | None = None,
        bias_regularizer: Callable[..., Any] | None = None,
        activity_regularizer: Callable[..., Any] | None = None,
        kernel_constraint: Callable[..., Any] | None = None,
        bias_constraint: Callable[..., Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: bool | None = None,
    ) -> Any:
        """Return {result}, with a bias added, through an activation.

        Args:
            inputs: A tensor with {rank} spatial axes, whose number of channels is known.
            filters: How many channels the result has.
            kernel_size: The size of a window: an integer, or one for each spatial axis.
            strides: The distance of two windows: likewise.
            padding: "valid" or "same".
            data_format: "channels_last" or "channels_first".
            dilation_rate: The distance of two elements that a window reads.
            activation: A function of a tensor.
            use_bias: Whether a bias is added.
            kernel_initializer: What the filters begin with; None: the scope's, Glorot's by default.
            bias_initializer: What the bias begins with; None: zeros.
            kernel_regularizer: What makes a loss of the filters.
            bias_regularizer: What makes a loss of the bias.
            activity_regularizer: Not provided.
            kernel_constraint: Not provided.
            bias_constraint: Not provided.
            trainable: Whether optimizers change the variables.
            name: The scope of the variables; None: one that no other has.
            reuse: Whether the variables are those of a call before of that name.

        Raises:
            ValueError: The inputs have other axes, or the number of channels is not known; windows
                do not fit; or what is not provided is given.

        Example:
            >>> import mirrored.compat.v1 as tf
            >>> with tf.Graph().as_default():
            ...     x = tf.placeholder(tf.float32, [None, {sizes} 3])
            ...     tf.layers.{called}(x, 4, 3, 2, "same", activation=tf.nn.relu).shape.as_list()
            [None, {found} 4]
        """
        _check_absent(activity_regularizer, kernel_constraint, bias_constraint)
        inputs, form, padding = _windowed(called, rank, inputs, data_format, padding)
        taps = as_sizes("kernel_size", kernel_size, rank)
        steps = as_sizes("strides", strides, rank)
        dilations = as_sizes("dilation_rate", dilation_rate, rank)
        is_first = form == FORMATS[rank][1]

        def spatial(shape: Any) -> Any:
            return shape[2:] if is_first else shape[1:-1]

        if not transposed:
            check_not_both(steps, dilations)
            windowed_sizes(spatial(inputs._shape), taps, steps, dilations, padding.lower())
        channels = inputs._shape[1 if is_first else -1]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")

        def compute(x: Any, kernel: Any) -> Any:
            if not transposed:
                return ops.convolution(x, kernel, steps, padding, form, dilations)
            sizes: Any = sizes_of_transposed(
                spatial(x.shape), taps, steps, dilations, padding, None
            )
            return ops.conv_transpose(x, kernel, sizes, steps, padding, form, dilations)

        with variable_scope(name, called, reuse=reuse):
            ends = [filters, channels] if transposed else [channels, filters]
            kernels = inputs._dtype, kernel_initializer, kernel_regularizer, trainable
            kernel = get_variable("kernel", [*taps, *ends], *kernels)
            biases = bias_initializer, bias_regularizer, trainable
            bias = _bias(inputs, filters, *biases) if use_bias else None
            operation = called if transposed or rank == 1 else kind
            outputs = drawn(compute, (inputs, kernel), kind, operation)
            return _finished(outputs, bias, activation, form)

    return named(
        layer,
        called,
        result="the gradient of a convolution by images" if transposed else "a convolution",
        rank=rank,
        called=called,
        sizes="8, " * (rank - 1) + "8,",
        found=f"{16 if transposed else 4}, " * (rank - 1) + f"{16 if transposed else 4},",
    )


def _windowed(
    called: str, rank: int, inputs: TensorLike, data_format: str, padding: str
) -> tuple[Tensor, str, str]:
    """Return images, and layout and padding by the names that `tf.nn` has for them."""
    images = converted(inputs)
    axes = None if images._shape is None else len(images._shape)
    if axes != rank + 2:
        raise ValueError(
            f"Input 0 of layer {called} is incompatible with the layer: expected ndim={rank + 2}, "
            f"found ndim={axes}. Full shape received: {images.shape}"
        )
    if str(padding).lower() not in ("valid", "same"):
        raise ValueError(
            'The `padding` argument must be one of "valid", "same". Received: ' + str(padding)
        )
    is_first = as_data_format(data_format) == "channels_first"
    return images, FORMATS[rank][is_first], padding.upper()


def _pooling(kind: str, rank: int) -> Callable[..., Any]:
    """Return a layer of pooling with a number of spatial axes."""
    called = f"{kind}_pooling{rank}d"
    short = "max" if kind == "max" else "avg"
    operation = f"{short.capitalize()}Pool{'3D' if rank == 3 else ''}"

    def layer(
        inputs: TensorLike,
        pool_size: AxisLike,
        strides: AxisLike,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Any:
        """Return the {result} of each window, channel by channel.

        Args:
            inputs: A tensor with {rank} spatial axes.
            pool_size: The size of a window: an integer, or one for each spatial axis.
            strides: The distance of two windows: likewise.
            padding: "valid" or "same".
            data_format: "channels_last" or "channels_first".
            name: Its name.

        Raises:
            ValueError: The inputs have other axes, or windows do not fit.
        """
        images, form, padding = _windowed(called, rank, inputs, data_format, padding)
        window, steps = as_sizes("pool_size", pool_size, rank), as_sizes("strides", strides, rank)
        pool = named_call(f"nn.{short}_pool{rank}d")
        with graph_of(images).name_scope(name or called):
            return pool(images, window, steps, padding, form, name=operation)

    return named(layer, called, result="largest element" if kind == "max" else "mean", rank=rank)


conv1d, conv2d, conv3d = map(_convolution, (1, 2, 3))
conv2d_transpose = _convolution(2, transposed=True)
max_pooling1d, max_pooling2d, max_pooling3d = (_pooling("max", rank) for rank in (1, 2, 3))
average_pooling1d, average_pooling2d, average_pooling3d = (
    _pooling("average", rank) for rank in (1, 2, 3)
)


def flatten(inputs: TensorLike, name: str = "flatten/Reshape") -> Any:
    """Return a tensor of two axes, the first of which is that of the inputs.

    Args:
        inputs: A tensor.
        name: Its name.
    """

    def flat(x: Any) -> Any:
        return ops.reshape(x, (x.shape[0], -1) if x.shape[0] else (0, math.prod(x.shape[1:])))

    return drawn(flat, (inputs,), "Reshape", name)


def dropout(
    inputs: TensorLike,
    rate: TensorLike = 0.5,
    noise_shape: PartialShapeLike | None = None,
    seed: int | None = None,
    training: TensorLike = False,
    name: str = "dropout",
) -> Any:
    """Return a tensor some elements of which are zero in training.

    Args:
        inputs: A tensor.
        rate: How likely an element is dropped.
        noise_shape: The shape in which it is drawn what stays.
        seed: A stream of draws of its own.
        training: Whether anything is dropped: a boolean, or a boolean tensor, which decides in
            each run.
        name: Its name.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     training = tf.placeholder(tf.bool, [])
        ...     y = tf.layers.dropout(tf.ones([3]), 0.4, training=training)
        ...     session.run(y, {training: False})
        array([1., 1., 1.], dtype=float32)
    """
    with graph_of(inputs, training).name_scope(name):
        return smart_cond(
            training,
            lambda: _dropped(inputs, noise_shape=noise_shape, seed=seed, rate=rate),
            lambda: drawn(ops.identity, (inputs,), "Identity", "Identity"),
        )


# The least number that TensorFlow's fused kernel adds to a variance.
_LEAST_EPSILON = 1.001e-5


def batch_normalization(
    inputs: TensorLike,
    axis: int | list[int] = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Callable[..., Any] | None = None,
    gamma_initializer: Callable[..., Any] | None = None,
    moving_mean_initializer: Callable[..., Any] | None = None,
    moving_variance_initializer: Callable[..., Any] | None = None,
    beta_regularizer: Callable[..., Any] | None = None,
    gamma_regularizer: Callable[..., Any] | None = None,
    beta_constraint: Callable[..., Any] | None = None,
    gamma_constraint: Callable[..., Any] | None = None,
    training: TensorLike = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
    renorm: bool = False,
    renorm_clipping: None = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: None = None,
) -> Any:
    """Return inputs with mean 0 and variance 1 per feature, scaled by gamma and shifted by beta.

    In training, mean and variance are those of the batch, and two operations in the collection
    `tf.GraphKeys.UPDATE_OPS` update the moving averages, which are used otherwise.

    Args:
        inputs: A tensor of floats whose size is known along `axis`.
        axis: The axis of the features, or a list of axes.
        momentum: The part of a moving average that an update keeps.
        epsilon: A small number that is added to the variance.
        center: Whether beta is added.
        scale: Whether the result is multiplied by gamma.
        beta_initializer: Makes the initial value of beta; None: zeros.
        gamma_initializer: Makes the initial value of gamma; None: ones.
        moving_mean_initializer: Makes the initial moving mean; None: zeros.
        moving_variance_initializer: Makes the initial moving variance; None: ones.
        beta_regularizer: A function from beta to a loss.
        gamma_regularizer: A function from gamma to a loss.
        beta_constraint: A function of beta, from which optimizers set it after a step.
        gamma_constraint: The same for gamma.
        training: Whether the batch's statistics are used: a boolean, or a boolean tensor, which
            decides in each run.
        trainable: Whether optimizers change beta and gamma.
        name: The scope of the variables; None: one that no other call has.
        reuse: Whether the variables are those of an earlier call with this name.
        renorm: Not provided, like the two below.
        renorm_clipping: Not provided.
        renorm_momentum: Has no effect without `renorm`.
        fused: Whether to follow TensorFlow's fused kernel, whose moving variance is that of a
            sample (N - 1); None and True: for inputs of four axes, with the features on axis 1 or
            3, as in TensorFlow.
        virtual_batch_size: Not provided.
        adjustment: Not provided.

    Raises:
        ValueError: The rank or the number of features is not known, `axis` is not one of the
            axes, or an argument that is not provided is passed.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     y = tf.layers.batch_normalization(tf.constant([[1.0], [3.0]]), training=True)
        ...     session.run(tf.global_variables_initializer())
        ...     updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        ...     session.run([y, *updates])[1:]
        [array([0.02], dtype=float32), array([1.], dtype=float32)]
    """
    if renorm or not (renorm_clipping is virtual_batch_size is adjustment is None):
        raise ValueError(
            "`renorm`, `renorm_clipping`, `virtual_batch_size` and `adjustment` are not provided. "
            "Leave them out."
        )
    inputs = converted(inputs)
    axes = _axes(inputs, axis)
    shape = [inputs._shape[i] if i in axes else 1 for i in range(len(inputs._shape))]
    if None in shape:
        raise ValueError(
            f"Input has undefined `axis` dimension. Input shape: {inputs.shape}. Set this size "
            "for the placeholder, or call `set_shape`."
        )
    alone = len(axes) == 1
    reduced = [i for i in range(len(shape)) if i not in axes]
    dtype = inputs._dtype if inputs._dtype.itemsize > 2 else ops.float32  # Of parameters.
    is_fused = fused is not False and len(shape) == 4 and axes in ([1], [3])
    epsilon = max(epsilon, _LEAST_EPSILON) if is_fused else epsilon
    sizes = [shape[axes[0]]] if alone else shape

    def variable(called: str, begin: Any, of_batch: bool, **settings: Any) -> Variable:
        changes = trainable and not of_batch
        return get_variable(called, sizes, dtype, begin, trainable=changes, **settings)

    def spread(value: Any) -> Any:
        """Return a parameter as what broadcasts against the inputs."""
        if value is None:
            return None
        value = _cast(value, inputs._dtype)
        return named_call("reshape")(value, shape) if alone and axes != [len(shape) - 1] else value

    with variable_scope(name, "batch_normalization", reuse=reuse):
        gamma = beta = None
        if scale:
            settings = {"regularizer": gamma_regularizer, "constraint": gamma_constraint}
            gamma = variable("gamma", gamma_initializer or ones_initializer(), False, **settings)
        if center:
            settings = {"regularizer": beta_regularizer, "constraint": beta_constraint}
            beta = variable("beta", beta_initializer or zeros_initializer(), False, **settings)
        moving = [
            variable("moving_mean", moving_mean_initializer or zeros_initializer(), True),
            variable("moving_variance", moving_variance_initializer or ones_initializer(), True),
        ]

        def moments() -> list[Any]:
            return list(named_call("nn.moments")(_cast(inputs, dtype), reduced, keepdims=not alone))

        mean, variance = smart_cond(training, moments, lambda: list(moving))
        if isinstance(training, Tensor) or training:
            latest = (mean, _of_sample(inputs, variance) if is_fused else variance)
            for average, value in zip(moving, latest, strict=True):
                updated = _updated(average, value, momentum, training)
                updated.graph.add_to_collection(GraphKeys.UPDATE_OPS, updated)
        arguments = [spread(value) for value in (mean, variance, beta, gamma)]
        return named_call("nn.batch_normalization")(inputs, *arguments, epsilon)


def _axes(inputs: Tensor, axis: int | list[int]) -> list[int]:
    """Return the axes of the features, counted from the first one."""
    if not inputs._shape:
        raise ValueError(f"Input has undefined rank: {inputs.shape}. Set the placeholder's shape.")
    if not isinstance(axis, int | list):
        raise TypeError(f"axis must be int or list, type given: {type(axis)}")
    rank = len(inputs._shape)
    axes = [i + rank if i < 0 else i for i in (axis if isinstance(axis, list) else [axis])]
    wrong = [i for i in axes if not 0 <= i < rank]
    if wrong:
        raise ValueError(f"Invalid axis: {wrong[0]}. The inputs have {rank} axes.")
    if len(axes) != len(set(axes)):
        raise ValueError(f"Duplicate axis: {axes}")
    return axes


def _cast(tensor: Tensor, dtype: Any) -> Any:
    return tensor if tensor._dtype == dtype else named_call("cast")(tensor, dtype)


def _of_sample(inputs: Tensor, variance: Tensor) -> Any:
    """Return the variance of a sample, for that of all rows."""

    def scaled(inputs: Any, variance: Any) -> Any:
        count = inputs.size // variance.size
        return variance * (count / max(count - 1, 1))

    return drawn(scaled, (inputs, variance), "Mul", "variance_of_sample")


def _updated(average: Variable, value: Any, momentum: float, training: Any) -> Any:
    """Return a moving average after an update towards a value, which happens in training."""

    def moved() -> Any:
        return average.assign_sub((average - value) * (1.0 - momentum), name="AssignMovingAvg")

    return smart_cond(training, moved, lambda: average)


list_names(
    __name__,
    refused={
        "Use `tf.nn.conv3d_transpose`.": "conv3d_transpose",
        "Use `tf.nn.separable_conv2d`.": "separable_conv1d separable_conv2d",
        "Use the function, with `name` and `reuse` for weights that are shared.": """
            AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Conv1D Conv2D
            Conv2DTranspose Conv3D Dense Dropout Flatten MaxPooling1D MaxPooling2D MaxPooling3D
        """,
    },
)
