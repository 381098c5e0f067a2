"""Single steps, which a loop of a script's own takes: on one batch, or on an iterator's next one.

They are the steps of `fit`, `evaluate` and `predict`, with nothing around them.
"""

import sys
from typing import Any

from mirrored import _overrides
from mirrored._arguments import explained
from mirrored.data.arguments import DataArguments
from mirrored.distribute.input import DistributedIterator
from mirrored.errors import OutOfRangeError
from mirrored.program import PeekingIterator
from mirrored.training import loop
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.run_plan import RunPlan
from mirrored.training.running_means import in_order
from mirrored.training.step import joined
from mirrored.training.utilities import unpack_x_y_sample_weight


class StepFunction:
    """Takes the steps that a model's `make_train_function` and its like are for.

    Args:
        model: The model.
        kind: "train", "test" or "predict".
    """

    def __init__(self, model: "SteppedOnBatches", kind: str) -> None:
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
                f"`{self._kind}_function` takes an iterator over global batches, as "
                f"`iter(dataset)` is, and cuts these for the replicas. Received: {data!r:.200} (of "
                f"type {type(data).__name__})."
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
            logs = self._model._step_on(self._kind, x, y, sample_weight, goes_on=True)
        return logs


@explained
class SteppedOnBatches(SteppedNetwork):
    """A network whose steps can be taken one by one.

    `Model` says what the arguments are.
    """

    _never_called = _overrides.MODEL
    _for_itself = _overrides.MODEL_ITSELF
    _part_of = "Model"

    def __init__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        name: str | None = None,
        *,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None:
        super().__init__(inputs, outputs, name, dtype=dtype, trainable=trainable)
        self._step_functions: dict[str, StepFunction] = {}

    def _forget_steps(self) -> None:
        super()._forget_steps()
        self._step_functions.clear()

    def _plan_of(self, method: str) -> RunPlan:
        """Return the plan of a run; raise where the model cannot be run with a loss."""
        loop.check_context(method)
        compilation, plan = self.required_compilation(), RunPlan(self)
        if method in ("fit", "train_on_batch") and not plan.is_custom("train"):
            compilation.required_optimizer()
        return plan

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Take one step of training on one global batch.

        Args:
            x: Inputs of shape (examples, ...).
            y: Targets of shape (examples, ...).
            sample_weight: A weight for each example.
            class_weight: A weight for each integer label.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them, of this batch.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: Data do not fit the model or each other.
            NonFiniteLossError: The loss is NaN or infinite; the weights are those before.
        """
        logs = self._step_on("train", x, y, sample_weight, class_weight)
        return logs if return_dict else in_order(self, logs)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one global batch.

        Args:
            x: Inputs of shape (examples, ...).
            y: Targets of shape (examples, ...).
            sample_weight: A weight for each example.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: Data do not fit the model or each other.
        """
        logs = self._step_on("test", x, y, sample_weight)
        return logs if return_dict else in_order(self, logs)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs for one global batch, as arrays.

        Args:
            x: Inputs of shape (examples, ...).

        Raises:
            ValueError: The data do not fit the model.
        """
        loop.check_context("predict_on_batch")
        return loop.predict(RunPlan(self), _batch("predict", x), callbacks=None, verbose=0)

    def _step_on(
        self,
        kind: str,
        x: Any,
        y: Any,
        sample_weight: Any,
        class_weight: Any = None,
        *,
        goes_on: bool = False,
    ) -> dict[str, float]:
        """Take a step of training or evaluation, and return what logs show."""
        plan = self._plan_of(f"{kind}_on_batch")
        data = _batch(_USES[kind], x, y, sample_weight, class_weight)
        return loop.on_batch(plan, kind, data, goes_on=goes_on)

    # ------------------------------------------------------------------ on what iterators give

    def make_train_function(self, force: bool = False) -> Any:
        """Return the function of an iterator that takes a step of training on its next batch.

        It is `train_function` from then on, until `compile` is called again. It returns what logs
        show; metrics go on until `reset_metrics`.

        Args:
            force: Whether steps are recorded anew, so that they see attributes as they are now.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
            >>> model.compile("sgd", "mse")
            >>> batches = mr.data.Dataset.from_tensor_slices(([[1.0]] * 4, [[2.0]] * 4)).batch(2)
            >>> step = model.make_train_function()
            >>> sorted(step(iter(batches)))
            ['loss']
        """
        return self._made_function("train", force)

    def make_test_function(self, force: bool = False) -> Any:
        """Return the function of an iterator that evaluates its next batch, `test_function`.

        Args:
            force: As for `make_train_function`.
        """
        return self._made_function("test", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """Return the function of a list of batches that predicts each, `predict_function`.

        Args:
            force: As for `make_train_function`.
        """
        return self._made_function("predict", force)

    def _made_function(self, kind: str, force: bool) -> StepFunction:
        if force:
            self._set_function(kind, None)
        return self._step_functions.setdefault(kind, StepFunction(self, kind))

    def _set_function(self, kind: str, function: Any) -> None:
        if function is None:
            self._step_functions.pop(kind, None)
            self._traces.clear()
        elif function is not self._step_functions.get(kind):
            raise TypeError(
                f"`{kind}_function` is what `make_{kind}_function` makes, or None, which has steps "
                f"recorded anew: `fit`, `evaluate` and `predict` do not call another one. "
                f"Received: {function!r:.200}. Override `{kind}_step`."
            )

    @property
    def train_function(self) -> Any:
        """What `make_train_function` made; None before. Where it is set to None, it forgets it."""
        return self._step_functions.get("train")

    @train_function.setter
    def train_function(self, function: Any) -> None:
        self._set_function("train", function)

    @property
    def test_function(self) -> Any:
        """What `make_test_function` made; None before."""
        return self._step_functions.get("test")

    @test_function.setter
    def test_function(self, function: Any) -> None:
        self._set_function("test", function)

    @property
    def predict_function(self) -> Any:
        """What `make_predict_function` made; None before."""
        return self._step_functions.get("predict")

    @predict_function.setter
    def predict_function(self, function: Any) -> None:
        self._set_function("predict", function)


# What checks of data call a step.
_USES = {"train": "fit", "test": "evaluate"}


def _batch(
    use: str, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None
) -> DataArguments:
    """Return one batch of all examples."""
    return DataArguments(
        use=use,
        x=x,
        y=y,
        sample_weight=sample_weight,
        batch_size=sys.maxsize,
        steps=None,
        class_weight=class_weight,
    )
