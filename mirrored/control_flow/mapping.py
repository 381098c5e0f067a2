"""Functions over the first axis of tensors: `map_fn`, `scan` and the folds."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mirrored import _nest, ops
from mirrored._arguments import explain_functions
from mirrored._types import Nest, TensorLike
from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import CustomCall, active_listeners, only
from mirrored.ops.spec import TensorSpec, as_dtype, has_shape
from mirrored.ops.structures import assert_same_structure
from mirrored.ops.tensor import Tensor
from mirrored.program.signature import Slot, slotted


def map_fn(
    fn: Callable[[Any], Any],
    elems: Nest[TensorLike],
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply a function to each element along the first axis, and stack what it returns.

    Args:
        fn: From an element, in the structure of `elems`, to tensors or numbers.
        elems: A tensor, or a structure of tensors of as many elements.
        dtype: An older name of `fn_output_signature`.
        parallel_iterations: Accepted for compatibility, like the next three.
        back_prop: Gradients flow in any case.
        swap_memory: There is nothing to swap.
        infer_shape: All results have one shape.
        name: Accepted for compatibility.
        fn_output_signature: A dtype or `TensorSpec` for each tensor that `fn` returns, in the same
            structure; None: those of `elems`.

    Raises:
        TypeError: `fn` cannot be called, or returns a structure of other types.
        ValueError: There are no elements, or not as many everywhere; or `fn` returns another
            structure or shape.
        InvalidArgumentError: `fn` returns another dtype.

    Example:
        >>> import mirrored as mr
        >>> rows = mr.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> mr.map_fn(mr.reduce_sum, rows).numpy()
        array([3., 7.], dtype=float32)
    """
    _check_callable(fn)
    tensors, count = _elements(elems, ValueError)
    signature = dtype if fn_output_signature is None else fn_output_signature
    like = _nest.map_structure(_any_shape, tensors) if signature is None else _as_slots(signature)
    specs = [slot.spec for slot in _nest.flatten(like)]
    columns: list[list[Tensor]] = [[] for _ in specs]
    at = _parts_of(tensors)
    for i in range(count):
        returned = fn(at(i))
        assert_same_structure(like, returned)
        for column, leaf, spec in zip(columns, _nest.flatten(returned), specs, strict=True):
            column.append(_of_spec(leaf, spec, column))
    return _nest.pack_like(like, map(_stacked, columns, specs))


def vectorized_map(
    fn: Callable[[Any], Any],
    elems: Nest[TensorLike],
    fallback_to_while_loop: bool = True,
    warn: bool = True,
) -> Any:
    """Apply a function to each element along the first axis, and stack what it returns.

    As `map_fn`, for results of any structure and dtype. It calls `fn` once an element.

    Args:
        fn: From an element, in the structure of `elems`, to tensors, numbers and None.
        elems: A tensor, or a structure of tensors of as many elements, or of one.
        fallback_to_while_loop: Accepted for compatibility, like `warn`.
        warn: There is nothing to warn of.

    Raises:
        IndexError: What `elems` holds has no axis.
        ValueError: There are no elements to know the results by, or not as many everywhere; or `fn`
            returns another structure or shape from one to the next.

    Example:
        >>> import mirrored as mr
        >>> rows = mr.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> mr.vectorized_map(lambda row: row / mr.reduce_sum(row), rows)[0].numpy()
        array([0.33333334, 0.6666667 ], dtype=float32)
    """
    _check_callable(fn)
    tensors, count = _elements(elems, IndexError, single=True)
    if count:
        at = _parts_of(tensors)
        results = [fn(at(i)) for i in range(count)]
    else:
        nothing = _nest.map_structure(lambda part: ops.zeros(part.shape[1:], part.dtype), tensors)
        results = [fn(nothing)]
    for result in results[1:]:
        assert_same_structure(results[0], result)
    flat = [_nest.flatten(output) for output in results]
    stacked = [
        None if parts[0] is None else ops.stack([adopt(part, None) for part in parts])[:count]
        for parts in zip(*flat, strict=True)
    ]
    return _nest.pack_like(results[0], stacked)


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Nest[TensorLike],
    initializer: Nest[TensorLike] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the elements along the first axis one after the other, and stack all results.

    Args:
        fn: From the result so far and an element, each in its structure, to the next result.
        elems: A tensor, or a structure of tensors of as many elements.
        initializer: The result before the first element; None: the first element is the first
            result.
        parallel_iterations: Accepted for compatibility, like the next three.
        back_prop: Gradients flow in any case.
        swap_memory: There is nothing to swap.
        infer_shape: All results have one shape.
        reverse: Whether to begin with the last element; results stay in the elements' order.
        name: Accepted for compatibility.

    Raises:
        TypeError: `fn` cannot be called, or returns a structure of other types.
        IndexError: What `elems` holds has no axis.
        ValueError: There are not as many elements everywhere, or `fn` returns another structure or
            shape.
        InvalidArgumentError: `fn` returns another dtype.
        OutOfRangeError: There are no elements, and no `initializer`.

    Example:
        >>> import mirrored as mr
        >>> mr.scan(lambda total, x: total + x, mr.constant([1.0, 2.0, 3.0])).numpy()
        array([1., 3., 6.], dtype=float32)
    """
    total, rest = _start(fn, elems, initializer, reverse)
    results = [total] if initializer is None else []
    total = _nest.map_structure(lambda leaf: adopt(leaf, None), total)
    like = _nest.map_structure(lambda leaf: Slot(leaf.spec), total)
    for element in rest:
        returned = fn(total, element)
        assert_same_structure(like, returned)
        pairs = zip(_nest.flatten(returned), _nest.flatten(like), strict=True)
        flat = [_of_spec(leaf, slot.spec, []) for leaf, slot in pairs]
        total = _nest.pack_like(like, flat)
        results.append(total)
    if reverse:
        results.reverse()
    if not results:
        return _nest.map_structure(lambda slot: _stacked([], slot.spec), like)
    columns = zip(*map(_nest.flatten, results), strict=True)
    return _nest.pack_like(like, [ops.stack(list(column)) for column in columns])


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Nest[TensorLike],
    initializer: Nest[TensorLike] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the elements along the first axis one after the other, from the first to the last.

    Args:
        fn: From the result so far and an element, each in its structure, to the next result.
        elems: A tensor, or a structure of tensors of as many elements.
        initializer: The result before the first element; None: the first element is the first
            result.
        parallel_iterations: Accepted for compatibility, like the next two.
        back_prop: Gradients flow in any case.
        swap_memory: There is nothing to swap.
        name: Accepted for compatibility.

    Raises:
        TypeError: `fn` cannot be called, or returns a structure of other types.
        IndexError: What `elems` holds has no axis.
        ValueError: There are not as many elements everywhere, or `fn` returns another structure.
        OutOfRangeError: There are no elements, and no `initializer`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.foldl(lambda total, x: total - x, mr.constant([1.0, 2.0, 3.0])))
        -4.0
    """
    return _folded(fn, elems, initializer, backwards=False)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Nest[TensorLike],
    initializer: Nest[TensorLike] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the elements along the first axis one after the other, from the last to the first.

    Arguments and errors are those of `foldl`.

    Example:
        >>> import mirrored as mr
        >>> float(mr.foldr(lambda total, x: total - x, mr.constant([1.0, 2.0, 3.0])))
        0.0
    """
    return _folded(fn, elems, initializer, backwards=True)


def _folded(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, backwards: bool) -> Any:
    total, rest = _start(fn, elems, initializer, backwards)
    first = total
    for element in rest:
        total = fn(total, element)
        assert_same_structure(first, total)
    return _nest.map_structure(lambda leaf: adopt(leaf, None), total)


def _start(fn: Any, elems: Any, initializer: Any, backwards: bool) -> tuple[Any, Iterator[Any]]:
    """Return the initial result and the elements to combine it with, in order."""
    _check_callable(fn)
    tensors, count = _elements(elems, IndexError)
    places = range(count)[::-1] if backwards else range(count)
    elements = map(_parts_of(tensors), places)
    if initializer is not None:
        return initializer, elements
    if not places:
        raise OutOfRangeError("Tried to read from index 0 but array size is: 0. Set `initializer`.")
    return next(elements), elements


def _elements(
    elems: Any, without_axis: type[Exception], *, single: bool = False
) -> tuple[Any, int]:
    """Return tensors for all leaves, and the size of their first axis.

    Args:
        elems: The structure.
        without_axis: What is raised where a tensor has no axis.
        single: Whether a tensor of one element stands for as many as the others have.
    """
    tensors = _nest.map_structure(lambda leaf: adopt(leaf, None), elems)
    flat = _nest.flatten(tensors)
    if not flat:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems!r}, "
            "which does not contain any Tensors."
        )
    for size in flat:
        if not size.ndim:
            raise without_axis(
                "Elements in elems must be 1+ dimensional Tensors, not scalars. Received: "
                f"{elems!r:.100}. Convert a list of numbers with mr.constant."
            )
    counts = [tensor.shape[0] for tensor in flat]
    count = max(counts) if single else counts[0]
    for size in counts:
        if size != count and not (single and size == 1):
            raise ValueError(f"Dimensions {count} and {size} are not compatible")
    return tensors, count


def _parts_of(tensors: Any) -> Callable[[int], Any]:
    """Return a function from an index to the elements there, in their structure."""
    flat = [_unstacked(leaf) for leaf in _nest.flatten(tensors)]

    def at(place: int) -> Any:
        return _nest.pack_like(tensors, [part[place if len(part) > 1 else 0] for part in flat])

    return at


def _unstacked(tensor: Tensor) -> list[Tensor]:
    """Return the elements along the first axis; their gradients are stacked in one op."""
    with only():
        parts = [tensor[i] for i in range(len(tensor))]
    call = CustomCall([tensor], parts, lambda upstream: [ops.stack(upstream)])
    for listener in active_listeners():
        listener.on_custom_call(call)
    return parts


def _any_shape(tensor: Tensor) -> Slot:
    return Slot(TensorSpec(None, tensor.dtype))


def _as_slots(signature: Any) -> Any:
    """Return a structure of dtypes and specs as a structure of slots."""
    slots = slotted(signature)
    return _nest.map_structure(
        lambda leaf: leaf if isinstance(leaf, Slot) else Slot(TensorSpec(None, as_dtype(leaf))),
        slots,
    )


def _of_spec(leaf: Any, spec: TensorSpec, before: Iterable[Tensor]) -> Tensor:
    """Return a function's result for an element as a tensor of the slot's dtype and shape."""
    if leaf is None:
        raise ValueError(
            "Attempt to convert a value (None) with an unsupported type (<class 'NoneType'>) to "
            "a Tensor. The function must return tensors or numbers."
        )
    tensor = adopt(leaf, spec.dtype)
    if tensor.dtype != spec.dtype:
        raise InvalidArgumentError(
            f"TensorArray dtype is {spec.dtype.name} but Op is trying to write dtype "
            f"{tensor.dtype.name}. Describe the function's results with `fn_output_signature`, or "
            "cast them."
        )
    shape: Any = next((earlier.shape for earlier in before), spec.shape)
    if shape is not None and not has_shape(tensor.shape, shape):
        raise ValueError(f"Incompatible shape for value ({tensor.shape}), expected ({shape})")
    return tensor


def _stacked(parts: list[Tensor], spec: TensorSpec) -> Tensor:
    if parts:
        return ops.stack(parts)
    shape: Any = spec.shape
    return ops.zeros((0, *(size or 0 for size in shape or ())), spec.dtype)


def _check_callable(fn: Any) -> None:
    if not callable(fn):
        raise TypeError(f"{fn!r:.100} is not callable. Please provide a callable function.")


explain_functions(__name__)
