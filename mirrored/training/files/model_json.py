"""From JSON to models; `Model.to_json` is the other way."""

import json
from collections.abc import Mapping
from typing import Any

from mirrored._arguments import explained
from mirrored.ops.constant_room import within_constant_room
from mirrored.serialization.constructor_arguments import deserialized


@explained
def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """Return the model that `Model.to_json` wrote, here or in Keras, with new weights.

    Args:
        json_string: The text.
        custom_objects: Classes and functions that it may name, by these names.

    Raises:
        ValueError: It is no JSON, or nested too deeply, or asks for large constants.
        TypeError: It names a class that there is not.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input((3,)), mr.layers.Dense(2)])
        >>> mr.keras.models.model_from_json(model.to_json()).output_shape
        (None, 2)
    """
    try:
        config = json.loads(json_string)
    except RecursionError:
        raise ValueError("The configuration is nested too deeply.") from None
    with within_constant_room(len(json_string)):
        return deserialized(config, None, custom_objects)
