"""Operations that begin a graph: constants, and placeholders that are fed."""

from typing import Any, NoReturn

import numpy as np

from mirrored import ops
from mirrored._types import DTypeLike, PartialShapeLike, TensorLike
from mirrored.compat.v1.graph import check_not_eager, drawing, get_default_graph
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.partial_shapes import sizes_of
from mirrored.graph import placeholders
from mirrored.ops.conversion import constant_array, convert_to_tensor
from mirrored.ops.spec import as_dtype


def constant(
    value: TensorLike,
    dtype: DTypeLike | None = None,
    shape: PartialShapeLike | None = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Return a constant tensor.

    Args:
        value: A number, or an array or lists of them.
        dtype: Its dtype; None: that of the value.
        shape: Its shape; where that has more elements than the value, the last one fills them.
        name: Its name.
        verify_shape: Whether the value must have that shape itself.

    Raises:
        TypeError: The value has another dtype, or with `verify_shape` another shape.
        ValueError: The value is None, or has more elements than the shape.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default():
        ...     print(tf.constant([1, 2], shape=[3]))
        Tensor("Const:0", shape=(3,), dtype=int32)
    """
    get_default_graph().check_open()
    if value is None:
        raise ValueError("None values not supported.")
    array = np.array(constant_array(value, dtype))
    if shape is not None:
        wanted = tuple(int(size or 0) for size in sizes_of(shape) or ())
        if verify_shape and array.shape != wanted:
            raise TypeError(
                f"Expected Tensor's shape: {wanted}, got {array.shape}. Pass a value of that shape."
            )
        array = _filled(array, wanted)
    draw = get_default_graph().draw
    return draw(lambda: convert_to_tensor(array), kind="Const", name=name).outputs[0]


def _filled(array: Any, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape, dtype=np.int64))
    if array.size > size:
        raise ValueError(
            f"Too many elements provided. Needed at most {size}, but received {array.size}. Pass "
            "another `shape`."
        )
    flat = np.ravel(array)
    missing = size - flat.size
    return np.concatenate([flat, np.repeat(flat[-1:], missing)]).reshape(shape)


def converted(value: Any, dtype: Any = None, name: str = "Const") -> Tensor:
    """Return a value as a tensor of the graph, which one of a graph is.

    Args:
        value: A tensor, or what `constant` takes.
        dtype: The dtype that it must have; None: any.
        name: What it is called where it is made.

    Raises:
        RuntimeError: It is an eager tensor.
        ValueError: A tensor has another dtype.
    """
    if not isinstance(value, Tensor):
        check_not_eager(value)
        if placeholders(value):
            named = "packed" if name == "Const" else name
            return packed(value, dtype and as_dtype(dtype), named)
        return constant(value, dtype, name=name)
    if dtype is not None and value.dtype != as_dtype(dtype):
        raise ValueError(
            f"Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with dtype "
            f"{value.dtype.name}: {value!r}. Use `tf.cast`."
        )
    return value


def packed(value: Any, dtype: Any, name: str) -> Tensor:
    """Return lists with tensors in them as one tensor.

    Args:
        value: The lists.
        dtype: The dtype of the numbers in them; None: that of the first tensor.
        name: What its name begins with; one that ends with a slash is the whole of it.
    """
    dtype = placeholders(value)[0]._dtype if dtype is None else dtype
    with drawing(name, value) as (graph, scope):
        parts = list(value)
        for number, part in enumerate(parts):  # As there, the lists among them come first.
            if not isinstance(part, Tensor) and placeholders(part):
                parts[number] = packed(part, dtype, str(number))
        for number, part in enumerate(parts):
            if not isinstance(part, Tensor):
                parts[number] = constant(part, dtype, name=str(number))
        return graph.draw(ops.stack, (parts,), kind="Pack", name=scope).outputs[0]


def placeholder(
    dtype: DTypeLike, shape: PartialShapeLike | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor whose value each run gets by `feed_dict`.

    Args:
        dtype: Its dtype.
        shape: Its shape, with None for sizes that are not known; None: it takes any shape.
        name: Its name.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.placeholder(tf.float32, [None], name="x")
        ...     session.run(x * 2.0, feed_dict={x: [1.0, 2.0]})
        array([2., 4.], dtype=float32)
    """
    name = name or "Placeholder"
    result = Tensor(sizes_of(shape), as_dtype(dtype), "")
    draw = get_default_graph().draw
    return draw(never, kind="Placeholder", name=name, results=result, asks_run=True).outputs[0]


def never() -> NoReturn:
    """Raise AssertionError: a run has the values of placeholders and of the variables of loops."""
    raise AssertionError("A value that a run is to have is computed.")


def placeholder_with_default(
    input: TensorLike, shape: PartialShapeLike | None, name: str | None = None
) -> Tensor:
    """Return a tensor with a default value, which `feed_dict` can replace.

    Args:
        input: The value.
        shape: Its shape, with None for sizes that may be others when it is fed.
        name: Its name.
    """
    name = name or "PlaceholderWithDefault"
    value = converted(input, name=f"{name}/input")
    result = Tensor(sizes_of(shape), value.dtype, "")
    return value.graph.draw(
        ops.identity, (value,), kind="PlaceholderWithDefault", name=name, results=result
    ).outputs[0]
