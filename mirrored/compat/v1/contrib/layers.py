"""The initializers of TensorFlow 1's `tf.contrib.layers`."""

from mirrored._types import DTypeLike
from mirrored.compat.v1.initializers import variance_scaling_initializer
from mirrored.compat.v1.listing import list_names
from mirrored.layers.starting_values import CUT_DEVIATION
from mirrored.ops.spec import FLOATS, as_dtype


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: DTypeLike = "float32"
) -> variance_scaling_initializer:
    """Return the initializer of Glorot and Bengio (2010), with tf.contrib's numbers.

    Args:
        uniform: Whether numbers come from an interval; else from a truncated normal distribution
            of variance 1.3 / n before it is truncated, where n is the mean of inputs and outputs.
        seed: A seed for this initializer, in addition to the graph's.
        dtype: The dtype of variables that have none: a float.

    Raises:
        TypeError: The dtype is not a float.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     begin = tf.contrib.layers.xavier_initializer()
        ...     w = tf.get_variable("w", [2, 4], initializer=begin)
        ...     session.run(w.initializer)
        ...     bool((abs(session.run(w)) <= 1.0).all())
        True
    """
    if as_dtype(dtype) not in FLOATS:
        raise TypeError(
            f"Cannot create initializer for non-floating point type. Received: dtype={dtype!r}. "
            "Use a float, such as tf.float32."
        )
    if uniform:
        return variance_scaling_initializer(1.0, "fan_avg", "uniform", seed, dtype)
    scale = 1.3 * CUT_DEVIATION**2
    return variance_scaling_initializer(scale, "fan_avg", "truncated_normal", seed, dtype)


xavier_initializer_conv2d = xavier_initializer


list_names(
    __name__,
    refused={
        "Use `tf.layers.dense`, with `tf.nn.relu` as its activation.": "fully_connected",
        "Use `tf.layers.conv2d`, with `tf.nn.relu` as its activation.": "conv2d convolution2d",
        "Use `tf.layers.conv2d_transpose`.": "conv2d_transpose convolution2d_transpose",
        "Use `tf.layers.max_pooling2d`.": "max_pool2d",
        "Use `tf.layers.average_pooling2d`.": "avg_pool2d",
        "Use `tf.layers.batch_normalization`.": "batch_norm",
        "Use `tf.layers.dropout`, with `rate=1 - keep_prob`.": "dropout",
        "Use `tf.layers.flatten`.": "flatten",
        "Use `tf.variance_scaling_initializer`.": "variance_scaling_initializer",
        "Use a function, such as `lambda w: 0.01 * tf.nn.l2_loss(w)`.": "l2_regularizer",
        "Use a function, such as `lambda w: 0.01 * tf.reduce_sum(tf.abs(w))`.": "l1_regularizer",
        "Use `tf.nn.embedding_lookup` of a variable.": "embed_sequence",
        "Use `tf.one_hot`.": "one_hot_encoding",
        "Use `minimize` of an optimizer of `tf.train`.": "optimize_loss",
    },
    advice="Use `tf.layers`.",
)
