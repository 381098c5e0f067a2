"""Schedule-free AdamW: averaging takes the place of a falling learning rate.

So nobody has to say beforehand how long the training is.
"""

from typing import Any, ClassVar, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored.ops import Tensor
from mirrored.ops.spec import Shape
from mirrored.optim.hyperparameters import Settings, Tensors, check_number
from mirrored.optim.optimizer import Optimizer


@explained
class ScheduleFreeAdamW(Optimizer):
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
        learning_rate: Any = 0.0025,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: int = 0,
        **settings: Unpack[Settings],
    ) -> None:
        self.beta_1 = check_number("beta_1", beta_1, below=1.0, above_zero=True)
        self.beta_2 = check_number("beta_2", beta_2, below=1.0)
        self.epsilon = check_number("epsilon", epsilon, above_zero=True)
        self.warmup_steps = warmup_steps
        check_number("warmup_steps", warmup_steps)
        super().__init__(learning_rate, **settings)

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
