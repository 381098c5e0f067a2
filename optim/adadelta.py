"""Adadelta: steps scaled by what earlier ones were, and by the gradients' size.

It needs no learning rate of its own: the paper has 1.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Adadelta(Optimizer):
    """Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012).

    With gradient g: a <- rho a + (1 - rho) g^2, d = g sqrt(u + epsilon) / sqrt(a + epsilon),
    u <- rho u + (1 - rho) d^2, and w <- w - r d.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        rho: The decay of both means, in [0, 1].
        epsilon: What keeps the quotient finite, above 0.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Adadelta(learning_rate=1.0).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.9986
    """

    elementwise: ClassVar[bool] = True
    # The means of squared gradients and of squared steps.
    slot_names = ("accumulated_grad", "accumulated_delta_var")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **settings: Unpack[Settings],
    ) -> None:
        self.rho = check_number("rho", rho, at_most=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        super().__init__(learning_rate, **settings)

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        square, steps = slots
        square = square * self.rho + gradient * gradient * (1.0 - self.rho)
        change = ops.sqrt(steps + self.epsilon) * gradient / ops.sqrt(square + self.epsilon)
        steps = steps * self.rho + change * change * (1.0 - self.rho)
        return value - change * learning_rate, (square, steps)
