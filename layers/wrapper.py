"""Layers around another layer: the base, a kernel of norm 1, and a layer for all steps in time."""

from collections.abc import Mapping
from typing import Any, Self, Unpack

from mirrored import _nest, ops
from mirrored._numbers import as_integer
from mirrored.autodiff.custom_gradients import custom_gradient
from mirrored.graph import SymbolicTensor, placeholders
from mirrored.layers import initializers
from mirrored.layers.layer import Layer, LayerOptions, shared_config
from mirrored.layers.shapes import Shape, Shapes, is_shape, require_rank
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.variables import Variable, VariableAggregation, variable_creator_scope


class Wrapper(Layer):
    """Base of layers that are around another one; a subclass defines ``call``.

    Args:
        layer: The layer, as ``self.layer``, which is built as this one is.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: ``layer`` is no layer.

    Example:
        >>> import mirrored as mr
        >>> class Twice(mr.keras.layers.Wrapper):
        ...     def call(self, inputs):
        ...         return self.layer(self.layer(inputs))
        >>> Twice(mr.layers.Rescaling(3.0))([[1.0, 2.0]]).numpy().tolist()
        [[9.0, 18.0]]
    """

    def __init__(self, layer: Any, **options: Unpack[LayerOptions]) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Layer {layer} supplied to Wrapper isn't a supported layer type. Please ensure "
                "wrapped layer is a valid Keras layer."
            )
        super().__init__(**options)
        self.layer: Any = layer

    def build(self, input_shape: Shapes = None) -> None:
        """Build the layer inside, if it is not."""
        if not self.layer.built:
            self.layer.build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**shared_config(self), "layer": serialized(self.layer)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.

        Raises:
            TypeError: It names a class that there is not.
        """
        taken = dict(config)
        return cls(deserialized(taken.pop("layer"), None), **taken)


class SpectralNormalization(Wrapper):
    """Divides a layer's kernel in training by its largest singular value, or what is known of that.

    Miyato et al., Spectral Normalization for Generative Adversarial Networks, 2018:
    https://arxiv.org/abs/1802.05957

    Args:
        layer: The layer, with a ``kernel`` or ``embeddings``.
        power_iterations: How many steps of power iteration each step of training takes towards
            that value.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: ``layer`` is no layer, or ``power_iterations`` is not positive. When it is
            built: the layer has no kernel.

    Example:
        >>> import mirrored as mr
        >>> import numpy as np
        >>> layer = SpectralNormalization(mr.layers.Dense(3), power_iterations=50)
        >>> outputs = layer(np.ones((1, 4)), training=True)
        >>> round(float(np.linalg.norm(layer.layer.kernel.numpy(), 2)), 4)
        1.0
    """

    _infers = True

    vector_u: Variable
    kernel: Variable

    def __init__(
        self, layer: Any, power_iterations: int = 1, **options: Unpack[LayerOptions]
    ) -> None:
        super().__init__(layer, **options)
        number = as_integer(power_iterations)
        if number is None or number <= 0:
            raise ValueError(
                "`power_iterations` should be greater than zero. Received: "
                f"`power_iterations={power_iterations}`"
            )
        self.power_iterations = number

    def build(self, input_shape: Shapes = None) -> None:
        """Build the layer inside, and create what is known of its singular vectors."""
        with variable_creator_scope(_written_by_replicas):
            super().build(input_shape)
        kernel = getattr(self.layer, "kernel", getattr(self.layer, "embeddings", None))
        if kernel is None:
            raise ValueError(
                f"{type(self.layer).__name__} object has no attribute 'kernel' nor 'embeddings'"
            )
        self.kernel = kernel
        self.vector_u = self.add_weight(
            shape=(1, kernel.shape[-1]),
            initializer=initializers.TruncatedNormal(stddev=0.02),
            dtype=kernel.dtype,
            trainable=False,
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            name="vector_u",
        )

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**super().get_config(), "power_iterations": self.power_iterations}

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless there is one input, which the layer inside takes."""
        require_rank(self.name, input_shape, 1)
        if is_shape(input_shape):
            self.layer.check_input_shape(input_shape)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Return what the layer inside does.

        Args:
            inputs: What the layer takes.
            training: Whether to divide its kernel first.
        """
        if training:
            self.__normalize()
        return ops.cast(self.layer(inputs), inputs.dtype)

    def __normalize(self) -> None:
        kernel, vector = self.kernel.read_value(), self.vector_u.read_value()
        rows = ops.reshape(kernel, (-1, kernel.shape[-1]))
        right, left = vector, vector
        for _ in range(self.power_iterations):
            left = _of_length_1(ops.matmul(right, rows, transpose_b=True))
            right = _of_length_1(ops.matmul(left, rows))
        largest = ops.matmul(ops.matmul(left, rows), right, transpose_b=True)
        nothing = ops.reduce_all(ops.equal(kernel, 0))  # It has no direction.
        self.vector_u.assign(ops.where(nothing, vector, right))
        divided = ops.reshape(rows / largest, kernel.shape)
        self.kernel.assign(ops.where(nothing, kernel, divided))

    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape of what the layer inside returns."""
        return self.layer.compute_output_shape(input_shape)


def _of_length_1(row: Tensor) -> Tensor:
    return row * ops.minimum(ops.rsqrt(ops.reduce_sum(ops.square(row))), 1e7)


def _written_by_replicas(next_creator: Any, **kwargs: Any) -> Any:
    """Create a variable that replicas may write: they write the same value."""
    return next_creator(**{**kwargs, "aggregation": VariableAggregation.ONLY_FIRST_REPLICA})


class TimeDistributed(Wrapper):
    """Calls a layer on each step of its inputs, the slices along the axis behind the batch's.

    What the layer draws or notes in a call, it does for each step.

    Args:
        layer: The layer, or a model.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: ``layer`` is no layer.

    Example:
        >>> import mirrored as mr
        >>> layer = TimeDistributed(mr.layers.Dense(5))
        >>> layer(mr.ones((2, 3, 4))).shape
        (2, 3, 5)
    """

    _infers = True
    _supports_masking = True

    def __init__(self, layer: Any, **options: Unpack[LayerOptions]) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(
                "Please initialize `TimeDistributed` layer with a `mirrored.layers.Layer` "
                f"instance. Received: {layer}"
            )
        super().__init__(layer, **options)

    def build(self, input_shape: Shapes = None) -> None:
        """Build the layer inside for a step, if it is not built."""
        if not self.layer.built:
            self.layer.build(_step_shape(input_shape))

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless there is one input with an axis of steps, and one behind it."""
        self.layer.check_input_shape(_step_shape(input_shape))

    def call(self, inputs: Tensor, training: bool = False, mask: Any = None) -> Tensor:
        """Return what the layer returns for the steps, side by side.

        Args:
            inputs: Shape (batch, steps, ...).
            training: What the layer is given, if its ``call`` has such a parameter.
            mask: Which steps count, of shape (batch, steps, ...): the layer is given that of each
                step, if its ``call`` has such a parameter.

        Raises:
            ValueError: The mask is of another shape.
        """
        if mask is not None:
            _check_mask(mask, inputs)
        options = {"training": training} if self.layer.__call_form__.takes_training else {}
        masks = None
        if mask is not None and "mask" in self.layer.__call_form__.masks:
            masks = _turned(mask)
        outputs = []
        for number, step in enumerate(_steps(inputs)):
            arguments = options if masks is None else {**options, "mask": masks[number]}
            outputs.append(self.layer.call(step, **arguments))
        return _turned(ops.stack(outputs))

    def _call_results(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None
    ) -> Any:
        """Return placeholders of the outputs, of a call on one step: there may be millions."""
        inputs = placeholders((args, kwargs))[0]
        if isinstance(kwargs.get("mask"), Tensor | SymbolicTensor):
            _check_mask(kwargs["mask"], inputs)
        args, kwargs = _nest.map_structure(_first_step, (args, kwargs))
        results = super()._call_results(args, kwargs, training)
        batch, _, *rest = results.shape
        return SymbolicTensor((batch, inputs.shape[1], *rest), results._dtype)

    def compute_output_shape(self, input_shape: Shapes) -> Shape:
        """Return the shape of what the layer inside returns, with the steps behind the batch.

        Args:
            input_shape: Shape (batch, steps, ...).
        """
        batch, *rest = self.layer.compute_output_shape(_step_shape(input_shape))
        return (batch, input_shape[1], *rest)


def _step_shape(shape: Shapes) -> Shape:
    if not is_shape(shape) or len(shape) < 3:
        raise ValueError(
            "`TimeDistributed` Layer should be passed an `input_shape` with at least 3 "
            f"dimensions, received: {shape}"
        )
    return (shape[0], *shape[2:])


def _first_step(x: Any) -> Any:
    if isinstance(x, SymbolicTensor) and x.ndim > 1:
        return SymbolicTensor((x.shape[0], 1, *x.shape[2:]), x._dtype)
    return x[:, :1] if isinstance(x, Tensor) and x.ndim > 1 else x


@custom_gradient
def _steps(inputs: Tensor) -> Any:
    """Return the steps; each of their gradients is a part of one, not a sum with zeros around."""
    turned = _turned(inputs)
    return [turned[step] for step in range(turned.shape[0])], _joined


def _joined(*gradients: Tensor) -> Tensor:
    return _turned(ops.stack(gradients))


def _turned(x: Tensor) -> Tensor:
    """Return a tensor with the batch's axis and that of the steps exchanged."""
    return ops.transpose(x, [1, 0, *range(2, x.ndim)])


def _check_mask(mask: Any, inputs: Any) -> None:
    if mask.ndim < 2:
        raise ValueError(
            "The `mask` passed to the `TimeDistributed` layer must be at least 2D (e.g., "
            f"`(batch_size, timesteps)`), but it has {mask.ndim} dimension(s) with shape "
            f"{mask.shape}."
        )
    if mask.shape[:2] != inputs.shape[:2]:
        raise ValueError(
            f"The `mask` passed to the `TimeDistributed` layer has a shape {mask.shape} that is "
            f"incompatible with the input shape {inputs.shape}. The first two dimensions of the "
            "mask (batch size and timesteps) must match the input's first two dimensions. "
            f"Expected mask shape prefix: {tuple(inputs.shape[:2])}."
        )
