"""What TensorFlow 1's optimizers have in common: gradients, slots and the order of updates."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from mirrored import ops
from mirrored.compat.v1.differentiation import gradients
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.groups import group, trainable_variables
from mirrored.compat.v1.sources import constant, converted
from mirrored.compat.v1.variables import Variable, update

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
    # The arguments of the rule after the gradient, which all variables share.
    _rates: dict[str, Any]

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._name = name
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def get_name(self) -> str:
        """Return the prefix of the names of its operations."""
        return self._name

    def get_slot_names(self) -> list[str]:
        """Return the names of its slots."""
        return sorted({name for _, name in self._slots})

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Return a slot of a variable; None if there is no slot of that name."""
        return self._slots.get((var, name))

    def variables(self) -> list[Variable]:
        """Return the slots of all variables."""
        return sorted(self._slots.values(), key=lambda slot: slot.name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: None = None,
    ) -> list[tuple[Any, Variable]]:
        """Return pairs of gradient and variable; None if the loss does not depend on the variable.

        Args:
            loss: A tensor.
            var_list: The variables; None: all that are trainable.
            gate_gradients: Accepted for compatibility, like the two below.
            aggregation_method: Accepted for compatibility.
            colocate_gradients_with_ops: Accepted for compatibility.
            grad_loss: The gradient of the loss; None: ones.

        Raises:
            ValueError: There are no variables, or `gate_gradients` is none of the constants.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH. Not {gate_gradients}"
            )
        listed = trainable_variables() if var_list is None else var_list
        variables = list(listed) if isinstance(listed, list | tuple) else [listed]
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
        grad_loss: None = None,
    ) -> Any:
        """Return an operation that updates variables to reduce a loss.

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
        pairs = self.compute_gradients(loss, var_list, gate_gradients, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {[str(v) for _, v in pairs]} and loss "
                f"{loss}."
            )
        return self.apply_gradients(pairs, global_step, name)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Any]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Any:
        """Return an operation that applies gradients to variables.

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
            rates = [self._rate(key, value) for key, value in self._rates.items()]
            updates = []
            for gradient, variable in changed:
                slots = [self._slots[variable, slot] for slot in self.SLOTS]
                with graph.name_scope(f"update_{variable.op.name}"):
                    arguments = [gradient, *self.extra(variable), *rates]
                    kept = [variable, *slots]
                    step = update(kept, self._updated, arguments, self.KIND, self.KIND)
                    if variable.constraint is not None:
                        with graph.control_dependencies([step]):
                            value = variable.constraint(variable.read_value())
                            step = variable.assign(value, read_value=False)
                    updates.append(step)
            updates.extend(self.finish(updates))
            if global_step is None:
                return group(*updates, name=scope)
            with graph.control_dependencies([group(*updates, name="update")]):
                return global_step.assign_add(1, name=scope, read_value=False)

    def _create(self, pairs: Pairs) -> None:
        for _, variable in pairs:
            for slot, begin in self.SLOTS.items():
                if (variable, slot) not in self._slots:
                    kept = _kept(variable, f"{variable.op.name}/{self._name}", begin)
                    self._slots[variable, slot] = kept

    def _rate(self, name: str, value: Any) -> Tensor:
        value = value() if callable(value) else value
        return value if isinstance(value, Tensor) else converted(np.float32(value), name=name)

    def _updated(self, value: Any, *arguments: Any) -> Sequence[Any]:
        """Return the results of the rule, with rates of the variable's dtype."""
        state = len(self.SLOTS) + 1
        rates = (ops.cast(rate, value.dtype) for rate in arguments[state:])
        return self.rule(value, *arguments[:state], *rates)

    def extra(self, variable: Variable) -> Sequence[Any]:
        """Return what a variable's rule is given beside its gradient, before the rates."""
        return ()

    def finish(self, updates: Sequence[Operation]) -> Sequence[Operation]:
        """Return what runs after the updates."""
        return ()

    def rule(self, *arguments: Any) -> Sequence[Any]:
        """Return the new values of a variable and its slots.

        Args:
            *arguments: Their values, the gradient, what else the variable has, and the rates, all
                of the variable's dtype.
        """
        raise NotImplementedError


def _kept(variable: Variable, name: str, begin: float) -> Variable:
    """Return a variable beside another, of its shape and device."""
    graph = variable.graph
    taken = graph.get_collection("variables")
    count = sum(op.op.name == name or op.op.name.startswith(f"{name}_") for op in taken)
    whole = f"{name}_{count}" if count else name
    value = np.full(variable._shape, begin, variable._dtype)
    with graph.device(variable.op.node.device):
        start = {0.0: "zeros", 1.0: "ones"}.get(begin, "Const")
        return Variable(lambda: constant(value, name=start), trainable=False, name=whole)
