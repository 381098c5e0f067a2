# Written by tests/support/stubs.py from the table in layers.py; do not edit it.
from typing import Any
from mirrored import ops
from mirrored.compat.v1.calls import drawn
from mirrored.compat.v1.control_flow import smart_cond
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.initializers import zeros_initializer
from mirrored.compat.v1.listing import list_names
from mirrored.compat.v1.scopes import get_variable, variable_scope
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.special import dropout as _dropped
def dense(inputs: Any, units: int, activation: Any=None, use_bias: bool=True, kernel_initializer: Any=None, bias_initializer: Any=None, kernel_regularizer: Any=None, bias_regularizer: Any=None, activity_regularizer: Any=None, kernel_constraint: Any=None, bias_constraint: Any=None, trainable: bool=True, name: str | None=None, reuse: Any=None) -> Any:
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
    if not activity_regularizer is kernel_constraint is bias_constraint is None:
        raise ValueError('`activity_regularizer`, `kernel_constraint` and `bias_constraint` are not provided.')
    inputs = converted(inputs)
    features = inputs._shape[-1] if inputs._shape else None
    if features is None:
        raise ValueError('The last dimension of the inputs to `Dense` should be defined. Found `None`.')
    with variable_scope(name, 'dense', reuse=reuse):
        kernel = get_variable('kernel', [features, units], inputs._dtype, kernel_initializer, kernel_regularizer, trainable)
        bias = None
        if use_bias:
            begin = zeros_initializer() if bias_initializer is None else bias_initializer
            bias = get_variable('bias', [units], inputs._dtype, begin, bias_regularizer, trainable)
        if len(inputs._shape) == 2:
            outputs = drawn(ops.matmul, (inputs, kernel), {}, 'MatMul', 'MatMul')
        else:
            outputs = drawn(ops.tensordot, (inputs, kernel, 1), {}, 'Tensordot', 'Tensordot')
        if bias is not None:
            outputs = drawn(ops.bias_add, (outputs, bias), {}, 'BiasAdd', 'BiasAdd')
        return outputs if activation is None else activation(outputs)
def flatten(inputs: Any, name: str='flatten/Reshape') -> Any:
    """Return a tensor of two axes, the first of which is that of the inputs.

    Args:
        inputs: A tensor.
        name: Its name.
    """

    def flat(x: Any) -> Any:
        return ops.reshape(x, (x.shape[0], -1) if x.shape[0] else (0, _count(x.shape[1:])))
    return drawn(flat, (inputs,), {}, 'Reshape', name)
def _count(sizes: Any) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
def dropout(inputs: Any, rate: Any=0.5, noise_shape: Any=None, seed: int | None=None, training: Any=False, name: str='dropout') -> Any:
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
        return smart_cond(training, lambda: _dropped(inputs, noise_shape=noise_shape, seed=seed, rate=rate), lambda: drawn(ops.identity, (inputs,), {}, 'Identity', 'Identity'))
from mirrored.compat.v1.layers import batch_normalization as batch_normalization
