"""The loops over epochs and batches behind `fit`, `evaluate` and `predict`.

All arguments and all data are checked before the first step, so bad input changes nothing.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored._numbers import as_integer
from mirrored.data.adapters import (
    Arrays,
    adapt,
    check_batch_size,
    split_validation,
    with_class_weights,
)
from mirrored.data.batches import Batches, Span
from mirrored.layers.rollback import undone_on_failure
from mirrored.layers.shapes import without_batch
from mirrored.ops import SeedGenerator
from mirrored.training.callbacks import Callback, CallbackList, History
from mirrored.training.interrupt import InterruptGuard
from mirrored.training.progress import ProgressBar
from mirrored.training.recorded import RecordedRunner
from mirrored.training.runner import EagerRunner, Runner
from mirrored.training.tracker import Tracker

if TYPE_CHECKING:
    from mirrored.training.model import Model

_BATCH_SIZE = 32  # Keras' default.
Callbacks = Sequence[Callback] | Callback | None


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """The arguments of `Model.fit` beside the data; that method says what they mean."""

    batch_size: int | None
    epochs: int
    verbose: int | str
    callbacks: Callbacks
    validation_split: float
    validation_data: Any
    shuffle: bool
    class_weight: dict[int, float] | None
    sample_weight: Any
    initial_epoch: int
    steps_per_epoch: int | None
    validation_steps: int | None
    validation_batch_size: int | None
    validation_freq: int | Sequence[int]


@dataclass(frozen=True)
class RunOptions:
    """The arguments of `Model.evaluate` and `Model.predict` beside the data."""

    batch_size: int | None
    verbose: int | str
    steps: int | None
    callbacks: Callbacks


# ---------------------------------------------------------------------------- fit


def fit(model: "Model", x: Any, y: Any, options: FitOptions) -> History:
    """Train a model; `Model.fit` says what the arguments mean and what is raised."""
    model.compiled().required_loss()
    history = History()
    progress, callbacks = _callbacks(options, history)
    plan = _Plan(model, x, y, options)
    with (
        model.distribute_strategy.scope(),
        InterruptGuard() as guard,
        contextlib.closing(progress),
    ):
        _introduce(callbacks, model, options.verbose, options.epochs, plan.steps)
        # From the start, so that an interrupt leaves the epochs of this call there.
        model.history, model.stop_training = history, False
        logs: dict[str, float] = {}
        callbacks.on_train_begin()
        for epoch in range(options.initial_epoch, options.epochs):
            logs = _run_epoch(model, plan, epoch, callbacks, guard)
            if model.stop_training:
                break
        callbacks.on_train_end(logs)
    return history


class _Plan:
    """The checked arguments and data of one call of `fit`."""

    def __init__(self, model: "Model", x: Any, y: Any, options: FitOptions) -> None:
        check_count("epochs", options.epochs, least=0)
        check_count("initial_epoch", options.initial_epoch, least=0)
        for name in ("steps_per_epoch", "validation_steps"):
            if getattr(options, name) is not None:
                check_count(name, getattr(options, name), least=1)
        if not isinstance(options.shuffle, bool | np.bool_):
            raise ValueError(f"`shuffle` is True or False. Received: shuffle={options.shuffle!r}")
        self.options = options
        self.batch_size = _batch_size(options.batch_size)
        self.validation_batch_size = (
            self.batch_size
            if options.validation_batch_size is None
            else check_batch_size(options.validation_batch_size, "validation_batch_size")
        )
        self.epochs_to_validate = _epochs_to_validate(options)
        arrays = adapt(x, y, options.sample_weight)
        validation: Arrays | None = None
        if options.validation_data is not None:
            validation = _validation_arrays(options.validation_data)
        elif options.validation_split:
            arrays, validation = split_validation(arrays, options.validation_split)
        if options.class_weight is not None:  # It is for training only.
            arrays = with_class_weights(arrays, options.class_weight)
        self.steps = _steps(
            "steps_per_epoch", options.steps_per_epoch, arrays.size, self.batch_size
        )
        if validation is not None:
            self.validation_steps = _steps(
                "validation_steps",
                options.validation_steps,
                validation.size,
                self.validation_batch_size,
            )
        self.arrays, self.validation = prepare(model, arrays, validation)
        # The order of the examples comes from the global seed, on any number of replicas.
        self._seeds = SeedGenerator() if options.shuffle else None
        if options.shuffle:
            self.arrays = self.arrays.contiguous()
        self._left: Span | None = None
        self.runner = make_runner(model)

    def spans(self) -> Iterator[Span]:
        """Yield the batches of the next epoch, which goes on where the one before ended."""
        wanted = self.steps
        while wanted:
            span = self._left or self._next_pass()
            taken = min(wanted, span.count)
            rest = span.count - taken
            self._left = Span(span.batches, span.first + taken, rest) if rest else None
            yield Span(span.batches, span.first, taken)
            wanted -= taken

    def _next_pass(self) -> Span:
        """Return all batches of another pass over the data."""
        order = None if self._seeds is None else self._seeds.permutation(self.arrays.size)
        batches = Batches(self.arrays, self.batch_size, order)
        return Span(batches, 0, len(batches))


def _run_epoch(
    model: "Model", plan: _Plan, epoch: int, callbacks: CallbackList, guard: InterruptGuard
) -> dict[str, float]:
    tracker = Tracker(model)
    callbacks.on_epoch_begin(epoch)
    done = 0
    for span in _executions(model, plan.spans(), plan.steps, callbacks, "train"):
        callbacks.on_train_batch_begin(done)
        _train(plan.runner, span, tracker, guard, f"of epoch {epoch + 1}", done)
        done += span.count
        callbacks.on_train_batch_end(done - 1, tracker.logs())
        if model.stop_training:
            break
    logs = tracker.logs()
    if plan.validation is not None and epoch + 1 in plan.epochs_to_validate:
        batches = Batches(plan.validation, plan.validation_batch_size)
        steps = Span(batches, 0, plan.validation_steps)
        validated = _evaluate_batches(model, plan.runner, steps, callbacks)
        logs |= {f"val_{name}": value for name, value in validated.items()}
    callbacks.on_epoch_end(epoch, logs)
    return logs


def _train(
    runner: Runner, span: Span, tracker: Tracker, guard: InterruptGuard, epoch: str, before: int
) -> None:
    """Take the steps of one execution; `before` is how many of the epoch came before it."""
    done = 0

    def take(rows: list[list[float]], examples: int) -> None:
        nonlocal done
        done += len(rows)
        tracker.add(rows, examples)

    def where(step: int) -> str:
        return f"step {before + begun + step + 1} {epoch}"

    while done < span.count:  # More than once only where an interrupt did not end the program.
        begun = done
        rest = Span(span.batches, span.first + begun, span.count - begun)
        with guard.step():
            runner.train(rest, where, take, lambda: not guard.pending)


def _epochs_to_validate(options: FitOptions) -> Sequence[int]:
    """Return the epochs, counted from 1, after which to validate."""
    frequency = options.validation_freq
    if isinstance(frequency, list | tuple | set):
        return [check_count("validation_freq", each, least=1) for each in frequency]
    every = check_count("validation_freq", frequency, least=1)
    return range(every, options.epochs + 1, every)


def _validation_arrays(data: Any) -> Arrays:
    if not isinstance(data, list | tuple) or len(data) not in (2, 3):
        raise ValueError(
            "`validation_data` is a tuple (x, y) or (x, y, sample_weight). Received: "
            f"a {type(data).__name__}"
            f"{f' of {len(data)}' if isinstance(data, list | tuple) else ''}."
        )
    return adapt(*data, for_what="validation")


# ---------------------------------------------------------------------------- evaluate, predict


def evaluate(
    model: "Model", x: Any, y: Any, sample_weight: Any, options: RunOptions
) -> dict[str, float]:
    """Return loss and metrics by name; `Model.evaluate` says what the arguments mean."""
    model.compiled().required_loss()
    progress, callbacks = _callbacks(options)
    arrays = adapt(x, y, sample_weight, for_what="evaluate")
    span = _run_batches(model, arrays, options)
    with model.distribute_strategy.scope(), contextlib.closing(progress):
        _introduce(callbacks, model, options.verbose, 1, span.count)
        return _evaluate_batches(model, make_runner(model), span, callbacks)


def predict(model: "Model", x: Any, options: RunOptions) -> np.ndarray[Any, Any]:
    """Return the outputs; `Model.predict` says what the arguments mean."""
    progress, callbacks = _callbacks(options)
    arrays = adapt(x, for_what="predict")
    batches = _run_batches(model, arrays, options)
    with model.distribute_strategy.scope(), contextlib.closing(progress):
        _introduce(callbacks, model, options.verbose, 1, batches.count)
        runner = make_runner(model)
        outputs: list[np.ndarray[Any, Any]] = []
        callbacks.on_predict_begin()
        for span in _executions(model, [batches], batches.count, callbacks, "predict"):
            callbacks.on_predict_batch_begin(len(outputs))
            runner.predict(span, outputs.append)
            made = np.concatenate(outputs[-span.count :])
            callbacks.on_predict_batch_end(len(outputs) - 1, {"outputs": made})
        callbacks.on_predict_end()
    return np.concatenate(outputs)


def make_runner(model: "Model") -> Runner:
    """Return what runs the steps of a model: recorded ones, unless it is to run eagerly.

    Args:
        model: A model that is built.
    """
    compilation = model._compilation
    if compilation is not None and compilation.run_eagerly:
        return EagerRunner(model)
    return RecordedRunner(model)


def _executions(
    model: "Model", spans: Iterable[Span], steps: int, callbacks: CallbackList, kind: str
) -> Iterator[Span]:
    """Yield the batches that run between two calls of the callbacks' hooks."""
    compilation = model._compilation
    most = "auto" if compilation is None else compilation.steps_per_execution
    if not isinstance(most, int):
        most = callbacks.steps_between(kind, steps)
    for span in spans:
        yield from span.split(most)


def _run_batches(model: "Model", arrays: Arrays, options: RunOptions) -> Span:
    """Return the checked batches of an evaluation or prediction."""
    batch_size = _batch_size(options.batch_size)
    if options.steps is not None:
        check_count("steps", options.steps, least=1)
    steps = _steps("steps", options.steps, arrays.size, batch_size)
    arrays, _ = prepare(model, arrays)
    return Span(Batches(arrays, batch_size), 0, steps)


def _evaluate_batches(
    model: "Model", runner: Runner, batches: Span, callbacks: CallbackList
) -> dict[str, float]:
    tracker = Tracker(model)
    callbacks.on_test_begin()
    done = 0
    for span in _executions(model, [batches], batches.count, callbacks, "test"):
        callbacks.on_test_batch_begin(done)
        runner.test(span, tracker.add)
        done += span.count
        callbacks.on_test_batch_end(done - 1, tracker.logs())
    logs = tracker.logs()
    callbacks.on_test_end(logs)
    return logs


# ---------------------------------------------------------------------------- reporting


def _callbacks(
    options: FitOptions | RunOptions, *more: Callback
) -> tuple[ProgressBar, CallbackList]:
    """Return the progress bar, and the list of it, the user's callbacks and more."""
    progress = ProgressBar(options.verbose)
    return progress, CallbackList([progress, options.callbacks, *more])


def _introduce(
    callbacks: CallbackList, model: "Model", verbose: int | str, epochs: int, steps: int
) -> None:
    """Tell the callbacks what is about to run."""
    callbacks.set_params({"verbose": verbose, "epochs": epochs, "steps": steps})
    callbacks.set_model(model)


# ---------------------------------------------------------------------------- checks


def prepare(
    model: "Model", arrays: Arrays, validation: Arrays | None = None
) -> tuple[Arrays, Arrays | None]:
    """Build the model for these inputs where it is not built, and make its metrics.

    Args:
        model: The model.
        arrays: What it is about to run on.
        validation: What it is validated on, if it is.

    Returns:
        Both, with targets in the shape that the loss wants.

    Raises:
        ValueError: Inputs or targets do not fit the model; it is as it was.
    """
    with undone_on_failure(model):
        model.build_for(without_batch(arrays.x.shape))
        checked = _checked(model, arrays)
        checked_validation = None if validation is None else _checked(model, validation)
        if validation is not None and validation.x.shape[1:] != arrays.x.shape[1:]:
            # Only running it tells whether the model takes both; after an epoch is too late.
            model.check_runs_on(without_batch(validation.x.shape))
    if model._compilation is not None:
        with model.distribute_strategy.scope():
            model._compilation.resolve_metrics(model.output_shape)
    return checked, checked_validation


def _checked(model: "Model", arrays: Arrays) -> Arrays:
    """Return the arrays with targets in the shape that the loss wants, all checked."""
    model.check_input_shape(without_batch(arrays.x.shape))
    if arrays.y is None:
        return arrays
    loss = model.compiled().required_loss()
    targets = loss.check_targets(arrays.y, model.output_shape)
    return Arrays(arrays.x, targets, arrays.sample_weight, arrays.size)


def _batch_size(value: int | None) -> int:
    return _BATCH_SIZE if value is None else check_batch_size(value)


def check_count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a number of things.

    Args:
        name: What the error calls it.
        value: The argument.
        least: The least that it may be.

    Raises:
        ValueError: It is no integer, or less.
    """
    count = as_integer(value)
    if count is None or count < least:
        raise ValueError(f"`{name}` is an integer of {least} or more. Received: {name}={value!r}")
    return count


def _steps(name: str, wanted: int | None, size: int, batch_size: int) -> int:
    available = -(-size // batch_size)
    if wanted is not None and wanted > available:
        raise ValueError(
            f"`{name}` is more than the data has: {size} examples in batches of {batch_size} make "
            f"{available}. Received: {name}={wanted}"
        )
    return available if wanted is None else wanted
