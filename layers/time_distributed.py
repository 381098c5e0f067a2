"""A layer that calls another one on each step of a sequence, with the same weights."""

from typing import Any, Unpack

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored.autodiff.custom_gradients import custom_gradient
from mirrored.graph import SymbolicTensor, placeholders
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.shapes import Shape, Shapes, is_shape
from mirrored.layers.wrapper import Wrapper
from mirrored.ops import Tensor


@explained
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
        options = {"training": training} if self.layer._takes_training else {}
        masks = None
        if mask is not None and "mask" in self.layer._mask_parameters:
            masks = _turned(mask)
        outputs = []
        for number, step in enumerate(_steps(inputs)):
            arguments = options if masks is None else {**options, "mask": masks[number]}
            outputs.append(self.layer.call(step, **arguments))
        return _turned(ops.stack(outputs))

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """Return placeholders of the outputs, of a call on one step: there may be millions."""
        inputs = placeholders((args, kwargs))[0]
        if isinstance(kwargs.get("mask"), Tensor | SymbolicTensor):
            _check_mask(kwargs["mask"], inputs)
        args, kwargs = _nest.map_structure(_first_step, (args, kwargs))
        results = super()._results(args, kwargs, training)
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
