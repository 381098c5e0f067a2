"""How an optimizer takes its variables from Keras' files, where they have numbers for names.

It is apart from the optimizers, since few programs read such files.
"""

from typing import Any

import numpy as np

from mirrored._logging import warn_caller
from mirrored.variables.together import assign_together


def load_into(optimizer: Any, store: Any) -> None:
    """Set an optimizer's variables; `Optimizer.load_own_variables` says what the arguments are."""
    own = optimizer.variables
    if len(store.keys()) != len(own):
        warn_caller(skipped(optimizer, len(own), len(store.keys())))
        return
    assign_together(
        (variable, np.asarray(store[str(number)]).astype(variable.dtype, copy=False))
        for number, variable in enumerate(own)
    )


def skipped(optimizer: Any, own: int, found: int) -> str:
    """Return what is said where a file has more or fewer variables than an optimizer.

    Args:
        optimizer: The optimizer.
        own: How many it has.
        found: How many the file has.
    """
    unbuilt = (
        " This is likely because the optimizer has not been called/built yet."
        if not optimizer.built
        else ""
    )
    return (
        f"Skipping variable loading for optimizer '{optimizer.name}', because it has {own} "
        f"variables whereas the saved optimizer has {found} variables.{unbuilt}"
    )
