"""TensorFlow 1's optimizers: the rule of each, as its kernels compute it, and its slots.

Rates and decays are float32 until they meet a variable, as they are there.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored.compat.v1.gradients import gradients
from mirrored.compat.v1.graph import Operation, Tensor
from mirrored.compat.v1.sources import converted
from mirrored.compat.v1.variables import Variable, group, trainable_variables, update

Pairs = Sequence[tuple[Any, Variable]]


class Optimizer:
    """What all optimizers have in common: gradients, slots and the order of updates.

    Args:
        use_locking: Accepted for compatibility.
        name: What its operations' names begin with.
    """

    GATE_NONE, GATE_OP, GATE_GRAPH = 0, 1, 2
    # Of each slot its name among the variables, and the value that it begins with.
    SLOTS: ClassVar[dict[str, float]] = {}
    KIND: ClassVar[str] = ""

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._name = name
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def get_name(self) -> str:
        """Return what its operations' names begin with."""
        return self._name

    def get_slot_names(self) -> list[str]:
        """Return the names of its slots."""
        return sorted({name for _, name in self._slots})

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return what it keeps beside a variable; None: nothing of that name."""
        return self._slots.get((var, name))

    def variables(self) -> list[Variable]:
        """Return all that it keeps."""
        return sorted(self._slots.values(), key=lambda each: each.name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """Return pairs of a gradient of the loss, None where there is none, and a variable.

        Args:
            loss: A tensor.
            var_list: The variables; None: all that are trainable.
            gate_gradients: Accepted for compatibility, like the two below.
            aggregation_method: Accepted for compatibility.
            colocate_gradients_with_ops: Accepted for compatibility.
            grad_loss: The gradient of the loss; None: ones.

        Raises:
            ValueError: There are no variables.
        """
        given = trainable_variables() if var_list is None else var_list
        variables = list(given) if isinstance(given, list | tuple) else [given]
        if not variables:
            raise ValueError("No variables to optimize.")
        return list(zip(gradients(loss, variables, grad_loss), variables, strict=True))

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Any:
        """Return what changes variables so that a loss becomes smaller.

        Args:
            loss: A tensor.
            global_step: A variable that counts the steps.
            var_list: The variables; None: all that are trainable.
            gate_gradients: Accepted for compatibility, like the two below.
            aggregation_method: Accepted for compatibility.
            colocate_gradients_with_ops: Accepted for compatibility.
            name: What the operations' names begin with; None: the optimizer's name.
            grad_loss: The gradient of the loss; None: ones.

        Raises:
            ValueError: The loss depends on none of the variables.
        """
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {[str(each) for _, each in pairs]} and loss "
                f"{loss}."
            )
        return self.apply_gradients(pairs, global_step, name)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Variable | None = None, name: str | None = None
    ) -> Any:
        """Return what changes variables by gradients.

        Args:
            grads_and_vars: Pairs of a gradient, or None, and a variable.
            global_step: A variable that counts the steps.
            name: What the operations' names begin with; None: the optimizer's name.

        Raises:
            ValueError: There are no variables, or none has a gradient.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("No variables provided.")
        changed = [(converted(g, v._dtype), v) for g, v in pairs if g is not None]
        if not changed:
            raise ValueError(
                f"No gradients provided for any variable: {[str(v) for _, v in pairs]}."
            )
        graph = changed[0][1].graph
        with graph.control_dependencies(None), graph.name_scope(None):
            self._create(changed)
        with graph.name_scope(name or self._name) as scope:
            rates = [self._rate(key, value) for key, value in self.rates().items()]
            updates = []
            for gradient, variable in changed:
                slots = [self._slots[variable, each] for each in self.slots()]
                with graph.name_scope(f"update_{variable.op.name}"):
                    given = [gradient, *self.extra(variable), *rates]
                    kept = [variable, *slots]
                    updates.append(update(kept, self.rule, given, self.KIND, self.KIND))
            updates.extend(self.finish(updates, variables=[each for _, each in changed]))
            if global_step is None:
                return group(*updates, name=scope)
            with graph.control_dependencies([group(*updates, name="update")]):
                return global_step.assign_add(1, name=scope, read_value=False)

    def _create(self, pairs: Pairs) -> None:
        for _, variable in pairs:
            for slot in self.slots():
                if (variable, slot) not in self._slots:
                    made = _kept(variable, f"{variable.op.name}/{self._name}", self.SLOTS[slot])
                    self._slots[variable, slot] = made

    def _rate(self, name: str, value: Any) -> Tensor:
        value = value() if callable(value) else value
        return value if isinstance(value, Tensor) else converted(np.float32(value), name=name)

    def slots(self) -> Sequence[str]:
        """Return the names of the slots of each variable."""
        return list(self.SLOTS)

    def rates(self) -> dict[str, Any]:
        """Return what all variables' rule is given, after the gradient, by its names."""
        raise NotImplementedError

    def extra(self, variable: Variable) -> Sequence[Any]:
        """Return what a variable's rule is given beside its gradient."""
        return ()

    def finish(self, updates: Sequence[Operation], variables: Any) -> Sequence[Operation]:
        """Return what runs after the updates."""
        return ()

    def rule(self, *given: Any) -> Sequence[Any]:
        """Return the new values of a variable and its slots.

        Args:
            *given: Their values, the gradient, what else the variable has, and the rates.
        """
        raise NotImplementedError


def _kept(variable: Variable, name: str, begin: float) -> Variable:
    """Return a variable beside another, of its shape and device."""
    graph = variable.graph
    taken = graph.get_collection("variables")
    count = sum(each.op.name == name or each.op.name.startswith(f"{name}_") for each in taken)
    whole = f"{name}_{count}" if count else name
    value = np.full(variable.initial_value.shape, begin, variable._dtype)
    with graph.device(variable.op.node.device):
        return Variable(lambda: value, trainable=False, name=whole)


def _as(dtype: Any, *rates: Any) -> list[Any]:
    return [ops.cast(each, dtype) for each in rates]


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
        self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent"
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate

    def rates(self) -> dict[str, Any]:
        """Return the learning rate."""
        return {"learning_rate": self._learning_rate}

    def rule(self, value: Any, gradient: Any, rate: Any) -> Sequence[Any]:
        """Return the variable's new value."""
        (rate,) = _as(value.dtype, rate)
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
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._nesterov = use_nesterov

    def rates(self) -> dict[str, Any]:
        """Return the learning rate and the momentum."""
        return {"learning_rate": self._learning_rate, "momentum": self._momentum}

    def rule(self, value: Any, total: Any, gradient: Any, rate: Any, momentum: Any) -> Any:
        """Return the new values of the variable and of its sum."""
        rate, momentum = _as(value.dtype, rate, momentum)
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
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(
                f"initial_accumulator_value must be positive: {initial_accumulator_value}"
            )
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self.SLOTS = {"accumulator": initial_accumulator_value}  # type: ignore[misc]

    def rates(self) -> dict[str, Any]:
        """Return the learning rate."""
        return {"learning_rate": self._learning_rate}

    def rule(self, value: Any, total: Any, gradient: Any, rate: Any) -> Sequence[Any]:
        """Return the new values of the variable and of its sum."""
        (rate,) = _as(value.dtype, rate)
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
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._rates = {
            "learning_rate": learning_rate,
            "decay": decay,
            "momentum": momentum,
            "epsilon": epsilon,
        }
        self._centered = centered
        self.KIND = "ApplyCenteredRMSProp" if centered else "ApplyRMSProp"  # type: ignore[misc]

    def slots(self) -> Sequence[str]:
        """Return the names of the slots of each variable."""
        return ["rms", "mg", "momentum"] if self._centered else ["rms", "momentum"]

    def rates(self) -> dict[str, Any]:
        """Return the rates."""
        return self._rates

    def rule(self, value: Any, rms: Any, *given: Any) -> Sequence[Any]:
        """Return the new values of the variable and of its slots."""
        *mean, step, gradient = given[:-4]
        rate, decay, momentum, epsilon = _as(value.dtype, *given[-4:])
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
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        super().__init__(use_locking, name)
        self._betas = {"beta1": beta1, "beta2": beta2}
        self._rates = {"learning_rate": learning_rate, **self._betas, "epsilon": epsilon}
        self._powers: dict[Any, list[Variable]] = {}

    def variables(self) -> list[Variable]:
        """Return all that it keeps."""
        powers = [each for powers in self._powers.values() for each in powers]
        return sorted([*powers, *super().variables()], key=lambda each: each.name)

    def _create(self, pairs: Pairs) -> None:
        first = min((variable for _, variable in pairs), key=lambda each: each.name)
        if first.graph not in self._powers:
            with first.graph.device(first.op.node.device):
                self._powers[first.graph] = [
                    Variable(np.float32(beta), trainable=False, name=f"{name}_power")
                    for name, beta in self._betas.items()
                ]
        super()._create(pairs)

    def rates(self) -> dict[str, Any]:
        """Return the rates."""
        return self._rates

    def extra(self, variable: Variable) -> Sequence[Any]:
        """Return the powers of the two decays."""
        return self._powers[variable.graph]

    def finish(self, updates: Sequence[Operation], variables: Any) -> Sequence[Operation]:
        """Return what multiplies the powers by the decays once more, after the updates."""
        graph = updates[0].graph
        betas = [converted(np.float32(each)) for each in self._betas.values()]
        with graph.control_dependencies(updates):
            return [
                update([power], lambda value, beta: [value * beta], [beta], "Assign", "Assign")
                for power, beta in zip(self._powers[graph], betas, strict=True)
            ]

    def rule(self, value: Any, mean: Any, square: Any, gradient: Any, *rates: Any) -> Any:
        """Return the new values of the variable and of its two means."""
        power1, power2, rate, beta1, beta2, epsilon = _as(value.dtype, *rates)
        rate = rate * ops.sqrt(1.0 - power2) / (1.0 - power1)
        mean = mean + (gradient - mean) * (1.0 - beta1)
        square = square + (gradient * gradient - square) * (1.0 - beta2)
        return [value - (mean * rate) / (ops.sqrt(square) + epsilon), mean, square]
