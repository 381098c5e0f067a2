"""Shapes as TensorFlow 1 has them: sizes are `Dimension`s, and the number of axes may be unknown.

Inside the library shapes are tuples; these are what programs see.
"""

import operator
from collections.abc import Iterator
from typing import Any, NoReturn

from mirrored.ops.spec import is_any_shape
from mirrored.ops.tensor_shape import ShapeQuestions, as_size


def _computed(function: Any, first: Any, other: Any) -> Any:
    if first is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    try:
        sizes = operator.index(first), operator.index(other)
    except TypeError:
        return NotImplemented
    size = function(*sizes)
    return Dimension(size) if size >= 0 else size


def _computing(function: Any) -> tuple[Any, Any]:
    """Return an operator's method of sizes, and the one for a size on the right."""
    return (
        lambda size, other: _computed(function, size, other),
        lambda size, other: _computed(function, other, size),
    )


class Dimension(int):
    """The size of an axis: an integer that has a `value`.

    Args:
        value: The size; None makes one that is not known.

    Raises:
        TypeError: It is no integer.
        ValueError: It is below 0.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default():
        ...     x = tf.placeholder(tf.float32, [None, 3])
        >>> x.shape[1].value, x.shape[0].value, x.shape[1] * 2
        (3, None, Dimension(6))
    """

    def __new__(cls, value: Any) -> Any:
        """Return the size, checked."""
        if value is None or value is UNKNOWN:
            return UNKNOWN
        return int.__new__(cls, as_size(value))

    @property
    def value(self) -> int | None:
        """The size; None if it is unknown."""
        return int(self)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether both sizes can be equal."""
        value = Dimension(other).value
        return value is None or value == int(self)

    def merge_with(self, other: Any) -> Any:
        """Return the size that both are.

        Raises:
            ValueError: They differ.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {Dimension(other)} are not compatible")
        return self

    __add__, __radd__ = _computing(operator.add)
    __sub__, __rsub__ = _computing(operator.sub)
    __mul__, __rmul__ = _computing(operator.mul)
    __floordiv__, __rfloordiv__ = _computing(operator.floordiv)
    __mod__ = _computing(operator.mod)[0]

    def __repr__(self) -> str:
        return f"Dimension({int(self)})"

    def __str__(self) -> str:
        return str(int(self))


class _UnknownDimension:
    """The size of an axis that is not known."""

    value = None

    def __index__(self) -> NoReturn:
        raise TypeError("An unknown Dimension is not an integer: use `tf.shape(x)`.")

    def is_compatible_with(self, other: Any) -> bool:
        """Return True: it may be any size."""
        return True

    def merge_with(self, other: Any) -> Any:
        """Return the size that is known, if one is."""
        return Dimension(other)

    def _unknown(self, _: Any) -> "_UnknownDimension":
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown

    def _undecided(self, _: object) -> None:
        """Return None, as TensorFlow does: it is not known how it compares."""

    __lt__ = __le__ = __gt__ = __ge__ = _undecided

    def __eq__(self, other: object) -> Any:
        return True if other is None or other is self else None

    def __ne__(self, other: object) -> Any:
        return False if other is None or other is self else None

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "Dimension(None)"

    def __str__(self) -> str:
        return "?"


UNKNOWN = _UnknownDimension()


Sizes = tuple[int | None, ...]

# Whether sizes are integers and None, as in TensorFlow 2, and no `Dimension`s.
_plain_sizes = [False]


def enable_v2_tensorshape() -> None:
    """Use integers and None as the sizes in shapes."""
    _plain_sizes[0] = True


def disable_v2_tensorshape() -> None:
    """Use `Dimension`s as the sizes in shapes."""
    _plain_sizes[0] = False


def _shown_size(size: int | None) -> Any:
    return size if _plain_sizes[0] else Dimension(size)


def sizes_of(shape: Any) -> Sizes | None:
    """Return the sizes that a shape has; None: not even their number is known.

    Args:
        shape: A `TensorShape`, a size, or a list of sizes, with None for those that are not known.
    """
    if isinstance(shape, TensorShape):
        return shape.sizes
    if is_any_shape(shape):
        return None
    listed = shape if hasattr(shape, "__iter__") else [shape]
    return tuple(Dimension(size).value for size in listed)


class TensorShape(ShapeQuestions):
    """The sizes of a tensor's axes.

    Args:
        dims: The sizes, with None for those that are not known; None: not even their number is.

    Attributes:
        sizes: The sizes as integers and None, or None.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> shape = tf.TensorShape([None, 3])
        >>> shape.as_list(), shape.ndims, str(shape)
        ([None, 3], 2, '(?, 3)')
        >>> tf.TensorShape(None)
        TensorShape(None)
    """

    def __init__(self, dims: Any) -> None:
        self.sizes = sizes_of(dims)

    @property
    def _known(self) -> Sizes | None:
        return self.sizes

    @property
    def rank(self) -> int | None:
        """The number of axes; None if it is unknown."""
        return self.ndims

    @property
    def dims(self) -> list[Any] | None:
        """The sizes as `Dimension`s; None if their number is unknown."""
        return None if self.sizes is None else [Dimension(size) for size in self.sizes]

    def __len__(self) -> int:
        if self.sizes is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self.sizes)

    def __bool__(self) -> bool:
        return self.sizes is not None

    def __iter__(self) -> Iterator[Any]:
        if self.sizes is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return map(_shown_size, self.sizes)

    def __getitem__(self, key: Any) -> Any:
        if self.sizes is None:
            return TensorShape(None) if isinstance(key, slice) else _shown_size(None)
        part = self.sizes[key]
        return TensorShape(part) if isinstance(part, tuple) else _shown_size(part)

    def __eq__(self, other: object) -> bool:
        try:
            return self.sizes == sizes_of(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.sizes)

    def __str__(self) -> str:
        return text_of(self.sizes)

    def __repr__(self) -> str:
        return f"TensorShape({None if self.sizes is None else list(self)})"


def check_same(mine: Sizes | None, other: Sizes | None) -> None:
    """Raise ValueError where sizes that are known differ, as TensorFlow's graphs do."""
    if mine is None or other is None:
        return
    if len(mine) != len(other):
        raise ValueError(f"Shapes must be equal rank, but are {len(mine)} and {len(other)}")
    for axis, (first, two) in enumerate(zip(mine, other, strict=True)):
        if None not in (first, two) and first != two:
            shapes = " and ".join(bracketed(shape) for shape in (mine, other))
            raise ValueError(
                f"Dimension {axis} in both shapes must be equal, but are {first} and {two}. Shapes "
                f"are {shapes}."
            )


def bracketed(sizes: Sizes) -> str:
    """Return sizes as TensorFlow's kernels write them."""
    return f"[{','.join('?' if size is None else str(size) for size in sizes)}]"


def text_of(sizes: Sizes | None) -> str:
    """Return sizes as TensorFlow writes them."""
    if sizes is None:
        return "<unknown>"
    unknown = "None" if _plain_sizes[0] else "?"
    texts = [unknown if size is None else str(size) for size in sizes]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
