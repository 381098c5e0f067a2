"""Numbers by formulas: data and weights of programs that two libraries run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers(*shape: int, phase: float = 0.0) -> NDArray[np.float32]:
    """Return float32 numbers between -1 and 1.

    Args:
        *shape: Their shape.
        phase: Another one gives others.
    """
    count = int(np.prod(shape))
    return np.cos(1.3 * np.arange(count) + phase).reshape(shape).astype(np.float32)


def labels(count: int, classes: int) -> NDArray[np.int32]:
    """Return integer labels.

    Args:
        count: How many.
        classes: How many classes there are.
    """
    return (np.arange(count) ** 2 % classes).astype(np.int32)


def set_weights(model: Any) -> Any:
    """Give each weight of a model, or of a layer, numbers by a formula, and return the model.

    Args:
        model: The model, whose weights exist.
    """
    shapes = [weight.shape for weight in model.get_weights()]
    model.set_weights(
        [
            numbers(*shape, phase=0.7 * place) / np.sqrt(shape[0] if shape else 1)
            for place, shape in enumerate(shapes)
        ]
    )
    return model


def told_of(history: Any) -> list[Any]:
    """Return the names of a history in their order, its values and its epochs.

    Args:
        history: What `fit` returned.
    """
    values = {name: np.float32(each) for name, each in history.history.items()}
    return [list(values), values, history.epoch]
