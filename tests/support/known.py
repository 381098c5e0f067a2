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


def pictures(
    count: int, size: int = 12, channels: int = 1, classes: int = 4
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return uint8 images of a bright square on noise, and the squares' places as labels.

    Args:
        count: The number of images.
        size: Their height and width.
        channels: The number of channels.
        classes: The number of places.
    """
    draws = np.random.default_rng(count)
    images = draws.integers(0, 80, (count, size, size, channels), np.uint8)
    labels = draws.integers(0, classes, count)
    for image, label in zip(images, labels, strict=True):
        row, column = (int(size / 2 * place) for place in divmod(label / 2 % 2, 1))
        image[row : row + size // 2, column : column + size // 2] += np.uint8(120 + 10 * label)
    return images, labels


def draw_weights(model: Any, seed: int = 0) -> Any:
    """Set the weights of a model to seeded draws of the usual sizes, and return the model.

    Args:
        model: The model or layer, whose weights exist.
        seed: Another one draws other weights.
    """
    draws = np.random.default_rng(seed)
    for weight in model.weights:
        if weight.shape and "float" in str(weight.dtype):
            drawn = draws.standard_normal(tuple(weight.shape))
            positive = any(word in weight.name for word in ("gamma", "variance"))
            scale = 0.1 if len(weight.shape) == 1 else float(np.prod(weight.shape[:-1])) ** -0.5
            weight.assign((abs(1 + 0.1 * drawn) if positive else scale * drawn).astype("float32"))
    return model


def shadows(arrays: Any) -> list[NDArray[np.float32]]:
    """Return the norm of each array and its product with numbers by a formula, in few numbers.

    Args:
        arrays: Arrays, like those of `model.get_weights()`.
    """
    flat = [np.asarray(array, np.float64).ravel() for array in arrays]
    return [
        np.array([np.linalg.norm(array), array @ numbers(array.size)], np.float32) for array in flat
    ]
