"""Loops as a function: `while_loop`, which is unrolled in recorded functions."""

import functools
from collections.abc import Callable
from typing import Any

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored.control_flow.both_branches import select_branch
from mirrored.control_flow.conditions import known_truth
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import RecordedTensor, active_recorder
from mirrored.ops.structures import assert_same_structure


@explained
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Run a function as long as a condition holds, each time on what it returned before.

    A recorded function has the body as often as it goes round, so whether it goes on is to be known
    while it is recorded: from Python's numbers, constants and shapes. Where it is not,
    `maximum_iterations` says how often the body is computed; what it gives after the loop's end is
    left out, as by `cond`.

    Args:
        cond: From the loop's variables, each an argument, to whether to go on.
        body: From these to their next values, in a list or tuple.
        loop_vars: The first values: a list or tuple of numbers, tensors and structures of them.
        shape_invariants: Accepted for compatibility: shapes may change from one time to the next.
        parallel_iterations: Accepted for compatibility, like the next two.
        back_prop: Gradients flow in any case.
        swap_memory: There is nothing to swap.
        maximum_iterations: How often the body is run at most; None: as often as `cond` says.
        name: Accepted for compatibility.

    Returns:
        The last values, as tensors.

    Raises:
        TypeError: A function cannot be called, or `body` returns no list or tuple, or other
            structures.
        ValueError: There are no variables, or `body` returns more or fewer.
        OperatorNotAllowedInGraphError: A recorded function does not know whether to go on.

    Example:
        >>> import mirrored as mr
        >>> i, power = mr.while_loop(lambda i, p: i < 5, lambda i, p: (i + 1, p * 2.0), (0, 1.0))
        >>> float(power)
        32.0
    """
    for argument, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(f"'{argument}' must be callable. Received: {function!r:.100}")
    if parallel_iterations < 1:
        raise TypeError(
            f"'parallel_iterations' must be a positive integer. Received: {parallel_iterations!r}"
        )
    if not isinstance(loop_vars, list | tuple) or not loop_vars:
        raise ValueError(
            f"'loop_vars' must be provided. Received: {loop_vars!r:.100}. Give a list or tuple."
        )
    most = _as_count(maximum_iterations)
    recorded = active_recorder() is not None
    values = _nest.map_structure(_first_value, loop_vars) if recorded else _read(loop_vars)
    first, count = values, 0
    while most is None or count < most:
        going = known_truth(cond(*values))
        if isinstance(going, RecordedTensor):
            if most is None:
                raise _unknown(going)
            values = _until(going, cond, body, values, most - count)
            break
        if not going:
            break
        values = _next(body, values, first, recorded)
        count += 1
    return _nest.map_structure(lambda leaf: adopt(leaf, None), values)


def _next(body: Callable[..., Any], values: Any, first: Any, recorded: bool) -> Any:
    """Return what the body makes of the variables, in a structure like the first one."""
    results = body(*values)
    if not isinstance(results, list | tuple):
        if not recorded or len(first) > 1:
            raise TypeError(
                "The body of a mr.while_loop returns a list or tuple with a value for each "
                f"variable. Received: {results!r:.100}"
            )
        results = (results,)
    assert_same_structure(list(first), list(results))
    return _nest.pack_like(first, _nest.flatten(results)) if recorded else results


def _until(
    going: Any, cond: Callable[..., Any], body: Callable[..., Any], values: Any, most: int
) -> Any:
    """Return the variables where a recorded condition ends the loop, or after N times."""
    first = values
    for i in range(most):
        further = functools.partial(_next, body, values, first, True)
        values = select_branch(going, further, functools.partial(_as_is, values))
        if i + 1 < most:
            holds = adopt(cond(*values), None)
            going = ops.logical_and(going, ops.reshape(holds, going.shape))
    return values


def _as_is(values: Any) -> Any:
    return values


def _unknown(going: RecordedTensor) -> OperatorNotAllowedInGraphError:
    return OperatorNotAllowedInGraphError(
        "A recorded function has a loop's body as often as the loop goes round, and here that "
        f"depends on a tensor, whose value is known in each run only. Received: {going!r}. Let it "
        "depend on Python's numbers, constants and shapes, give `maximum_iterations`, or leave "
        "mr.function away."
    )


def _as_count(maximum_iterations: Any) -> int | None:
    if maximum_iterations is None:
        return None
    most = adopt(maximum_iterations, None)
    if most.ndim:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {most.shape}")
    return int(most)


def _first_value(leaf: Any) -> Any:
    return adopt(leaf, None)


def _read(structure: Any) -> Any:
    """Return a structure with values for variables: what is assigned later changes them not."""
    return _nest.map_structure(
        lambda leaf: adopt(leaf, None) if is_tensor(leaf) else leaf, structure
    )
