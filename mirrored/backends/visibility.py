"""The cards that CUDA_VISIBLE_DEVICES lets a process see.

The rule is CUDA's own, applied here so that cards are counted without starting CUDA, and so that
simulated ones follow it too.
"""

import os
import re
from collections.abc import Sequence

from mirrored._logging import logger
from mirrored.backends.backend import Hardware

_LEADING_NUMBER = re.compile(r"\s*\+?(\d+)")


def visible(devices: Sequence[Hardware], ids: Sequence[str] = ()) -> list[Hardware]:
    """Return the devices that CUDA_VISIBLE_DEVICES shows, in its order; see `visible_ordinals`."""
    setting = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [devices[ordinal] for ordinal in visible_ordinals(setting, len(devices), ids)]


def visible_ordinals(setting: str | None, count: int, ids: Sequence[str] = ()) -> list[int]:
    """Return the ordinals that a value of CUDA_VISIBLE_DEVICES selects, in its order.

    Entries from the first invalid one on are ignored, and a repeated entry hides every card, as
    in CUDA. Parts of a card (MIG) are not supported: a warning says so.

    Args:
        setting: The variable's value; None where it is not set, which hides nothing.
        count: How many cards there are.
        ids: The cards' unique ids, for entries such as ``GPU-8932f937``; an entry may be any
            beginning of an id that only one card has.

    Example:
        >>> visible_ordinals("2,0,7,1", count=4)
        [2, 0]
        >>> visible_ordinals("-1", count=4)
        []
    """
    if setting is None:
        return list(range(count))
    selected: list[int] = []
    for entry in setting.split(","):
        ordinal = _ordinal(entry, count, ids)
        if ordinal is None:
            if entry.strip().startswith("MIG-"):
                logger.warning(
                    "Ignored CUDA_VISIBLE_DEVICES from its entry %r on: parts of a card (MIG) are "
                    "not supported. Name whole cards, by number or id (`nvidia-smi -L`), and "
                    "switch MIG off on them (`nvidia-smi -i <card> -mig 0`).",
                    entry.strip(),
                )
            break
        if ordinal in selected:
            return []
        selected.append(ordinal)
    return selected


def _ordinal(entry: str, count: int, ids: Sequence[str]) -> int | None:
    """Return the card that one entry names, or None."""
    number = _LEADING_NUMBER.match(entry)
    if number is not None:
        ordinal = int(number[1])
        return ordinal if ordinal < count else None
    name = entry.strip()
    matches = [i for i, unique in enumerate(ids) if name and unique.startswith(name)]
    return matches[0] if len(matches) == 1 else None
