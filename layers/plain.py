"""Layers of one line: what passes, is scaled, or is a function of the user's own."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.layers.layer import Layer, LayerOptions, SameShape
from mirrored.layers.shapes import Shapes, is_shape, map_shapes
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized


class Identity(SameShape):
    """Returns its inputs.

    Args:
        name, trainable, dtype, input_shape: As for every layer.

    Example:
        >>> Identity()([[1.0, 2.0]]).numpy().tolist()
        [[1.0, 2.0]]
    """

    _supports_masking = True
    _keeps_integers = True
    _automatic = True

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``, of any shape."""
        return inputs


@explained
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

    _supports_masking = True
    _casts_all = True
    _built_from_start = False

    def __init__(self, scale: Any, offset: Any = 0.0, **options: Unpack[LayerOptions]) -> None:
        super().__init__(**options)
        self.scale = deserialized(scale, None) if isinstance(scale, dict) else scale
        self.offset = deserialized(offset, None) if isinstance(offset, dict) else offset

    def call(self, inputs: Tensor) -> Tensor:
        """Return the scaled inputs, floats of the shape of ``inputs``."""
        scale, offset = (ops.cast(value, self.compute_dtype) for value in (self.scale, self.offset))
        outputs: Tensor = ops.cast(inputs, self.compute_dtype) * scale + offset
        return outputs


@explained
class Lambda(Layer):
    """Calls a function of one's own, which has no weights.

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
        mask: Any = None,
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
        config = {**self._shared_config(), "function": serialized(self.function)}
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

    def call(self, inputs: Any, mask: Any = None, training: bool = False) -> Any:
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
