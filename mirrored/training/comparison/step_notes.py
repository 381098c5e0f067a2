"""What happens in one step of training: outputs of layers, losses, gradients, in their order.

The step is run op by op, on a copy of a model that is there for this alone.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored.autodiff.tape import GradientsMade, telling_of_gradients
from mirrored.distribute import get_replica_context
from mirrored.distribute.global_batch import global_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import active_recorder
from mirrored.optim import Optimizer
from mirrored.training.run_plan import RunPlan
from mirrored.variables import Variable

# What an event is of, with how a text names it.
NAMES = {
    "output": "the output of the layer {}",
    "loss": "the loss that is differentiated",
    "gradient": "the gradient of {}",
    "log": "{} in the logs",
    "weight": "the weight {}",
    "state": "the state {}",
    "slot": "the optimizer's slot {}",
    "metric": "the metric's variable {}",
}


class Event(NamedTuple):
    """One thing that a step computes.

    Attributes:
        kind: What it is; see `NAMES`.
        name: What that is of.
        number: How many of the same kind and name came before.
    """

    kind: str
    name: str
    number: int = 0

    def __str__(self) -> str:
        again = f" (number {self.number + 1})" if self.number else ""
        return NAMES[self.kind].format(repr(self.name)) + again


class StepNotes:
    """Notes what a model computes while it takes a step.

    Args:
        plan: The plan of the step; the model's layers and optimizers notify this from now on.
        sizes: The number of examples of each replica's shard.
    """

    def __init__(self, plan: RunPlan, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._weighs = plan.is_custom("train")  # Else a loss is the shard's part of the whole one.
        self._parts: dict[Event, dict[int, np.ndarray[Any, Any]]] = {}
        self._counts: Counter[tuple[str, str, int]] = Counter()
        for layer, _ in plan.layers:
            if layer is not plan.model:
                self._listen_to_layer(layer)
        for optimizer in plan.optimizers:
            self._listen_to_optimizer(optimizer)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Note the losses that tapes differentiate in this context."""
        with telling_of_gradients(self._note_losses):
            yield

    def values(self) -> dict[Event, np.ndarray[Any, Any]]:
        """Return what the replicas computed, put together, in the order in which it was."""
        arrays: dict[Event, np.ndarray[Any, Any]] = {}
        for event, parts in self._parts.items():
            value = self._whole(event, parts)
            if value is not None:
                arrays[event] = value
        return arrays

    def _whole(
        self, event: Event, parts: dict[int, np.ndarray[Any, Any]]
    ) -> np.ndarray[Any, Any] | None:
        if event.kind == "gradient":
            return parts[0]
        shards = {replica: part for replica, part in parts.items() if self._sizes[replica]}
        if event.kind == "loss":
            return np.asarray(sum(shards.values()))
        if any(part.shape[:1] != (self._sizes[replica],) for replica, part in shards.items()):
            return None  # It has no row an example, or rows of several batches.
        rows = [shards[replica] for replica in sorted(shards)]
        alike = {row.shape[1:] for row in rows}
        return np.concatenate(rows) if len(alike) == 1 else None

    def _note(self, kind: str, name: str, replica: int, value: Any) -> None:
        if active_recorder() is not None or not isinstance(value, Tensor):
            return  # Within a recorded function there are no values.
        number = self._counts[kind, name, replica]
        self._counts[kind, name, replica] += 1
        self._parts.setdefault(Event(kind, name, number), {})[replica] = np.asarray(value.numpy())

    def _note_losses(self, targets: list[Any], sources: list[Any]) -> GradientsMade:
        replica = _replica()
        # The loss of the penalties is not noted: `fit` takes it once for all replicas.
        is_noted = self._weighs or not self._counts["loss", "", replica]
        trains = any(isinstance(source, Variable) and source.trainable for source in sources)

        def note(gradients: list[Any]) -> None:
            batch = global_batch()
            weight = batch.loss_weight(replica) if self._weighs and batch is not None else 1.0
            for target in targets if is_noted and trains else ():
                if is_tensor(target) and target.shape == ():
                    self._note("loss", "", replica, target * weight)

        return note

    def _listen_to_layer(self, layer: Any) -> None:
        call = layer.call

        def noted(*args: Any, **kwargs: Any) -> Any:
            outputs = call(*args, **kwargs)
            for output in _nest.flatten(outputs):
                self._note("output", layer.name, _replica(), output)
            return outputs

        vars(layer)["call"] = noted

    def _listen_to_optimizer(self, optimizer: Optimizer) -> None:
        prepare = optimizer.prepare

        def noted(variables: Any, gradients: Any, among: Any = None) -> Any:
            for number, variable in enumerate(variables):
                self._note("gradient", plain_name(variable), 0, gradients.values[0][number])
            return prepare(variables, gradients, among)

        vars(optimizer)["prepare"] = noted


def plain_name(variable: Variable) -> str:
    """Return the name of a variable as users gave it.

    Args:
        variable: The variable.
    """
    return variable.name.removesuffix(":0")


def _replica() -> int:
    context: Any = get_replica_context()
    return 0 if context is None else int(context.replica_id_in_sync_group)
