"""Nadam: Adam that looks ahead along its mean, as Nesterov's momentum does.

The weight of the mean grows over the first steps.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Nadam(Optimizer):
    """Nadam (Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016).

    With gradient g at step t, u_t = b1 (1 - 0.96^t / 2) and p their product up to t:
    m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, and w <- w - r a / (sqrt(b) + epsilon), where
    a = u_{t+1} m / (1 - p u_{t+1}) + (1 - u_t) g / (1 - p) and b = v / (1 - b2^t).

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
        >>> _ = mr.optim.Nadam(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.8937
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("momentum", "velocity")  # The running means.
    shared_names: ClassVar[Mapping[str, float]] = {"u_product": 1.0}

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
        mean, square, product = slots
        ahead = self._weight(step + 1.0)
        mean = mean + (gradient - mean) * (1.0 - self.beta_1)
        square = square + (gradient * gradient - square) * (1.0 - self.beta_2)
        of_mean = ahead / (1.0 - product * ahead)
        of_gradient = (1.0 - self._weight(step)) / (1.0 - product)
        correction = 1.0 / (1.0 - self.beta_2**step)
        change = mean * of_mean + gradient * of_gradient
        change = change * learning_rate / (ops.sqrt(square * correction) + self.epsilon)
        return value - change, (mean, square)

    def advance(self, shared: Tensors, step: Tensor) -> Tensors:
        """Return the product of the weights of all means so far; see `Optimizer.advance`."""
        return (shared[0] * self._weight(step),)

    def _weight(self, step: Tensor) -> Tensor:
        """Return what the mean counts by in a step."""
        return (1.0 - 0.96**step * 0.5) * self.beta_1
