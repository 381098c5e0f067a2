"""`keras.ops` that call functions: branches, loops, maps and custom gradients."""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored.autodiff import GradientTape
from mirrored.autodiff.custom_gradients import custom_gradient as _custom_gradient
from mirrored.control_flow import conditions, loops, mapping
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.ops import Tensor
from mirrored.ops.hooks import shapes_alone


@explained
def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    """Return what one of two functions returns, as a condition says.

    Args:
        pred: The condition: a tensor of one boolean, or Python's.
        true_fn: A function without arguments, called where it holds.
        false_fn: Likewise, called where it does not.

    Raises:
        TypeError: One of them cannot be called.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cond(True, lambda: mr.constant(1), lambda: mr.constant(2)).numpy().item()
        1
    """
    return conditions.cond(pred, true_fn, false_fn)


@explained
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return what one of several functions returns, as a number says.

    Args:
        index: The number; what is outside is the first one's or the last one's.
        branches: The functions.
        *operands: What they are given.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.switch(1, [lambda x: x, lambda x: x * 2], mr.constant(3)).numpy().item()
        6
    """
    number = ops.cast(
        ops.clip_by_value(ops.cast(index, ops.int64), 0, len(branches) - 1), ops.int32
    )
    return conditions.switch_case(
        number, [lambda branch=function: branch(*operands) for function in branches]
    )


@explained
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    maximum_iterations: int | None = None,
) -> Any:
    """Run a function as long as a condition holds, each time on what it returned before.

    Args:
        cond: From the loop's variables, each an argument, to whether to go on.
        body: From these to their next values, as many.
        loop_vars: The first values: a tuple or list of tensors, or one.
        maximum_iterations: How often the body is run at most; None: as often as `cond` says.

    Returns:
        The last values, in a tuple where there was a tuple or list.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.while_loop(lambda i: i < 10, lambda i: i + 3, 0).numpy().item()
        12
    """
    several = isinstance(loop_vars, list | tuple)
    first = tuple(loop_vars) if several else (loop_vars,)

    def further(*values: Any) -> tuple[Any, ...]:
        outputs = body(*values)
        return tuple(outputs) if several else (outputs,)

    results = _looped(cond, further, first, maximum_iterations)
    return tuple(results) if several else results[0]


@explained
def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """Run a function for each of some numbers, each time on what it returned before.

    Args:
        lower: The first number.
        upper: The number behind the last one.
        body_fun: From a number and the value so far to the next value.
        init_val: The first value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.fori_loop(0, 4, lambda i, total: total + i, 0).numpy().item()
        6
    """
    return _looped(
        lambda i, value: i < upper,
        lambda i, value: (i + 1, body_fun(i, value)),
        (lower, init_val),
    )[1]


def _looped(
    cond: Callable[..., Any], body: Callable[..., Any], first: Any, most: int | None = None
) -> Any:
    """Return the loop's last values; where only their shapes are inferred, those of the first."""
    try:
        return loops.while_loop(cond, body, first, maximum_iterations=most)
    except OperatorNotAllowedInGraphError:
        if not shapes_alone():
            raise
        body(*first)  # Builds the layers of the body.
        return _nest.map_structure(ops.zeros_like, first)


@explained
def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Apply a function to each element along the first axis, and stack what it returns.

    Args:
        f: From an element, in the structure of `xs`, to tensors in any structure.
        xs: A tensor, or a structure of tensors of as many elements.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.map(lambda x: x * 2, mr.constant([1, 2])).numpy()
        array([2, 4], dtype=int32)
    """
    return mapping.vectorized_map(f, xs)


@explained
def vectorized_map(function: Callable[[Any], Any], elements: Any) -> Any:
    """Apply a function to each element along the first axis, and stack what it returns.

    Args:
        function: From an element, in the structure of `elements`, to tensors in any structure.
        elements: A tensor, or a structure of tensors of as many elements.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.vectorized_map(lambda x: x * 2, mr.constant([1, 2])).numpy()
        array([2, 4], dtype=int32)
    """
    return mapping.vectorized_map(function, elements)


@explained
def scan(
    f: Callable[[Any, Any], Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: Any = 1,
) -> tuple[Any, Any]:
    """Carry a value along the elements of a first axis, and stack what each gives.

    Args:
        f: From the value so far and an element, each in its structure, to the next value and what
            the element gives, which may be None.
        init: The first value.
        xs: A tensor, or a structure of tensors of as many elements; None: `f` is given None.
        length: How many elements there are; None: as many as `xs` has.
        reverse: Whether to begin with the last element; what they give stays in their order.
        unroll: Accepted for compatibility.

    Returns:
        The last value, and what elements gave.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: There are no elements and no length, or `unroll` is not above 0.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.scan(lambda s, x: (s + x, s), 0, mr.constant([1, 2, 3]))[1].numpy()
        array([0, 1, 3], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(
            f"`unroll` must be an positive integer or boolean. Received: unroll={unroll!r}"
        )
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    columns = [] if xs is None else _columns(xs)
    count = len(columns[0]) if length is None else int(length)
    value = _nest.map_structure(ops.convert_to_tensor, init)
    outputs = []
    for i in reversed(range(count)) if reverse else range(count):
        element = None if xs is None else _nest.pack_like(xs, [column[i] for column in columns])
        value, result = f(value, element)
        outputs.append(result)
    if reverse:
        outputs.reverse()
    return value, _stacked(outputs)


def _columns(structure: Any) -> list[list[Tensor]]:
    """Return the slices of each tensor of a structure along its first axis."""
    return [ops.unstack(ops.convert_to_tensor(leaf)) for leaf in _nest.flatten(structure)]


def _stacked(outputs: list[Any]) -> Any:
    """Return structures of tensors as one of stacked tensors; None stays what it is."""
    if not outputs or outputs[0] is None:
        return None
    flat = zip(*(_nest.flatten(output) for output in outputs), strict=True)
    return _nest.pack_like(outputs[0], [ops.stack(list(leaves)) for leaves in flat])


@explained
def associative_scan(
    f: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """Combine each element along an axis with all before it, by a function that is associative.

    Args:
        f: From two structures of slices to one.
        elems: A tensor, or a structure of tensors of as many elements.
        reverse: Whether each is combined with all behind it.
        axis: The axis.

    Raises:
        TypeError: `f` cannot be called.
        ValueError: There are not as many elements everywhere.

    Example:
        >>> import mirrored as mr
        >>> total = mr.keras.ops.associative_scan(lambda a, b: a + b, mr.constant([1, 2, 3]))
        >>> total.numpy()
        array([1, 3, 6], dtype=int32)
    """
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [ops.convert_to_tensor(element) for element in _nest.flatten(elems)]
    lengths = [element.shape[axis] for element in flat]
    if len({*lengths}) != 1:
        raise ValueError(
            "Array inputs to associative_scan must have the same first dimension. (saw: "
            f"{[tuple(element.shape) for element in flat]})"
        )
    if reverse:
        flat = [ops.reverse(element, [axis]) for element in flat]

    def part(values: list[Tensor], begin: int, end: int) -> list[Tensor]:
        places = ops.range(begin, end)
        return [ops.gather(element, places, axis=axis) for element in values]

    # In as many rounds as doubling takes: each time with those twice as far in front.
    step = 1
    while step < lengths[0]:
        before, behind = part(flat, 0, lengths[0] - step), part(flat, step, lengths[0])
        joined = f(_nest.pack_like(elems, before), _nest.pack_like(elems, behind))
        pairs = zip(part(flat, 0, step), _nest.flatten(joined), strict=True)
        flat = [ops.concat([kept, more], axis) for kept, more in pairs]
        step *= 2
    if reverse:
        flat = [ops.reverse(element, [axis]) for element in flat]
    return _nest.pack_like(elems, flat)


def custom_gradient(f: Callable[..., Any]) -> Any:
    """Return a function with a gradient of its own.

    Args:
        f: A function that returns its result, and a function from the gradient by that to the
            gradients by the arguments.

    Example:
        >>> import mirrored as mr
        >>> @mr.keras.ops.custom_gradient
        ... def twice(x):
        ...     return x * 2, lambda upstream: upstream * 2
        >>> twice(mr.constant(3.0)).numpy().item()
        6.0
    """
    return _custom_gradient(f)


@explained
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> Any:
    """Return what a function returns, and how it changes as its arguments do.

    Args:
        fun: From tensors to a tensor or a structure of them; with `has_aux`, and something else.
        primals: The arguments.
        tangents: How fast each of them changes.
        has_aux: Whether the function returns something else too, which is returned at the end.

    Raises:
        ValueError: There are not as many tangents as arguments.

    Example:
        >>> import mirrored as mr
        >>> value, change = mr.keras.ops.jvp(lambda x: x * x, (3.0,), (1.0,))
        >>> change.numpy().item()
        6.0
    """
    if len(primals) != len(tangents):
        raise ValueError(
            f"There is one tangent an argument. Received: {len(tangents)} for {len(primals)}."
        )
    inputs = [ops.convert_to_tensor(primal) for primal in primals]
    speeds = [ops.cast(speed, value.dtype) for speed, value in zip(tangents, inputs, strict=True)]
    # A gradient is linear in what flows in: its own gradient is what flows the other way.
    with GradientTape() as outer:
        with GradientTape() as inner:
            inner.watch(inputs)
            outputs = fun(*inputs)
            result, more = outputs if has_aux else (outputs, None)
        flat = _nest.flatten(result)
        factors = [ops.zeros_like(tensor) for tensor in flat]
        outer.watch(factors)
        back = inner.gradient(flat, inputs, output_gradients=factors)
    pairs = [(grad, by) for grad, by in zip(back, speeds, strict=True) if grad is not None]
    changes = outer.gradient(
        [gradient for gradient, _ in pairs],
        factors,
        output_gradients=[by for _, by in pairs],
        unconnected_gradients="zero",
    )
    change = _nest.pack_like(result, changes)
    return (result, change, more) if has_aux else (result, change)


def dtype(x: Any) -> str:
    """Return the name of a tensor's dtype.

    Args:
        x: A tensor, a variable or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.dtype(mr.constant(1.0))
        'float32'
    """
    return ops.as_dtype(x.dtype).name
