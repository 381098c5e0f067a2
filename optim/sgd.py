"""Stochastic gradient descent, with momentum if asked for.

The plainest rule there is: a step against the gradient.
"""

from typing import ClassVar, Unpack

from mirrored.ops import Tensor
from mirrored.optim.hyperparameters import LearningRate, Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer
from mirrored.optim.transforms import ignores_number


class SGD(Optimizer):
    """Gradient descent, with momentum (Polyak 1964) or Nesterov's (1983) if asked for.

    With gradient g and learning rate r: w <- w - r g. With momentum m: v <- m v - r g, then
    w <- w + v, or with Nesterov's w <- w + m v - r g.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        momentum: m, in [0, 1].
        nesterov: Whether to look ahead along the momentum.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> optimizer = mr.optim.SGD(learning_rate=2.0, momentum=0.9)
        >>> v = mr.Variable([1.0, 2.0])
        >>> for _ in range(2):
        ...     _ = optimizer.apply_gradients([(mr.constant([0.1, 0.1]), v)])
        >>> v.numpy()
        array([0.42000002, 1.42      ], dtype=float32)
    """

    elementwise: ClassVar[bool] = True

    def __init__(
        self,
        learning_rate: LearningRate = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **settings: Unpack[Settings],
    ) -> None:
        self.momentum = check_number("momentum", momentum, at_most=1.0)
        self.nesterov = bool(nesterov)
        super().__init__(learning_rate, **settings)

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The velocity, where there is momentum."""
        return ("momentum",) if self.momentum else ()

    @ignores_number
    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and velocity; arguments as for `Optimizer.update`."""
        descent = gradient * learning_rate
        if not slots:
            return value - descent, ()
        velocity = slots[0] * self.momentum - descent
        if self.nesterov:
            return value + velocity * self.momentum - descent, (velocity,)
        return value + velocity, (velocity,)
