"""Operations that run others, and the variables of a graph as lists of them."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.graph_elements import Operation, Tensor, TextTensor
from mirrored.compat.v1.running import is_initialized
from mirrored.compat.v1.variables import GraphKeys, Variable, nothing


def no_op(name: str | None = None) -> Operation:
    """Return an operation that does nothing; it runs after its control inputs."""
    return get_default_graph().draw(nothing, kind="NoOp", name=name or "NoOp", runs_only=True)


def group(*inputs: Any, name: str | None = None) -> Operation:
    """Return an operation that runs others.

    Args:
        *inputs: Tensors and operations, in nested structures.
        name: Its name.

    Raises:
        TypeError: One of them is neither.
    """
    waited = _nest.flatten(inputs)
    for item in waited:
        if not isinstance(item, Tensor | Operation):
            raise TypeError(
                f"'inputs' should be zero or more (nested) Tensors. Received '{item}' with type "
                f"'{type(item)}'."
            )
    graph = waited[0].graph if waited else get_default_graph()
    there: dict[str, list[Any]] = {}
    for item in waited:
        there.setdefault(item.device, []).append(item)
    if len(there) < 2:
        return _after(graph, waited, name or "group_deps")
    with graph.name_scope(name or "group_deps") as scope:  # One for each device, and one of these.
        return _after(graph, [_after(graph, there[key], "NoOp") for key in sorted(there)], scope)


def _after(graph: Graph, waited: Sequence[Any], name: str) -> Operation:
    """Return what runs after others, where they do if they are on one device."""
    devices = {item.device for item in waited}
    alone = devices.pop() if len(devices) == 1 else ""
    where = graph.device(alone) if alone else nullcontext()
    with graph.control_dependencies(waited), where:
        return graph.draw(nothing, kind="NoOp", name=name, runs_only=True)


def global_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph."""
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """Return the variables that no checkpoint has."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph that optimizers change."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """Return the variables of the default graph that means are kept of."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """Return the names of the variables that have no value in the session, as bytes.

    Args:
        var_list: The variables; None: all of the default graph.
        name: Its name.
    """
    listed = var_list
    variables = global_variables() + local_variables() if listed is None else list(listed)
    graph = variables[0].graph if variables else get_default_graph()
    with graph.name_scope(name):
        initialized = [is_variable_initialized(variable) for variable in variables]

        def missing(there: Sequence[Any]) -> Any:
            pairs = zip(variables, there, strict=True)
            names = [variable.op.name.encode() for variable, value in pairs if not value]
            return np.array(names, dtype=object)

        names = TextTensor((None,), initialized, missing)
        return graph.draw(nothing, kind="Names", name="boolean_mask", results=names).outputs[0]


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Return an operation that gives variables their initial values."""
    return group(*(variable.initializer for variable in var_list), name=name)


def global_variables_initializer() -> Operation:
    """Return an operation that gives the variables of the default graph their initial values."""
    return variables_initializer(global_variables())


def is_variable_initialized(variable: Variable) -> Tensor:
    """Return whether a variable has a value in the session. A run with it is not recorded."""
    return variable.graph.draw(
        lambda: ops.constant(is_initialized(variable)),
        kind="IsVariableInitialized",
        name="IsVariableInitialized",
        results=Tensor((), ops.bool_, ""),
    ).outputs[0]


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None
) -> list[Any]:
    """Return tensors that have values once all of them, and some operations, were run.

    Args:
        tensors: The tensors; None stays None.
        name: Its name.
        control_inputs: What is run before, too.
    """
    there = [tensor for tensor in tensors if tensor is not None]
    graph = there[0].graph
    with graph.name_scope(name or "tuple"):
        waited = group(*there, *(control_inputs or ()), name="group_deps")
        with graph.control_dependencies([waited]):
            return [
                None
                if tensor is None
                else graph.draw(
                    ops.identity, (tensor,), kind="Identity", name="control_dependency"
                ).outputs[0]
                for tensor in tensors
            ]


def local_variables_initializer() -> Operation:
    """Return an operation that gives local variables their initial values."""
    return variables_initializer(local_variables())
