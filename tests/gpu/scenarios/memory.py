"""Limits of memory, and memory over many steps.

A virtual GPU stands for a small card, so that it can be filled without harm to others.
"""

import math
from typing import Any

import numpy as np
import stand_ins
from training import build, make_data, split

import mirrored as mr

MEGABYTE = 2**20
SMALL = 256  # MB of a virtual GPU.


def current(device: str) -> int:
    """Return the bytes in use on a device."""
    return int(mr.config.experimental.get_memory_info(device)["current"])


def refused_tensor() -> dict[str, Any]:
    """Ask a virtual GPU for more than it has; return the error, and whether it can go on."""
    split(2, SMALL)
    with mr.device("GPU:1"):
        kept = mr.ones((1024,))
        before = current("GPU:1")
        error = ""
        try:
            mr.zeros((SMALL * MEGABYTE // 4 + 1024,))
        except mr.errors.ResourceExhaustedError as caught:
            error = str(caught)
        after = current("GPU:1")
        total = float(mr.reduce_sum(kept).numpy())
    with mr.device("GPU:0"):
        other = float(mr.reduce_sum(mr.ones((1024,))).numpy())
    return {"error": error, "before": before, "after": after, "total": total, "other": other}


def refused_step() -> dict[str, Any]:
    """Train with a batch that does not fit between two that do; return the error and weights."""
    devices = split(2, SMALL)
    strategy = mr.MirroredStrategy(devices[1:])
    model = build(strategy, (256, 2048, 10), rate=0.01)
    x, y = make_data(256, 10, 64)
    model.fit(x, y, batch_size=64, verbose=0)
    before = model.get_weights()
    many = 32 * 1024  # The hidden layer's activations alone take all of the memory.
    error = ""
    try:
        model.fit(np.tile(x, (many // 64, 1)), np.tile(y, many // 64), batch_size=many, verbose=0)
    except mr.errors.ResourceExhaustedError as caught:
        error = str(caught)
    after = model.get_weights()
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0)
    return {
        "error": error,
        "unchanged": all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)),
        "losses": history.history["loss"],
    }


def many_steps(steps: int) -> dict[str, Any]:
    """Train for many steps in several fits; return what is in use after each of them."""
    strategy = mr.MirroredStrategy(split(1, 0))
    model = build(strategy, (64, 128, 10), rate=0.001)
    x, y = make_data(64, 10, 64 * 256)
    in_use, peaks, free = [], [], []
    fits = 10
    epochs = math.ceil(steps / (64 * fits))
    for _ in range(fits):
        model.fit(x, y, batch_size=256, epochs=epochs, verbose=0)
        info = mr.config.experimental.get_memory_info("GPU:0")
        in_use.append(info["current"])
        peaks.append(info["peak"])
        free.append(free_memory())
    return {
        "steps": int(model.optimizer.iterations.numpy()),
        "in use": in_use,
        "peaks": peaks,
        "free": free,
    }


def free_memory() -> int:
    """Return the bytes of the card that nobody has taken; 0 where something stands in for it."""
    if stand_ins.wanted():
        return 0
    import cupy  # It is only there on a machine with a card.

    return int(cupy.cuda.runtime.memGetInfo()[0])
