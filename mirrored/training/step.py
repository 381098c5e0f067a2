"""What a step of training, evaluation or prediction computes for one global batch, on all replicas.

The gradient is that of the global batch: each replica divides by the number of all examples, in
one place, and the replicas' gradients are summed. The same code is run eagerly and recorded.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest, ops
from mirrored._logging import logger
from mirrored.autodiff import GradientTape
from mirrored.distribute import DistributedValues, PerReplica, Strategy
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.errors import NonFiniteLossError
from mirrored.ops import Tensor
from mirrored.training.compilation import CompiledNetwork
from mirrored.variables import Variable


class Shards(NamedTuple):
    """A global batch, cut into a part a replica and brought to the replicas' devices.

    Attributes:
        x: The inputs: a `PerReplica`, or a list, tuple or dict of these, as they were given.
        y: The targets, likewise, or None.
        sample_weight: The weights, likewise, or None.
    """

    x: Any
    y: Any
    sample_weight: Any


class Totals(NamedTuple):
    """What a step leaves on the devices.

    Attributes:
        statistics: The sum over the replicas of the loss, and of each metric's total and count.
        penalty: The weights' penalty; None where there is none.
        losses: Each replica's part of the loss.
    """

    statistics: Tensor
    penalty: Tensor | None
    losses: tuple[Tensor, ...]


class Step:
    """The steps of one model: what does not change between them is looked up once.

    Args:
        model: A model that is built and, but for prediction, compiled with a loss.
    """

    def __init__(self, model: CompiledNetwork) -> None:
        self._model = model
        self._strategy: Strategy = model.distribute_strategy
        self._warned = False
        self._look_up()

    def _look_up(self) -> None:
        """Look up the weights, and the layers that may still make some: used in training alone."""
        self._variables: list[Variable] = self._model.trainable_variables
        self._regularized = self._model.regularized_weights
        self._unbuilt = [layer for layer in self._model._walk() if not layer.built]

    # ------------------------------------------------------------------ the three kinds of step

    def train(self, shards: Shards, examples: int, check: Callable[[Totals], None]) -> Totals:
        """Take one step of training.

        All new values are computed, on every replica, before the first one is written.

        Args:
            shards: The global batch.
            examples: How many examples it has.
            check: Called before anything is written; it raises where the loss is not finite.

        Raises:
            ValueError: The loss does not depend on any weight.
            ResourceExhaustedError: A device has not enough memory; nothing was changed.
        """
        outcome = self._with_zeros(self._run(self._train_replica, (*shards, examples)))
        gradients: Any = self._strategy.sum_gradients(self._variables, outcome["gradients"])
        # The loss is among the statistics.
        statistics = _first(self._strategy.batch_all_reduce("sum", [outcome["statistics"]])[0])
        penalty = None
        if self._regularized:
            # Once for the global batch, after the sum: a penalty is no replica's.
            gradients, penalty = self._strategy.run(self._add_penalties, (gradients,))
        losses = self._strategy.experimental_local_results(outcome["loss"])
        totals = Totals(statistics, _first(penalty), losses)
        check(totals)
        used = sorted(_first(gradients))
        self._check_used(used)
        parts = self._strategy.experimental_local_results(gradients)
        self._model.required_compilation().optimizer.prepare(
            [self._variables[i] for i in used],
            PerReplica([each.renumbered(dict(enumerate(used))) for each in parts]),
        ).commit()
        return totals

    def test(self, shards: Shards, examples: int) -> Totals:
        """Return what the model makes of one global batch, without training.

        Args:
            shards: The global batch.
            examples: How many examples it has.
        """
        outcome = self._with_zeros(self._run(self._test_replica, (*shards, examples)))
        statistics = self._strategy.reduce("sum", outcome["statistics"])
        return Totals(statistics, _first(outcome["penalty"]), ())

    def predict(self, shards: Shards) -> tuple[Tensor | None, ...]:
        """Return each replica's outputs; None where it has no examples.

        Args:
            shards: The global batch; only its inputs are used.
        """
        outputs = self._run(lambda x: self._model(x, training=False), (shards.x,))
        return self._strategy.experimental_local_results(outputs)

    # ------------------------------------------------------------------ on one replica

    def _train_replica(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None, examples: int
    ) -> dict[str, Any]:
        with GradientTape() as tape:
            loss, outputs = self._forward(x, y, sample_weight, examples, training=True)
        return {
            "gradients": tape.gradient(loss, self._variables),
            "statistics": self._statistics(loss, y, outputs, sample_weight, examples),
            "loss": loss,
        }

    def _test_replica(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None, examples: int
    ) -> dict[str, Any]:
        loss, outputs = self._forward(x, y, sample_weight, examples, training=False)
        return {
            "statistics": self._statistics(loss, y, outputs, sample_weight, examples),
            "penalty": self._penalty(),
        }

    def _forward(
        self,
        x: Tensor,
        y: Tensor,
        sample_weight: Tensor | None,
        examples: int,
        *,
        training: bool,
    ) -> tuple[Tensor, Tensor]:
        """Return this replica's part of the global batch's loss, and its outputs."""
        outputs = self._model(x, training=training)
        if any(layer.built for layer in self._unbuilt):
            self._look_up()
        loss = self._model.required_compilation().required_loss()
        return loss.shard(y, outputs, sample_weight, examples), outputs

    def _statistics(
        self, loss: Tensor, y: Tensor, outputs: Tensor, sample_weight: Tensor | None, examples: int
    ) -> Tensor:
        """Return the loss and every metric's total and count as one vector."""
        scalars, share = [loss], outputs.shape[0] / examples
        for metric, weighted in self._model.required_compilation().metrics:
            weight = sample_weight if weighted else None
            scalars += metric.shard_statistics(y, outputs, weight, share)
        return ops.concat([ops.reshape(each, (1,)) for each in scalars], axis=0)

    def _penalty(self) -> Tensor | None:
        penalties = [penalty(weight) for weight, penalty in self._regularized]
        return ops.add_n(penalties) if penalties else None

    def _add_penalties(self, gradients: Buckets) -> tuple[Buckets, Tensor | None]:
        """Add the penalties' gradients to those of the global batch; return the penalty too."""
        with GradientTape() as tape:
            penalty = self._penalty()
        added = enumerate(tape.gradient(penalty, self._variables))
        sums = {i: gradients[i] + g if i in gradients else g for i, g in added if g is not None}
        return gradients.updated(sums), penalty

    # ------------------------------------------------------------------ around the replicas

    def _run(self, function: Callable[..., Any], shards: tuple[Any, ...]) -> Any:
        """Call a function on every replica that has examples; the others give None.

        Where the function meets other replicas on its way, those without examples run it too, on
        zero rows, because the others would wait for them. What they compute is left out all the
        same: a mean over no examples is NaN, and would spoil the sum over the replicas.
        """
        complete: list[Any] = []

        def part(x: Any, *rest: Any) -> Any:
            examples = next(each for each in _nest.flatten(x) if each is not None).shape[0]
            # Replicas run one at a time, the first one first, and larger shards come first. So if
            # it is complete before this one begins, there is no meeting.
            if examples or not complete:
                result = function(x, *rest)
                if examples:
                    complete.append(result)
                    return result
            return _nest.map_structure(lambda _: None, complete[0])

        return self._strategy.run(part, shards)

    def _with_zeros(self, outcome: Any) -> Any:
        """Put zeros where a replica without examples gave None."""

        def filled(leaf: Any) -> Any:
            if not isinstance(leaf, PerReplica) or all(each is not None for each in leaf.values):
                return leaf
            first = leaf.values[0]
            parts = []
            for replica, each in enumerate(leaf.values):
                with self._strategy.replica_scope(replica):
                    parts.append(ops.zeros(first.shape, first.dtype) if each is None else each)
            return PerReplica(parts, leaf.first_examples)

        return _nest.map_structure(filled, outcome)

    def _check_used(self, used: list[int]) -> None:
        """Raise where no weight would be trained, and warn once where some would not."""
        if not used and self._variables:
            raise ValueError(
                "No gradients provided for any variable. Received: a loss that does not depend "
                f"on any of {[v.name for v in self._variables]}. Compute it from the model's "
                "outputs with mirrored's ops; what .numpy() returns has no gradient."
            )
        if len(used) < len(self._variables) and not self._warned:
            self._warned = True
            unused = [v.name for i, v in enumerate(self._variables) if i not in set(used)]
            logger.warning(
                "Gradients do not exist for variables %s when minimizing the loss; they stay as "
                "they are. Use them in the model's `call`, or set trainable=False on their layer.",
                unused,
            )


def non_finite_error(
    model: CompiledNetwork, loss: float, losses: Sequence[float], where: str
) -> NonFiniteLossError:
    """Return the error that a step raises whose loss is not finite.

    Args:
        model: The model.
        loss: The loss of the global batch.
        losses: Each replica's part of it.
        where: What the error calls the step.
    """
    bad = [i for i, each in enumerate(losses) if not math.isfinite(each)]
    devices = model.distribute_strategy.devices
    place = " and ".join(f"replica {i} ({devices[i].full_name})" for i in bad)
    return NonFiniteLossError(
        f"The loss is not finite in {where}: {loss} over the batch"
        f"{f', first on {place}' if bad else ', from the penalties or the sum'}. The weights "
        f"are those of the step before{_state_of_weights(model)}. Look for NaN and infinite "
        "values in the data, or lower the learning rate."
    )


def _state_of_weights(model: CompiledNetwork) -> str:
    """Say so where a step with a finite loss has spoilt the weights already."""
    values = (weight.numpy() for weight in model.trainable_variables)
    if all(np.isfinite(value).all() for value in values):
        return ""
    return (
        ", but these are not finite either: the gradient of an earlier step was NaN or "
        "infinite where its loss was not"
    )


def _first(value: Any) -> Any:
    """Return replica 0's part of what is equal on all of them."""
    return value.values[0] if isinstance(value, DistributedValues) else value
