"""Lamb: Adam whose step for each variable is as long as the variable, times the rate.

So large batches, with large rates, keep all layers training.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Lamb(Optimizer):
    """Lamb (You et al., "Large batch optimization for deep learning", ICLR 2020).

    With Adam's corrected means m and v, u = m / (sqrt(v) + epsilon): w <- w - r |w| / |u| u; where
    one of the norms is 0, w <- w - r u.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_1: b1, the decay of the mean, in [0, 1).
        beta_2: b2, the decay of the mean of squares, in [0, 1).
        epsilon: What keeps the quotient finite, above 0.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Lamb(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.0000
    """

    slot_names = ("momentum", "velocity")  # The running means.

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_1 = check_number("beta_1", beta_1, below=1.0)
        self.beta_2 = check_number("beta_2", beta_2, below=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        super().__init__(learning_rate, **settings)

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        mean, square = slots
        mean = mean + (gradient - mean) * (1.0 - self.beta_1)
        square = square + (gradient * gradient - square) * (1.0 - self.beta_2)
        corrected = square / (1.0 - self.beta_2**step)
        change = mean / (1.0 - self.beta_1**step) / (ops.sqrt(corrected) + self.epsilon)
        length, of_change = (ops.sqrt(ops.reduce_sum(x * x)) for x in (value, change))
        are_both = ops.logical_and(ops.greater(length, 0.0), ops.greater(of_change, 0.0))
        one = ops.ones_like(length)
        # Not a quotient by 0, whose result would be left out, but is an error on some devices.
        ratio = ops.where(are_both, length / ops.where(are_both, of_change, one), one)
        return value - change * (ratio * learning_rate), (mean, square)
