"""`keras.ops` of Keras' core: branches, loops, maps, scatters, slices and conversions."""

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest, ops
from mirrored._arguments import explain_functions
from mirrored._symbolic import Symbolic
from mirrored._types import DTypeLike, Nest, ShapeLike, TensorLike
from mirrored.autodiff.custom_gradients import custom_gradient as _custom_gradient
from mirrored.control_flow import branches as control_flow
from mirrored.control_flow import mapping
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.keras_functions.promotion import to_indices
from mirrored.ops import Tensor
from mirrored.ops.clipping import saturated
from mirrored.ops.conversion import is_tensor as _is_tensor
from mirrored.ops.hooks import shapes_alone
from mirrored.ops.tensor import Operators


def cond(pred: TensorLike, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
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
    return control_flow.cond(pred, true_fn, false_fn)


def switch(index: TensorLike, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
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
    return control_flow.switch_case(
        number, [lambda branch=function: branch(*operands) for function in branches]
    )


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Nest[TensorLike],
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
    initial: Any = loop_vars
    several = isinstance(initial, list | tuple)
    first = tuple(initial) if several else (initial,)

    def further(*values: Any) -> tuple[Any, ...]:
        outputs = body(*values)
        return tuple(outputs) if several else (outputs,)

    results = _looped(cond, further, first, maximum_iterations)
    return tuple(results) if several else results[0]


def fori_loop(
    lower: SupportsIndex,
    upper: SupportsIndex,
    body_fun: Callable[[Any, Any], Any],
    init_val: Nest[TensorLike],
) -> Any:
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
        lambda i, value: i < upper, lambda i, value: (i + 1, body_fun(i, value)), (lower, init_val)
    )[1]


def _looped(
    cond: Callable[..., Any], body: Callable[..., Any], first: Any, most: int | None = None
) -> Any:
    """Return the loop's last values; where only their shapes are inferred, those of the first."""
    try:
        return control_flow.while_loop(cond, body, first, maximum_iterations=most)
    except OperatorNotAllowedInGraphError:
        if not shapes_alone():
            raise
        body(*first)  # Builds the layers of the body.
        return _nest.map_structure(ops.zeros_like, first)


def map(f: Callable[[Any], Any], xs: Nest[TensorLike]) -> Any:
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


def vectorized_map(function: Callable[[Any], Any], elements: Nest[TensorLike]) -> Any:
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


def scan(
    f: Callable[[Any, Any], Any],
    init: Nest[TensorLike],
    xs: Nest[TensorLike] | None = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: bool | int = 1,
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
    number: Any = unroll
    if not isinstance(number, bool) and (not isinstance(number, int) or number < 1):
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


def associative_scan(
    f: Callable[[Any, Any], Any], elems: Nest[TensorLike], reverse: bool = False, axis: int = 0
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
    """Return a function with a custom gradient.

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


def slice(inputs: TensorLike, start_indices: ShapeLike, shape: ShapeLike) -> Tensor:
    """Return a part of a tensor.

    Args:
        inputs: A tensor or an array.
        start_indices: Where the part begins, for each axis.
        shape: Its shape.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.slice([[1, 2], [3, 4]], (1, 0), (1, 2)).numpy()
        array([[3, 4]], dtype=int32)
    """
    return ops.slice(inputs, start_indices, shape)


def slice_update(inputs: TensorLike, start_indices: TensorLike, updates: TensorLike) -> Tensor:
    """Return a tensor with a part replaced.

    Args:
        inputs: A tensor or an array.
        start_indices: Where the part begins, for each axis; what would reach over the end begins
            earlier.
        updates: What stands in its place, of as many axes.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.slice_update([[1, 2], [3, 4]], (1, 0), [[8, 9]]).numpy()
        array([[1, 2],
               [8, 9]], dtype=int32)
    """
    tensor = ops.convert_to_tensor(inputs)
    values = ops.cast(updates, tensor.dtype)
    where = start_indices if isinstance(start_indices, list | tuple) else ops.unstack(start_indices)
    places: Any = 0
    for axis, start in enumerate(where):
        size, count = tensor.shape[axis], values.shape[axis]
        begin = ops.clip_by_value(ops.cast(start, ops.int64), 0, size - count)
        along = ops.range(count, dtype=ops.int64)
        along = ops.reshape(along, [-1 if axis == i else 1 for i in range(tensor.ndim)])
        places = places * size + (along + begin)
    flat = ops.tensor_scatter_nd_update(
        ops.reshape(tensor, [-1]), ops.reshape(places, [-1, 1]), ops.reshape(values, [-1])
    )
    return ops.reshape(flat, tensor.shape)


def scatter(indices: TensorLike, values: TensorLike, shape: ShapeLike) -> Tensor:
    """Return zeros, with values added at places.

    Args:
        indices: The places, of shape (count, axes).
        values: The values, one a place, or a slice for each.
        shape: The shape of the result.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.scatter([[0], [2], [0]], [1, 2, 3], (3,)).numpy()
        array([4, 0, 2], dtype=int32)
    """
    return ops.scatter_nd(to_indices(indices), ops.convert_to_tensor(values), shape)


_REDUCTIONS = {
    None: "tensor_scatter_nd_update",
    "add": "tensor_scatter_nd_add",
    "max": "tensor_scatter_nd_max",
    "min": "tensor_scatter_nd_min",
}


def scatter_update(
    inputs: TensorLike, indices: TensorLike, updates: TensorLike, reduction: str | None = None
) -> Tensor:
    """Return a tensor with values at places.

    Args:
        inputs: The tensor.
        indices: The places, of shape (count, axes).
        updates: The values, one a place, or a slice for each.
        reduction: What becomes of a value and what is there: None: the value stands alone; "add",
            "max", "min" or "mul".

    Raises:
        ValueError: The reduction is another one.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.scatter_update([1, 2, 3], [[0], [2]], [8, 9]).numpy()
        array([8, 2, 9], dtype=int32)
    """
    tensor, places = ops.convert_to_tensor(inputs), to_indices(indices)
    values = ops.cast(updates, tensor.dtype)
    if reduction in _REDUCTIONS:
        written: Tensor = getattr(ops, _REDUCTIONS[reduction])(tensor, places, values)
        return written
    if reduction != "mul":
        raise ValueError(
            f"Unsupported reduction: {reduction}. It must be None, 'add', 'max', 'min' or 'mul'."
        )
    # One after the other: a place may be named twice.
    for i in range(places.shape[0]):
        place = places[i : i + 1]
        factor = values[i : i + 1] if values.ndim else values
        tensor = ops.tensor_scatter_nd_update(tensor, place, ops.gather_nd(tensor, place) * factor)
    return tensor


def unstack(x: TensorLike, num: int | None = None, axis: int = 0) -> list[Tensor]:
    """Return the slices along an axis.

    Args:
        x: A tensor or an array.
        num: How many there are; None: it is known.
        axis: The axis.

    Example:
        >>> import mirrored as mr
        >>> [tensor.numpy().tolist() for tensor in mr.keras.ops.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """
    return list(ops.unstack(x, num=num, axis=axis))


def shape(x: TensorLike) -> tuple[int, ...]:
    """Return the sizes of the axes.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.shape([[1, 2]])
        (1, 2)
    """
    return tuple(ops.convert_to_tensor(x).shape)


def dtype(x: Operators | NDArray[Any]) -> str:
    """Return the name of a tensor's dtype.

    Args:
        x: A tensor, a variable or an array.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.dtype(mr.constant(1.0))
        'float32'
    """
    return ops.as_dtype(x.dtype).name


def cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Return the elements in another dtype.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.cast([1.5], "int32").numpy()
        array([1], dtype=int32)
    """
    return ops.cast(x, dtype)


def saturate_cast(x: TensorLike, dtype: DTypeLike) -> Tensor:
    """Return the elements in another dtype, in which what is beyond its limits is at them.

    Args:
        x: Numbers.
        dtype: The dtype.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.saturate_cast([-5, 300], "uint8").numpy()
        array([  0, 255], dtype=uint8)
    """
    return saturated(ops.convert_to_tensor(x), ops.as_dtype(dtype))


def convert_to_tensor(
    x: TensorLike,
    dtype: DTypeLike | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
) -> Tensor:
    """Return a tensor, cast where a dtype is said.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.
        dtype: The dtype; None: that of the values.
        sparse: None: there are no sparse tensors.
        ragged: None, likewise.

    Raises:
        ValueError: A sparse or ragged one is asked for.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.convert_to_tensor([1, 2]).dtype.name
        'int32'
    """
    if sparse or ragged:
        raise ValueError("Tensors are neither sparse nor ragged. Leave `sparse` and `ragged` out.")
    if dtype is None or not _is_tensor(x):
        return ops.convert_to_tensor(x, dtype)
    return ops.cast(x, dtype)


def convert_to_numpy(x: TensorLike) -> np.ndarray[Any, Any]:
    """Return the values as an array on the host.

    Args:
        x: A tensor, an array, a number or nested lists of numbers.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.convert_to_numpy(mr.constant([1, 2]))
        array([1, 2], dtype=int32)
    """
    return np.asarray(x)


def is_tensor(x: Any) -> bool:
    """Return whether a value is a tensor or a variable; what `Input` returns is neither.

    Args:
        x: The value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.is_tensor(1)
        False
    """
    return _is_tensor(x) and not isinstance(x, Symbolic)


def stop_gradient(variable: TensorLike) -> Tensor:
    """Return a tensor through which no gradient flows.

    Args:
        variable: A tensor or a variable.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.stop_gradient(1.0).numpy().item()
        1.0
    """
    return ops.stop_gradient(variable)


explain_functions(
    __name__,
    all_but="""
        cast convert_to_numpy custom_gradient dtype is_tensor shape stop_gradient
    """,
)
