"""Adafactor: the mean of squared gradients is kept as one row and one column of a matrix.

So it needs little memory beside the weights.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates ...", ICML 2018).

    With gradient g at step t, b = 1 - t^beta_2_decay and s = g^2 + epsilon_1: v <- b v + (1 - b) s,
    which for a matrix is kept as the means of its rows and columns, R and C: v = R C / mean(R).
    Then u = g / sqrt(v), and w <- w - a u / max(1, rms(u) / clip_threshold), where
    a = max(epsilon_2, rms(w)) min(r, 1 / sqrt(t)).

    As in Keras the product of R and C is kept too, so that memory is not saved.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_2_decay: How fast b nears 1.
        epsilon_1: What keeps the quotient finite, 0 or more.
        epsilon_2: The least size of weights that a step is scaled by, 0 or more.
        clip_threshold: The largest root mean square of u, above 0.
        relative_step: Whether a learning rate that is a number is at most 1 / sqrt(t).
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([[10.0, 1.0]])
        >>> _ = mr.optim.Adafactor(0.1).apply_gradients([(mr.constant([[5.0, 5.0]]), v)])
        >>> print([f"{w:.4f}" for w in v.numpy()[0]])
        ['9.2894', '0.2894']
    """

    # The means of rows and of columns, and the mean of squares.
    slot_names = ("r", "c", "velocity")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_2_decay = float(beta_2_decay)
        self.epsilon_1 = check_number("epsilon_1", epsilon_1)
        self.epsilon_2 = check_number("epsilon_2", epsilon_2)
        self.clip_threshold = check_number("clip_threshold", clip_threshold, above_zero=True)
        self.relative_step = bool(relative_step)
        super().__init__(learning_rate, **settings)

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and what it starts as; see `Optimizer`."""
        if name == "r":
            shape = shape[:-1] if len(shape) > 1 else ()
        elif name == "c":
            shape = (*shape[:-2], shape[-1]) if len(shape) > 1 else ()
        return shape, 0.0

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        rows, columns, square = slots
        # With `relative_step` it is the less of the same two, which is taken here anyway.
        relative = ops.minimum(learning_rate, 1.0 / ops.sqrt(step))
        rate = ops.maximum(_rms(value), self.epsilon_2) * relative
        decay = 1.0 - ops.pow(step, ops.cast(self.beta_2_decay, step.dtype))
        squared = gradient * gradient + self.epsilon_1
        if value.ndim > 1:
            rows = rows * decay + ops.reduce_mean(squared, axis=-1) * (1.0 - decay)
            columns = columns * decay + ops.reduce_mean(squared, axis=-2) * (1.0 - decay)
            parts = rows / ops.reduce_mean(rows, axis=-1, keepdims=True)
            square = ops.expand_dims(parts, -1) * ops.expand_dims(columns, -2)
        else:
            square = square * decay + squared * (1.0 - decay)
        change = gradient / ops.sqrt(square)
        change = change / ops.maximum(_rms(change) / self.clip_threshold, 1.0)
        return value - change * rate, (rows, columns, square)


def _rms(x: Tensor) -> Tensor:
    return ops.sqrt(ops.reduce_mean(x * x))
