"""A dense layer by Einstein's convention: which axes a kernel takes and gives is in an equation.

Layers of attention are made of these, since one product then serves all heads.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

from mirrored import ops
from mirrored._types import Identifier, PartialShapeLike
from mirrored.layers import activations, constraints, initializers, regularizers
from mirrored.layers.initializers import Filling, VarianceScaling
from mirrored.layers.layer import Layer, LayerOptions, shared_config
from mirrored.layers.shapes import Shape, as_shape, require_rank
from mirrored.layers.weights import add_configured, not_quantized, overridable
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS
from mirrored.serialization.constructor_arguments import arguments_of, serialized
from mirrored.variables import Variable

_FORMS = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?")


class EinsumDense(Layer):
    """Computes activation(einsum(equation, inputs, kernel) + bias).

    Args:
        equation: Letters for the axes of the inputs, the kernel and the outputs, as in
            "abc,cd->abd". "..." may stand for further axes, at the left of inputs and outputs or at
            their right. The first axis is that of the batch.
        output_shape: The sizes of the output's axes behind the batch's that the equation names, or
            one of them; None for one that the inputs have.
        activation: A name, a function from a tensor to a tensor, or None for none.
        bias_axes: The letters of the output's axes along which the bias varies; None for no bias.
        kernel_initializer: What the kernel starts as; one that goes by a layer's size takes the
            axes that are summed over for its inputs.
        bias_initializer: What the bias starts as.
        kernel_regularizer: The penalty on the kernel, if any.
        bias_regularizer: The penalty on the bias, if any.
        kernel_constraint: What optimizers bring the kernel back to after a step, if anything.
        bias_constraint: What they bring the bias back to.
        quantization_config: None, as Keras' configurations say: weights are not quantized.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: A name is unknown. When it is built: the equation is none of these, or does not
            fit the shapes.

    Example:
        >>> import numpy as np
        >>> layer = EinsumDense("abc,cd->abd", output_shape=(None, 64), bias_axes="d")
        >>> layer(np.ones((2, 32, 128))).shape
        (2, 32, 64)
        >>> [weight.shape for weight in layer.weights]
        [(128, 64), (64,)]
    """

    kernel: Variable = overridable()
    bias: Variable | None

    def __init__(
        self,
        equation: str,
        output_shape: PartialShapeLike,
        activation: Identifier | None = None,
        bias_axes: str | None = None,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        *,
        quantization_config: None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.equation = equation
        alone = isinstance(output_shape, int)
        self.partial_output_shape = as_shape((output_shape,) if alone else output_shape)
        self.bias_axes = bias_axes
        self.activation = activations.get(activation)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.quantization_config = not_quantized(quantization_config)
        self._rank: int | None = None  # That of the inputs, once there were some.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {
            **shared_config(self),
            **arguments_of(self, without=("output_shape",)),
            "output_shape": serialized(self.partial_output_shape),
            "activity_regularizer": serialized(self.activity_regularizer),
        }

    def build(self, input_shape: Shape) -> None:
        """Create the kernel, and the bias where there is one."""
        plan = self.__planned(input_shape)
        initializer = _for_axes(self.kernel_initializer, plan)
        add_configured(self, "kernel", plan.kernel, initializer)
        self.bias = None if plan.bias is None else add_configured(self, "bias", plan.bias)
        self._rank = len(input_shape)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input, of as many axes as the first had."""
        require_rank(self.name, input_shape, 0, exactly=self._rank)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the activations.

        Args:
            inputs: Of a shape that fits the equation.
        """
        values = inputs if inputs.dtype in FLOATS else ops.cast(inputs, self.compute_dtype)
        outputs = ops.einsum(self.equation, values, self.kernel)
        return self.activation(outputs if self.bias is None else outputs + self.bias)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the batch's size, ``output_shape``, and the sizes of what "..." is."""
        return self.__planned(input_shape).output

    def __planned(self, input_shape: Shape) -> "_Plan":
        return _plan(self.equation, self.bias_axes, input_shape, self.partial_output_shape)


class _Plan(NamedTuple):
    """What an equation means for inputs of a shape.

    Attributes:
        kernel: The kernel's shape.
        bias: The bias' shape; None where there is none.
        output: The output's shape.
        inputs: The kernel's axes that are the inputs of a unit.
        units: Its axes that are the output's.
    """

    kernel: Shape
    bias: Shape | None
    output: Shape
    inputs: list[int]
    units: list[int]


class _Terms(NamedTuple):
    """The letters of an equation, and where "..." stands in its inputs and outputs."""

    inputs: str
    kernel: str
    outputs: str
    left: bool
    right: bool


def _plan(equation: str, bias_axes: str | None, shape: Shape, partial: Shape) -> _Plan:
    terms = _parsed(equation)
    more = len(shape) - len(terms.inputs)
    if more < int(terms.left) or (more and not (terms.left or terms.right)):
        raise ValueError(
            f"The equation '{equation}' does not fit an input of {len(shape)} axes. Received: "
            f"shape {shape}"
        )
    first = more if terms.left else 0  # Where the letters begin.
    input_sizes = dict(zip(terms.inputs, shape[first:], strict=False))
    # The batch's axis is the first of "..." or the first letter's; `partial` has those behind it.
    spread = shape[1:more] if terms.left else ()
    rest = () if terms.left else shape[len(shape) - more :]
    output = (*shape[:1], *spread, *partial, *rest)
    named = output[first : len(output) - len(rest)]
    if len(named) != len(terms.outputs):
        raise ValueError(
            f"`output_shape` must have the sizes of the output's axes in '{equation}', but for the "
            f"batch's. Received: output_shape={partial}"
        )
    wanted = dict(zip(terms.outputs, named, strict=True))
    _check_shared(input_sizes, wanted)
    kernel = _kernel_shape(terms, input_sizes, wanted)
    units = [i for i, letter in enumerate(terms.kernel) if letter in wanted]
    inputs = [i for i, letter in enumerate(terms.kernel) if letter not in wanted]
    bias = None if bias_axes is None else _bias_shape(bias_axes, terms, wanted, len(rest))
    return _Plan(kernel, bias, output, inputs, units)


def _parsed(equation: str) -> _Terms:
    match = _FORMS.fullmatch(equation)
    if match is not None:
        left, inputs, right, kernel, out_left, outputs, out_right = match.groups()
        if (left, right) == (out_left, out_right) and not (left and right):
            return _Terms(inputs, kernel, outputs, bool(left), bool(right))
    raise ValueError(
        f"Invalid einsum equation '{equation}'. Equations must be in the form [X],[Y]->[Z], "
        "...[X],[Y]->...[Z], or [X]...,[Y]->[Z]...."
    )


def _check_shared(input_sizes: dict[str, int | None], wanted: dict[str, int | None]) -> None:
    for letter, size in input_sizes.items():
        if wanted.get(letter) is not None and wanted[letter] != size:
            raise ValueError(
                f"Input shape and output shape do not match at shared dimension '{letter}'. Input "
                f"shape is {size}, and output shape is {wanted[letter]}."
            )


def _kernel_shape(
    terms: _Terms, input_sizes: dict[str, int | None], wanted: dict[str, int | None]
) -> Shape:
    for letter in terms.outputs:
        if letter not in terms.inputs and letter not in terms.kernel:
            raise ValueError(
                f"Dimension '{letter}' was specified in the output '{terms.outputs}' but has no "
                f"corresponding dim in the input spec '{terms.inputs}' or weight spec "
                f"'{terms.kernel}'"
            )
    sizes = {**input_sizes, **wanted}
    for letter in terms.kernel:
        if letter not in sizes:
            raise ValueError(
                f"Weight dimension '{letter}' did not have a match in either the input spec "
                f"'{terms.inputs}' or the output spec '{terms.outputs}'. For this layer, the "
                "weight must be fully specified."
            )
    return tuple(sizes[letter] for letter in terms.kernel)


def _bias_shape(axes: str, terms: _Terms, wanted: dict[str, int | None], behind: int) -> Shape:
    """Return the bias' shape from its first axis on: 1 where it does not vary."""
    for letter in axes:
        if letter not in wanted:
            raise ValueError(
                f"Bias dimension '{letter}' was requested, but is not part of the output spec "
                f"'{terms.outputs}'"
            )
    if not axes:
        raise ValueError("For no bias, `bias_axes` must be None. Received: bias_axes=''")
    first = min(terms.outputs.index(letter) for letter in axes)
    sizes = [wanted[letter] if letter in axes else 1 for letter in terms.outputs[first:]]
    return (*sizes, *[1] * behind)


def _for_axes(initializer: Filling | None, plan: _Plan) -> Filling | None:
    """Return an initializer that knows which axes are inputs and which are units."""
    if not isinstance(initializer, VarianceScaling):
        return initializer
    if None not in (initializer.input_axes, initializer.output_axes):
        return initializer
    axes: dict[str, Sequence[int]] = {"input_axes": plan.inputs, "output_axes": plan.units}
    return type(initializer).from_config({**initializer.get_config(), **axes})
