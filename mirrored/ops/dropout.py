"""Dropout as a function: elements are set to 0 at random, and the others scaled.

The mask belongs to the examples of the global batch, so that any number of replicas drops what one
device drops. The layer `Dropout` drops by the same function, with a stream of its own.
"""

from collections.abc import Callable
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._numbers import as_real
from mirrored._types import PartialShapeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.comparison import GREATER_EQUAL
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.elementwise import DIV, MUL_NO_NAN
from mirrored.ops.random import uniform_by_example
from mirrored.ops.rng_state import WHOLE, current_position
from mirrored.ops.shaping import CAST
from mirrored.ops.spec import FLOATS, DType, Shape, as_shape, float32, float64
from mirrored.ops.tensor import Tensor


def dropped(x: Tensor, drawn: Tensor, rate: float) -> Tensor:
    """Return `x` with 0 where a number from [0, 1) is below `rate`, and scaled elsewhere.

    Args:
        x: The tensor, of floats.
        drawn: The numbers, of a shape that broadcasts.
        rate: The fraction to drop, from 0 to 1.
    """
    kept = CAST(GREATER_EQUAL(drawn, rate), dtype=x.dtype)
    # At rate 1 nothing is kept, so there is nothing to scale.
    scale = 1.0 / (1.0 - rate) if rate < 1 else 0.0
    return MUL_NO_NAN(x, kept * scale)


def dropout(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: PartialShapeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `x` with elements dropped with probability `rate`, and the others over 1 - `rate`.

    Within replicas the first axis is the batch: all replicas make the same draw, and each takes the
    part that belongs to its examples, as with the layer `Dropout`.

    Srivastava et al., Dropout, 2014: https://jmlr.org/papers/v15/srivastava14a.html

    Args:
        x: The tensor, of floats.
        rate: The fraction to drop, a number in [0, 1) or a scalar tensor of the dtype of `x`.
        noise_shape: The shape of the mask, which broadcasts: along an axis of size 1 all elements
            are dropped or kept together. None for a size is that of `x`.
        seed: An integer gives a stream of its own, beside the global seed.
        name: Accepted for compatibility.

    Raises:
        ValueError: `rate` is not in [0, 1), or no number, or `x` is not of floats.
        InvalidArgumentError: `noise_shape` does not broadcast with the shape of `x`.

    Example:
        >>> import mirrored as mr
        >>> dropped = mr.nn.dropout(mr.ones((8, 8)), rate=0.5)
        >>> sorted(set(dropped.numpy().ravel().tolist()))
        [0.0, 2.0]
    """

    def draw(shape: Shape, dtype: DType, batched: bool) -> Tensor:
        # What mixed precision drops is what float32 drops.
        wide = float64 if dtype == float64 else float32
        return uniform_by_example(shape, wide, seed, batched)

    return _dropout(x, rate, noise_shape, draw)


def stateless_dropout(
    x: TensorLike,
    rate: TensorLike,
    seed: TensorLike,
    rng_alg: str | int | None = None,
    noise_shape: PartialShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the tensor after dropout with TensorFlow's mask for a seed.

    Within replicas each takes the part of the mask that belongs to its examples.

    Args:
        x: As for `dropout`.
        rate: The same.
        seed: Two integers.
        rng_alg: "philox", "auto_select", or None, which is the same.
        noise_shape: As for `dropout`.
        name: Accepted for compatibility.

    Raises:
        ValueError: As for `dropout`; or there is no such algorithm.
        InvalidArgumentError: As for `dropout`; or the seed is not two integers.

    Example:
        >>> import mirrored as mr
        >>> mr.nn.experimental.stateless_dropout(mr.ones((6,)), 0.5, seed=[1, 2]).numpy()
        array([2., 0., 2., 0., 0., 2.], dtype=float32)
    """
    from mirrored.ops.stateless_random import Draw  # Needed here only.

    def draw(shape: Shape, dtype: DType, batched: bool) -> Tensor:
        at = current_position() if batched else WHOLE
        return Draw.of_seed(seed, rng_alg, at).uniform(shape, 0, 1, dtype)

    return _dropout(x, rate, noise_shape, draw)


def general_dropout(
    x: TensorLike,
    rate: TensorLike,
    uniform_sampler: Callable[..., Any],
    noise_shape: PartialShapeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return the tensor after dropout with random numbers of a function.

    Args:
        x: As for `dropout`.
        rate: The same.
        uniform_sampler: Called with `shape` and `dtype`, it returns numbers from [0, 1).
        noise_shape: As for `dropout`.
        name: Accepted for compatibility.

    Raises:
        ValueError: As for `dropout`.
        InvalidArgumentError: The same.

    Example:
        >>> import mirrored as mr
        >>> def sampler(shape, dtype):
        ...     return mr.constant([0.1, 0.7], dtype)
        >>> mr.nn.experimental.general_dropout([1.0, 2.0], 0.5, sampler).numpy()
        array([0., 4.], dtype=float32)
    """

    def draw(shape: Shape, dtype: DType, batched: bool) -> Tensor:
        return adopt(uniform_sampler(shape=shape, dtype=dtype), dtype)

    return _dropout(x, rate, noise_shape, draw)


def _dropout(
    x: Any, rate: Any, noise_shape: Any, draw: Callable[[Shape, DType, bool], Tensor]
) -> Tensor:
    """Return the tensor after dropout with numbers of `draw`, different per example or not."""
    number = None if is_tensor(rate) else as_real(rate)
    if not is_tensor(rate) and (number is None or not 0 <= number < 1):
        raise ValueError(
            "`rate` must be a scalar tensor or a float in the range [0, 1). "
            f"Received: rate={rate!r}"
        )
    values = adopt(x, None)
    if values.dtype not in FLOATS:
        raise ValueError(
            "`x.dtype` must be a floating point tensor as `x` will be scaled. Received: "
            f"x_dtype={values.dtype.name}. Cast it with mr.cast."
        )
    if number == 0:
        return values
    shape, batched = _shape_of_mask(values.shape, noise_shape)
    drawn = draw(shape, values.dtype, batched)
    if number is None:
        return _dropped_by(values, drawn, adopt(rate, None))
    return dropped(values, drawn, number)


def _dropped_by(x: Tensor, drawn: Tensor, rate: Tensor) -> Tensor:
    """Return the tensor after dropout at a rate that is a tensor, which has a gradient too."""
    if rate.ndim or rate.dtype != x.dtype:
        raise ValueError(
            "`rate` must be a scalar of the dtype of `x`. Received: "
            f"x.dtype={x.dtype.name}, rate.dtype={rate.dtype.name} and rate.shape={rate.shape}"
        )
    kept = CAST(GREATER_EQUAL(drawn, CAST(rate, dtype=drawn.dtype)), dtype=x.dtype)
    return MUL_NO_NAN(DIV(x, 1.0 - rate), kept)


def _shape_of_mask(shape: Shape, noise_shape: Any) -> tuple[Shape, bool]:
    """Return the shape of a mask, and whether it has a part for each example."""
    if noise_shape is None:
        return shape, len(shape) > 0
    if isinstance(noise_shape, int):
        raise InvalidArgumentError(
            f"`noise_shape` must be a vector, got shape []. Received: noise_shape={noise_shape}"
        )
    sizes = list(noise_shape)
    if len(sizes) == len(shape):
        sizes = [own if size is None else size for size, own in zip(sizes, shape, strict=True)]
    mask = as_shape(sizes)
    batched = len(mask) == len(shape) > 0 and mask[0] == shape[0]
    return mask, batched and (noise_shape[0] is None or mask[0] > 1)


explain_functions(__name__)
