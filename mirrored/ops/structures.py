"""TensorFlow's functions of structures, `tf.nest`: of all that it takes for one.

The library's own structures are lists, tuples and dicts alone, which `_nest` is quicker with.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, MappingView, Sequence
from typing import Any, NamedTuple

from mirrored._arguments import explained_only
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor_shape import TensorShape

_NESTED = (list, tuple, dict, Sequence, Mapping, MappingView)  # The usual ones first.
# Tuples here, and no structures: TensorFlow has classes for them. Text is none either.
_LEAVES = (TensorShape, TensorSpec, str, bytes)
_DIFFERENT = "The two structures don't have the same nested structure."


class _Parts(NamedTuple):
    """What a structure is made of.

    Attributes:
        values: The parts, those of a mapping in the order of its sorted keys.
        keys: The keys of a mapping, in its own order; None for other structures.
    """

    values: list[Any]
    keys: list[Any] | None = None


def is_nested(seq: Any) -> bool:
    """Return whether a value is a structure, as a list, a tuple or a dict is.

    So are named tuples, other sequences and mappings, views of these, and classes of attrs; text,
    arrays, tensors, sets and shapes are not.

    Args:
        seq: The value.

    Example:
        >>> import mirrored as mr
        >>> mr.nest.is_nested([1, 2]), mr.nest.is_nested("ab"), mr.nest.is_nested(mr.ones((2,)))
        (True, False, False)
    """
    if isinstance(seq, _LEAVES):
        return False
    return isinstance(seq, _NESTED) or _has_fields(seq)


@explained_only
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of a structure in order, those of a mapping by its sorted keys.

    Args:
        structure: The structure; what is none is one leaf.
        expand_composites: Accepted for compatibility: there is nothing to expand.

    Raises:
        TypeError: The keys of a mapping cannot be sorted.

    Example:
        >>> import mirrored as mr
        >>> mr.nest.flatten({"b": [1, 2], "a": (3, {"c": 4})})
        [3, 4, 1, 2]
    """
    leaves: list[Any] = []
    _add_leaves(structure, leaves)
    return leaves


@explained_only
def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Return a structure like the first, of what a function makes of corresponding leaves.

    Args:
        func: From one leaf of each structure to that of the result.
        *structure: One structure or more, of one form.
        **kwargs: `check_types=False` lets lists, tuples and mappings of other types correspond;
            `expand_composites` is accepted for compatibility.

    Raises:
        TypeError: `func` cannot be called, or the types of structures differ.
        ValueError: Their forms differ, there is none, or there are other options.

    Example:
        >>> import mirrored as mr
        >>> mr.nest.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [3, 4]})
        {'a': [4, 6]}
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func!r}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    options = {"check_types": True, "expand_composites": False, **kwargs}
    if len(options) > 2:
        unknown = next(name for name in options if name not in ("check_types", "expand_composites"))
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{unknown}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=options["check_types"])
    return _mapped(func, structure)


@explained_only
def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """Return a structure of the form of another, of leaves in the order of `flatten`.

    Args:
        structure: What it is to be like.
        flat_sequence: The leaves, in a list.
        expand_composites: Accepted for compatibility: there is nothing to expand.

    Raises:
        TypeError: `flat_sequence` is no sequence.
        ValueError: It has another number of leaves.

    Example:
        >>> import mirrored as mr
        >>> mr.nest.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])
        {'b': 3, 'a': [1, 2]}
    """
    if not is_nested(flat_sequence):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence!r:.200}\ninto a structure, but found "
            f"incompatible type `{type(flat_sequence)}` instead. Give a list of leaves."
        )
    count = len(flatten(structure))
    if len(flat_sequence) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} atoms, but flat_sequence had "
            f"{len(flat_sequence)} items.  Structure: {structure!r:.200}, flat_sequence: "
            f"{flat_sequence!r:.200}."
        )
    leaves = iter([flat_sequence[i] for i in range(count)])
    return _mapped(lambda _: next(leaves), (structure,))


@explained_only
def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Check that two structures have one form, whatever their leaves are.

    Args:
        nest1: One structure.
        nest2: The other.
        check_types: Whether sequences have to be of one type, and mappings to have the same keys.
            Lists pass for lists, mappings for mappings, and named tuples for those of the same name
            and fields.
        expand_composites: Accepted for compatibility: there is nothing to expand.

    Raises:
        ValueError: They differ in where there are structures, in numbers of parts or in keys.
        TypeError: They differ in types.

    Example:
        >>> import mirrored as mr
        >>> mr.nest.assert_same_structure([1, (2, 3)], ["a", ("b", "c")])
        >>> mr.nest.assert_same_structure([1, 2], (1, 2))
        Traceback (most recent call last):
        TypeError: The two structures don't have the same nested structure. ...
    """
    try:
        _compare(nest1, nest2, check_types)
    except (TypeError, ValueError) as error:
        if not str(error).startswith(_DIFFERENT):
            raise
        wholes = f"\n\nFirst structure: {_shown(nest1)}\n\nSecond structure: {_shown(nest2)}"
        raise type(error)(f"{error}{wholes}") from None


# ---------------------------------------------------------------------------- parts


def _has_fields(value: Any) -> bool:
    """Return whether a value is of a class of attrs, or a dataclass that says how it is flat."""
    kind = type(value)
    return hasattr(kind, "__attrs_attrs__") or (
        hasattr(kind, "__tf_flatten__") and dataclasses.is_dataclass(kind)
    )


def _parts_of(value: Any) -> _Parts | None:
    """Return what a value is made of; None: it is a leaf."""
    if not is_nested(value):
        return None
    if isinstance(value, Mapping):
        return _Parts([value[key] for key in sorted(value)], list(value))
    if hasattr(type(value), "__attrs_attrs__"):
        return _Parts([getattr(value, attribute.name) for attribute in type(value).__attrs_attrs__])
    if hasattr(type(value), "__tf_flatten__"):
        return _Parts(list(value.__tf_flatten__()[1]))
    return _Parts(list(value))


def _like(value: Any, parts: _Parts) -> Any:
    """Return a structure of the type of another, of other parts."""
    kind, values = type(value), parts.values
    if parts.keys is not None:
        by_key = dict(zip(sorted(parts.keys), values, strict=True))
        pairs = [(key, by_key[key]) for key in parts.keys]
        return kind(value.default_factory, pairs) if isinstance(value, defaultdict) else kind(pairs)
    if isinstance(value, range | MappingView):
        return values
    if hasattr(kind, "_fields") or hasattr(kind, "__attrs_attrs__"):
        return kind(*values)
    if hasattr(kind, "__tf_flatten__"):
        return kind.__tf_unflatten__(value.__tf_flatten__()[0], tuple(values))
    return kind(values)


def _add_leaves(structure: Any, leaves: list[Any]) -> None:
    parts = _parts_of(structure)
    if parts is None:
        leaves.append(structure)
    else:
        for part in parts.values:
            _add_leaves(part, leaves)


def _mapped(func: Callable[..., Any], structures: tuple[Any, ...]) -> Any:
    """Return what a function makes of structures of one form."""
    all_parts = [_parts_of(structure) for structure in structures]
    first = all_parts[0]
    if first is None:
        return func(*structures)
    rows = zip(*(parts.values for parts in all_parts if parts is not None), strict=True)
    return _like(structures[0], _Parts([_mapped(func, row) for row in rows], first.keys))


def _compare(first: Any, second: Any, check_types: bool) -> None:
    """Raise ValueError or TypeError where two structures differ."""
    parts, others = _parts_of(first), _parts_of(second)
    if parts is None and others is None:
        return
    if parts is None or others is None:
        nested, leaf = (first, second) if others is None else (second, first)
        raise ValueError(
            f'{_DIFFERENT} Substructure "{_shown(nested)}" is a sequence, while substructure '
            f'"{_shown(leaf)}" is not.'
        )
    if check_types:
        _compare_types(first, second, parts, others)
    if len(parts.values) != len(others.values):
        raise ValueError(
            f"{_DIFFERENT} The two structures don't have the same number of elements. First: "
            f"{_shown(first)}, second: {_shown(second)}."
        )
    for pair in zip(parts.values, others.values, strict=True):
        _compare(*pair, check_types)


def _compare_types(first: Any, second: Any, parts: _Parts, others: _Parts) -> None:
    if parts.keys is not None and others.keys is not None:
        if set(parts.keys) != set(others.keys):
            raise ValueError(
                f"{_DIFFERENT} The two dictionaries don't have the same set of keys. First "
                f"structure has keys {parts.keys}, while second structure has keys {others.keys}."
            )
        return
    kinds = type(first), type(second)
    views = all(isinstance(structure, MappingView) for structure in (first, second))
    lists = isinstance(first, list) and isinstance(second, list)
    named = [(kind.__name__, getattr(kind, "_fields", None)) for kind in kinds]
    if kinds[0] is kinds[1] or views or lists or (named[0] == named[1] and named[0][1]):
        return
    raise TypeError(
        f"{_DIFFERENT} The two do not have the same sequence type. First structure has type "
        f"{kinds[0].__name__}, while second structure has type {kinds[1].__name__}."
    )


def _shown(value: Any) -> str:
    return f"type={type(value).__name__} str={value!s:.200}"
