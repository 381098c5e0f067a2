"""Takes the steps of a run on batches of the host, however a step is run.

`RecordedSteps` replays programs; `EagerSteps` has Python run for every op of every step.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored.data.batches import Span
from mirrored.distribute.sharding import Sharding, sharding_of, sharding_of_own, split_sizes
from mirrored.errors import NonFiniteGradientError, NonFiniteLossError, WorkersChangedError
from mirrored.training.custom_steps import row_of, step_of
from mirrored.training.run_plan import RunPlan
from mirrored.training.step import Step, Totals

if TYPE_CHECKING:
    from mirrored.training.model import Model

# Called with a row for each step - its losses, then each metric's total and count; or what a
# custom step returned, by name - and their number of examples. A step of training whose loss is
# not finite is among them, before it raises.
Take = Callable[[list[Any], int], None]


class NotFinite(Exception):
    """A step of training has a loss that is not finite, and wrote nothing.

    Args:
        step: The number of the step among those of a part of a span, from 0.
        totals: What the step left, or left when it was recorded.
        outputs: What it computed, on the host: statistics, the penalty if any, losses.
    """

    def __init__(self, step: int, totals: Totals, outputs: Sequence[Any]) -> None:
        super().__init__(step)
        self.step, self.totals, self.outputs = step, totals, outputs


class StepDriver(ABC):
    """Takes steps; a subclass says how the steps of batches that are alike are run.

    Args:
        plan: The plan of the run.
        refuses: As for `Step`.
    """

    def __init__(self, plan: RunPlan, *, refuses: bool = True) -> None:
        self._plan, self._model, self._strategy = plan, plan.model, plan.strategy
        self._refuses = refuses
        self._steps: dict[str, Step] = {}

    def train(
        self, span: Span, where: Callable[[int], str], take: Take, going_on: Callable[[], bool]
    ) -> None:
        """Take a step of training for each batch.

        Raises:
            NonFiniteLossError: The loss is NaN or infinite; that step changed nothing.
            ResourceExhaustedError: A device has not enough memory; that step changed nothing.
        """
        done = 0
        for part in (span,) if span.is_alike else span.alike():
            try:
                if not self._run("train", part, self._sharding(part), take, going_on):
                    return
            except NotFinite as failed:
                totals, outputs = failed.totals, failed.outputs
                row = row_with_penalty(totals, outputs)
                take([row_of(totals, row)], part.size)
                first = 1 + (totals.penalty is not None)
                losses = [float(loss) for loss in outputs[first : first + len(totals.losses)]]
                place = where(done + failed.step)
                sums = outputs[first + len(losses) :]
                self._check_gradients(totals, sums, losses, place)
                raise _failed_step(self._model, totals, row[0], losses, place) from None
            done += part.count

    def _check_gradients(
        self, totals: Totals, sums: Sequence[Any], losses: Sequence[float], where: str
    ) -> None:
        """Raise NonFiniteGradientError if gradients alone are not finite.

        Args:
            totals: What the step left, or left when it was recorded.
            sums: The sums of gradients, of each replica.
            losses: Each replica's part of the loss.
            where: What the error calls the step.
        """
        if not totals.gradients:
            return
        first, devices = self._strategy.first_replica, self._strategy.devices
        here = [
            (int(number), first + i, devices[i].full_name)
            for i, row in enumerate(sums)
            for number in np.flatnonzero(~np.isfinite(row))
        ]
        own = (here, np.isfinite(losses).all())
        of_workers = self._strategy.of_each_worker(own, "gradients")
        bad = sorted(place for places, _ in of_workers for place in places)
        if not bad or not all(is_finite for _, is_finite in of_workers):
            return
        variable = totals.gradients[bad[0][0]]
        places = [f"replica {i} ({device})" for number, i, device in bad if number == bad[0][0]]
        others = len({number for number, *_ in bad}) - 1
        raise NonFiniteGradientError(
            f"The gradient of {variable!r} is not finite in {where}, on {' and '.join(places)}"
            f"{f', nor are those of {others} other variables' if others else ''}, although the "
            f"loss is: {sum(losses)} over this process's examples. The weights still have the "
            "values of the previous step. Look for operations whose gradient is infinite, such as "
            "sqrt at 0 or norm of zeros, or clip by `clipnorm` what is only large.",
            variable=variable,
            replicas=[i for number, i, _ in bad if number == bad[0][0]],
        )

    def test(self, span: Span, take: Take) -> None:
        """Evaluate each batch."""
        for part in (span,) if span.is_alike else span.alike():
            self._run("test", part, self._sharding(part), take, lambda: True)

    def predict(self, span: Span, take: Callable[[Any], None]) -> None:
        """Compute the outputs for each batch, in its order."""
        for part in (span,) if span.is_alike else span.alike():
            self._predict(part, self._sharding(part), take)

    def reform(self) -> None:
        """Share the steps out among the workers that are left."""
        self._strategy.reform()
        self._steps.clear()

    def shared_again(self, span: Span) -> Span:
        """Share the steps out among the workers that are left; return what they have of batches.

        Args:
            span: The batches.
        """
        self.reform()
        if span.sizes is None:  # All of them.
            return span
        own = split_sizes(span.batch_size, self._strategy.sharing[2])
        of_all = self._strategy.of_each_worker(own, "how many examples each has in a batch")
        return Span(span.arrays, span.rows, span.batch_size, tuple(itertools.chain(*of_all)))

    @abstractmethod
    def _run(
        self, kind: str, part: Span, sharding: Sharding, take: Take, going_on: Callable[[], bool]
    ) -> bool:
        """Take a step for each batch of those that are alike; return whether to go on.

        Raises:
            NotFinite: The loss of a step of training is NaN or infinite.
        """

    @abstractmethod
    def _predict(self, part: Span, sharding: Sharding, take: Callable[[Any], None]) -> None:
        """Compute the outputs for each batch of those that are alike."""

    def _step(self, kind: str) -> Step:
        """Return what computes steps of a kind."""
        if kind not in self._steps:  # It looks through all layers, which a replay need not.
            self._steps[kind] = step_of(self._plan, kind, refuses=self._refuses)
        return self._steps[kind]

    def _sharding(self, part: Span) -> Sharding:
        sharing = self._strategy.sharing
        if part.sizes is not None:
            if len(part.sizes) != sharing[0]:
                raise WorkersChangedError("Workers have died since they met for a batch.")
            return sharding_of_own(part.sizes, *sharing[1:])
        return sharding_of(part.batch_size, *sharing)


def row_with_penalty(totals: Totals, outputs: Sequence[Any]) -> list[float]:
    """Return a step's statistics, the penalty included in the loss.

    Args:
        totals: What the step left, or left when it was recorded.
        outputs: The statistics and the penalty, if any, on the host.
    """
    row: list[float] = outputs[0].tolist()
    if totals.penalty is not None:
        row[0] += float(outputs[1].reshape(-1)[0])
    return row


def _failed_step(
    model: "Model", totals: Totals, loss: float, losses: Sequence[float], where: str
) -> Exception:
    """Return the error that a step raises whose loss is not finite.

    Args:
        model: The model.
        totals: What the step left, or left when it was recorded.
        loss: The loss of the global batch.
        losses: Each replica's part of it.
        where: What the error calls the step.
    """
    strategy = model.distribute_strategy
    first, devices = strategy.first_replica, strategy.devices
    bad_here = [i for i, part in enumerate(losses) if not math.isfinite(part)]
    here = [f"replica {first + i} ({devices[i].full_name})" for i in bad_here]
    bad = [replica for there in strategy.of_each_worker(here, "losses") for replica in there]
    if totals.names is not None and not bad:
        return ValueError(
            "An integer that a step returns must be the same on all replicas. Received: "
            f"different integers in {where}, among {list(totals.names)}. Return a float: the mean "
            "over the shard's examples. The weights still have the values of the previous step."
        )
    place = " and ".join(bad)
    return NonFiniteLossError(
        f"The loss is not finite in {where}: {loss} over the "
        f"batch{f', first on {place}' if bad else ', from the penalties or the sum'}. The weights "
        f"still have the values of the previous step{_state_of_weights(model)}. Look for NaN and "
        "infinite values in the data, as `fit(validate_data=True)` does, or lower the learning "
        "rate."
    )


def _state_of_weights(model: "Model") -> str:
    """Say so where a step with a finite loss has spoilt the weights already."""
    values = (weight.numpy() for weight in model.trainable_variables)
    if all(np.isfinite(value).all() for value in values):
        return ""
    return (
        ", but these are not finite either: the gradient of an earlier step was NaN or infinite, "
        "although its loss was not"
    )
