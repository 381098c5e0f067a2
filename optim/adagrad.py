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
