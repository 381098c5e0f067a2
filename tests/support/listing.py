"""Tensors as Python's numbers, in the structures that they are in."""

from typing import Any


def listed(found: Any) -> Any:
    """Return a structure with numbers, or lists of them, in the places of tensors."""
    if isinstance(found, list | tuple):
        return [listed(each) for each in found]
    return found if found is None else found.numpy().tolist()
