"""Adam: steps scaled by running means of the gradient and of its square.

It adapts to each weight by itself, so it needs little tuning.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Adam(Optimizer):
    """Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015).

    With gradient g at step t: m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, and
    w <- w - r sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon).

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_1: b1, the decay of the mean, in [0, 1).
        beta_2: b2, the decay of the mean of squares, in [0, 1).
        epsilon: What keeps the quotient finite, above 0 ("epsilon hat" in the paper).
        amsgrad: Whether to divide by the largest v so far (Reddi et al., ICLR 2018).
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> _ = mr.optim.Adam(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        0.9000
    """

    elementwise: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_1 = check_number("beta_1", beta_1, below=1.0)
        self.beta_2 = check_number("beta_2", beta_2, below=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        self.amsgrad = bool(amsgrad)
        super().__init__(learning_rate, **settings)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The running means, and with `amsgrad` the largest mean of squares."""
        names = ("momentum", "velocity")
        return (*names, "velocity_hat") if self.amsgrad else names

    @property
    def _slot_groups(self) -> tuple[tuple[str, ...], ...]:
        return self.slot_names[:2], self.slot_names[2:]

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        mean, square = slots[:2]
        mean = mean + (gradient - mean) * (1.0 - self.beta_1)
        square = square + (gradient * gradient - square) * (1.0 - self.beta_2)
        correction = ops.sqrt(1.0 - self.beta_2**step) / (1.0 - self.beta_1**step)
        kept: Tensors = (mean, square)
        if self.amsgrad:
            square = ops.maximum(slots[2], square)
            kept = (*kept, square)
        change = mean * (learning_rate * correction) / (ops.sqrt(square) + self.epsilon)
        return value - change, kept
