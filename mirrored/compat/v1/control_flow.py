"""TensorFlow 1's `while_loop` and `cond`: parts of a graph that a run computes as often as it says.

Where constants say how often a loop goes round, or which of two functions is meant, it is recorded
as often as that. A run that has to look at values is not: its operations run one after the other.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import _nest, ops
from mirrored._types import TensorLike
from mirrored.compat.v1.drawn_calls import named_call
from mirrored.compat.v1.graph import Graph, drawing, graph_of
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.plans import operation_of, part_between
from mirrored.compat.v1.running import has_values
from mirrored.compat.v1.sources import converted, never
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.graph.part import nodes_between
from mirrored.ops.hooks import active_recorder

_MOST_RECORDED = 256  # Times that a loop goes round in what is recorded.


class Branch:
    """What functions of a program drew: a part of the graph, and what it takes from outside.

    Args:
        start: How many operations there were before.
        inputs: What it is called with.
        outputs: What it computes.
    """

    def __init__(self, start: int, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        nodes, _ = nodes_between(inputs, outputs)
        inner = [node for node in nodes if operation_of(node).number >= start]
        own = set(inputs)
        used = [input_ for node in inner for input_ in node.inputs] + list(outputs)
        outside = (item for item in used if isinstance(item, Tensor) and item not in own)
        self.captured = list(dict.fromkeys(e for e in outside if e.op.number < start))
        self._part = part_between([*inputs, *self.captured], outputs)
        operations = [operation_of(node) for node in self._part.calls]
        self.reads = {read for operation in operations for read in operation.reads}
        self.writes = {write for operation in operations for write in operation.writes}

    def __call__(self, values: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
        """Return what it computes."""
        return self._part.run([*values, *captured])


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: TensorLike | None = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat a body while a condition is true, and return the loop variables.

    Args:
        cond: From the variables to whether to go on.
        body: From the variables to their next values.
        loop_vars: Their first values, in nested lists and tuples.
        shape_invariants: Accepted for compatibility: shapes may change.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through it.
        swap_memory: Accepted for compatibility.
        name: Its name.
        maximum_iterations: How often the body is run at most.
        return_same_structure: Whether a list of one variable is returned as a list.

    Raises:
        TypeError: `cond` or `body` cannot be called, or `cond` returns no boolean.
        ValueError: There are no variables, or the body returns others.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     last = tf.while_loop(lambda i: i < 10, lambda i: i * 2, [tf.constant(1)])
        ...     int(session.run(last))
        16
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if not loop_vars:
        raise ValueError("'loop_vars' must be provided.")
    with drawing(name or "while", loop_vars) as (graph, scope):
        first = [converted(value) for value in _nest.flatten(loop_vars)]
        with graph.control_dependencies(None):
            start = graph.version
            variables = [
                loop_variable(
                    graph, None if shape_invariants is not None else tensor._shape, tensor._dtype
                )
                for tensor in first
            ]
            arguments = _nest.pack_like(loop_vars, variables)
            going = Branch(start, variables, [_checked_condition(cond(*arguments))])
            outputs = body(*arguments)
            body_results = _nest.flatten(outputs)
            if len(body_results) != len(first):
                raise ValueError(
                    "The number of inputs and outputs of the body must match loop_vars. Received: "
                    f"{len(body_results)} of {len(first)}."
                )
            step = Branch(start, variables, list(map(converted, body_results)))
        most = None if maximum_iterations is None else converted(maximum_iterations)
        operation = graph.draw(
            _loop(going, step),
            (first, going.captured, step.captured, most),
            kind="While",
            name=f"{scope[:-1]}/while/",
            results=[Tensor(variable._shape, variable._dtype, "") for variable in variables],
        )
    _touch(operation, [going, step])
    results = _nest.pack_like(loop_vars, flowing(operation.outputs, back_prop))
    return results[0] if len(results) == 1 and not return_same_structure else results


def flowing(tensors: Sequence[Tensor], back_prop: bool) -> Sequence[Any]:
    """Return tensors, with or without the gradients that flow through them."""
    return tensors if back_prop else [named_call("stop_gradient")(tensor) for tensor in tensors]


def _checked_condition(value: Any) -> Tensor:
    """Return what a loop goes on by.

    Raises:
        TypeError: It is no boolean.
        ValueError: It is no single one.
    """
    condition = converted(value)
    if condition._dtype.name != "bool":
        raise TypeError(
            f"Input 'input' of 'LoopCond' Op has type {condition._dtype.name} that does not match "
            "expected type of bool."
        )
    if condition._shape:
        raise ValueError(f"Shape must be rank 0 but is rank {len(condition._shape)} for LoopCond")
    return condition


def _loop(going: Branch, step: Branch) -> Callable[..., Any]:
    def loop(values: Any, for_going: Any, for_step: Any, most: Any) -> list[Any]:
        count = 0
        if not has_values():
            # Who asks what depends on what: once round the loop shows it.
            return step(values, for_step)
        while (most is None or count < int(most)) and bool(going(values, for_going)[0]):
            if count == _MOST_RECORDED and active_recorder() is not None:
                raise OperatorNotAllowedInGraphError(
                    f"A recorded loop must have at most {_MOST_RECORDED} iterations."
                )
            values = step(values, for_step)
            count += 1
        return [ops.identity(value) for value in values]

    return loop


def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Return the result of one of two functions; a run computes only that function.

    Args:
        pred: Whether it is the first one: a boolean tensor.
        true_fn: Returns a tensor, or nested lists and tuples of them.
        false_fn: Returns the same for the other case.
        strict: Whether a list of one tensor is returned as a list.
        name: Its name.
        fn1: `true_fn`, as it was called before.
        fn2: `false_fn`, likewise.

    Raises:
        TypeError: A function is missing, cannot be called, or `pred` is a boolean of Python's.
        ValueError: They return different structures or dtypes.
    """
    true_fn, false_fn = true_fn or fn1, false_fn or fn2
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"cond(): '{argument}' argument required")
    if isinstance(pred, bool):
        raise TypeError("'pred' must not be a Python bool.")
    with drawing(name or "cond", pred) as (graph, scope):
        pred = converted(pred, "bool", "pred")
        first, if_true = _drawn(graph, true_fn)
        second, if_false = _drawn(graph, false_fn)
        _check_alike(first, second)
        operation = graph.draw(
            _choose(if_true, if_false),
            (pred, if_true.captured, if_false.captured),
            kind="If",
            name=f"{scope[:-1]}/Merge/",
            results=[
                Tensor(out._shape if out._shape == two._shape else None, out._dtype, "")
                for out, two in zip(_nest.flatten(first), _nest.flatten(second), strict=True)
            ],
        )
    _touch(operation, [if_true, if_false])
    results = _nest.pack_like(first, operation.outputs)
    alone = isinstance(results, list | tuple) and len(results) == 1 and not strict
    return results[0] if alone else results


def smart_cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Return the result of one of two functions; a tensor selects the function in each run.

    Args:
        pred: A boolean, 0 or 1, or a boolean tensor; None: False.
        true_fn: Returns a tensor, or nested lists and tuples of them.
        false_fn: Returns the same for the other case.

    Raises:
        TypeError: `pred` is something else.
    """
    if isinstance(pred, Tensor):
        return cond(pred, true_fn, false_fn)
    if pred is not None and pred not in (0, 1):
        raise TypeError(
            "`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: "
            f"{pred!r}. Pass a boolean, or a placeholder of booleans."
        )
    return true_fn() if pred else false_fn()


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Return the result of the first function whose condition is true in a run.

    Args:
        pred_fn_pairs: Pairs of a boolean tensor and a function, or a dict of them.
        default: The function for where none holds.
        exclusive: Must be False: nobody looks whether more than one holds.
        strict: Whether a list of one tensor is returned as a list.
        name: Its name.

    Raises:
        ValueError: `default` is missing, or `exclusive` is True.
    """
    if default is None or exclusive:
        raise ValueError("`case` needs a `default`, and has no `exclusive`. Leave that out.")
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)

    def first_of(rest: list[Any]) -> Any:
        if not rest:
            return default()
        (pred, function), *others = rest
        return cond(pred, function, lambda: first_of(others), strict)

    with graph_of([pred for pred, _ in pairs]).name_scope(name):
        return first_of(pairs)


def _drawn(graph: Graph, function: Any) -> tuple[Any, Branch]:
    with graph.control_dependencies(None):
        start = graph.version
        results = _nest.map_structure(lambda leaf: _as_tensor(graph, leaf), function())
        return results, Branch(start, [], _nest.flatten(results))


def _as_tensor(graph: Graph, value: Any) -> Tensor:
    """Return what a branch returns as a tensor; of an operation without one, True after it."""
    if not isinstance(value, Operation):
        return converted(value)
    if value.outputs:
        return value.outputs[0]
    with graph.control_dependencies([value]):
        return converted(True)


def _choose(if_true: Branch, if_false: Branch) -> Callable[..., Any]:
    def choose(pred: Any, for_true: Any, for_false: Any) -> list[Any]:
        if not has_values():
            # Who asks what depends on what: it may be either.
            pairs = zip(if_true([], for_true), if_false([], for_false), strict=True)
            return [_either(*pair) for pair in pairs]
        outputs = if_true([], for_true) if bool(pred) else if_false([], for_false)
        return [ops.identity(output) for output in outputs]

    return choose


def _either(out: Any, other: Any) -> Any:
    return out + ops.cast(ops.reduce_sum(other), out.dtype) if out.dtype.kind == "f" else out


def _check_alike(first: Any, second: Any) -> None:
    flat, two = _nest.flatten(first), _nest.flatten(second)
    if len(flat) != len(two):
        raise ValueError(
            f"true_fn and false_fn must return the same number of outputs: {len(flat)}, {len(two)}"
        )
    for a, b in zip(flat, two, strict=True):
        if a._dtype != b._dtype:
            raise ValueError(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received "
                f"{a._dtype.name} from 'true_fn' and {b._dtype.name} from 'false_fn'."
            )


def loop_variable(graph: Graph, shape: Any, dtype: Any) -> Tensor:
    """Return what stands for a variable of a loop while functions of a program draw.

    Args:
        graph: The graph.
        shape: Its sizes; None: they are not known.
        dtype: Its dtype.
    """
    result = Tensor(shape, dtype, "")
    return graph.draw(
        never, kind="LoopVariable", name="Identity", results=result, asks_run=True
    ).outputs[0]


def _touch(operation: Operation, branches: Sequence[Branch]) -> None:
    """Note which variables a run of an operation reads and writes."""
    operation.reads = tuple(dict.fromkeys(read for b in branches for read in b.reads))
    operation.writes = tuple(dict.fromkeys(write for b in branches for write in b.writes))
