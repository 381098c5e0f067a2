"""Adam and the optimizers made from it: steps scaled by running means of gradients.

They adapt to each weight separately, so they need little tuning.
"""

from collections.abc import Mapping
from typing import ClassVar, Unpack

from mirrored import ops
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import (
    LearningRate,
    OtherSettings,
    Settings,
    Tensors,
    check_number,
)
from mirrored.optim.optimizer import Optimizer


class _ByMeans(Optimizer):
    """The constructor arguments and the running means that these optimizers have in common."""

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_1 = check_number("beta_1", beta_1, below=1.0)
        self.beta_2 = check_number("beta_2", beta_2, below=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        super().__init__(learning_rate, **settings)


def _moving_mean(rule: _ByMeans, gradient: Tensor, mean: Tensor) -> Tensor:
    return mean + (gradient - mean) * (1.0 - rule.beta_1)


def _moving_means(
    rule: _ByMeans, gradient: Tensor, mean: Tensor, square: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the running means of the gradient and of its square after a step."""
    mean = _moving_mean(rule, gradient, mean)
    return mean, square + (gradient * gradient - square) * (1.0 - rule.beta_2)


class Adam(_ByMeans):
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
        learning_rate: LearningRate = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **settings: Unpack[Settings],
    ) -> None:
        self.amsgrad = bool(amsgrad)
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **settings)

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
        mean, square = _moving_means(self, gradient, *slots[:2])
        correction = ops.sqrt(1.0 - self.beta_2**step) / (1.0 - self.beta_1**step)
        kept: Tensors = (mean, square)
        if self.amsgrad:
            square = ops.maximum(slots[2], square)
            kept = (*kept, square)
        change = mean * (learning_rate * correction) / (ops.sqrt(square) + self.epsilon)
        return value - change, kept


class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019).

    A step takes the part r * weight_decay of each weight away, and goes on as Adam's.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        weight_decay: The part of each weight, times r, that a step takes away.
        beta_1: The decay of the mean, in [0, 1).
        beta_2: The decay of the mean of squares, in [0, 1).
        epsilon: What keeps the quotient finite, above 0.
        amsgrad: Whether to divide by the largest mean of squares so far.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v, optimizer = mr.Variable(10.0), mr.optim.AdamW(0.1, weight_decay=0.5)
        >>> optimizer.exclude_from_weight_decay(var_names=["bias"])
        >>> _ = optimizer.apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        9.4000
    """

    def __init__(
        self,
        learning_rate: LearningRate = 0.001,
        weight_decay: float = 0.004,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **settings: Unpack[OtherSettings],
    ) -> None:
        if weight_decay is None:
            raise ValueError(
                "Argument `weight_decay` must be a float. Received: weight_decay=None. Use Adam, "
                "which has no weight decay."
            )
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, weight_decay=weight_decay, **settings
        )


class Adamax(_ByMeans):
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

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value, mean and largest gradient; arguments as for `Optimizer.update`."""
        mean, largest = slots
        mean = _moving_mean(self, gradient, mean)
        largest = ops.maximum(largest * self.beta_2, ops.abs(gradient))
        rate = learning_rate / (1.0 - self.beta_1**step)
        return value - mean * rate / (largest + self.epsilon), (mean, largest)


class Nadam(_ByMeans):
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

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        *means, product = slots
        mean, square = _moving_means(self, gradient, *means)
        ahead = self._weight(step + 1.0)
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


class Lamb(_ByMeans):
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

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and means; arguments as for `Optimizer.update`."""
        mean, square = _moving_means(self, gradient, *slots)
        corrected = square / (1.0 - self.beta_2**step)
        change = mean / (1.0 - self.beta_1**step) / (ops.sqrt(corrected) + self.epsilon)
        length, of_change = (ops.sqrt(ops.reduce_sum(x * x)) for x in (value, change))
        are_both = ops.logical_and(ops.greater(length, 0.0), ops.greater(of_change, 0.0))
        one = ops.ones_like(length)
        # Not a quotient by 0, whose result would be left out, but is an error on some devices.
        ratio = ops.where(are_both, length / ops.where(are_both, of_change, one), one)
        return value - change * (ratio * learning_rate), (mean, square)


class ScheduleFreeAdamW(_ByMeans):
    """Schedule-free AdamW (Defazio et al., "The road less scheduled", 2024), as Keras has it.

    Gradients move z, x is the mean of all z, and the weights are y = (1 - b1) z + b1 x. With
    gradient g at step t: v <- b2 v + (1 - b2) g^2, z <- z - r g / (sqrt(v / (1 - b2^t)) + epsilon),
    x <- (1 - 1/t) x + z / t. Only z ("momentum") and v ("velocity") are kept.

    As in Keras on TensorFlow, x before the step is taken out of y with the new z in place of the
    old one: (y - (1 - b1) z) / b1.

    Args:
        learning_rate: r, a number >= 0 that may be set between steps, or a schedule.
        beta_1: b1, the part of the mean in the weights, above 0 and below 1.
        beta_2: b2, the decay of the mean of squares, in [0, 1).
        epsilon: What keeps the quotient finite, above 0.
        warmup_steps: In how many steps the learning rate grows to r, evenly; 0: it does not.
        **settings: Those that all optimizers have: see `Optimizer`.

    Raises:
        ValueError: A number is not in its range, or more than one kind of clipping is asked for.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> _ = mr.optim.ScheduleFreeAdamW(0.1).apply_gradients([(mr.constant(5.0), v)])
        >>> print(f"{v:.4f}")
        0.9000
    """

    elementwise: ClassVar[bool] = True
    slot_names = ("momentum", "velocity")  # What gradients move, and the mean of their squares.

    def __init__(
        self,
        learning_rate: LearningRate = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **settings: Unpack[Settings],
    ) -> None:
        check_number("beta_1", beta_1, below=1.0, above_zero=True)
        check_number("warmup_steps", warmup_steps)
        self.warmup_steps = warmup_steps
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **settings)

    def slot_start(self, name: str, shape: Shape) -> tuple[Shape, float | None]:
        """Return the shape of a slot and what it starts as; see `Optimizer`."""
        return shape, None if name == "momentum" else 0.0

    def update(
        self, gradient: Tensor, value: Tensor, slots: Tensors, learning_rate: Tensor, step: Tensor
    ) -> tuple[Tensor, Tensors]:
        """Return the new value and slots; arguments as for `Optimizer.update`."""
        moved, square = slots
        if self.warmup_steps > 0:
            learning_rate = learning_rate * ops.minimum(step / float(self.warmup_steps), 1.0)
        square = square + (gradient * gradient - square) * (1.0 - self.beta_2)
        scale = ops.sqrt(square / (1.0 - self.beta_2**step)) + self.epsilon
        moved = moved - gradient * learning_rate / scale
        part = 1.0 / step
        mean = (value - moved * (1.0 - self.beta_1)) / self.beta_1
        mean = mean * (1.0 - part) + moved * part
        return moved * (1.0 - self.beta_1) + mean * self.beta_1, (moved, square)


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
        learning_rate: LearningRate = 0.001,
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
