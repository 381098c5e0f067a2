"""Adagrad: steps scaled by the sum of all squared gradients.

Weights that seldom have a gradient take larger steps.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR 2011).

    With gradient g: a <- a + g^2, and w <- w - r g / sqrt(a + epsilon).

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        initial_accumulator_value: What a starts as, 0 or more.
        epsilon: What keeps the quotient finite, above 0.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Adagrad(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.9002
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("accumulator",)  # The sum of squares.

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **settings: Unpack[Settings],
    ) -> None:
        self.initial_accumulator_value = check_number(
            "initial_accumulator_value", initial_accumulator_value
        )
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        super().__init__(learning_rate, **settings)

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and what it starts as; see `Optimizer`."""
        return shape, self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and sum; arguments as for `Optimizer.update`."""
        total = slots[0] + gradient * gradient
        return value - gradient * learning_rate / ops.sqrt(total + self.epsilon), (total,)


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
