"""TensorFlow 1's `tf.layers`, as its documentation of 1.15 describes them."""

from collections.abc import Callable
from typing import Any

from mirrored import ops
from mirrored._types import PartialShapeLike, TensorLike
from mirrored.compat.v1.control_flow import smart_cond
from mirrored.compat.v1.drawn_calls import drawn, named_call
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.initializers import ones_initializer, zeros_initializer
from mirrored.compat.v1.listing import list_names
from mirrored.compat.v1.scopes import get_variable, variable_scope
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.special import dropout as _dropped
from mirrored.compat.v1.variables import GraphKeys, Variable


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
    if not (activity_regularizer is kernel_constraint is bias_constraint is None):
        raise ValueError(
            "`activity_regularizer`, `kernel_constraint` and `bias_constraint` are not provided. "
            "Leave them out."
        )
    inputs = converted(inputs)
    features = inputs._shape[-1] if inputs._shape else None
    if features is None:
        raise ValueError(
            "The last dimension of the inputs to `Dense` should be defined. Found `None`."
        )
    with variable_scope(name, "dense", reuse=reuse):
        kernel = get_variable(
            "kernel",
            [features, units],
            inputs._dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
        )
        bias = None
        if use_bias:
            begin = zeros_initializer() if bias_initializer is None else bias_initializer
            bias = get_variable("bias", [units], inputs._dtype, begin, bias_regularizer, trainable)
        if len(inputs._shape) == 2:
            outputs = drawn(ops.matmul, (inputs, kernel), {}, "MatMul", "MatMul")
        else:
            outputs = drawn(ops.tensordot, (inputs, kernel, 1), {}, "Tensordot", "Tensordot")
        if bias is not None:
            outputs = drawn(ops.bias_add, (outputs, bias), {}, "BiasAdd", "BiasAdd")
        return outputs if activation is None else activation(outputs)


def flatten(inputs: TensorLike, name: str = "flatten/Reshape") -> Any:
    """Return a tensor of two axes, the first of which is that of the inputs.

    Args:
        inputs: A tensor.
        name: Its name.
    """

    def flat(x: Any) -> Any:
        return ops.reshape(x, (x.shape[0], -1) if x.shape[0] else (0, _count(x.shape[1:])))

    return drawn(flat, (inputs,), {}, "Reshape", name)


def _count(sizes: Any) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


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
            lambda: drawn(ops.identity, (inputs,), {}, "Identity", "Identity"),
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

    return drawn(scaled, (inputs, variance), {}, "Mul", "variance_of_sample")


def _updated(average: Variable, value: Any, momentum: float, training: Any) -> Any:
    """Return a moving average after an update towards a value, which happens in training."""

    def moved() -> Any:
        return average.assign_sub((average - value) * (1.0 - momentum), name="AssignMovingAvg")

    return smart_cond(training, moved, lambda: average)


list_names(
    __name__,
    refused={
        "Convolutions and pooling are out of this library's scope.": """
            average_pooling2d conv1d conv2d conv2d_transpose conv3d max_pooling2d separable_conv2d
        """,
        "Use the function, with `name` and `reuse` for weights that are shared.": """
            BatchNormalization Dense Dropout Flatten
        """,
    },
)
