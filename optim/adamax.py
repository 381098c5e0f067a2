"""Adamax: Adam with the largest gradient of late in place of the mean of squares.

It is the variant that the last section of Adam's paper gives.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Adamax(Optimizer):
    """Adamax (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, section 7.1).

    With gradient g at step t: m <- b1 m + (1 - b1) g, u <- max(b2 u, |g|), and
    w <- w - r m / ((1 - b1^t) (u + epsilon)).

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_1: b1, the decay of the mean, in [0, 1).
        beta_2: b2, the decay of the largest gradient, in [0, 1).
        epsilon: What keeps the quotient finite, above 0.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Adamax(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.9000
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("momentum", "norm")  # The running mean, and the largest gradient.

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
        """Return the new value, mean and largest gradient; arguments as for `Optimizer.update`."""
        mean, largest = slots
        mean = mean + (gradient - mean) * (1.0 - self.beta_1)
        largest = ops.maximum(largest * self.beta_2, ops.abs(gradient))
        rate = learning_rate / (1.0 - self.beta_1**step)
        return value - mean * rate / (largest + self.epsilon), (mean, largest)
