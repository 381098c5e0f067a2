"""The error of a step whose loss is not finite: few trainings ever need it."""

import math
from collections.abc import Sequence

import numpy as np

from mirrored.errors import NonFiniteLossError
from mirrored.training.model import Model
from mirrored.training.step import Totals


def failed_step(
    model: Model, totals: Totals, loss: float, losses: Sequence[float], where: str
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
    here = [
        f"replica {first + i} ({devices[i].full_name})"
        for i, part in enumerate(losses)
        if not math.isfinite(part)
    ]
    bad = [replica for there in strategy.of_each_worker(here, "losses") for replica in there]
    if totals.names is not None and not bad:
        return ValueError(
            f"An integer that a step returns is the same on all replicas. Received: others in "
            f"{where}, among {list(totals.names)}. Return a float: the mean over the shard's "
            "examples. The weights are those of the step before."
        )
    place = " and ".join(bad)
    return NonFiniteLossError(
        f"The loss is not finite in {where}: {loss} over the batch"
        f"{f', first on {place}' if bad else ', from the penalties or the sum'}. The weights "
        f"are those of the step before{_state_of_weights(model)}. Look for NaN and infinite "
        "values in the data, as `fit(validate_data=True)` does, or lower the learning rate."
    )


def _state_of_weights(model: Model) -> str:
    """Say so where a step with a finite loss has spoilt the weights already."""
    values = (weight.numpy() for weight in model.trainable_variables)
    if all(np.isfinite(value).all() for value in values):
        return ""
    return (
        ", but these are not finite either: the gradient of an earlier step was NaN or "
        "infinite where its loss was not"
    )
