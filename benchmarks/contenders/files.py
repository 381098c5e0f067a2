"""Saves a model and loads it again in one format, in the environment of whoever writes it.

`python files.py FORMAT LAYERS ROUNDS FOLDER` prints a line of JSON; `benchmarks/files.py` asks for
it. The file is in the system's cache when it is read.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE = 4096  # Inputs and outputs of each layer: 64 MiB of float32.

_Pair = tuple[Callable[[str], Any], Callable[[str], Any]]


def mirrored_weights(layers: int) -> _Pair:
    """Return what saves and loads weights, by Keras' methods of the same names."""
    model = _mirrored(layers)
    return model.save_weights, model.load_weights


def mirrored_model(layers: int) -> _Pair:
    """Return what saves and loads a model."""
    import mirrored as mr

    return _mirrored(layers).save, mr.keras.models.load_model


def keras_weights(layers: int) -> _Pair:
    """Return what saves and loads weights."""
    model = _keras(layers)
    return model.save_weights, model.load_weights


def keras_model(layers: int) -> _Pair:
    """Return what saves and loads a model."""
    import keras

    return _keras(layers).save, keras.models.load_model


def torch_state(layers: int) -> _Pair:
    """Return what saves and loads the state of a module."""
    import torch

    module = torch.nn.Sequential(*(torch.nn.Linear(SIZE, SIZE, bias=False) for _ in range(layers)))

    def save(path: str) -> None:
        torch.save(module.state_dict(), path)

    return save, lambda path: module.load_state_dict(torch.load(path))


FORMATS: dict[str, tuple[str, Callable[[int], _Pair]]] = {
    "mirrored.safetensors": (".safetensors", mirrored_weights),
    "mirrored.weights.h5": (".weights.h5", mirrored_weights),
    "mirrored.keras": (".keras", mirrored_model),
    "tensorflow.weights.h5": (".weights.h5", keras_weights),
    "tensorflow.keras": (".keras", keras_model),
    "torch.pt": (".pt", torch_state),
}


def _mirrored(layers: int) -> Any:
    import mirrored as mr

    dense = [mr.layers.Dense(SIZE, use_bias=False) for _ in range(layers)]
    return mr.Sequential([mr.layers.Input((SIZE,)), *dense])


def _keras(layers: int) -> Any:
    import keras

    dense = [keras.layers.Dense(SIZE, use_bias=False) for _ in range(layers)]
    return keras.Sequential([keras.Input((SIZE,)), *dense])


def _resident(name: str) -> int:
    """Return the bytes that a line of the process' status says."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def _measured(function: Callable[[str], Any], path: str) -> tuple[float, int]:
    """Return the seconds of a call, and the bytes that it took at most beside what there was."""
    Path("/proc/self/clear_refs").write_text("5")  # The peak begins anew.
    before, started = _resident("VmRSS"), time.perf_counter()
    function(path)
    return time.perf_counter() - started, _resident("VmHWM") - before


def main() -> None:
    """Print the best seconds, and the most memory, of so many rounds."""
    name, layers, rounds, folder = sys.argv[1:]
    ending, make = FORMATS[name]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    save, load = make(int(layers))
    path = str(Path(folder) / f"model{ending}")
    saved, loaded = [], []
    for _ in range(int(rounds)):
        saved.append(_measured(save, path))
        loaded.append(_measured(load, path))
    found = {
        "bytes": Path(path).stat().st_size,
        "save_s": min(figure for figure, _ in saved),
        "load_s": min(figure for figure, _ in loaded),
        "save_bytes": max(figure for _, figure in saved),
        "load_bytes": max(figure for _, figure in loaded),
    }
    print(json.dumps(found), file=answers, flush=True)


if __name__ == "__main__":
    main()
