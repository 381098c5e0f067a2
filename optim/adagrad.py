"""Adagrad and the optimizers made from it: steps scaled by sums or means of squared gradients.

Weights that seldom have a gradient take larger steps.
"""

import math
from typing import ClassVar, Unpack

from mirrored import ops
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import LearningRate, Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


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
        learning_rate: LearningRate = 0.001,
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
        learning_rate: LearningRate = 0.001,
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
        learning_rate: LearningRate = 0.001,
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
        learning_rate: LearningRate = 0.001,
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


class Ftrl(Optimizer):
    """Ftrl (McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013).

    With gradient g, power p, n the sum of squares and q(n) = n^-p / r:
    z <- z + g + 2 s w - (q(n + g^2) - q(n)) w, n <- n + g^2, and
    w <- (clip(z, -l1, l1) - z) / (q(n) + 2 l2 + beta / r).

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        learning_rate_power: p, 0 or less.
        initial_accumulator_value: What n starts as, 0 or more.
        l1_regularization_strength: l1, 0 or more.
        l2_regularization_strength: l2, 0 or more.
        l2_shrinkage_regularization_strength: s, 0 or more.
        beta: The paper's beta, 0 or more.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(10.0)
        >>> _ = mr.optim.Ftrl(learning_rate=0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.2690
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("accumulator", "linear")  # The sum of squares, and z.

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **settings: Unpack[Settings],
    ) -> None:
        self.learning_rate_power = float(learning_rate_power)
        if not -math.inf < self.learning_rate_power <= 0.0:
            raise ValueError(
                "`learning_rate_power` needs to be negative or zero. Received: "
                f"learning_rate_power={learning_rate_power}."
            )
        self.initial_accumulator_value = check_number(
            "initial_accumulator_value", initial_accumulator_value
        )
        self.l1_regularization_strength = check_number(
            "l1_regularization_strength", l1_regularization_strength
        )
        self.l2_regularization_strength = check_number(
            "l2_regularization_strength", l2_regularization_strength
        )
        self.l2_shrinkage_regularization_strength = check_number(
            "l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength
        )
        self.beta = check_number("beta", beta)
        super().__init__(learning_rate, **settings)

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and what it starts as; see `Optimizer`."""
        return shape, self.initial_accumulator_value if name == "accumulator" else 0.0

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and sums; arguments as for `Optimizer.update`."""
        total, linear = slots
        summed = total + gradient * gradient
        before, after = (ops.pow(n, -self.learning_rate_power) for n in (total, summed))
        shrinking = gradient
        if self.l2_shrinkage_regularization_strength:
            shrinking = gradient + value * (2.0 * self.l2_shrinkage_regularization_strength)
        linear = linear + shrinking - (after - before) / learning_rate * value
        bound = self.l1_regularization_strength
        least = self.beta / learning_rate + 2.0 * self.l2_regularization_strength
        pulled = ops.clip_by_value(linear, -bound, bound) - linear
        return pulled / (after / learning_rate + least), (summed, linear)
