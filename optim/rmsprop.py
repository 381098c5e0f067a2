"""RMSprop: steps scaled by a running mean of the squared gradient.

It forgets old gradients, where Adagrad adds them up for ever.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class RMSprop(Optimizer):
    """RMSprop (Hinton, "Neural networks for machine learning", lecture 6e, 2012).

    With gradient g: v <- rho v + (1 - rho) g^2, and w <- w - r g / sqrt(v + epsilon). With momentum
    m: u <- m u + r g / sqrt(v + epsilon), w <- w - u.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        rho: The decay of the mean, in [0, 1].
        momentum: m, in [0, 1].
        epsilon: What keeps the quotient finite, above 0.
        centered: Whether to divide by the variance: v less the square of the mean gradient.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.RMSprop(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.6838
    """

    elementwise: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **settings: Unpack[Settings],
    ) -> None:
        self.rho = check_number("rho", rho, at_most=1.0)
        self.momentum = check_number("momentum", momentum, at_most=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        self.centered = bool(centered)
        super().__init__(learning_rate, **settings)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The mean of squares; the velocity and the mean gradient, where they are asked for."""
        names = {"momentum": bool(self.momentum), "average_gradient": self.centered}
        return ("velocity", *(name for name, is_kept in names.items() if is_kept))

    @property
    def _slot_groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple((name,) for name in self.slot_names)

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        kept = dict(zip(self.slot_names, slots, strict=True))
        square = kept["velocity"] * self.rho + gradient * gradient * (1.0 - self.rho)
        kept["velocity"] = square
        if self.centered:
            mean = kept["average_gradient"] * self.rho + gradient * (1.0 - self.rho)
            kept["average_gradient"] = mean
            square = square - mean * mean
        change = gradient * learning_rate / ops.sqrt(square + self.epsilon)
        if self.momentum:
            change = kept["momentum"] * self.momentum + change
            kept["momentum"] = change
        return value - change, tuple(kept.values())
