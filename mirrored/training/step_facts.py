"""What a step works on, in lines that are the same on all workers of one program."""

import zlib
from collections.abc import Iterable, Iterator

import numpy as np

from mirrored.distribute.distributed_variables import MirroredVariable
from mirrored.distribute.worker_agreement import PLAIN
from mirrored.ops.spec import TensorSpec
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.own_steps import optimizers_of

# So many elements of a variable are looked at, and up to twice as many: all take too long.
_ELEMENTS = 4096


def facts_of(model: SteppedNetwork, size: int, specs: Iterable[TensorSpec]) -> dict[str, list[str]]:
    """Return what a step of a worker works on; `facts_of_graph` says what it is made of.

    Args:
        model: The model.
        size: How many examples the global batch has.
        specs: The shapes and dtypes of an example's arrays.
    """
    return {
        "batches": [f"{size} examples", *(f"{each.dtype.name} {each.shape}" for each in specs)],
        "variables": [
            f"{each.name} {tuple(each.shape)} {each.dtype.name} trainable={each.trainable}"
            for each in model.variables
        ],
        "settings of optimizers": list(_settings(model)),
    }


def values_of(model: SteppedNetwork) -> dict[str, list[str]]:
    """Return what the variables of a worker's replicas hold, in few words each.

    Slots are left out, which are as many again, but for the optimizers' own numbers.

    Args:
        model: The model.
    """
    own = (each for optimizer in optimizers_of(model) for each in optimizer.variables)
    held = [*model.variables, *(each for each in own if each.shape == ())]
    mirrored = [each for each in held if isinstance(each, MirroredVariable)]
    return {"values of variables": [f"{each.name} (check {_check(each):08x})" for each in mirrored]}


def _check(variable: MirroredVariable) -> int:
    array = variable.copies[0].numpy().reshape(-1)
    some = np.ascontiguousarray(array[:: max(1, len(array) // _ELEMENTS)])
    return zlib.crc32(some.view(np.uint8).data)


def _settings(model: SteppedNetwork) -> Iterator[str]:
    for optimizer in optimizers_of(model):
        for each in optimizer.within:
            settings = {k: v for k, v in vars(each).items() if isinstance(v, PLAIN)}
            yield f"{type(each).__name__} {sorted(settings.items(), key=repr)}"
