"""How a layer takes its own variables from Keras' files, where they have numbers for names.

It is apart from the layers, since few programs read such files.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mirrored.variables.together import assign_together


def load_into(layer: Any, store: Any) -> None:
    """Set a layer's own variables; `Layer.load_own_variables` says what the arguments are."""
    check_count(layer, len(store.keys()))
    assign_together(_values(layer, store))


def _values(layer: Any, store: Any) -> Iterator[tuple[Any, Any]]:
    for number, variable in enumerate(layer._own_weights()):
        value = np.asarray(store[str(number)])
        if value.shape != variable.shape:
            raise ValueError(shape_problem(variable, value.shape))
        yield variable, value.astype(variable.dtype, copy=False)


def check_count(layer: Any, count: int) -> None:
    """Raise ValueError where a file has more or fewer variables of a layer than it has itself.

    Args:
        layer: The layer.
        count: How many the file has.
    """
    own = layer._own_weights()
    if count == len(own):
        return
    if not own and not layer.built:
        raise ValueError(
            f"Layer '{layer.name}' was never built and thus it doesn't have any variables. However "
            f"the weights file lists {count} variables for this layer. A layer's `build` must make "
            "the weights of all layers inside it: call the model on data, or `build` them there."
        )
    raise ValueError(
        f"Layer '{layer.name}' expected {len(own)} variables, but received {count} variables "
        f"during loading. Expected: {[variable.name for variable in own]}"
    )


def shape_problem(variable: Any, shape: tuple[int, ...]) -> str:
    """Return what is said where a file has a variable of another shape.

    Args:
        variable: The variable.
        shape: The file's.
    """
    return (
        "The shape of the target variable and the shape of the target value in "
        f"`variable.assign(value)` must match. variable.shape={variable.shape}, Received: "
        f"value.shape={shape}. Target variable: {variable.name}"
    )
