"""Shapes as users see them: tuples, which answer what TensorFlow's shapes are asked.

Inside the library shapes are plain tuples, which are quicker.
"""

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self, SupportsIndex, cast, overload

from mirrored._absent import refused_members
from mirrored._arguments import explained
from mirrored._types import PartialShapeLike


class ShapeQuestions:
    """What shapes answer about their sizes. A subclass creates a shape of sizes, or of None."""

    __slots__ = ()

    @property
    def _known(self) -> tuple[int | None, ...] | None:
        """The sizes; None if even their number is unknown."""
        raise NotImplementedError

    def _like(self, dims: Any) -> Self:
        create: Callable[[Any], Self] = type(self)
        return create(dims)

    @property
    def ndims(self) -> int | None:
        """The number of axes; None if it is unknown."""
        return None if self._known is None else len(self._known)

    def as_list(self) -> list[int | None]:
        """Return the sizes, in a list.

        Raises:
            ValueError: Their number is unknown.

        Example:
            >>> TensorShape((None, 3)).as_list()
            [None, 3]
        """
        if self._known is None:
            raise ValueError(
                "as_list() is not defined on an unknown TensorShape. Test `shape.rank is None` "
                "first."
            )
        return [*self._known]

    def num_elements(self) -> int | None:
        """Return how many elements there are; None where a size is not known.

        Example:
            >>> TensorShape((2, 3)).num_elements(), TensorShape((None, 3)).num_elements()
            (6, None)
        """
        sizes: Any = self._known
        return math.prod(sizes) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Return whether all sizes are known."""
        return self._known is not None and None not in self._known

    def assert_is_fully_defined(self) -> None:
        """Raise unless all sizes are known.

        Raises:
            ValueError: One is not.
        """
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a tensor may have both shapes.

        Args:
            other: The other shape; None is any.
        """
        own, its = self._known, self._like(other)._known
        if own is None or its is None:
            return True
        pairs = zip(own, its, strict=False)
        return len(own) == len(its) and all(None in pair or pair[0] == pair[1] for pair in pairs)

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise unless a tensor may have both shapes.

        Args:
            other: The other shape; None is any.

        Raises:
            ValueError: It may not.
        """
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {self._like(other)} are incompatible")

    def merge_with(self, other: Any) -> Self:
        """Return the shape with the sizes that either knows.

        Args:
            other: The other shape; None knows nothing.

        Raises:
            ValueError: They differ.

        Example:
            >>> TensorShape((None, 3)).merge_with((2, None))
            (2, 3)
        """
        other = self._like(other)
        own, its = self._known, other._known
        if own is None or its is None:
            return other if own is None else self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        pairs = zip(own, its, strict=True)
        return self._like([more if size is None else size for size, more in pairs])

    def concatenate(self, other: Any) -> Self:
        """Return the sizes of both shapes, one after the other.

        Args:
            other: The other shape; with None nothing is known of the result.

        Example:
            >>> TensorShape((2, 3)).concatenate([4])
            (2, 3, 4)
        """
        own, its = self._known, self._like(other)._known
        return self._like(None if own is None or its is None else (*own, *its))

    def with_rank(self, rank: int) -> Self:
        """Return the shape if it has `rank` axes; if that is unknown, a shape with `rank` axes.

        Args:
            rank: How many.

        Raises:
            ValueError: It has others.

        Example:
            >>> TensorShape(None).with_rank(2)
            (None, None)
        """
        self.assert_has_rank(rank)
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> Self:
        """Return the shape if it has at least a number of axes.

        Args:
            rank: How many.

        Raises:
            ValueError: It has fewer.
        """
        if self.ndims is not None and self.ndims < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> Self:
        """Return the shape if it has at most a number of axes.

        Args:
            rank: How many.

        Raises:
            ValueError: It has more.
        """
        if self.ndims is not None and self.ndims > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raise an error unless the shape has a number of axes.

        Args:
            rank: How many.

        Raises:
            ValueError: There are others.
        """
        if self.ndims not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")


@explained
@refused_members(
    "tf.TensorShape",
    "as_proto cast experimental_as_proto experimental_from_proto experimental_type_proto flatten "
    "from_tensors most_specific_common_supertype placeholder_value to_tensors",
)
# To type checkers sizes are integers, since tensors have no None in theirs.
class TensorShape(ShapeQuestions, tuple[int, ...]):
    """The size of each axis, None where it is not known: a tuple that can be asked about itself.

    It equals a tuple or a list of the same sizes, prints as a tuple, and is false where it has no
    axes. `TensorShape(None)` has an unknown number of axes: its `rank` is None, and it has no
    length and no sizes.

    Args:
        dims: The sizes: integers of 0 or more, or None; or one of them. None: any number of axes.

    Raises:
        TypeError: A size is something else.
        ValueError: A size is below 0.

    Example:
        >>> import mirrored as mr
        >>> shape = mr.zeros((2, 3)).shape
        >>> shape.as_list(), shape.rank, shape.num_elements(), shape == [2, 3]
        ([2, 3], 2, 6, True)
        >>> mr.TensorShape([None, 3]).is_compatible_with(shape)
        True
    """

    __slots__ = ()

    def __new__(cls, dims: PartialShapeLike | None) -> Self:
        """Return the shape, once its sizes are checked."""
        if dims is None or isinstance(dims, _UnknownShape):
            return cast(Self, tuple.__new__(_UnknownShape))
        return tuple.__new__(cls, dims if isinstance(dims, TensorShape) else _sizes(dims))

    @property
    def _known(self) -> tuple[int | None, ...] | None:
        return self

    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            other = tuple(other)
        return tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    @overload
    def __getitem__(self, key: SupportsIndex) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> "TensorShape": ...

    def __getitem__(self, key: Any) -> Any:
        result = tuple.__getitem__(self, key)
        return _shape_of(result) if isinstance(key, slice) else result

    def __add__(self, other: Any) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: Any) -> "TensorShape":
        return TensorShape(other).concatenate(self)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    @property
    def ndims(self) -> int:
        """The number of axes."""
        return len(self)

    @property
    def dims(self) -> list[int | None]:
        """The sizes, in a list."""
        return [*self]

    def assert_same_rank(self, other: PartialShapeLike | None) -> None:
        """Raise unless another shape has as many axes.

        Args:
            other: The other shape; None has any.

        Raises:
            ValueError: It has not.
        """
        other = TensorShape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether another shape has the same sizes, or None in their place.

        Args:
            other: The other shape.
        """
        other = TensorShape(other)
        if None in (self.rank, other.rank):
            return other.rank is None
        pairs = zip(self, other, strict=False)
        return len(self) == len(other) and all(its in (None, own) for own, its in pairs)

    def most_specific_compatible_shape(self, other: PartialShapeLike | None) -> "TensorShape":
        """Return the shape with the sizes that both have, and None where they differ.

        Args:
            other: The other shape, of as many axes; None has any.

        Raises:
            ValueError: It has others.

        Example:
            >>> TensorShape((2, 3)).most_specific_compatible_shape((2, 4))
            (2, None)
        """
        other = TensorShape(other)
        if None in (self.rank, other.rank):
            return TensorShape(None)
        self.assert_same_rank(other)
        pairs = zip(self, other, strict=True)
        return _shape_of(own if own == its else None for own, its in pairs)


class _UnknownShape(TensorShape):
    """A shape whose number of axes is unknown; a tuple only to be a `TensorShape`."""

    __slots__ = ()
    _known: Any = None
    rank: Any = None
    ndims: Any = None
    dims: Any = None

    def _like(self, dims: Any) -> Any:
        return TensorShape(dims)

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice):
            return None
        start, stop = key.start or 0, key.stop
        if key.step not in (None, 1):
            raise ValueError(f"A slice of {self!r} has no step. Received: a step of {key.step}.")
        if stop is None or start < 0 or stop < 0:
            return self
        return _shape_of([None] * (stop - start))

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _UnknownShape)

    __hash__ = TensorShape.__hash__

    def __str__(self) -> str:
        return "<unknown>"

    def __repr__(self) -> str:
        return "TensorShape(None)"


_NO_RANK = (
    "This shape's number of axes is unknown: it has no length and no sizes. Received: "
    "TensorShape(None). Give a shape that has them, as [None, 3]; ask for `rank`, which is None."
)


def _without_rank(shape: TensorShape, *_: Any) -> NoReturn:
    raise ValueError(_NO_RANK)


# All else that a tuple answers.
for _name in ["len", "iter", "contains", "reversed", "lt", "le", "gt", "ge", "mul", "rmul"]:
    setattr(_UnknownShape, f"__{_name}__", _without_rank)
for _name in ("count", "index"):
    setattr(_UnknownShape, _name, _without_rank)


def _shape_of(sizes: Iterable[Any]) -> TensorShape:
    """Return a shape of sizes that are known to be some."""
    return tuple.__new__(TensorShape, sizes)


def _sizes(dims: Any) -> tuple[int | None, ...]:
    """Return sizes that a user wrote; an integer is one of them."""
    if isinstance(dims, str | bytes):
        _refuse(dims)
    if hasattr(dims, "__index__") and not getattr(dims, "shape", ()):
        dims = (dims,)
    try:
        sizes = tuple(dims)
    except TypeError:
        _refuse(dims)
    return tuple(None if size is None else as_size(size) for size in sizes)


def as_size(value: Any) -> int:
    """Return the size of an axis, or raise TypeError or ValueError."""
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, got value "
            f"{value!r} with type {type(value)!r}"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _refuse(dims: Any) -> NoReturn:
    raise TypeError(
        f"Failed to convert {dims!r} to a shape. A shape must be one size, such as 10, or a list "
        "of sizes, such as [1, 2, None]."
    )
