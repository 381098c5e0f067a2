"""`keras.tree`: functions on nested structures.

They differ from TensorFlow's, `tf.nest`: in what is a structure, in orders of keys, and in errors.
"""

import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from mirrored._arguments import explained_only
from mirrored.ops.spec import TensorSpec

# Instances of subclasses are leaves, as they are in Keras.
_MAPPINGS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)


class MAP_TO_NONE:
    """What a function returns to `traverse` for a part to become None.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.traverse(lambda x: mr.keras.tree.MAP_TO_NONE if x == 1 else None, [1, 2])
        [None, 2]
    """


def is_nested(structure: Any) -> bool:
    """Return whether a value is a structure: a list, tuple, named tuple, deque or dict.

    Instances of other subclasses of these are none, but of `OrderedDict` and `defaultdict`.

    Args:
        structure: The value.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.is_nested({"a": 1}), mr.keras.tree.is_nested(1)
        (True, False)
    """
    kind = type(structure)
    if kind in _MAPPINGS or kind in _SEQUENCES:
        return True
    # Named tuples, and the like of the standard library's, as `time.struct_time`.
    fields = isinstance(structure, tuple) and (
        hasattr(kind, "_fields") or hasattr(kind, "n_fields")
    )
    return fields and not isinstance(structure, TensorSpec)


def flatten(structure: Any) -> list[Any]:
    """Return the leaves of a structure in order.

    Those of a dict go by its sorted keys, those of an `OrderedDict` in its own order.

    Args:
        structure: The structure; what is none is one leaf.

    Raises:
        TypeError: The keys of a dict cannot be sorted.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.flatten({"b": [1, 2], "a": (3, None)})
        [3, None, 1, 2]
    """
    return [leaf for _, leaf in flatten_with_path(structure)]


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the leaves of a structure, each with the keys and numbers that lead to it.

    Args:
        structure: The structure.

    Raises:
        TypeError: The keys of a dict cannot be sorted.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.flatten_with_path([{"a": 5}])
        [((0, 'a'), 5)]
    """
    if not is_nested(structure):
        return [((), structure)]
    parts = _parts(structure).items()
    return [((key, *path), leaf) for key, part in parts for path, leaf in flatten_with_path(part)]


@explained_only
def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """Return a structure like the first, of what a function makes of corresponding leaves.

    Args:
        func: From one leaf of each structure to that of the result.
        *structures: One structure or more, of one form.
        none_is_leaf: False: None stays what it is.

    Raises:
        TypeError: `func` cannot be called.
        ValueError: Their forms differ, or there is no structure.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.map_structure(lambda x, y: x + y, {"a": [1, 2]}, {"a": [3, 4]})
        {'a': [4, 6]}
    """
    _check(func, structures)

    def result(*leaves: Any) -> Any:
        nothing = [] if none_is_leaf else [leaf for leaf in leaves if leaf is None]
        if any(map(is_nested, leaves)) or len(nothing) not in (0, len(leaves)):
            _differ(leaves)
        return None if nothing else func(*leaves)

    return _mapped(result, structures[0], structures)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """Return a structure like a shallow one, of what a function makes of what is at its leaves.

    Args:
        shallow_structure: The shallow structure.
        func: From what is at one place of each structure to that of the result.
        *structures: One structure or more, which may go on where the shallow one ends.

    Raises:
        TypeError: `func` cannot be called.
        ValueError: A structure ends before the shallow one, or is of another form, or there is
            none.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.map_structure_up_to([None, None], len, [[1, 1], [2]])
        [2, 1]
    """
    _check(func, structures)
    return _mapped(func, shallow_structure, structures)


@explained_only
def assert_same_structure(a: Any, b: Any, check_types: bool | None = None) -> None:
    """Check that two structures have one form and the same types, whatever their leaves are.

    Args:
        a: One structure.
        b: The other; dicts, `OrderedDict`s and `defaultdict`s may correspond.
        check_types: Has no effect, and is warned of.

    Raises:
        ValueError: They differ.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.assert_same_structure([1, (2, 3)], ["a", ("b", "c")])
        >>> mr.keras.tree.assert_same_structure([1, 2], (1, 2))
        Traceback (most recent call last):
        ValueError: Structures don't have the same nested structure. ...
    """
    if check_types is not None:
        warnings.warn(
            "The `check_types` argument is deprecated and no longer has any effect, please remove."
            " For a looser check, use `keras.tree.assert_same_paths()`.",
            DeprecationWarning,
            stacklevel=3,
        )
    map_structure(lambda *leaves: None, a, b)


def assert_same_paths(a: Any, b: Any) -> None:
    """Check that the same keys and numbers lead to the leaves of two structures.

    Args:
        a: One structure.
        b: The other; lists, tuples, named tuples and deques may correspond.

    Raises:
        ValueError: Others do.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.assert_same_paths([0, 1], (2, 3))
    """
    paths, other = ({path for path, _ in flatten_with_path(tree)} for tree in (a, b))
    if paths != other:
        raise ValueError(
            "`a` and `b` don't have the same paths. Paths only in `a`: "
            f"{sorted(paths - other, key=repr)}; only in `b`: {sorted(other - paths, key=repr)}"
        )


def pack_sequence_as(structure: Any, flat_sequence: Iterable[Any]) -> Any:
    """Return a structure of the form of another, of leaves in the order of `flatten`.

    Args:
        structure: What it is to be like; what is no structure is one leaf.
        flat_sequence: The leaves.

    Raises:
        TypeError: `flat_sequence` cannot be iterated over.
        ValueError: It has another number of leaves.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])
        {'b': 3, 'a': [1, 2]}
    """
    leaves, count = list(flat_sequence), len(flatten(structure))
    if len(leaves) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} leaves, but flat_sequence had "
            f"{len(leaves)} items. Structure: {structure!r:.200}, flat_sequence: {leaves!r:.200}."
        )
    remaining = iter(leaves)
    return _mapped(lambda _: next(remaining), structure, (structure,))


@explained_only
def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Return a structure with what a function returns in the places of its parts.

    Args:
        func: From a part, be it a structure or a leaf, to what stands in its place; None: nothing
            changes there, `MAP_TO_NONE`: None does.
        structure: The structure.
        top_down: Whether it is called on a structure before its parts, which it is not called on
            then where it returned something; else after them.

    Raises:
        TypeError: `func` cannot be called.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.traverse(lambda x: -x if isinstance(x, int) else None, [1, (2,)])
        [-1, (-2,)]
    """
    _check(func, (structure,))
    result = func(structure) if top_down else None
    if result is None and is_nested(structure):
        parts = _parts(structure).items()
        structure = _like(structure, {key: traverse(func, part, top_down) for key, part in parts})
    if not top_down:
        result = func(structure)
    return structure if result is None else None if result is MAP_TO_NONE else result


def lists_to_tuples(structure: Any) -> Any:
    """Return a structure with tuples in the places of its lists.

    Args:
        structure: The structure.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.lists_to_tuples([1, {"a": [2]}])
        (1, {'a': (2,)})
    """
    return traverse(
        lambda part: tuple(part) if isinstance(part, list) else None, structure, top_down=False
    )


def map_shape_structure(func: Callable[[Any], Any], structure: Any) -> Any:
    """Return a structure of what a function makes of its shapes: tuples and lists of sizes.

    Args:
        func: From a shape to what stands in its place; it is called on other leaves too.
        structure: The structure.

    Raises:
        TypeError: `func` cannot be called.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.tree.map_shape_structure(len, {"a": (None, 2), "b": [(3,)]})
        {'a': 2, 'b': [1]}
    """
    _check(func, (structure,))
    return _mapped(func, structure, (structure,), _is_shape)


def _is_shape(part: Any) -> bool:
    return isinstance(part, list | tuple) and all(
        size is None or isinstance(size, int) for size in part
    )


def _parts(structure: Any) -> dict[Any, Any]:
    """Return the parts of what is nested, by their keys or numbers."""
    if isinstance(structure, dict):
        keys = structure if isinstance(structure, OrderedDict) else sorted(structure)
        return {key: structure[key] for key in keys}
    return dict(enumerate(structure))


def _like(structure: Any, parts: dict[Any, Any]) -> Any:
    """Return a structure of the type of another, of other parts."""
    kind = type(structure)
    if isinstance(structure, dict):
        pairs = [(key, parts[key]) for key in structure]
        if isinstance(structure, defaultdict):
            return kind(structure.default_factory, pairs)
        return kind(pairs)
    if isinstance(structure, deque):
        return deque(parts.values(), structure.maxlen)
    return kind(*parts.values()) if hasattr(kind, "_fields") else kind(list(parts.values()))


def _mapped(
    func: Callable[..., Any],
    shallow: Any,
    structures: Sequence[Any],
    is_leaf: Callable[[Any], bool] = lambda part: False,
) -> Any:
    """Return what a function makes of structures, up to the leaves of a shallow one."""
    if is_leaf(shallow) or not is_nested(shallow):
        return func(*structures)
    parts = _parts(shallow)
    rows = [_parts(structure) for structure in structures if _kind(structure) is _kind(shallow)]
    if len(rows) < len(structures) or any(row.keys() != parts.keys() for row in rows):
        _differ((shallow, *structures))
    return _like(
        shallow,
        {
            key: _mapped(func, part, [row[key] for row in rows], is_leaf)
            for key, part in parts.items()
        },
    )


def _kind(structure: Any) -> type[Any]:
    """Return a structure's type, which is one for all kinds of dicts."""
    kind = type(structure)
    return dict if kind in _MAPPINGS else kind


def _check(func: Any, structures: Sequence[Any]) -> None:
    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: func={func}")
    if not structures:
        raise ValueError("Must provide at least one structure")


def _differ(structures: Sequence[Any]) -> NoReturn:
    received = ", ".join(f"{structure!r:.200}" for structure in structures)
    raise ValueError(f"Structures don't have the same nested structure. Received: {received}")
