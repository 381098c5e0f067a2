"""Layers one after the other, as one layer: what prepares data, for instance."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from mirrored._arguments import explained
from mirrored.layers.layer import Layer
from mirrored.layers.masks import carrying
from mirrored.serialization.constructor_arguments import deserialized, serialized


@explained
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

    def call(self, inputs: Any, training: bool = True, mask: Any = None) -> Any:
        """Return what the last layer returns.

        Args:
            inputs: What the first layer takes.
            training: Whether the layers train.
            mask: The mask of the inputs, if these carry none.
        """
        del training  # The layers follow it by themselves.
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
