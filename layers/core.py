"""Layers that pass, scale, mask or penalise their inputs, or call functions and layers."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, Unpack

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.layers.layer import Layer, LayerOptions, PlainOptions, SameShape, shared_config
from mirrored.layers.masks import carrying
from mirrored.layers.regularizers import L1L2
from mirrored.layers.shapes import Shapes, as_data_format, is_shape, map_shapes
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor_views import masked
from mirrored.serialization.constructor_arguments import deserialized, serialized


class Identity(SameShape):
    """Returns its inputs.

    Args:
        name, trainable, dtype, input_shape: As for every layer.

    Example:
        >>> Identity()([[1.0, 2.0]]).numpy().tolist()
        [[1.0, 2.0]]
    """

    _keeps_integers = True
    _automatic = True

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of any shape."""
        return inputs


class Rescaling(SameShape):
    """Computes inputs * scale + offset, as to bring pixels from 0 to 255 between 0 and 1.

    Args:
        scale: What inputs are multiplied by: a number, or some that broadcast to an example.
        offset: What is added, likewise.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Example:
        >>> Rescaling(1 / 255)([[0, 255]]).numpy().tolist()
        [[0.0, 1.0]]
    """

    _casts_all = True
    _built_from_start = False

    def __init__(
        self,
        scale: TensorLike | Mapping[str, Any],
        offset: TensorLike | Mapping[str, Any] = 0.0,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.scale: Any = deserialized(scale, None) if isinstance(scale, dict) else scale
        self.offset: Any = deserialized(offset, None) if isinstance(offset, dict) else offset

    def call(self, inputs: Tensor) -> Tensor:
        """Return the scaled inputs, floats of the shape of ``inputs``."""
        scale, offset = (ops.cast(value, self.compute_dtype) for value in (self.scale, self.offset))
        if scale.ndim and as_data_format(None) == "channels_first":
            scale = ops.reshape(scale, (*scale.shape, *(1,) * (3 - scale.ndim)))
        return ops.cast(inputs, self.compute_dtype) * scale + offset


class Lambda(Layer):
    """Calls a custom function, which has no weights.

    Variables that the function uses are not those of the layer: subclass ``Layer`` for these.

    Args:
        function: Called with the inputs, and with ``training`` and ``mask``, that of the inputs, if
            it has such parameters.
        output_shape: The shape of an example's output, or a function from the inputs' shape to the
            outputs'; None: running the function tells.
        mask: The outputs' mask, or a function from the inputs and their mask to it; None: they have
            none.
        arguments: Further arguments of the function, by name.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        TypeError: ``function`` cannot be called.

    Example:
        >>> Lambda(lambda x: x**2)([[2.0, 3.0]]).numpy().tolist()
        [[4.0, 9.0]]
    """

    _makes_masks = False  # Each says for itself.

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Callable[..., Any] | TensorLike | None = None,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if not callable(function):
            raise TypeError(f"`function` is called with the inputs. Received: {function!r}")
        self.function = function
        self.arguments = dict(arguments or {})
        self._given_shape = output_shape
        self.mask = mask
        self.supports_masking = self._makes_masks = mask is not None
        parameters = inspect.signature(function).parameters
        self._passes = {"training", "mask"} & set(parameters)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values.

        Raises:
            ValueError: The function is a lambda: files of Keras' have its bytecode.
        """
        config = {**shared_config(self), "function": serialized(self.function)}
        if self._given_shape is not None:
            config["output_shape"] = serialized(self._given_shape)
        if self.mask is not None:
            config["mask"] = serialized(self.mask)
        return {**config, "arguments": serialized(self.arguments)}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.

        Raises:
            ValueError: It holds bytecode.
            TypeError: It names a function that there is not.
        """
        taken = dict(config)
        for name in ("function", "output_shape", "mask", "arguments"):
            if name in taken:
                taken[name] = deserialized(taken[name], None)
        shape = taken.get("output_shape")
        if isinstance(shape, list) and all(isinstance(size, int | None) for size in shape):
            taken["output_shape"] = tuple(shape)
        return super().from_config(taken)

    def call(self, inputs: Any, mask: TensorLike | None = None, training: bool = False) -> Any:
        """Return what the function returns.

        Args:
            inputs: Whatever the function takes: a tensor, or several in a list, tuple or dict.
            mask: What the function is given, if it has such a parameter.
            training: What it is given, likewise.
        """
        options = {"mask": mask, "training": training}
        return self.function(
            inputs, **self.arguments, **{name: options[name] for name in self._passes}
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return the outputs' mask.

        Args:
            inputs: The inputs.
            mask: Their mask.
        """
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Shapes) -> Any:
        """Return the outputs' shape.

        Args:
            input_shape: The inputs' shape, or shapes.
        """
        if self._given_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._given_shape):
            return self._given_shape(input_shape)
        batch = input_shape[0] if is_shape(input_shape) else None
        return map_shapes(lambda shape: (batch, *shape), self._given_shape)


class Masking(SameShape):
    """Masks each step whose features are all one value: later layers and the loss leave it out.

    Its features become 0, and the outputs carry the mask, of the inputs' shape without its last
    axis, False where a step is masked.

    Args:
        mask_value: The value.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Example:
        >>> outputs = Masking(-1.0)([[[2.0, -1.0], [-1.0, -1.0]]])
        >>> outputs.numpy().tolist()
        [[[2.0, -1.0], [0.0, 0.0]]]
        >>> Masking().compute_mask(outputs).numpy().tolist()
        [[True, False]]
    """

    _keeps_integers = True

    def __init__(self, mask_value: float = 0.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.mask_value = mask_value

    def call(self, inputs: Tensor) -> Tensor:
        """Return the inputs, 0 where they are masked.

        Args:
            inputs: Shape (batch, ..., features).
        """
        mask = self.compute_mask(inputs)
        outputs = ops.where(ops.expand_dims(mask, -1), inputs, ops.zeros((), inputs.dtype))
        return masked(outputs, mask)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return where a feature is another than the value.

        Args:
            inputs: Shape (batch, ..., features).
            mask: A mask that they have already, which does not matter.
        """
        if not hasattr(inputs, "dtype"):
            inputs = ops.convert_to_tensor(inputs)
        if inputs.dtype not in FLOATS:  # The value may be none of theirs.
            inputs = ops.cast(inputs, ops.floatx())
        return ops.reduce_any(ops.not_equal(inputs, self.mask_value), axis=-1)


class Pipeline(Layer):
    """Calls layers one after the other.

    Other than with ``Sequential``, they train unless the call says that they do not: noise and
    the like, which is for preparing data, is added.

    Args:
        layers: The layers.
        name: Its name.

    Example:
        >>> import mirrored as mr
        >>> pipeline = mr.keras.layers.Pipeline([mr.layers.Rescaling(2.0), mr.layers.ReLU()])
        >>> pipeline([[-1.0, 2.0]]).numpy().tolist()
        [[0.0, 4.0]]
    """

    def __init__(self, layers: Sequence[Any], name: str | None = None) -> None:
        super().__init__(name=name)
        self._pipeline_layers = layers

    @property
    def layers(self) -> Any:
        """The layers."""
        return self._pipeline_layers

    def call(self, inputs: Any, training: bool = True, mask: TensorLike | None = None) -> Any:
        """Return what the last layer returns.

        Args:
            inputs: What the first layer takes.
            training: Whether the layers train.
            mask: The mask of the inputs, if these carry none.
        """
        outputs = inputs if mask is None else carrying(inputs, mask)
        for layer in self._pipeline_layers:
            outputs = layer(outputs)
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {"layers": serialized(self._pipeline_layers), "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.

        Raises:
            ValueError: It has no layers.
        """
        layers = config.get("layers")
        if not isinstance(layers, list | tuple):
            raise ValueError(
                "`Pipeline` config must contain a `layers` key mapping to a list of serialized "
                f"layers. Received config with layers={layers}."
            )
        return cls(**{**config, "layers": [deserialized(layer, None) for layer in layers]})


class ActivityRegularization(SameShape):
    """Returns its inputs, and adds a penalty on them to the loss.

    The penalty is (l1 * sum(abs(inputs)) + l2 * sum(square(inputs))) / examples.

    Args:
        l1: The factor of the sum of absolute values.
        l2: The factor of the sum of squares.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A factor is negative or not a finite number.

    Example:
        >>> layer = ActivityRegularization(l2=0.5)
        >>> layer([[1.0, 2.0], [0.0, 1.0]]).shape
        (2, 2)
        >>> [float(loss) for loss in layer.losses]
        [1.5]
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **options: Unpack[PlainOptions]) -> None:
        penalty = L1L2(l1=l1, l2=l2)
        super().__init__(activity_regularizer=penalty, **options)
        self.l1, self.l2 = penalty.l1, penalty.l2

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        config = super().get_config()
        del config["activity_regularizer"]  # It is made of the others.
        return config

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of any shape."""
        return inputs
