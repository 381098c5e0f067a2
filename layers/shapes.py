"""Checks the shapes that users give, in one place and in one wording.

A dimension that is not known yet, such as the batch, is ``None``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from mirrored import _nest
from mirrored._numbers import as_integer
from mirrored.ops.spec import as_data_format as as_data_format

Shape = tuple[int | None, ...]
Shapes = Any  # A shape, or shapes in nested lists, tuples and dicts.
_Size = TypeVar("_Size", int, int | None)
_SIZES = {int, type(None)}


def as_shape(shape: object) -> Shape:
    """Return ``shape`` as a tuple of Python integers and ``None``.

    Raises:
        ValueError: ``shape`` is not such an iterable.
    """
    if not isinstance(shape, Iterable) or isinstance(shape, str | bytes):
        raise ValueError(
            f"Cannot convert '{shape}' to a shape. Pass a tuple of integers, as in `(64,)`."
        )
    sizes = tuple(shape)
    return tuple(_as_dimension(size, sizes) for size in sizes)


def _as_dimension(size: object, shape: tuple[object, ...]) -> int | None:
    """Return one dimension of ``shape`` as an integer, or as None where it is not known."""
    if size is None:
        return None
    dimension = as_integer(size)
    if dimension is None:
        raise ValueError(
            f"Cannot convert '{shape}' to a shape. Found invalid dimension '{size}' of type "
            f"'{type(size)}'. Every dimension must be an integer or None."
        )
    if dimension < 0:
        raise ValueError(
            f"Cannot convert '{shape}' to a shape. Negative dimensions are not allowed. Use None "
            "for an unknown size."
        )
    return dimension


def as_sizes(argument: str, value: Any, count: int, *, least: int = 1) -> tuple[int, ...]:
    """Return an argument that has one number for each spatial axis.

    Args:
        argument: The argument's name.
        value: One integer for all axes, or one for each.
        count: The number of axes.
        least: The least that a number may be.

    Raises:
        ValueError: It is no integer, there are more or fewer, or one is less.
    """
    single = as_integer(value)
    values = (single,) * count if single is not None else value
    if not isinstance(values, Iterable) or isinstance(values, str):
        values = ()
    sizes = tuple(as_integer(size) for size in values)
    if len(sizes) != count or any(size is None or size < least for size in sizes):
        low = {size for size in sizes if size is not None and size < least}
        sign = ">" if least else ">="
        rule = f", including values {low} that do not satisfy `value {sign} 0`" if low else ""
        raise ValueError(
            f"The `{argument}` argument must be a tuple of {count} integers. Received "
            f"{argument}={value}{rule}"
        )
    return cast(tuple[int, ...], sizes)


def windowed_sizes(
    sizes: Sequence[int | None],
    taps: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
) -> tuple[int | None, ...]:
    """Return how many windows lie along each spatial axis; None where its size is not known.

    Args:
        sizes: The sizes of the axes.
        taps: The sizes of the windows.
        strides: The distances of two windows.
        dilations: The distances of two elements that a window reads.
        padding: "valid", "same" or "causal".

    Raises:
        ValueError: There would be none along an axis.
    """
    counts: list[int | None] = []
    for size, tap_count, stride, dilation in zip(sizes, taps, strides, dilations, strict=True):
        lost = (tap_count - 1) * dilation if padding == "valid" else 0
        counts.append(None if size is None else -(-(size - lost) // stride))
        if size is not None and size <= lost:
            raise ValueError(
                f"Computed output size would be zero or negative. Received inputs of sizes "
                f"{tuple(sizes)}, windows of {tuple(taps)}, strides {tuple(strides)}, dilations "
                f"{tuple(dilations)} and padding={padding!r}. Use smaller windows, larger inputs "
                "or padding='same'."
            )
    return tuple(counts)


def is_shape(value: object) -> bool:
    """Return whether a value is a shape, and not a structure of shapes."""
    if value is None or isinstance(value, dict):
        return False
    if not isinstance(value, list | tuple):
        return True  # Whoever makes a shape of it says that it is none.
    if _SIZES.issuperset(map(type, value)):
        return True  # The usual case, a few times for each batch of a generator.
    return not any(isinstance(item, list | tuple | dict) for item in value)


def map_shapes(function: Callable[..., Any], shapes: Shapes, *others: Any) -> Any:
    """Apply a function to each shape of a structure of shapes; None stays.

    Args:
        function: Given a shape, and what stands in its place in each other structure.
        shapes: A shape, or shapes in nested lists, tuples and dicts.
        *others: Structures of the same form.

    Example:
        >>> from mirrored.layers.shapes import map_shapes, without_batch
        >>> map_shapes(without_batch, {"a": (2, 3), "b": [(2,), None]})
        {'a': (None, 3), 'b': [(None,), None]}
    """
    if shapes is None:
        return None
    if is_shape(shapes):
        return function(shapes, *others)
    if isinstance(shapes, dict):
        mapped = {
            key: map_shapes(function, shape, *(other[key] for other in others))
            for key, shape in shapes.items()
        }
        return _nest.rebuild_dict(shapes, mapped)
    rows = zip(shapes, *others, strict=True)
    return _nest.rebuild(shapes, [map_shapes(function, *row) for row in rows])


def shapes_in(structure: Shapes) -> Iterator[Shape]:
    """Yield the shapes of a structure in the order of `_nest.flatten`; None is left out."""
    if is_shape(structure):
        yield structure
    elif structure is not None:
        items = structure
        if isinstance(structure, dict):
            items = [structure[key] for key in _nest.sorted_keys(structure)]
        for item in items:
            yield from shapes_in(item)


def as_shapes(shapes: object) -> Shapes:
    """Return a shape, or each of a structure, as a tuple of Python integers and ``None``.

    Raises:
        ValueError: One of them is no shape.
    """
    return map_shapes(as_shape, shapes)


def as_known_shape(shape: object, owner: str) -> tuple[int, ...]:
    """Return ``shape`` as a tuple of integers, all of them known.

    Raises:
        ValueError: ``shape`` is not a shape, or a dimension is None.
    """
    dimensions = as_shape(shape)
    known = tuple(size for size in dimensions if size is not None)
    if len(known) != len(dimensions):
        raise ValueError(
            "Shapes used to initialize variables must be fully-defined (no `None` dimensions). "
            f"Received: shape={dimensions} for variable path='{owner}'. Pass the input's size "
            "along every axis except the batch."
        )
    return known


def without_batch(shape: Shape) -> Shape:
    """Return the shape of one concrete batch with the batch axis left open."""
    return (None, *shape[1:]) if shape else ()


def fitted_rank(shape: tuple[_Size, ...], expected: Shape) -> tuple[_Size, ...]:
    """Return a shape with a last axis of size 1 added or left out, where the expected one asks."""
    if len(shape) == len(expected) + 1 and shape[-1] == 1:
        return shape[:-1]
    if len(shape) == len(expected) - 1 and expected[-1] == 1:
        return (*cast("tuple[int, ...]", shape), 1)
    return shape


def require_rank(owner: str, shape: Shapes, least: int, *, exactly: int | None = None) -> None:
    """Raise ValueError unless a shape is that of one input with enough axes.

    Args:
        owner: The layer's name.
        shape: The shape of its input, or the shapes of several.
        least: The least number of axes; the number in the error about fewer axes.
        exactly: The number of axes; None: `least` or more.
    """
    if not is_shape(shape):
        raise ValueError(
            f'Layer "{owner}" expects 1 input(s), but it received {len(list(shapes_in(shape)))} '
            f"input tensors. Shapes received: {shape}"
        )
    wanted = "" if len(shape) >= least else f"min_ndim={least}"
    if not wanted and exactly is not None and len(shape) != exactly:
        wanted = f"ndim={exactly}"
    if wanted:
        raise ValueError(
            f'Input 0 of layer "{owner}" is incompatible with the layer: expected {wanted}, found '
            f"ndim={len(shape)}. Full shape received: {shape}"
        )


def check_matches(owner: str, expected: Shape, received: Shape, which: str = "0") -> None:
    """Raise ValueError unless ``received`` is ``expected`` wherever both are known.

    Args:
        owner: The layer's name.
        expected: What it was made for.
        received: What it was given.
        which: The number of the input, and its name where there are several.

    Raises:
        ValueError: They differ; the text gives both.
    """
    if len(expected) == len(received) and all(
        None in (want, have) or want == have for want, have in zip(expected, received, strict=True)
    ):
        return
    raise ValueError(
        f'Input {which} of layer "{owner}" is incompatible with the layer: expected '
        f"shape={expected}, found shape={received}"
    )
