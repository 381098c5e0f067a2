"""Runs of a model, each with its plan: the loops, and the single steps that a user's loop takes."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from mirrored._types import late_type
from mirrored.data.arguments import DataArguments
from mirrored.distribute.finished_runs import finished_runs
from mirrored.distribute.input import DistributedIterator
from mirrored.errors import OutOfRangeError
from mirrored.program import PeekingIterator
from mirrored.training import loop
from mirrored.training.callbacks import History
from mirrored.training.run_plan import RunPlan
from mirrored.training.running_means import in_order
from mirrored.training.step import joined
from mirrored.training.utilities import unpack_x_y_sample_weight

if TYPE_CHECKING:
    from mirrored.training.model import Model
else:
    Model = late_type("mirrored.training.model", "Model")

# What checks of data call a step.
_USES = {"train": "fit", "test": "evaluate"}


class StepFunction:
    """Takes the steps that a model's `make_train_function` and its like are for.

    Args:
        model: The model.
        kind: "train", "test" or "predict".
    """

    def __init__(self, model: "Model", kind: str) -> None:
        self._model = model
        self._kind = kind

    def __call__(self, data: Any) -> Any:
        """Take a step on the next batch, or as many as `steps_per_execution` says.

        Args:
            data: An iterator over global batches; for "predict" a list of them, each of which is
                predicted.

        Returns:
            What logs show: a dict of numbers, in which metrics go on from the call before. For
            "predict" the outputs.

        Raises:
            StopIteration: The iterator has no batch any more; OutOfRangeError, where it is one
                over a dataset.
            TypeError: It is no iterator, or one over a distributed dataset.
        """
        if self._kind == "predict":
            batches = [unpack_x_y_sample_weight(batch)[0] for batch in data]
            return joined([self._model.predict_on_batch(batch) for batch in batches])
        if not hasattr(data, "__next__") or isinstance(data, DistributedIterator):
            raise TypeError(
                f"`{self._kind}_function` takes an iterator over global batches, such as "
                "`iter(dataset)`, and splits the batches over the replicas. Received: "
                f"{data!r:.200} (of type {type(data).__name__})."
            )
        steps = self._model.steps_per_execution
        logs: dict[str, float] = {}
        for number in range(steps if isinstance(steps, int) else 1):
            try:
                batch = data.get_next() if isinstance(data, PeekingIterator) else next(data)
            except (OutOfRangeError, StopIteration):
                if not number:
                    raise
                break
            x, y, sample_weight = unpack_x_y_sample_weight(batch)
            step = one_batch(_USES[self._kind], x, y, sample_weight)
            logs = take_step(self._model, self._kind, step, True, goes_on=True)
        return logs


def step_function(kind: str) -> Any:
    """Return the property of models that is their `StepFunction` of a kind.

    Args:
        kind: "train", "test" or "predict".
    """

    def current(model: "Model") -> StepFunction | None:
        return model.__state__.step_functions.get(kind)

    def replace(model: "Model", function: Any) -> None:
        if function is None:
            model.__state__.step_functions.pop(kind, None)
            model.__state__.traces.clear()
        elif function is not current(model):
            raise TypeError(
                f"`{kind}_function` must be the result of `make_{kind}_function`, or None, which "
                "lets steps be recorded again. `fit`, `evaluate` and `predict` do not call "
                f"another function. Received: {function!r:.200}. Override `{kind}_step`."
            )

    text = f"What `make_{kind}_function` made; None before. Where it is set to None, it forgets it."
    return property(current, replace, doc=text)


def fit(
    model: "Model", training: DataArguments, validation: DataArguments, **options: Any
) -> History:
    """Train a model; `loop.fit` says what the arguments mean."""
    plan = planned(model, "fit")
    take = partial(loop.fit, plan, training, validation, **options)
    history: History
    is_of_others, history = _run(model, take)
    if is_of_others:
        history.set_model(model)
        model.history = history
    return history


def evaluate(model: "Model", data: DataArguments, return_dict: bool, **options: Any) -> Any:
    """Return the loss and the metrics; `loop.evaluate` says what the arguments mean."""
    plan = planned(model, "evaluate")
    take = partial(loop.evaluate, plan, data, **options)
    _, logs = _run(model, take)
    return logs if return_dict else in_order(model, logs)


def predict(model: "Model", data: DataArguments, method: str = "predict", **options: Any) -> Any:
    """Return the outputs; `loop.predict` says what the arguments mean."""
    loop.check_context(method)
    plan = RunPlan(model)
    take = partial(loop.predict, plan, data, **options)
    return _run(model, take)[1]


def _run(model: Any, take: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether a new process got a run's result of the other workers, and the result."""
    strategy = model.distribute_strategy
    if strategy.replaces_workers:
        return finished_runs.run(strategy.workers, take, model)
    return False, take()


def take_step(
    model: "Model", kind: str, batch: DataArguments, return_dict: bool, *, goes_on: bool = False
) -> Any:
    """Take a step of training or evaluation, and return what logs show.

    Args:
        model: The model.
        kind: "train" or "test".
        batch: The batch.
        return_dict: Whether to return the values by name.
        goes_on: Whether metrics go on from the step before.
    """
    logs = loop.on_batch(planned(model, f"{kind}_on_batch"), kind, batch, goes_on=goes_on)
    return logs if return_dict else in_order(model, logs)


def planned(model: "Model", method: str) -> RunPlan:
    """Return the plan of a run with a loss, for which the model is compiled.

    Args:
        model: The model.
        method: The method that runs it.
    """
    loop.check_context(method)
    compilation, plan = model.required_compilation(), RunPlan(model)
    if method in ("fit", "train_on_batch") and not plan.is_custom("train"):
        compilation.required_optimizer()
    return plan


def one_batch(
    use: str, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None
) -> DataArguments:
    """Return one batch of all examples; `DataArguments` says what the arguments mean."""
    return DataArguments(
        use=use,
        x=x,
        y=y,
        sample_weight=sample_weight,
        batch_size=sys.maxsize,
        class_weight=class_weight,
    )
