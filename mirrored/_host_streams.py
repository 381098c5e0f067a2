"""The states of Python's and of NumPy's global streams of random numbers, as JSON holds them."""

import random
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np


def host_streams() -> dict[str, Any]:
    """Return the states of the streams."""
    version, words, gauss = random.getstate()
    streams: dict[str, Any] = {"python": [version, list(words), gauss]}
    if "numpy.random" in sys.modules:
        state: Any = np.random.get_state(legacy=True)
        if state[0] == "MT19937":
            streams["numpy"] = [state[0], state[1].tolist(), *state[2:]]
    return streams


def set_host_streams(streams: Mapping[str, Any]) -> None:
    """Continue the streams from the states that `host_streams` returned."""
    version, words, gauss = streams["python"]
    random.setstate((version, tuple(words), gauss))
    if "numpy" in streams:
        name, key, *rest = streams["numpy"]
        np.random.set_state((name, np.array(key, np.uint32), *rest))
