"""TensorFlow 1's optimizers: the rule of each, as its kernels compute it, and its slots.

Rates and decays are float32 until they meet a variable, as they are there.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.compat.v1.base_optimizer import Optimizer, Pairs
from mirrored.compat.v1.graph_elements import Operation
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.variables import Variable, update


class GradientDescentOptimizer(Optimizer):
    """Subtracts the gradient times a rate.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        use_locking: Accepted for compatibility.
        name: What its operations' names begin with.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     v = tf.Variable(3.0)
        ...     step = tf.train.GradientDescentOptimizer(0.25).minimize(v * v)
        ...     session.run(tf.global_variables_initializer())
        ...     session.run(step)
        ...     float(session.run(v))
        1.5
    """

    KIND = "ApplyGradientDescent"

    def __init__(
        self,
        learning_rate: TensorLike | Callable[[], Any],
        use_locking: bool = False,
        name: str = "GradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._rates = {"learning_rate": learning_rate}

    def rule(self, value: Any, gradient: Any, rate: Any) -> Sequence[Any]:
        """Return the variable's new value."""
        return [value - gradient * rate]


class MomentumOptimizer(Optimizer):
    """Subtracts a sum of the gradients so far that decays, times a rate.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        momentum: What the sum is multiplied by in each step.
        use_locking: Accepted for compatibility.
        name: What its operations' names begin with.
        use_nesterov: Whether the sum is that after the next step.
    """

    KIND = "ApplyMomentum"
    SLOTS: ClassVar[dict[str, float]] = {"momentum": 0.0}

    def __init__(
        self,
        learning_rate: TensorLike | Callable[[], Any],
        momentum: TensorLike,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._rates = {"learning_rate": learning_rate, "momentum": momentum}
        self._nesterov = use_nesterov

    def rule(self, value: Any, total: Any, gradient: Any, rate: Any, momentum: TensorLike) -> Any:
        """Return the new values of the variable and of its sum."""
        total = total * momentum + gradient
        if self._nesterov:
            return [value - (gradient * rate + total * momentum * rate), total]
        return [value - total * rate, total]


class AdagradOptimizer(Optimizer):
    """Divides each gradient by the root of the sum of its squares so far.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        initial_accumulator_value: What the sum begins with.
        use_locking: Accepted for compatibility.
        name: What its operations' names begin with.

    Raises:
        ValueError: The sum begins with no positive number.
    """

    KIND = "ApplyAdagrad"

    def __init__(
        self,
        learning_rate: TensorLike | Callable[[], Any],
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._rates = {"learning_rate": learning_rate}
        self.SLOTS = {"accumulator": initial_accumulator_value}  # type: ignore[misc]

    def rule(self, value: Any, total: Any, gradient: Any, rate: Any) -> Sequence[Any]:
        """Return the new values of the variable and of its sum."""
        total = total + gradient * gradient
        return [value - rate * gradient * ops.rsqrt(total), total]


class RMSPropOptimizer(Optimizer):
    """Divides each gradient by the root of the mean of its latest squares.

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        decay: How much of the mean stays in each step.
        momentum: How much of the step before is taken again.
        epsilon: What is added below the root.
        use_locking: Accepted for compatibility.
        centered: Whether the square of the mean gradient is subtracted there.
        name: What its operations' names begin with.
    """

    SLOTS: ClassVar[dict[str, float]] = {"rms": 1.0, "mg": 0.0, "momentum": 0.0}

    def __init__(
        self,
        learning_rate: TensorLike | Callable[[], Any],
        decay: TensorLike = 0.9,
        momentum: TensorLike = 0.0,
        epsilon: TensorLike = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._rates = {"learning_rate": learning_rate, "decay": decay}
        self._rates |= {"momentum": momentum, "epsilon": epsilon}
        self.KIND = "ApplyCenteredRMSProp" if centered else "ApplyRMSProp"  # type: ignore[misc]
        if not centered:
            self.SLOTS = {"rms": 1.0, "momentum": 0.0}  # type: ignore[misc]

    def rule(self, value: Any, rms: Any, *arguments: Any) -> Sequence[Any]:
        """Return the new values of the variable and of its slots."""
        *mean, step, gradient, rate, decay, momentum, epsilon = arguments
        rms = rms + (gradient * gradient - rms) * (1.0 - decay)
        below = rms + epsilon
        if mean:
            mean = [mean[0] + (gradient - mean[0]) * (1.0 - decay)]
            below = (rms - mean[0] * mean[0]) + epsilon
        step = step * momentum + (gradient * rate) / ops.sqrt(below)
        return [value - step, rms, *mean, step]


class AdamOptimizer(Optimizer):
    """Divides a mean of the gradients by the root of a mean of their squares (Kingma & Ba, 2014).

    Args:
        learning_rate: A number, a tensor, or a function that returns one.
        beta1: How much of the mean of gradients stays in each step.
        beta2: How much of the mean of squares stays.
        epsilon: What is added to the root.
        use_locking: Accepted for compatibility.
        name: What its operations' names begin with.
    """

    KIND = "ApplyAdam"
    SLOTS: ClassVar[dict[str, float]] = {"m": 0.0, "v": 0.0}

    def __init__(
        self,
        learning_rate: TensorLike | Callable[[], Any] = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: TensorLike = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._betas = {"beta1": beta1, "beta2": beta2}
        self._rates = {"learning_rate": learning_rate, **self._betas, "epsilon": epsilon}
        self._powers: dict[Any, list[Variable]] = {}

    def variables(self) -> list[Variable]:
        """Return the slots and the powers of the decays."""
        powers = [power for powers in self._powers.values() for power in powers]
        return sorted([*powers, *super().variables()], key=lambda variable: variable.name)

    def _create(self, pairs: Pairs) -> None:
        first = min((variable for _, variable in pairs), key=lambda other: other.name)
        if first.graph not in self._powers:
            with first.graph.device(first.op.node.device):
                self._powers[first.graph] = [
                    Variable(np.float32(beta), trainable=False, name=f"{name}_power")
                    for name, beta in self._betas.items()
                ]
        super()._create(pairs)

    def extra(self, variable: Variable) -> Sequence[Any]:
        """Return the powers of the two decays."""
        return self._powers[variable.graph]

    def finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        """Return what multiplies the powers by the decays once more, after the updates."""
        graph = updates[0].graph
        betas = [converted(np.float32(beta)) for beta in self._betas.values()]
        with graph.control_dependencies(updates):
            return [
                update([power], lambda value, beta: [value * beta], [beta], "Assign", "Assign")
                for power, beta in zip(self._powers[graph], betas, strict=True)
            ]

    def rule(self, value: Any, mean: Any, square: Any, gradient: Any, *rates: Any) -> Any:
        """Return the new values of the variable and of its two means."""
        power1, power2, rate, beta1, beta2, epsilon = rates
        rate = rate * ops.sqrt(1.0 - power2) / (1.0 - power1)
        mean = mean + (gradient - mean) * (1.0 - beta1)
        square = square + (gradient * gradient - square) * (1.0 - beta2)
        return [value - (mean * rate) / (ops.sqrt(square) + epsilon), mean, square]
