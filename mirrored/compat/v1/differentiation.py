"""Gradients in a graph: one operation, whose run asks a tape that followed the rest of it."""

from collections.abc import Sequence
from typing import Any

from mirrored import _nest, ops
from mirrored.compat.v1.graph import graph_of, results_for
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.compat.v1.plans import operation_of, part_between
from mirrored.compat.v1.running import OpStream, Run, current_run, running
from mirrored.compat.v1.sources import converted
from mirrored.devices import device
from mirrored.graph import placeholders
from mirrored.graph.part import nodes_between
from mirrored.ops.conversion import convert_to_tensor
from mirrored.ops.spec import FLOATS


class AggregationMethod:
    """How gradients of one tensor are summed; all values have the same effect here."""

    ADD_N = DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


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
    """Return the gradients of the sum of `ys` with respect to each of `xs`.

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
        ValueError: `stop_gradients` or `unconnected_gradients` is given, there is not a gradient
            for each of `ys`, or tensors are of several graphs.

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
            "`unconnected_gradients` is not provided: replace None with zeros in your code. "
            f"Received: {unconnected_gradients!r}"
        )
    targets, sources = (list(v) if isinstance(v, list | tuple) else [v] for v in (ys, xs))
    seeds = grad_ys if isinstance(grad_ys, list | tuple) or grad_ys is None else [grad_ys]
    if seeds is not None and len(seeds) != len(targets):
        raise ValueError(f"Length mismatch. Passed {len(seeds)} grad_ys for {len(targets)} ys")
    graph = graph_of(targets, sources)
    graph.check_own(placeholders((targets, sources)))
    with graph.as_default():
        targets, sources = ([converted(tensor) for tensor in some] for some in (targets, sources))
    reads = _reads_among(targets)
    groups = [[source, *reads.get(source, ())] for source in sources]
    kept = iter(_connected(targets, [source for group in groups for source in group]))
    groups = [[source for source in group if next(kept)] for group in groups]
    if not any(groups):
        return [None] * len(sources)
    wanted = [group for group in groups if group]

    def differentiate(ys: Any, xs: Any, seeds: Any) -> list[Any]:
        run: Any = current_run()
        # What is fed on the way from one of them leaves no gradient by it.
        groups = [
            [*values, *(later for tensor in tensors for later in run.taken(tensor))]
            for values, tensors in zip(xs, wanted, strict=True)
        ]
        grads = iter(run.gradients(ys, _nest.flatten(groups), seeds))
        return [_sum([next(grads) for _ in group]) for group in groups]

    operation = graph.draw(
        differentiate,
        (targets, wanted, seeds),
        kind="Gradients",
        name=name,
        results=[Tensor(group[0]._shape, group[0]._dtype, "") for group in wanted],
    )
    operation.sources = tuple(_nest.flatten(wanted))
    parts = iter(operation.outputs)
    return [next(parts) if group else None for group in groups]


def _sum(gradients: Sequence[Any]) -> Any:
    there = [convert_to_tensor(gradient) for gradient in gradients if gradient is not None]
    return ops.add_n(there) if len(there) > 1 else next(iter(there), None)


def _reads_among(ys: Sequence[Tensor]) -> dict[Any, list[Any]]:
    """Return the other tensors that are a variable's value, by variables that `ys` depend on."""
    reads: dict[Any, list[Any]] = {}
    for node in nodes_between([], ys)[0]:
        operation = operation_of(node)
        if operation.type == "Identity" and operation.reads:
            (variable,) = operation.reads
            if operation is not variable.read_op:
                reads.setdefault(variable, []).extend(operation.outputs)
    return reads


def _connected(ys: Sequence[Tensor], xs: Sequence[Tensor]) -> list[bool]:
    """Return by which tensors others can be differentiated: it is tried, without values."""
    follows = [tensor._dtype in FLOATS for tensor in xs]
    nodes, _ = nodes_between([], [*ys, *xs])
    asking = [output for node in nodes for output in node.outputs if operation_of(node).asks_run]
    tensors = [output for output in asking if isinstance(output, Tensor)]
    part = part_between(tensors, [*ys, *xs])
    inner = [source for node in part.calls for source in operation_of(node).sources]
    followed = [tensor for tensor in (*xs, *inner) if tensor._dtype in FLOATS]

    # Sizes that are known of some results may be those of others.
    sizes = [size for node in nodes for tensor in node.outputs for size in tensor._shape or ()]
    known = Tensor(
        tuple(dict.fromkeys(size for size in sizes if size is not None)), ops.float32, ""
    )

    def attempt(values: Any, _: Any) -> Any:
        run = Run(_NoSession(), followed, once=False)
        with running(run), run.tape:
            run.watch(tensors, list(values))
            there = part.run(values)
            grads = run.gradients(there[: len(ys)], there[len(ys) :], None)
        follows[:] = [ok and grad is not None for ok, grad in zip(follows, grads, strict=True)]
        return ops.zeros(())

    with device(None):
        results_for(attempt, (list(tensors), known), {}, "gradients")
    return follows


class _NoSession:
    """What a session keeps, where there is none: shapes are looked for."""

    has_no_values = True
    initialized: frozenset[Any] = frozenset()

    def storage(self, variable: Any) -> Any:
        """Return what stands for a variable that is read or written among other operations."""
        return _NoStorage(variable)

    def stream(self, operation: Operation) -> OpStream:
        """Return what an operation draws from."""
        return OpStream(operation)


class _NoStorage:
    """A variable where shapes are looked for: what writes it does nothing.

    Args:
        variable: The variable.
    """

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def read_value(self) -> Any:
        """Return a value of its shape."""
        return ops.zeros(self._variable._shape, self._variable._dtype)

    def assign(self, value: Any) -> None:
        """Do nothing."""

    assign_add = assign_sub = assign
