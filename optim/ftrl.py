"""Ftrl: follows the leader of all gradients so far, and sets small weights to zero.

It is for shallow models with many features that are seldom there.
"""

import math
from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
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
        learning_rate: Any = 0.001,
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
