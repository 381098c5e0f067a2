"""Ops of neural networks: biases and activations, with the fused kernels of their gradients.

Probabilities remember their logits, from which a loss is computed without rounding to 0 or 1.
"""

import math
from typing import Any

from mirrored._arguments import explained
from mirrored._logging import warn_caller
from mirrored._symbolic import Symbolic, symbolic_in
from mirrored._types import TensorLike
from mirrored.backends.product_settings import product
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, as_tensors
from mirrored.ops.creation import ZEROS_LIKE
from mirrored.ops.elementwise import ADD, binary, unary
from mirrored.ops.op import Full, Grads, Op, OpCall, define_op
from mirrored.ops.shaping import BROADCAST_TO, CAST, RESHAPE
from mirrored.ops.spec import (
    FLOATS,
    NUMBERS,
    DType,
    TensorSpec,
    check_same_dtype,
    same_spec,
    shape_text,
)
from mirrored.ops.tensor import Tensor

# ---------------------------------------------------------------------------- bias


def _infer_bias_add(x: TensorSpec, bias: TensorSpec) -> TensorSpec:
    check_same_dtype("BiasAdd", x, bias)
    if len(x.shape) < 2 or bias.shape != x.shape[-1:]:
        raise InvalidArgumentError(
            "Must provide as many biases as the last dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(x.shape)} [Op:BiasAdd]"
        )
    return x


def _bias_add(xp: Any, out: Any, x: Any, bias: Any) -> None:
    # NumPy takes less time to broadcast one element where that has no axis.
    xp.add(x, bias.reshape(()) if bias.size == 1 else bias, out=out)


def _bias_add_grad(xp: Any, out: Any, g: Any, *, workspace: Any) -> None:
    # A product with ones takes a third of the time of a sum over the first axis.
    ones = workspace[0]
    xp.copyto(ones, 1)
    product(xp, ones, g.reshape((ones.shape[0], g.shape[-1])), out)


def _ones_for(g: TensorSpec) -> tuple[TensorSpec, ...]:
    return (TensorSpec((math.prod(g.shape[:-1]),), g.dtype),)


def _lower_bias_add_grad(full: Full, g: Tensor) -> Tensor:
    ones = full(_ones_for(g.spec)[0], 1)
    return COLUMN_SUMS(ones, g if g.ndim == 2 else RESHAPE(g, shape=(ones.size, g.shape[-1])))


# What the kernel above does once it has ones, which a recorded program keeps.
COLUMN_SUMS = Op(
    name="BiasAddGrad",
    infer=lambda ones, g: TensorSpec(g.shape[1:], g.dtype),
    kernel=lambda xp, out, ones, g: product(xp, ones, g, out),
    dtypes=FLOATS,
)


BIAS_ADD_GRAD = define_op(
    name="BiasAddGrad",
    infer=lambda g: TensorSpec(g.shape[-1:], g.dtype),
    kernel=_bias_add_grad,
    gradient=lambda call, g: [BROADCAST_TO(g, shape=call.inputs[0].shape)],
    dtypes=FLOATS,
    workspace=_ones_for,
    lower=_lower_bias_add_grad,
)
BIAS_ADD = define_op(
    name="BiasAdd",
    infer=_infer_bias_add,
    kernel=_bias_add,
    gradient=lambda call, g: [g, lambda: BIAS_ADD_GRAD(g)],
    dtypes=NUMBERS,
    may_alias=(0,),
)


@explained
def bias_add(
    value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Return `value` plus `bias` along the last axis, or along the second.

    Args:
        value: A tensor of rank 2 or more.
        bias: A tensor of shape (size of that axis,).
        data_format: "N...C" or None: the last axis; "NC...": the second.
        name: Accepted for compatibility; eager ops have no name.

    Raises:
        InvalidArgumentError: The sizes differ.
        ValueError: `data_format` is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.bias_add([[1.0, 2.0]], [10.0, 20.0]).numpy()
        array([[11., 22.]], dtype=float32)
    """
    if data_format is None or (data_format.startswith("N") and data_format.endswith("C")):
        return BIAS_ADD(value, bias)
    if not data_format.startswith("NC"):
        raise ValueError(
            "`data_format` must be of the form `N...C` or `NC...`. Received: "
            f"data_format={data_format}"
        )
    value, bias = as_tensors((value, bias))
    if value.ndim < 2 or bias.shape != value.shape[1:2]:
        raise InvalidArgumentError(
            "Must provide as many biases as the channel dimension of the input tensor: "
            f"{shape_text(bias.shape)} vs. {shape_text(value.shape)} [Op:BiasAdd]"
        )
    return ADD(value, RESHAPE(bias, shape=(bias.size, *(1,) * (value.ndim - 2))))


# ---------------------------------------------------------------------------- activations


# NumPy takes the maximum with a row of zeros in a third of the time of that with one zero, if the
# row is not short; longer ones than 512 gain nothing more.
_ROW, _SHORT = 512, 64


def _zeros_for(x: TensorSpec) -> tuple[TensorSpec, ...]:
    row = math.gcd(math.prod(x.shape), _ROW)
    if row < _SHORT:
        row = x.shape[-1] if x.shape and x.shape[-1] >= _SHORT else 1
    return (TensorSpec((row,), x.dtype),)


def _relu(xp: Any, out: Any, x: Any, *, workspace: Any) -> None:
    zeros = workspace[0]
    xp.copyto(zeros, 0)
    _positive_part(xp, out, x, zeros)


def _positive_part(xp: Any, out: Any, x: Any, zeros: Any) -> None:
    if x.size:
        rows = (-1, zeros.size)
        xp.maximum(x.reshape(rows), zeros, out=out.reshape(rows))


def _lower_relu(full: Full, x: Tensor) -> Tensor:
    return POSITIVE_PART(x, full(_zeros_for(x.spec)[0], 0))


# What the kernel above does once it has zeros, which a recorded program keeps.
POSITIVE_PART = Op(
    name="Relu", infer=lambda x, zeros: x, kernel=_positive_part, dtypes=NUMBERS, may_alias=(0,)
)


def _relu_grad(xp: Any, out: Any, g: Any, y: Any) -> None:
    xp.greater(y, 0, out=out)  # 1 and 0 as numbers: a product is faster than a masked copy.
    xp.multiply(out, g, out=out)


def _grad_relu_grad(call: OpCall, g: Tensor) -> Grads:
    y = call.inputs[1]
    return [RELU_GRAD(g, y), lambda: ZEROS_LIKE(y)]


def _sigmoid(xp: Any, out: Any, x: Any) -> None:
    # exp overflows to infinity for large negative x, and 1/inf is the right 0.
    xp.negative(x, out=out)
    xp.exp(out, out=out)
    xp.add(out, 1, out=out)
    xp.reciprocal(out, out=out)


def _sigmoid_grad(xp: Any, out: Any, g: Any, y: Any) -> None:
    xp.subtract(1, y, out=out)
    xp.multiply(out, y, out=out)
    xp.multiply(out, g, out=out)


def _grad_sigmoid_grad(call: OpCall, g: Tensor) -> Grads:
    upstream, y = call.inputs
    return [SIGMOID_GRAD(g, y), g * upstream * (1.0 - 2.0 * y)]


def _tanh_grad(xp: Any, out: Any, g: Any, y: Any) -> None:
    xp.multiply(y, y, out=out)
    xp.subtract(1, out, out=out)
    xp.multiply(out, g, out=out)


def _grad_tanh_grad(call: OpCall, g: Tensor) -> Grads:
    upstream, y = call.inputs
    return [TANH_GRAD(g, y), g * upstream * (-2.0 * y)]


def _softplus(xp: Any, out: Any, x: Any) -> None:
    xp.logaddexp(x, 0, out=out)


RELU_GRAD = binary("ReluGrad", _relu_grad, _grad_relu_grad, FLOATS, may_alias=(1,))
SIGMOID_GRAD = binary("SigmoidGrad", _sigmoid_grad, _grad_sigmoid_grad, FLOATS, may_alias=())
TANH_GRAD = binary("TanhGrad", _tanh_grad, _grad_tanh_grad, FLOATS, may_alias=(1,))
RELU = define_op(
    name="Relu",
    infer=same_spec,
    kernel=_relu,
    gradient=lambda call, g: [RELU_GRAD(g, call.output)],
    dtypes=NUMBERS,
    may_alias=(0,),
    workspace=_zeros_for,
    lower=_lower_relu,
)
SIGMOID = unary("Sigmoid", _sigmoid, lambda call, g: SIGMOID_GRAD(g, call.output))
SOFTPLUS = unary("Softplus", _softplus, lambda call, g: g * SIGMOID(call.inputs[0]))
TANH = unary("Tanh", "tanh", lambda call, g: TANH_GRAD(g, call.output))


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """Return max(features, 0), element by element.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.relu([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """
    return RELU(features)


def sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Return 1 / (1 + exp(-x)), element by element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.sigmoid(0.0))
        0.5
    """
    symbolic = symbolic_in((x,)) if Symbolic.exist else None
    if symbolic is not None:
        drawn: Tensor = symbolic.drawn(sigmoid, (x,), {})
        return drawn
    x = adopt(x, None)
    return remember(SIGMOID(x), "sigmoid", x)


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """Return log(1 + exp(features)), element by element, without overflow.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.softplus([0.0, 1000.0]).numpy()
        array([6.931472e-01, 1.000000e+03], dtype=float32)
    """
    return SOFTPLUS(features)


def tanh(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the hyperbolic tangent of each element.

    Example:
        >>> import mirrored as mr
        >>> float(mr.nn.tanh(0.0))
        0.0
    """
    return TANH(x)


# What Keras' activations make: every cross-entropy computes from their logits, as in Keras.
ANY_ENTROPY = "any"


def remember(probabilities: Tensor, activation: str, logits: Tensor) -> Tensor:
    """Return a tensor that knows the logits that an activation made it from.

    Args:
        probabilities: The tensor.
        activation: "softmax" or "sigmoid", whose cross-entropy takes the logits, or `ANY_ENTROPY`.
        logits: The logits.
    """
    if isinstance(probabilities, Tensor):  # Not a placeholder.
        probabilities._logits = (activation, logits)
    return probabilities


def cast_with_logits(x: Tensor, dtype: DType) -> Tensor:
    """Return a tensor in another dtype; probabilities still know their logits, in that dtype."""
    made_by, logits = x._logits or ("", None)
    wide = CAST(x, dtype=dtype)
    return wide if logits is None else remember(wide, made_by, CAST(logits, dtype=dtype))


def logits_of(probabilities: Tensor, activation: str) -> Tensor | None:
    """Return the logits that an activation made this tensor from.

    A loss that is given probabilities computes from these, which is exact and stable.

    Args:
        probabilities: The tensor.
        activation: "softmax", over the last axis, "sigmoid", or `ANY_ENTROPY`.

    Returns:
        The logits; None where the tensor was made in another way.
    """
    made_by, logits = probabilities._logits or ("", None)
    return logits if made_by in (activation, ANY_ENTROPY) else None


def logits_for(function: str, y_pred: Tensor, from_logits: bool, activation: str) -> Tensor | None:
    """Return the logits from which a cross-entropy is computed; None: from the probabilities.

    Of what an activation made these are its inputs, also where the predictions are said to be
    logits: as in steps of Keras, with its warning.

    Args:
        function: The name of the cross-entropy.
        y_pred: The predictions.
        from_logits: Whether they are said to be logits.
        activation: As for `logits_of`.
    """
    logits = logits_of(y_pred, activation)
    if not from_logits:
        return logits
    if logits is None:
        return y_pred
    kind = "Sigmoid" if function == "binary_crossentropy" else "Softmax"
    warn_caller(
        f'"`{function}` received `from_logits=True`, but the `output` argument was produced by a '
        f"{kind} activation and thus does not represent logits. Was this intended?"
    )
    return logits
