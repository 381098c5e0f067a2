"""What a step works on, in lines that are the same on all workers of one program."""

from collections.abc import Iterable, Iterator

from mirrored.distribute.worker_agreement import PLAIN
from mirrored.ops.spec import TensorSpec
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.own_steps import optimizers_of


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


def _settings(model: SteppedNetwork) -> Iterator[str]:
    for optimizer in optimizers_of(model):
        for each in optimizer.within:
            settings = {k: v for k, v in vars(each).items() if isinstance(v, PLAIN)}
            yield f"{type(each).__name__} {sorted(settings.items(), key=repr)}"
