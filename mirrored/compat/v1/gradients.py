"""Gradients in a graph: one operation, whose run asks a tape that followed the rest of it."""

from collections.abc import Sequence
from typing import Any

from mirrored import ops
from mirrored.compat.v1.elements import Operation, Tensor
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.running import Run, current_run, running
from mirrored.compat.v1.session import operation_of as _operation
from mirrored.compat.v1.session import part_between
from mirrored.devices import device
from mirrored.graph import results_of
from mirrored.graph.order import nodes_between
from mirrored.ops.conversion import convert_to_tensor
from mirrored.ops.spec import FLOATS


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = None,
) -> list[Tensor | None]:
    """Return the gradients of the sum of tensors by each of others.

    Args:
        ys: A tensor, or a list of them.
        xs: A tensor or a variable, or a list of them.
        grad_ys: The gradient that flows into each of `ys`; None: ones.
        name: What the operation is called.
        colocate_gradients_with_ops: Accepted for compatibility, like the two below.
        gate_gradients: Accepted for compatibility.
        aggregation_method: Accepted for compatibility.
        stop_gradients: Not provided: use `stop_gradient`.
        unconnected_gradients: Not provided: it is None where there is no gradient.

    Returns:
        A gradient for each of `xs`; None where `ys` do not depend on it.

    Raises:
        ValueError: `stop_gradients` or `unconnected_gradients` is given, or `ys` depend on one of
            `xs` through its `read_value()`.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.constant(3.0)
        ...     float(session.run(tf.gradients(x * x, x)[0]))
        6.0
    """
    if stop_gradients is not None:
        raise ValueError("`stop_gradients` is not provided: use `tf.stop_gradient` on the tensors.")
    if unconnected_gradients not in (None, "none"):
        raise ValueError(
            "`unconnected_gradients` is not provided: put zeros in the place of None yourself. "
            f"Received: {unconnected_gradients!r}"
        )
    targets, sources = (list(v) if isinstance(v, list | tuple) else [v] for v in (ys, xs))
    seeds = grad_ys if isinstance(grad_ys, list | tuple) or grad_ys is None else [grad_ys]
    kept = _connected(targets, sources)
    if not any(kept):
        return [None] * len(sources)
    wanted = [each for each, keep in zip(sources, kept, strict=True) if keep]

    def differentiate(ys: Any, xs: Any, seeds: Any) -> list[Any]:
        run: Any = current_run()
        # What is fed on the way from one of them leaves no gradient by it.
        found = run.gradients(ys, xs, seeds)
        return [None if each is None else convert_to_tensor(each) for each in found]

    operation = graph_of(targets).draw(
        differentiate,
        (targets, wanted, seeds),
        kind="Gradients",
        name=name,
        results=[Tensor(each._shape, each._dtype, "") for each in wanted],
    )
    operation.sources = tuple(wanted)
    found = iter(operation.outputs)
    return [next(found) if keep else None for keep in kept]


def _connected(ys: Sequence[Tensor], xs: Sequence[Tensor]) -> list[bool]:
    """Return by which tensors others can be differentiated: it is tried, without values."""
    found = [each._dtype in FLOATS for each in xs]
    nodes, _ = nodes_between([], [*ys, *xs])
    _check_reads([_operation(node) for node in nodes], xs)
    asking = [each for node in nodes for each in node.outputs if _operation(node).asks_run]
    given = [each for each in asking if isinstance(each, Tensor)]
    part = part_between(given, [*ys, *xs])
    inner = [each for node in part.calls for each in _operation(node).sources]
    followed = [each for each in (*xs, *inner) if each._dtype in FLOATS]

    def attempt(*values: Any) -> Any:
        run = Run(_no_storage, followed, once=False)
        with running(run), run.tape:
            run.watch(given, list(values))
            there = part.run(values)
            grads = run.gradients(there[: len(ys)], there[len(ys) :], None)
        found[:] = [ok and grad is not None for ok, grad in zip(found, grads, strict=True)]
        return ops.zeros(())

    with device(None):
        results_of(attempt, tuple(given), {}, "gradients")
    return found


def _check_reads(operations: Sequence[Operation], xs: Sequence[Tensor]) -> None:
    """Raise ValueError where a variable is read again: only its own read is followed."""
    for operation in operations:
        for variable in operation.reads:
            again = operation.type == "Identity" and operation is not variable.read_op
            if again and variable in xs:
                raise ValueError(
                    f"Nothing is differentiated by {variable!r} through its `read_value()` here. "
                    f"Received: {operation!r} among what is differentiated. Compute with the "
                    "variable itself."
                )


def _no_storage(variable: Any) -> Any:
    raise AssertionError(f"The value of {variable!r} is given where shapes are looked for.")
