"""`keras.ops` of normalization: moments and norms; and cross-entropies of probabilities."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.matrices import norm as _norm
from mirrored.keras_functions.promotion import floats as _floats
from mirrored.keras_functions.promotion import result_type as _result_type
from mirrored.keras_functions.promotion import tensors as _tensors
from mirrored.ops import Tensor
from mirrored.ops.activations import ANY_ENTROPY, cast_with_logits, logits_for
from mirrored.ops.spec import float_limits

_EPSILON = 1e-7  # Keras' fuzz factor.


@explained
def normalize(x: Any, axis: Any = -1, order: Any = 2, epsilon: float | None = None) -> Tensor:
    """Return x / max(norm(x), epsilon), the norm over axes.

    Args:
        x: Floats.
        axis: The axis or axes; None: all.
        order: The order of the norm.
        epsilon: The least divisor; None: 1e-7.

    Raises:
        ValueError: The order is no integer above 0.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.normalize([3.0, 4.0]).numpy()
        array([0.6, 0.8], dtype=float32)
    """
    if not isinstance(order, int) or not order >= 1:
        raise ValueError(f"Argument `order` must be an int >= 1. Received: order={order!r}")
    tensor = _floats(x)
    tensor = tensor if tensor.ndim else ops.expand_dims(tensor, 0)
    least = _EPSILON if epsilon is None else epsilon
    if order == 2:
        squares = ops.reduce_sum(ops.square(tensor), axis, True)
        most = min(1.0 / least, float_limits(tensor.dtype)[1])
        return tensor * ops.minimum(ops.rsqrt(squares), most)
    return tensor / ops.maximum(_norm(tensor, order, axis, True), least)


def _in_float32(x: Tensor) -> Tensor:
    return ops.cast(x, ops.float32) if x.dtype.itemsize == 2 else x


@explained
def moments(
    x: Any, axes: Any, keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes.

    Args:
        x: Floats; float16 and bfloat16 are added up in float32.
        axes: The axis or axes.
        keepdims: Whether they stay, of size 1.
        synchronized: Whether those of all replicas are meant.

    Raises:
        NotImplementedError: Those of all replicas are: `BatchNormalization` computes them.

    Example:
        >>> import mirrored as mr
        >>> [each.numpy().item() for each in mr.keras.ops.moments([1.0, 3.0], axes=0)]
        [2.0, 1.0]
    """
    if synchronized:
        raise NotImplementedError(
            "`moments` are those of one replica here. Use `layers.BatchNormalization()`, or sum "
            "with `get_replica_context().all_reduce`."
        )
    tensor = _floats(x)
    values = ops.moments(_in_float32(tensor), axes, keepdims=keepdims)
    if tensor.dtype.itemsize != 2:
        return values
    largest = float_limits(ops.float16)[1]
    mean, variance = (
        ops.cast(ops.clip_by_value(value, -largest, largest), tensor.dtype) for value in values
    )
    return mean, variance


@explained
def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 0.001,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) * scale + offset, all vectors along an axis.

    Args:
        x: Floats.
        mean: The means.
        variance: The variances.
        axis: The axis.
        offset: What is added; None: nothing.
        scale: The factors; None: 1.
        epsilon: What is added to variances.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.batch_normalization([[3.0]], [1.0], [4.0], -1, epsilon=0.0).numpy()
        array([[1.]], dtype=float32)
    """
    tensor = _floats(x)
    sizes = [-1 if index == axis % tensor.ndim else 1 for index in range(tensor.ndim)]
    middle, spread, added, factor = (
        None if parameter is None else ops.reshape(ops.cast(parameter, tensor.dtype), sizes)
        for parameter in (mean, variance, offset, scale)
    )
    return ops.batch_normalization(tensor, middle, spread, added, factor, epsilon)


@explained
def layer_normalization(
    x: Any,
    gamma: Any = None,
    beta: Any = None,
    axis: Any = -1,
    epsilon: float | None = None,
    **kwargs: Any,
) -> Tensor:
    """Return elements whose mean over axes is 0 and whose variance 1, times `gamma` plus `beta`.

    Args:
        x: Floats; float16 and bfloat16 are computed in float32.
        gamma: The factors, of the sizes of the axes; None: 1.
        beta: What is added, of the same; None: nothing.
        axis: The axis or axes.
        epsilon: What is added to variances; None: 1e-7.
        **kwargs: `rms_scaling`, False: True is an older way that Keras warns of.

    Raises:
        TypeError: Something else is given by name.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.layer_normalization([1.0, 3.0]).numpy().round(3)
        array([-1.,  1.], dtype=float32)
    """
    if kwargs.pop("rms_scaling", False) or kwargs:
        raise TypeError(
            "`layer_normalization` takes `gamma`, `beta`, `axis` and `epsilon` alone. Received: "
            f"{', '.join(kwargs) or 'rms_scaling=True, for which use `rms_normalization`'}."
        )
    floats = _floats(x)
    tensor = _in_float32(floats)
    axes, sizes = _sizes(tensor, axis)
    mean, variance = ops.moments(tensor, axes, keepdims=True)
    factor = ops.rsqrt(variance + (_EPSILON if epsilon is None else epsilon))
    if gamma is not None:
        factor = factor * _along(gamma, tensor, sizes)
    rest = ops.negative(mean) * factor
    if beta is not None:
        rest = rest + _along(beta, tensor, sizes)
    return ops.cast(tensor * factor + rest, floats.dtype)


def _sizes(x: Tensor, axis: Any) -> tuple[list[int], list[int]]:
    axes = sorted(index % x.ndim for index in ([axis] if isinstance(axis, int) else axis))
    return axes, [x.shape[index] if index in axes else 1 for index in range(x.ndim)]


def _along(values: Any, x: Tensor, sizes: list[int]) -> Tensor:
    """Return what is given for some axes in a shape that broadcasts with the tensor."""
    broadcast = ops.cast(values, x.dtype)
    return broadcast if broadcast.ndim == x.ndim else ops.reshape(broadcast, sizes)


@explained
def rms_normalization(
    x: Any, scale: Any = None, axis: Any = -1, epsilon: float | None = None
) -> Tensor:
    """Return x / sqrt(mean(x^2) + epsilon) * scale, the mean over axes.

    Args:
        x: Floats; float16 and bfloat16 are computed in float32.
        scale: The factors, of a shape that broadcasts; None: 1.
        axis: The axis or axes.
        epsilon: What is added; None: 1e-7.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.rms_normalization([3.0, 3.0]).numpy().round(3)
        array([1., 1.], dtype=float32)
    """
    floats = _floats(x)
    tensor = _in_float32(floats)
    tensor = tensor if tensor.ndim else ops.expand_dims(tensor, 0)
    least = _EPSILON if epsilon is None else epsilon
    ratio = tensor * ops.rsqrt(ops.reduce_mean(ops.square(tensor), axis, True) + least)
    return ops.cast(ratio if scale is None else ratio * ops.cast(scale, ratio.dtype), floats.dtype)


# Losses.


def _check_alike(target: Tensor, output: Tensor) -> None:
    if target.ndim != output.ndim:
        raise ValueError(
            "Arguments `target` and `output` must have the same rank (ndim). Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )
    if any(a != b for a, b in zip(target.shape, output.shape, strict=True)):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _floats_of_both(target: Any, output: Any) -> tuple[Tensor, Tensor]:
    aims, predictions = _tensors(target, output)
    kind = _result_type(predictions.dtype, float)
    return ops.cast(aims, kind), cast_with_logits(predictions, kind)


def _clipped(probabilities: Tensor) -> Tensor:
    return ops.clip_by_value(probabilities, _EPSILON, 1.0 - _EPSILON)


@explained
def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> Tensor:
    """Return -t log(p) - (1 - t) log(1 - p) for targets and probabilities, element by element.

    Args:
        target: The targets, from 0 to 1.
        output: Probabilities, or what the sigmoid makes them of.
        from_logits: Whether it is the latter.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.binary_crossentropy([1.0], [0.5]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    aims, predictions = _floats_of_both(target, output)
    _check_alike(aims, predictions)
    logits = logits_for("binary_crossentropy", predictions, from_logits, "sigmoid")
    if logits is not None:
        return ops.sigmoid_cross_entropy_with_logits(labels=aims, logits=logits)
    predictions = _clipped(predictions)
    return ops.negative(aims * ops.log(predictions) + (1.0 - aims) * ops.log(1.0 - predictions))


@explained
def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Return -sum(t log(p)) over the classes, for targets and probabilities.

    Args:
        target: The targets.
        output: Probabilities, which are divided by their sum; or what the softmax makes them of.
        from_logits: Whether it is the latter.
        axis: The axis of the classes.

    Raises:
        ValueError: The shapes differ, or there are no axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    aims, predictions = _floats_of_both(target, output)
    if not aims.ndim:
        raise ValueError(
            "Arguments `target` and `output` must be at least rank 1. Received: "
            f"target.shape={aims.shape}, output.shape={predictions.shape}"
        )
    _check_alike(aims, predictions)
    logits = logits_for("categorical_crossentropy", predictions, from_logits, ANY_ENTROPY)
    if logits is not None:
        return ops.softmax_cross_entropy_with_logits(labels=aims, logits=logits, axis=axis)
    predictions = predictions / ops.reduce_sum(predictions, axis, True)
    return ops.negative(ops.reduce_sum(aims * ops.log(_clipped(predictions)), axis))


@explained
def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> Tensor:
    """Return -log(p) of the probability of each target's class.

    Args:
        target: The numbers of the classes, of the shape of `output` without its last axis, or with
            one of size 1 in its place.
        output: Probabilities, or what the softmax makes them of.
        from_logits: Whether it is the latter.
        axis: The last axis.

    Raises:
        ValueError: The axis is another one, or the shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy().round(4)
        array([0.6931], dtype=float32)
    """
    predictions = _floats(output)
    if axis not in (-1, predictions.ndim - 1):
        raise ValueError(f"Only axis=-1 is currently supported. Received: axis={axis}")
    places = ops.cast(target, ops.int64)
    if places.ndim == predictions.ndim and places.shape[-1] == 1:
        places = ops.squeeze(places, -1)
    if places.shape != predictions.shape[:-1]:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension: "
            f"target.shape={places.shape}, output.shape={predictions.shape}"
        )
    logits = logits_for("sparse_categorical_crossentropy", predictions, from_logits, "softmax")
    if logits is None:
        logits = ops.log(_clipped(predictions))
    return ops.sparse_softmax_cross_entropy_with_logits(labels=places, logits=logits)
