"""Which shapes sample weights may have: those that broadcast to the losses of the examples.

The rule is Keras' own, but that one axis of weights is always that of the examples.
"""

from mirrored.layers.shapes import Shape


def fitted_shape(weights: tuple[int, ...], values: Shape) -> tuple[int, ...]:
    """Return the shape in which weights broadcast to values of this shape.

    Args:
        weights: The shape of the weights.
        values: The shape of what they weigh, (batch, ...); None where a size is not known.

    Returns:
        (), (batch,) for one weight an example, or a shape of as many axes as `values`.

    Raises:
        ValueError: They would not broadcast, or would along another axis than is meant.

    Example:
        >>> from mirrored.training.sample_weights import fitted_shape
        >>> fitted_shape((32, 1), (32, 8)), fitted_shape((32, 8, 1), (32, 8))
        ((32,), (32, 8))
    """
    shape = weights
    if len(shape) == len(values) + 1 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) == 2 and shape[1] == 1:
        shape = shape[:1]
    if not shape:
        return shape
    if len(shape) in (1, len(values)):
        pairs = zip(shape, values, strict=len(shape) > 1)
        if all(want is None or have in (1, want) for have, want in pairs):
            return shape
    raise ValueError(refusal(weights, values))


def refusal(weights: tuple[int, ...], values: Shape) -> str:
    """Return what an error says of weights that do not fit.

    Args:
        weights: The shape of the weights.
        values: The shape of what they are to weigh, (batch, ...).

    Example:
        >>> from mirrored.training.sample_weights import refusal
        >>> "shape (2,) or (2, 1)" in refusal((2, 3), (2,))
        True
    """
    batch = "batch" if values[0] is None else values[0]
    more = f", or weights that broadcast to {values}" if len(values) > 1 else ""
    return (
        f"`sample_weight` must have one weight an example, shape ({batch},) or ({batch}, 1){more}. "
        f"Received: sample_weight with shape {weights}."
    )
