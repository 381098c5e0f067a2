"""One step of training, evaluation or prediction on one global batch, over all replicas.

The gradient is that of the global batch: each replica divides by the number of all examples, in
one place, and the replicas' gradients are summed.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirrored import _nest, ops
from mirrored._logging import logger
from mirrored.autodiff import GradientTape
from mirrored.data import Batch
from mirrored.distribute import PerReplica, Strategy, shard_bounds
from mirrored.errors import NonFiniteLossError
from mirrored.ops import Tensor
from mirrored.training.losses import Reduction
from mirrored.variables import Variable

if TYPE_CHECKING:
    from mirrored.training.model import Model


class StepResult(NamedTuple):
    """What a step says of the global batch.

    Attributes:
        loss: What is minimised: the mean or the sum over its examples, and the penalties.
        statistics: A total and a count for each metric.
    """

    loss: float
    statistics: list[tuple[float, float]]


class _Shards(NamedTuple):
    """A global batch, cut into a part a replica and brought to the replicas' devices."""

    x: PerReplica
    y: PerReplica | None
    sample_weight: PerReplica | None


class Stepper:
    """Runs steps of one model: what does not change between them is looked up once.

    Args:
        model: A model that is built and, but for prediction, compiled with a loss.
    """

    def __init__(self, model: "Model") -> None:
        self._model = model
        self._strategy: Strategy = model.distribute_strategy
        self._variables: list[Variable] = model.trainable_variables
        self._regularized = model.regularized_weights
        self._warned = False

    # ------------------------------------------------------------------ the three kinds of step

    def train(self, batch: Batch, where: str) -> StepResult:
        """Take one step of training.

        All new values are computed, on every replica, before the first one is written.

        Args:
            batch: The global batch.
            where: What errors call the step.

        Raises:
            NonFiniteLossError: The loss is NaN or infinite; nothing was changed.
            ResourceExhaustedError: A device has not enough memory; nothing was changed.
        """
        shards = self._distribute(batch)
        outcome = self._with_zeros(self._run(self._train_replica, (*shards, batch.size)))
        gradients, statistics = self._reduce(outcome["gradients"], outcome["statistics"])
        penalty = None
        if self._regularized:
            # Once for the global batch, after the sum: a penalty is no replica's.
            gradients, penalty = self._strategy.run(self._add_penalties, (gradients,))
        loss = self._total(statistics, penalty)
        self._check_finite(loss, outcome["loss"], where)
        used = [i for i, gradient in enumerate(gradients) if gradient is not None]
        self._check_used(used)
        self._model.compiled().optimizer.prepare(
            [self._variables[i] for i in used], [gradients[i] for i in used]
        ).commit()
        return StepResult(loss, _pairs(statistics))

    def test(self, batch: Batch) -> StepResult:
        """Return what the model makes of one global batch, without training.

        Args:
            batch: The global batch.
        """
        shards = self._distribute(batch)
        outcome = self._with_zeros(self._run(self._test_replica, (*shards, batch.size)))
        statistics = self._strategy.reduce("sum", outcome["statistics"]).numpy()
        loss = self._total(statistics, outcome["penalty"])
        return StepResult(loss, _pairs(statistics))

    def predict(self, batch: Batch) -> np.ndarray[Any, Any]:
        """Return the outputs for one global batch, in its order.

        Args:
            batch: The global batch; only its inputs are used.
        """
        shards = self._distribute(batch)
        outputs = self._run(lambda x: self._model(x, training=False), (shards.x,))
        parts = self._strategy.experimental_local_results(outputs)
        # A replica without examples has nothing to add.
        return np.concatenate([part.numpy() for part in parts if part is not None and len(part)])

    # ------------------------------------------------------------------ on one replica

    def _train_replica(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None, examples: int
    ) -> dict[str, Any]:
        with GradientTape() as tape:
            loss, outputs = self._forward(x, y, sample_weight, examples, training=True)
        return {
            "gradients": tape.gradient(loss, self._variables),
            "statistics": self._statistics(loss, y, outputs, sample_weight),
            "loss": loss,
        }

    def _test_replica(
        self, x: Tensor, y: Tensor, sample_weight: Tensor | None, examples: int
    ) -> dict[str, Any]:
        loss, outputs = self._forward(x, y, sample_weight, examples, training=False)
        return {
            "statistics": self._statistics(loss, y, outputs, sample_weight),
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
        loss = self._model.compiled().required_loss()
        values = loss.per_example(y, outputs)
        if sample_weight is not None:
            values = values * ops.cast(sample_weight, values.dtype)
        total = ops.reduce_sum(values)
        return total if loss.reduction == Reduction.SUM else total * (1.0 / examples), outputs

    def _statistics(
        self, loss: Tensor, y: Tensor, outputs: Tensor, sample_weight: Tensor | None
    ) -> Tensor:
        """Return the loss and every metric's total and count as one vector."""
        scalars = [loss]
        for metric, weighted in self._model.compiled().metrics:
            scalars += metric.statistics(y, outputs, sample_weight if weighted else None)
        return ops.concat([ops.reshape(each, (1,)) for each in scalars], axis=0)

    def _penalty(self) -> Tensor | None:
        penalties = [penalty(weight) for weight, penalty in self._regularized]
        return ops.add_n(penalties) if penalties else None

    def _add_penalties(
        self, gradients: list[Tensor | None]
    ) -> tuple[list[Tensor | None], Tensor | None]:
        """Add the penalties' gradients to those of the global batch; return the penalty too."""
        with GradientTape() as tape:
            penalty = self._penalty()
        added = tape.gradient(penalty, self._variables)
        return [_sum(g, h) for g, h in zip(gradients, added, strict=True)], penalty

    # ------------------------------------------------------------------ around the replicas

    def _run(self, function: Callable[..., Any], shards: tuple[Any, ...]) -> Any:
        """Call a function on every replica that has examples; the others give None.

        Where the function meets other replicas on its way, those without examples run it too, on
        zero rows, because the others would wait for them. What they compute is left out all the
        same: a mean over no examples is NaN, and would spoil the sum over the replicas.
        """
        complete: list[Any] = []

        def part(x: Tensor, *rest: Any) -> Any:
            # Replicas run one at a time, the first one first, and larger shards come first. So if
            # it is complete before this one begins, there is no meeting.
            if x.shape[0] or not complete:
                result = function(x, *rest)
                if x.shape[0]:
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

    def _reduce(
        self, gradients: list[PerReplica | Tensor | None], statistics: PerReplica | Tensor
    ) -> tuple[list[Any], np.ndarray[Any, Any]]:
        """Sum over the replicas; every replica gets the gradients, the host the statistics.

        The loss, which is among the statistics, joins the gradients' all-reduce.
        """
        used = [gradient for gradient in gradients if gradient is not None]
        *summed, total = self._strategy.batch_all_reduce("sum", [*used, statistics])
        remaining = iter(summed)
        reduced = [None if each is None else next(remaining) for each in gradients]
        return reduced, _first(total).numpy()

    def _total(self, statistics: np.ndarray[Any, Any], penalty: Any) -> float:
        """Return the loss that is shown: the mean over the batch and the penalties."""
        return float(statistics[0]) + (0.0 if penalty is None else float(_first(penalty)))

    def _distribute(self, batch: Batch) -> _Shards:
        bounds = shard_bounds(batch.size, self._strategy.num_replicas_in_sync)
        model = self._model
        y, dtype = batch.y, model.output_dtype
        loss = None if y is None else model.compiled().loss
        if y is not None and not (loss is not None and loss.targets_are_labels):
            y = _cast(y, dtype)
        weights = batch.sample_weight
        return _Shards(
            self._cut(_cast(batch.x, model.dtype), bounds),
            None if y is None else self._cut(y, bounds),
            None if weights is None else self._cut(_cast(weights, dtype), bounds),
        )

    def _cut(self, array: np.ndarray[Any, Any], bounds: Sequence[tuple[int, int]]) -> PerReplica:
        parts = []
        for replica, (start, stop) in enumerate(bounds):
            with self._strategy.replica_scope(replica):
                parts.append(ops.transfer(array[start:stop], self._strategy.devices[replica]))
        return PerReplica(parts, [start for start, _ in bounds])

    def _check_finite(self, loss: float, local_losses: Any, where: str) -> None:
        local = [float(each) for each in self._strategy.experimental_local_results(local_losses)]
        if math.isfinite(loss) and all(math.isfinite(each) for each in local):
            return
        bad = [i for i, each in enumerate(local) if not math.isfinite(each)]
        devices = self._strategy.devices
        place = " and ".join(f"replica {i} ({devices[i].full_name})" for i in bad)
        raise NonFiniteLossError(
            f"The loss is not finite in {where}: {loss} over the batch"
            f"{f', first on {place}' if bad else ', from the penalties or the sum'}. The weights "
            f"are those of the step before{self._state_of_weights()}. Look for NaN and infinite "
            "values in the data, or lower the learning rate."
        )

    def _state_of_weights(self) -> str:
        """Say so where a step with a finite loss has spoilt the weights already."""
        values = (weight.numpy() for weight in self._variables)
        if all(np.isfinite(value).all() for value in values):
            return ""
        return (
            ", but these are not finite either: the gradient of an earlier step was NaN or "
            "infinite where its loss was not"
        )

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


def _cast(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return the array in another dtype; what is too large for it is infinite, and no warning."""
    with np.errstate(over="ignore"):
        return array.astype(dtype, copy=False)


def _first(value: Any) -> Any:
    """Return replica 0's part of what is equal on all of them."""
    return value.values[0] if isinstance(value, PerReplica) else value


def _pairs(statistics: np.ndarray[Any, Any]) -> list[tuple[float, float]]:
    numbers = [float(each) for each in statistics[1:]]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _sum(x: Tensor | None, y: Tensor | None) -> Tensor | None:
    if x is None or y is None:
        return y if x is None else x
    return x + y
