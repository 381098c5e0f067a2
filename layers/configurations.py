"""Layers as configurations, and configurations as layers, under Keras' names."""

from collections.abc import Mapping
from typing import Any

from mirrored._arguments import explained_only
from mirrored.layers.layer import Layer
from mirrored.serialization.configs import deserialize_keras_object, serialize_keras_object


def serialize(layer: Any) -> Any:
    """Return the configuration of a layer, with that of its class and the shapes it is built for.

    Args:
        layer: The layer.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.layers.serialize(mr.layers.Flatten(name="flat"))["config"]["name"]
        'flat'
    """
    return serialize_keras_object(layer)


@explained_only
def deserialize(config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the layer that a configuration describes.

    Args:
        config: What `serialize` returned.
        custom_objects: Classes and functions that it may name, by these names.

    Raises:
        TypeError: It names a class that there is not, or one that does not take its arguments.
        ValueError: It is that of something else.

    Example:
        >>> import mirrored as mr
        >>> config = mr.keras.layers.serialize(mr.layers.Flatten())
        >>> type(mr.keras.layers.deserialize(config)).__name__
        'Flatten'
    """
    layer = deserialize_keras_object(config, custom_objects=custom_objects)
    if not isinstance(layer, Layer):
        raise ValueError(
            "`keras.layers.deserialize` was passed a `config` object that is not a "
            f"`keras.layers.Layer`. Received: {config!r:.200}"
        )
    return layer
