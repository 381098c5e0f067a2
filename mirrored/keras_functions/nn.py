"""`keras.ops` of networks: activations, normalization, cross-entropies and attention."""

import math
from collections.abc import Callable
from typing import Any, SupportsIndex

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import AxisLike, DTypeLike, TensorLike
from mirrored.keras_functions.linalg import norm
from mirrored.keras_functions.numpy.elementwise import log10
from mirrored.keras_functions.promotion import (
    RULES,
    promoted,
    promoted_floats,
    result_type,
    to_floats,
    to_indices,
    to_tensors,
)
from mirrored.layers.activations import log_softmax as _log_softmax_along
from mirrored.layers.activations import softmax as _softmax_along
from mirrored.numpy_functions.rows import Rows
from mirrored.ops import Tensor
from mirrored.ops.activations import ANY_ENTROPY, cast_with_logits, logits_for
from mirrored.ops.spec import as_data_format, float_limits

_ROWS = Rows(__name__, RULES)
unary = _ROWS.unary
_EPSILON = 1e-7  # Keras' fuzz factor.

relu = unary(ops.relu, "the elements, and 0 for those below it", "-1.0 -> 0.0", "same")
softplus = unary(ops.softplus, "log(exp(x) + 1)", "0.0 -> 0.6931471824645996", "same")


def _along_axis(
    of_rows: Callable[..., Tensor], along: Callable[..., Tensor], x: Any, axis: Any
) -> Tensor:
    if axis is not None:
        return along(x, axis)
    return ops.reshape(of_rows(ops.reshape(x, [-1])), ops.convert_to_tensor(x).shape)


def softmax(x: TensorLike, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """Return the softmax along an axis.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis, or several axes; None: all elements together.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.softmax([0.0, 0.0]).shape
        (2,)
    """
    return _along_axis(ops.softmax, _softmax_along, x, axis)


def log_softmax(x: TensorLike, axis: int | tuple[int, ...] | None = -1) -> Tensor:
    """Return the logarithm of the softmax along an axis.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        axis: The axis, or several axes; None: all elements together.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.log_softmax([0.0, 0.0]).shape
        (2,)
    """
    return _along_axis(ops.log_softmax, _log_softmax_along, x, axis)


def gelu(x: TensorLike, approximate: bool = True) -> Tensor:
    """Return the elements times the part of a normal distribution that is below them.

    Args:
        x: Floats.
        approximate: Whether by a formula with tanh.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.gelu(0.0).numpy().item()
        0.0
    """
    return ops.gelu(x, approximate)


def one_hot(
    x: TensorLike,
    num_classes: int,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
) -> Tensor:
    """Return rows of 0 with a 1 at each index.

    Args:
        x: The indices; floats lose their fractions.
        num_classes: How many places a row has.
        axis: Along which axis they are.
        dtype: The dtype; None: float32.
        sparse: False: there are no sparse tensors.

    Raises:
        ValueError: A sparse one is asked for.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.one_hot([1], 2).numpy()
        array([[0., 1.]], dtype=float32)
    """
    if sparse:
        raise ValueError("Tensors are not sparse here. Leave `sparse` out.")
    return ops.one_hot(to_indices(x), num_classes, axis=axis, dtype=dtype or ops.float32)


def space_to_depth(
    x: TensorLike, block_size: int, data_format: str | None = "channels_last"
) -> Tensor:
    """Return images whose blocks of pixels are pixels of more channels.

    Args:
        x: The images, of shape (batch, rows, columns, channels).
        block_size: The number of rows and columns of a block, 2 or more.
        data_format: "channels_last", or "channels_first" for images of shape (batch, channels,
            rows, columns).

    Raises:
        ValueError: Rows or columns are no multiple of the block's, or an argument is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.space_to_depth(mr.ones((1, 4, 6, 3)), 2).shape
        (1, 2, 3, 12)
    """
    return ops.space_to_depth(x, block_size, _LAYOUTS[as_data_format(data_format)])


def depth_to_space(
    x: TensorLike, block_size: int, data_format: str | None = "channels_last"
) -> Tensor:
    """Return images whose pixels are blocks of pixels of fewer channels: a pixel shuffle.

    Args:
        x: The images, of shape (batch, rows, columns, channels).
        block_size: The number of rows and columns of a block, 2 or more.
        data_format: "channels_last", or "channels_first" for images of shape (batch, channels,
            rows, columns).

    Raises:
        ValueError: Channels are no multiple of a block's pixels, or an argument is out of range.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.depth_to_space(mr.ones((1, 2, 3, 12)), 2).shape
        (1, 4, 6, 3)
    """
    return ops.depth_to_space(x, block_size, _LAYOUTS[as_data_format(data_format)])


_LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}


def multi_hot(
    inputs: TensorLike,
    num_classes: int | None = None,
    axis: int = -1,
    dtype: DTypeLike | None = None,
    sparse: bool = False,
    **kwargs: Any,
) -> Tensor:
    """Return rows of 0 with a 1 at each index that is in a row of indices.

    Args:
        inputs: The indices; those outside have no place.
        num_classes: How many places a row has.
        axis: Along which axis they are.
        dtype: The dtype; None: float32.
        sparse: False: there are no sparse tensors.
        **kwargs: `num_tokens`, an older name of `num_classes`.

    Raises:
        ValueError: The number of places is missing, or something else is given by name.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.multi_hot([[0, 2]], 3).numpy()
        array([[1., 0., 1.]], dtype=float32)
    """
    num_classes = kwargs.pop("num_tokens", num_classes)
    if num_classes is None:
        raise ValueError("Argument `num_classes` must be specified.")
    if kwargs:
        raise ValueError(f"Unknown arguments: {kwargs}. Leave them out.")
    places = to_indices(inputs)
    over = 1 if places.ndim > 1 else 0
    encoded = one_hot(places, num_classes, axis=axis, dtype=dtype, sparse=sparse)
    if encoded.dtype == ops.bool_:
        return ops.reduce_any(encoded, axis=over)
    return ops.reduce_max(encoded, axis=over)


def normalize(
    x: TensorLike, axis: AxisLike = -1, order: SupportsIndex = 2, epsilon: float | None = None
) -> Tensor:
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
    tensor = to_floats(x)
    tensor = tensor if tensor.ndim else ops.expand_dims(tensor, 0)
    least = _EPSILON if epsilon is None else epsilon
    if order == 2:
        squares = ops.reduce_sum(ops.square(tensor), axis, True)
        most = min(1.0 / least, float_limits(tensor.dtype)[1])
        return tensor * ops.minimum(ops.rsqrt(squares), most)
    return tensor / ops.maximum(norm(tensor, order, axis, True), least)


def _in_float32(x: Tensor) -> Tensor:
    return ops.cast(x, ops.float32) if x.dtype.itemsize == 2 else x


def moments(
    x: TensorLike, axes: AxisLike, keepdims: bool = False, synchronized: bool = False
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
            "`moments` uses only the values of one replica. Use `layers.BatchNormalization()`, "
            "or sum with `get_replica_context().all_reduce`."
        )
    tensor = to_floats(x)
    values = ops.moments(_in_float32(tensor), axes, keepdims=keepdims)
    if tensor.dtype.itemsize != 2:
        return values
    largest = float_limits(ops.float16)[1]
    mean, variance = (
        ops.cast(ops.clip_by_value(value, -largest, largest), tensor.dtype) for value in values
    )
    return mean, variance


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: int,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
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
    tensor = to_floats(x)
    sizes = [-1 if index == axis % tensor.ndim else 1 for index in range(tensor.ndim)]

    def along_axis(parameter: TensorLike) -> Tensor:
        return ops.reshape(ops.cast(parameter, tensor.dtype), sizes)

    return ops.batch_normalization(
        tensor,
        along_axis(mean),
        along_axis(variance),
        None if offset is None else along_axis(offset),
        None if scale is None else along_axis(scale),
        epsilon,
    )


def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: AxisLike = -1,
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
            "`layer_normalization` takes only `gamma`, `beta`, `axis` and `epsilon`. Received: "
            f"{', '.join(kwargs) or 'rms_scaling=True, for which use `rms_normalization`'}."
        )
    floats = to_floats(x)
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


def rms_normalization(
    x: TensorLike,
    scale: TensorLike | None = None,
    axis: AxisLike = -1,
    epsilon: float | None = None,
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
    floats = to_floats(x)
    tensor = _in_float32(floats)
    tensor = tensor if tensor.ndim else ops.expand_dims(tensor, 0)
    least = _EPSILON if epsilon is None else epsilon
    ratio = tensor * ops.rsqrt(ops.reduce_mean(ops.square(tensor), axis, True) + least)
    return ops.cast(ratio if scale is None else ratio * ops.cast(scale, ratio.dtype), floats.dtype)


def _check_alike(target: Tensor, output: Tensor) -> None:
    if target.shape != output.shape:
        same = "shape" if target.ndim == output.ndim else "rank (ndim)"
        raise ValueError(
            f"Arguments `target` and `output` must have the same {same}. Received: "
            f"target.shape={target.shape}, output.shape={output.shape}"
        )


def _floats_of_both(target: Any, output: Any) -> tuple[Tensor, Tensor]:
    aims, predictions = to_tensors(target, output)
    kind = result_type(predictions.dtype, float)
    return ops.cast(aims, kind), cast_with_logits(predictions, kind)


def _clipped(probabilities: Tensor) -> Tensor:
    return ops.clip_by_value(probabilities, _EPSILON, 1.0 - _EPSILON)


def binary_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False
) -> Tensor:
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


def categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
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


def sparse_categorical_crossentropy(
    target: TensorLike, output: TensorLike, from_logits: bool = False, axis: int = -1
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
    predictions = to_floats(output)
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


def psnr(x1: TensorLike, x2: TensorLike, max_val: TensorLike) -> Tensor:
    """Return 20 log10(max_val) - 10 log10(mean((x1 - x2)^2)), the ratio of a signal and its noise.

    Args:
        x1: Numbers.
        x2: Others of the same shape.
        max_val: The largest number that there may be.

    Raises:
        ValueError: The shapes differ.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.psnr([1.0], [0.0], 1.0).numpy().item()
        0.0
    """
    first, second = promoted_floats(x1, x2)
    if first.shape != second.shape:
        raise ValueError(
            f"Input shapes {first.shape} and {second.shape} must match for PSNR calculation. "
        )
    error = ops.reduce_mean(ops.squared_difference(first, second))
    largest = ops.cast(max_val, first.dtype)
    return ops.subtract(ops.multiply(log10(largest), 20.0), ops.multiply(log10(error), 10.0))


def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: None = None,
) -> Tensor:
    """Return for each query a mean of values, weighed by how well their keys match it.

    Vaswani et al., Attention Is All You Need, 2017: https://arxiv.org/abs/1706.03762

    Args:
        query: Floats of shape (batch, queries, heads, size).
        key: Floats of shape (batch, keys, heads, size); of fewer heads each is shared by as many
            of the query's.
        value: The same.
        bias: What is added to the products of queries and keys, of a shape that broadcasts to
            (batch, heads, queries, keys); None: nothing.
        mask: Booleans that broadcast to that shape: which keys each query may look at; None: all.
        scale: What the products are multiplied by; None: 1 / sqrt(size).
        is_causal: Whether a query may look at nothing behind its own place.
        flash_attention: False or None: there is no such implementation here.
        attn_logits_soft_cap: None, as in Keras but on TPUs.

    Raises:
        ValueError: One of the three has not four axes; or what is not here is asked for.

    Example:
        >>> import mirrored as mr
        >>> query, key = mr.ones((2, 4, 8, 16)), mr.ones((2, 6, 8, 16))
        >>> mr.keras.ops.dot_product_attention(query, key, key).shape
        (2, 4, 8, 16)
    """
    from mirrored.ops.contraction import attended

    if attn_logits_soft_cap is not None:
        raise ValueError(
            "attn_logits_soft_cap is only supported for JAX on TPU. Set attn_logits_soft_cap=None "
            "when not using JAX on TPU."
        )
    if flash_attention:
        raise ValueError("Flash attention is not supported. Leave `flash_attention` out.")
    query, key, value = promoted(query, key, value)
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. Received: query.shape="
            f"{query.shape}, key.shape={key.shape}, value.shape={value.shape}."
        )
    heads, groups = query.shape[2], key.shape[2]
    if heads > groups > 1:
        key, value = (ops.repeat(tensor, heads // groups, axis=2) for tensor in (key, value))
    if mask is not None:
        mask = ops.cast(mask, ops.bool_)
    if is_causal:
        rows, columns = ops.range(query.shape[1]), ops.range(key.shape[1])
        before = ops.greater_equal(ops.reshape(rows, (-1, 1)), columns)
        mask = before if mask is None else ops.logical_and(mask, before)
    factor = 1.0 / math.sqrt(key.shape[-1]) if scale is None else scale
    return attended(query, key, value, mask, factor, bias)


_ROWS.name_all()
explain_functions(__name__, all_but="relu softplus")
