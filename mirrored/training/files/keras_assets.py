"""Files that layers write beside their variables: those whose classes have the methods for it."""

import os
from collections.abc import Iterator
from typing import Any

from mirrored.training.files.keras_places import places
from mirrored.training.network import Network


def save_assets(model: Network, folder: str) -> None:
    """Let layers that have a `save_assets` write their files, each into a folder of its own.

    Args:
        model: The model.
        folder: Where these folders are made.
    """
    for owner, path in _having(model, "save_assets"):
        own = os.path.join(folder, path)
        os.makedirs(own, exist_ok=True)
        owner.save_assets(own)


def keeps_assets(model: Network, method: str) -> bool:
    """Return whether a layer has files of its own.

    Args:
        model: The model.
        method: What it has then: "save_assets" or "load_assets".
    """
    return any(True for _ in _having(model, method))


def load_assets(model: Network, folder: str) -> None:
    """Let layers that have a `load_assets` read what `save_assets` wrote.

    Args:
        model: The model.
        folder: Where it is.
    """
    for owner, path in _having(model, "load_assets"):
        own = os.path.join(folder, path)
        owner.load_assets(own if os.path.isdir(own) else None)


def _having(model: Network, method: str) -> Iterator[tuple[Any, str]]:
    for path, owner in places(model):
        if callable(getattr(type(owner), method, None)):
            yield owner, path
