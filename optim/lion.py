"""Lion: steps of one size, of which a running mean of the gradient gives the sign.

It keeps one value a weight, where Adam keeps two.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Lion(Optimizer):
    """Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023).

    With gradient g: w <- w - r sign(b1 m + (1 - b1) g), then m <- b2 m + (1 - b2) g.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_1: b1, what the mean counts by in a step, in (0, 1].
        beta_2: b2, the decay of the mean, in [0, 1].
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Lion(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.9000
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("momentum",)  # The running mean.

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.99,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_1 = check_number("beta_1", beta_1, at_most=1.0, above_zero=True)
        self.beta_2 = check_number("beta_2", beta_2, at_most=1.0)
        super().__init__(learning_rate, **settings)

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and mean; arguments as for `Optimizer.update`."""
        mean = slots[0]
        direction = ops.sign(mean * self.beta_1 + gradient * (1.0 - self.beta_1))
        mean = mean * self.beta_2 + gradient * (1.0 - self.beta_2)
        return value - direction * learning_rate, (mean,)
