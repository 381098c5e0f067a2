"""The types of arguments of public functions. `mirrored/types/__init__.py` explains each.

Type checkers read the unions. At run time each name stands for itself, so that `help` shows
`TensorLike` and not a union of a dozen types.
"""

from typing import TYPE_CHECKING, ForwardRef

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Protocol, TypeAlias, TypeVar

    import numpy as np

    _Item_co = TypeVar("_Item_co", covariant=True)
    _Leaf = TypeVar("_Leaf")

    class _SupportsTensor(Protocol):
        """Tensors of all kinds, and variables."""

        def _as_tensor(self) -> Any: ...

    class _SupportsArray(Protocol):
        """Tensors, and the arrays of NumPy and of other libraries."""

        def __array__(self) -> np.ndarray[Any, Any]: ...

    class _SupportsArrayInterface(Protocol):
        @property
        def __array_interface__(self) -> dict[str, Any]: ...

    class _SupportsDLPack(Protocol):
        def __dlpack__(self) -> Any: ...

    class _NestedSequence(Protocol[_Item_co]):
        """Lists, tuples and ranges. Strings are none, since they contain strings alone."""

        def __len__(self) -> int: ...
        def __getitem__(self, index: int, /) -> "_Item_co | _NestedSequence[_Item_co]": ...
        def __contains__(self, item: object, /) -> bool: ...
        def __iter__(self) -> "Iterator[_Item_co | _NestedSequence[_Item_co]]": ...

    _Array: TypeAlias = _SupportsTensor | _SupportsArray | _SupportsArrayInterface | _SupportsDLPack
    TensorLike: TypeAlias = (
        float | _Array | Sequence[float | _Array | _NestedSequence[float | _Array]]
    )
    ShapeLike: TypeAlias = int | _Array | Sequence[int | _Array]
    PartialShapeLike: TypeAlias = int | _Array | Sequence[int | _Array | None]
    AxisLike: TypeAlias = int | Sequence[int]
    DTypeLike: TypeAlias = np.dtype[Any] | str | type[Any]
    PathLike: TypeAlias = str | os.PathLike[str]
    Identifier: TypeAlias = str | Mapping[str, Any] | Callable[..., Any]
    Nest: TypeAlias = "_Leaf | _NestedSequence[Nest[_Leaf]] | Mapping[Any, Nest[_Leaf]]"
else:
    from typing import Generic, NewType, TypeVar

    def _named(name):
        alias = NewType(name, object)
        alias.__module__ = "mirrored.types"
        return alias

    TensorLike = _named("TensorLike")
    ShapeLike = _named("ShapeLike")
    PartialShapeLike = _named("PartialShapeLike")
    AxisLike = _named("AxisLike")
    DTypeLike = _named("DTypeLike")
    PathLike = _named("PathLike")
    Identifier = _named("Identifier")

    class Nest(Generic[TypeVar("_Leaf")]):
        """Nested lists, tuples and dicts."""

        __module__ = "mirrored.types"


def late_type(module: str, name: str) -> ForwardRef:
    """Return a type for annotations whose module `typing.get_type_hints` imports.

    Args:
        module: The module, which is not imported before: it imports the caller, or takes long.
        name: The name of the type in it.
    """
    return ForwardRef(f"__import__({module!r}, fromlist=[{name!r}]).{name}")


if TYPE_CHECKING:
    from matplotlib.figure import Figure as Figure
else:
    Figure = late_type("matplotlib.figure", "Figure")
