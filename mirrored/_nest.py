"""Structures of lists, tuples and dicts: taking their leaves out and putting others in.

Gradients, replicas' arguments and their results all travel in such structures.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_SEQUENCES = (list, tuple)


def flatten(structure: Any) -> list[Any]:
    """Return the leaves of nested lists, tuples and dicts, in order; dicts by sorted key."""
    return list(_leaves(structure))


def _leaves(structure: Any) -> Iterator[Any]:
    if isinstance(structure, dict):
        for key in sorted_keys(structure):
            yield from _leaves(structure[key])
    elif isinstance(structure, _SEQUENCES):
        for item in structure:
            yield from _leaves(item)
    else:
        yield structure


def paths(structure: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the leaves of nested lists, tuples and dicts, each after its keys and indices.

    Args:
        structure: The structure; dicts are in the order of their keys.
        path: The keys and indices that lead to it.
    """
    if not isinstance(structure, (dict, *_SEQUENCES)):
        yield path, structure
        return
    for key, item in structure.items() if isinstance(structure, dict) else enumerate(structure):
        yield from paths(item, (*path, key))


def sorted_keys(mapping: dict[Any, Any]) -> list[Any]:
    """Return the keys of a dict in the order in which its leaves are met."""
    try:
        return sorted(mapping)
    except TypeError:
        return list(mapping)  # Keys of several types have no order but that of insertion.


def map_structure(function: Callable[..., Any], *structures: Any, label: str = "number") -> Any:
    """Apply `function` to corresponding leaves and return a structure of the first one's form.

    Args:
        function: From one leaf of each structure to that of the result.
        structures: Structures of one form.
        label: What messages call a structure, before its number.

    Raises:
        ValueError: The structures differ; the message names the path where.
    """
    if len(structures) == 1:  # With nothing to compare it with, in a third of the time.
        return _map_one(function, structures[0])
    return _map(function, structures, "", label)


def _map_one(function: Callable[..., Any], structure: Any) -> Any:
    if isinstance(structure, dict):
        # In sorted order, so that `flatten` of the result meets the leaves in the same order.
        mapped = {key: _map_one(function, structure[key]) for key in sorted_keys(structure)}
        return rebuild_dict(structure, {key: mapped[key] for key in structure})
    if isinstance(structure, _SEQUENCES):
        return rebuild(structure, [_map_one(function, item) for item in structure])
    return function(structure)


def _map(function: Callable[..., Any], structures: tuple[Any, ...], path: str, label: str) -> Any:
    first = structures[0]
    kind = _kind(first)
    for i, item in enumerate(structures):
        if _kind(item) != kind:
            raise ValueError(_difference(structures, i, path, label))
    if isinstance(first, dict):
        # In sorted order, so that `flatten` of the result meets the leaves in the same order.
        mapped = {
            key: _map(function, tuple(item[key] for item in structures), f"{path}[{key!r}]", label)
            for key in sorted_keys(first)
        }
        return rebuild_dict(first, {key: mapped[key] for key in first})
    if isinstance(first, _SEQUENCES):
        items = [
            _map(function, tuple(item[i] for item in structures), f"{path}[{i}]", label)
            for i in range(len(first))
        ]
        return rebuild(first, items)
    return function(*structures)


def _kind(item: Any) -> Any:
    """Return a key that is equal for items of one structure; None for a leaf."""
    if isinstance(item, dict):
        return set(item)
    if isinstance(item, list):
        return list, len(item)  # Lists of all classes are alike: one in an attribute has its own.
    return (type(item), len(item)) if isinstance(item, tuple) else None


def _difference(structures: tuple[Any, ...], index: int, path: str, label: str) -> str:
    where = f"at {path}" if path else "at the top"
    return (
        f"The structures differ {where}: {label} 0 has {_describe(structures[0])}, "
        f"{label} {index} has {_describe(structures[index])}. Return or pass the same "
        "structure of lists, tuples and dicts everywhere."
    )


def _describe(item: Any) -> str:
    if isinstance(item, dict):
        return f"a dict with the keys {sorted_keys(item)}"
    if isinstance(item, _SEQUENCES):
        return f"a {type(item).__name__} of {len(item)}"
    return f"a {type(item).__name__}"


def rebuild(like: Any, items: list[Any]) -> Any:
    """Return a sequence of the type of `like`, which may be a named tuple, that holds `items`."""
    if isinstance(like, tuple):
        # A named tuple takes its fields one by one.
        return type(like)(*items) if hasattr(like, "_fields") else tuple(items)
    return items


def rebuild_dict(like: dict[Any, Any], mapped: dict[Any, Any]) -> dict[Any, Any]:
    """Return `mapped` as a dict of the type of `like`.

    It is a plain one for a `defaultdict`, and for a dict that an object tracks as its own.
    """
    kind = type(like)
    is_plain = kind is dict or isinstance(like, defaultdict) or hasattr(kind, "_tracker")
    return mapped if is_plain else kind(mapped)


def pack_like(structure: Any, leaves: Iterable[Any]) -> Any:
    """Return a structure of the form of `structure` that holds `leaves` in order."""
    remaining = iter(leaves)
    return map_structure(lambda _: next(remaining), structure)
