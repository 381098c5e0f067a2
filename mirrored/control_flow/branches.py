"""Branches and loops as functions: `cond`, `case`, `switch_case`, `while_loop`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mirrored import _nest, ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.control_flow.both_branches import Branch, select_branch
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import RecordedTensor, active_recorder
from mirrored.ops.spec import INTEGERS, bool_
from mirrored.ops.structures import assert_same_structure
from mirrored.ops.tensor import Tensor


def cond(
    pred: TensorLike | Callable[[], Any],
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of one of two functions, selected by a condition.

    In a recorded function where the condition's value is not known yet, both are computed and one
    is taken; of the other nothing is seen, in variables and gradients neither. Both then return
    tensors of the same shapes and dtypes, draw no random numbers, print nothing, call no ops that
    refuse values, and have no replicas meet. They are called again where a gradient is taken.

    Args:
        pred: The condition: a tensor of one boolean, or Python's.
        true_fn: A function without arguments, called where it holds.
        false_fn: Likewise, called where it does not.
        name: Accepted for compatibility.

    Raises:
        TypeError: A function is missing or cannot be called; or, where both are computed, they
            return other structures or dtypes.
        ValueError: There is no condition, or more than one; or, where both are computed, they
            return other shapes.
        InvalidArgumentError: Where both are computed: the condition is no boolean, or a function
            does what is left undone only by not calling it.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant(4.0)
        >>> float(mr.cond(x > 0.0, lambda: mr.sqrt(x), lambda: x * 0.0))
        2.0
    """
    functions: list[Branch] = []
    for argument, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is None:
            raise TypeError(f"cond(): {argument!r} argument required")
        if not callable(function):
            raise TypeError(f"{argument!r} must be callable. Received: {function!r:.100}")
        functions.append(function)
    holds = known_truth(pred)
    if isinstance(holds, RecordedTensor):
        return select_branch(holds, *functions)
    return functions[0 if holds else 1]()


def known_truth(pred: Any) -> bool | RecordedTensor:
    """Return whether a condition holds, or its recorded value if that is not known yet.

    Args:
        pred: A tensor of one element, a variable, or what Python takes for true or false.

    Raises:
        ValueError: It is None, or of more than one element.
    """
    if pred is None:
        raise ValueError(
            "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to "
            "a Tensor. A condition must be a boolean."
        )
    if is_tensor(pred):
        tensor = adopt(pred, None)
        return tensor if isinstance(tensor, RecordedTensor) else bool(tensor)
    return bool(pred)


def case(
    pred_fn_pairs: Sequence[tuple[Tensor, Branch]],
    default: Branch | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Return the result of the function whose condition is the first that holds.

    Args:
        pred_fn_pairs: Conditions, tensors of one boolean each, with functions without arguments.
        default: The function for where none holds; None: one of them has to hold.
        exclusive: Whether at most one may hold.
        strict: Accepted for compatibility.
        name: Accepted for compatibility.

    Raises:
        TypeError: The pairs are not pairs of a boolean tensor and a function.
        ValueError: There are none.
        InvalidArgumentError: None holds and there is no default, or several do that exclude each
            other; or as for `cond`.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant(3.0)
        >>> float(mr.case([(x < 1.0, lambda: x), (x < 5.0, lambda: x * 2.0)], default=lambda: -x))
        6.0
    """
    if not isinstance(pred_fn_pairs, list | tuple):
        raise TypeError(
            f"'pred_fn_pairs' must be a list, tuple, or dict. Received: {type(pred_fn_pairs)}"
        )
    for pair in pred_fn_pairs:
        _check_pair(pair)
    if not pred_fn_pairs:
        raise ValueError("'pred_fn_pairs' must have at least one pair. Received: none.")
    preds = [ops.reshape(pred, ()) for pred, _ in pred_fn_pairs]
    truths = [known_truth(pred) for pred in preds]
    if exclusive:
        few = ops.reduce_sum(ops.cast(ops.stack(preds), "int32")) <= 1
        ops.Assert(few, ["Input error: exclusive=True: more than 1 conditions hold:", *preds])
    chosen = default
    if chosen is None:
        if not any(truth is True for truth in truths):
            said = "Input error: None of conditions evaluated as True:"
            ops.Assert(ops.reduce_any(ops.stack(preds)), [said, *preds])
        chosen = pred_fn_pairs[-1][1]
    pairs = zip(truths, pred_fn_pairs, strict=True)
    for truth, (_, function) in reversed(list(pairs)):
        chosen = functools.partial(cond, truth, function, chosen)
    return chosen()


def _check_pair(pair: Any) -> None:
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair!r:.100}.")
    pred, function = pair
    if not isinstance(pred, Tensor):
        raise TypeError(f"pred must be a Tensor, got: {pred!r:.100}")
    if pred.dtype != bool_:
        raise TypeError(f"pred must be Tensor of type bool: {pred!r:.100}")
    if not callable(function):
        raise TypeError(f"fn for pred {pred!r:.100} must be callable. Received: {function!r:.100}")


def switch_case(
    branch_index: Tensor, branch_fns: Any, default: Branch | None = None, name: str = "switch_case"
) -> Any:
    """Return the result of one of several functions, selected by an index.

    Args:
        branch_index: The number: a tensor of one integer.
        branch_fns: Functions without arguments; or pairs of a number and a function, or a dict of
            them, whose numbers are 0, 1, 2, ...
        default: The function for other numbers; None: that of the largest.
        name: Accepted for compatibility.

    Raises:
        TypeError: The number is no integer tensor, or the functions are none.
        ValueError: There are no functions, or their numbers are others.
        InvalidArgumentError: There are several numbers; or as for `cond`.

    Example:
        >>> import mirrored as mr
        >>> i = mr.constant(1)
        >>> float(mr.switch_case(i, [lambda: mr.constant(5.0), lambda: mr.constant(6.0)]))
        6.0
    """
    if not isinstance(branch_index, Tensor):
        raise TypeError(
            f"'branch_index' must be a Tensor, got {type(branch_index)}. Convert it with "
            "mr.constant."
        )
    if branch_index.dtype not in INTEGERS:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype.name}")
    functions = _numbered(branch_fns)
    if branch_index.shape:
        raise InvalidArgumentError(
            f"'branch_index' must be a scalar. Received: shape {branch_index.shape}"
        )
    if default is not None:
        functions.append(default)
    chosen = functions[-1]
    if not isinstance(branch_index, RecordedTensor):
        index = int(branch_index)
        return functions[index]() if 0 <= index < len(functions) else chosen()
    for number, function in reversed(list(enumerate(functions[:-1]))):
        chosen = functools.partial(cond, branch_index == number, function, chosen)
    return chosen()


def _numbered(branch_fns: Any) -> list[Callable[[], Any]]:
    """Return functions in the order of their indices."""
    if isinstance(branch_fns, list | tuple | dict) and not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    if not isinstance(branch_fns, list | tuple | dict):
        raise TypeError(
            f"'branch_fns' must be a list, tuple, or dict. Received: {branch_fns!r:.100}"
        )
    pairs = list(branch_fns.items() if isinstance(branch_fns, dict) else branch_fns)
    if all(callable(function) for function in pairs):
        return pairs
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair!r:.100}."
            )
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0])}")
        if not callable(pair[1]):
            raise TypeError(f"fn for key {pair[0]} must be callable.")
    numbers = sorted(number for number, _ in pairs)
    if numbers != list(range(len(pairs))):
        raise ValueError(
            f"branch indices (keys) must form contiguous range of [0 to {len(pairs)}) but found "
            f"{numbers}"
        )
    return [function for _, function in sorted(pairs, key=lambda pair: pair[0])]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: TensorLike | None = None,
    name: str | None = None,
) -> Any:
    """Run a function on its previous result as long as a condition holds.

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
            f"'loop_vars' must be provided. Received: {loop_vars!r:.100}. Pass a list or tuple."
        )
    most = _as_count(maximum_iterations)
    recorded = active_recorder() is not None
    # Values of variables, which later assignments do not change.
    values = _nest.map_structure(
        lambda leaf: adopt(leaf, None) if recorded or is_tensor(leaf) else leaf, loop_vars
    )
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
    """Return the body's results in the structure of the loop variables."""
    results = body(*values)
    if not isinstance(results, list | tuple):
        if not recorded or len(first) > 1:
            raise TypeError(
                "The body of a mr.while_loop must return a list or tuple with a value for each "
                f"variable. Received: {results!r:.100}"
            )
        results = (results,)
    assert_same_structure(list(first), list(results))
    return _nest.pack_like(first, _nest.flatten(results)) if recorded else results


def _until(
    going: Any, cond: Callable[..., Any], body: Callable[..., Any], values: Any, most: int
) -> Any:
    """Return the variables when a recorded condition ends the loop, or after N iterations."""
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
        "A recorded function repeats a loop's body for every iteration. Here their number "
        f"depends on a tensor, whose value is known only in each run. Received: {going!r}. Let it "
        "depend on Python numbers, constants and shapes, pass `maximum_iterations`, or leave "
        "mr.function out."
    )


def _as_count(maximum_iterations: Any) -> int | None:
    if maximum_iterations is None:
        return None
    most = adopt(maximum_iterations, None)
    if most.ndim:
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {most.shape}")
    return int(most)


explain_functions(__name__)
