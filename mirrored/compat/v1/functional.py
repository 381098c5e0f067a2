"""Functions of functions: `map_fn`, `scan` and the folds, whose functions draw into the graph.

A run calls the eager function of the same name with what they drew; a recorded one is unrolled.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from mirrored import _nest, ops
from mirrored._types import Nest, TensorLike
from mirrored.compat.v1.control_flow import Branch, flowing, loop_variable
from mirrored.compat.v1.graph import drawing
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.listing import named
from mirrored.compat.v1.sources import converted
from mirrored.control_flow import mapping
from mirrored.ops.spec import TensorSpec, as_dtype

_Function = Callable[..., Any]


def map_fn(
    fn: _Function,
    elems: Nest[TensorLike],
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply a function to each element along the first axis, and return the stacked results.

    Args:
        fn: From an element to a tensor, or to nested lists and tuples of them.
        elems: A tensor, or nested lists and tuples of tensors of as many elements.
        dtype: The dtypes of what the function returns, in its structure; None: whatever they are.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through it.
        swap_memory: Accepted for compatibility.
        infer_shape: Accepted for compatibility.
        name: Its name.
        fn_output_signature: The same, by its later name.

    Raises:
        TypeError: `fn` cannot be called, or returns other dtypes.
        ValueError: It returns another structure.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     scale = tf.placeholder(tf.float32, [])
        ...     scaled = tf.map_fn(lambda each: each * scale, tf.constant([1.0, 2.0]))
        ...     session.run(scaled, {scale: 3.0})
        array([3., 6.], dtype=float32)
    """
    wanted = dtype if fn_output_signature is None else fn_output_signature

    def checked(elements: Any) -> Any:
        results = fn(elements)
        _check_dtypes(results, wanted)
        return results

    _checked(fn)
    return _mapped("MapFn", name or "map", checked, elems, None, mapping.map_fn, back_prop)


def scan(
    fn: _Function,
    elems: Nest[TensorLike],
    initializer: Nest[TensorLike] | None = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Apply a function to its previous result and each element, and return all results.

    Args:
        fn: From what it made before and an element to what it makes.
        elems: A tensor, or nested lists and tuples of tensors of as many elements.
        initializer: What stands for what was made before the first step; None: the first element.
        parallel_iterations: Accepted for compatibility.
        back_prop: Whether gradients flow through it.
        swap_memory: Accepted for compatibility.
        infer_shape: Accepted for compatibility.
        reverse: Whether it begins with the last element.
        name: Its name.

    Raises:
        TypeError: `fn` cannot be called.
        ValueError: It returns another number of tensors than it is given.
    """
    eager = partial(mapping.scan, reverse=reverse)
    return _mapped("Scan", name or "scan", _checked(fn), elems, initializer, eager, back_prop)


def _fold(called: str, eager: _Function, words: str) -> _Function:
    """Return a function that draws a fold, which an eager function computes."""

    def fold(
        fn: _Function,
        elems: Nest[TensorLike],
        initializer: Nest[TensorLike] | None = None,
        parallel_iterations: int = 10,
        back_prop: bool = True,
        swap_memory: bool = False,
        name: str | None = None,
    ) -> Any:
        """Return the last result of a `scan`{words}; the arguments are those of `scan`."""
        kind, name = called.capitalize(), name or called
        return _mapped(kind, name, _checked(fn), elems, initializer, eager, back_prop)

    return named(fold, called, words=words)


foldl = _fold("foldl", mapping.foldl, "")
foldr = _fold("foldr", mapping.foldr, " that starts with the last element")


def _checked(fn: Any) -> Any:
    if not callable(fn):
        raise TypeError("fn must be callable.")
    return fn


def _check_dtypes(results: Any, wanted: Any) -> None:
    """Raise unless a function's results have the structure and the dtypes that are wanted."""
    if wanted is None:
        return
    dtypes = [getattr(value, "dtype", value) for value in _nest.flatten(wanted)]
    tensors = [converted(value) for value in _nest.flatten(results)]
    if len(tensors) != len(dtypes) or _is_list(results) != _is_list(wanted):
        raise ValueError(
            "The two structures don't have the same nested structure. First structure: "
            f"dtype={wanted!r}. Second structure, of what `fn` returns: {results!r:.200}."
        )
    for tensor, dtype in zip(tensors, map(as_dtype, dtypes), strict=True):
        if tensor._dtype != dtype:
            raise TypeError(
                f"Tensor {tensor} has dtype {tensor._dtype.name}, but `dtype` says {dtype.name}. "
                "Use `tf.cast` in `fn`, or pass the dtype that it returns."
            )


def _is_list(structure: Any) -> bool:
    return isinstance(structure, list | tuple | dict)


def _mapped(
    kind: str,
    name: str,
    fn: _Function,
    elems: Any,
    initializer: Any,
    eager: _Function,
    back_prop: bool,
) -> Any:
    """Draw one operation that runs what a function drew for each element."""
    has_states, keeps_all = kind != "MapFn", kind in ("MapFn", "Scan")
    with drawing(name, elems, initializer) as (graph, scope):
        inputs = [converted(leaf, name="elems") for leaf in _nest.flatten(elems)]
        begin = None
        if initializer is not None:
            begin = [converted(leaf, name="initializer") for leaf in _nest.flatten(initializer)]
        with graph.control_dependencies(None):
            start = graph.version
            items = [loop_variable(graph, (e._shape or ())[1:], e._dtype) for e in inputs]
            called = [_nest.pack_like(elems, items)]
            states: list[Tensor] = []
            if has_states:
                like = elems if initializer is None else initializer
                first = [(e._shape, e._dtype) for e in (items if begin is None else begin)]
                states = [loop_variable(graph, *pair) for pair in first]
                called.insert(0, _nest.pack_like(like, states))
            structure = fn(*called)
            outputs = [converted(leaf) for leaf in _nest.flatten(structure)]
            if has_states and len(outputs) != len(states):
                raise ValueError(
                    f"`fn` must return tensors like its first argument: {len(states)} tensors. "
                    f"Received: {len(outputs)}."
                )
            step = Branch(start, [*states, *items], outputs)
        count = inputs[0]._shape[:1] if inputs[0]._shape else (None,)

        def run(elems: Any, begin: Any, captured: Any) -> Any:
            def apply(*parts: Any) -> list[Any]:
                return step(_nest.flatten(parts), captured)

            if not has_states:
                specs = [TensorSpec(output._shape, output._dtype) for output in outputs]
                return eager(apply, elems, fn_output_signature=specs)
            results = eager(apply, elems, begin)
            return results if keeps_all else [ops.identity(result) for result in results]

        shapes = [states[i]._shape if has_states else e._shape for i, e in enumerate(outputs)]
        if keeps_all:
            shapes = [None if shape is None else (*count, *shape) for shape in shapes]
        operation = graph.draw(
            run,
            (inputs, begin, step.captured),
            kind=kind,
            name=scope,
            results=[Tensor(s, e._dtype, "") for s, e in zip(shapes, outputs, strict=True)],
        )
    operation.reads, operation.writes = tuple(step.reads), tuple(step.writes)
    results: Any = _nest.pack_like(structure, flowing(operation.outputs, back_prop))
    return results
