"""The loops over epochs and batches behind `fit`, `evaluate` and `predict`.

What they are about to do is planned and checked before, so bad input changes nothing.
"""

import contextlib
from typing import Any

import numpy as np

from mirrored._interrupt import InterruptGuard
from mirrored.data.batches import Span
from mirrored.data.epochs import Epochs
from mirrored.ops.hooks import active_recorder
from mirrored.training.callbacks import Callback, CallbackList, History
from mirrored.training.compilation import CompiledNetwork, running
from mirrored.training.plan import FitOptions, FitPlan, RunOptions, make_runner, plan_run
from mirrored.training.progress import ProgressBar
from mirrored.training.runner import Runner
from mirrored.training.running_means import RunningMeans

# ---------------------------------------------------------------------------- fit


def fit(model: CompiledNetwork, x: Any, y: Any, options: FitOptions) -> History:
    """Train a model; `Model.fit` says what the arguments mean and what is raised."""
    _check_context("fit")
    model.required_compilation().required_loss()
    history = History()
    progress, callbacks = _callbacks(options, history)
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(model, "fit"))
        plan = FitPlan(model, x, y, options, stack)
        stack.enter_context(model.distribute_strategy.scope())
        guard = stack.enter_context(InterruptGuard(may_break=True))
        stack.enter_context(contextlib.closing(progress))
        _introduce(callbacks, model, options.verbose, options.epochs, plan.training.steps)
        # From the start, so that an interrupt leaves the epochs of this call there.
        model.history, model.stop_training = history, False
        logs: dict[str, float] = {}
        callbacks.on_train_begin()
        for epoch in range(options.initial_epoch, options.epochs):
            if not plan.training.begin():
                break
            logs = _run_epoch(model, plan, epoch, callbacks, guard)
            if model.stop_training or plan.training.ran_out:
                break
        callbacks.on_train_end(logs)
    return history


def _run_epoch(
    model: CompiledNetwork,
    plan: FitPlan,
    epoch: int,
    callbacks: CallbackList,
    guard: InterruptGuard,
) -> dict[str, float]:
    means = RunningMeans(model)
    callbacks.on_epoch_begin(epoch)
    done = 0
    most = _most(model, plan.training, callbacks, "train", stopped=model.stop_training)
    for span in plan.training.spans(most):
        callbacks.on_train_batch_begin(done)
        _train(plan.runner, span, means, guard, f"of epoch {epoch + 1}", done)
        done += span.count
        callbacks.on_train_batch_end(done - 1, means.logs())
        if model.stop_training:
            break
    logs = means.logs()
    validation = plan.validation
    if validation is not None and epoch + 1 in plan.epochs_to_validate and validation.begin():
        validated = _evaluate_batches(model, plan.runner, validation, callbacks)
        logs |= {f"val_{name}": value for name, value in validated.items()}
    callbacks.on_epoch_end(epoch, logs)
    return logs


def _train(
    runner: Runner, span: Span, means: RunningMeans, guard: InterruptGuard, epoch: str, before: int
) -> None:
    """Take the steps of one execution; `before` is how many of the epoch came before it."""
    done = 0

    def take(rows: list[list[float]], examples: int) -> None:
        nonlocal done
        done += len(rows)
        means.add(rows, examples)

    def where(step: int) -> str:
        return f"step {before + begun + step + 1} {epoch}"

    while done < span.count:  # More than once only where an interrupt did not end the program.
        begun = done
        with guard.step():
            runner.train(span.after(begun), where, take, lambda: not guard.pending)


# ---------------------------------------------------------------------------- evaluate, predict


def evaluate(
    model: CompiledNetwork, x: Any, y: Any, sample_weight: Any, options: RunOptions
) -> dict[str, float]:
    """Return loss and metrics by name; `Model.evaluate` says what the arguments mean."""
    _check_context("evaluate")
    model.required_compilation().required_loss()
    progress, callbacks = _callbacks(options)
    epochs = plan_run(model, x, y, sample_weight, options, "evaluate")
    with (
        running(model, "evaluate"),
        contextlib.closing(epochs),
        model.distribute_strategy.scope(),
        contextlib.closing(progress),
    ):
        _introduce(callbacks, model, options.verbose, 1, epochs.steps)
        epochs.begin()
        with make_runner(model) as runner:
            return _evaluate_batches(model, runner, epochs, callbacks)


def predict(model: CompiledNetwork, x: Any, options: RunOptions) -> np.ndarray[Any, Any]:
    """Return the outputs; `Model.predict` says what the arguments mean."""
    _check_context("predict")
    progress, callbacks = _callbacks(options)
    epochs = plan_run(model, x, None, None, options, "predict")
    with (
        contextlib.ExitStack() as stack,
        running(model, "predict"),
        contextlib.closing(epochs),
        model.distribute_strategy.scope(),
        contextlib.closing(progress),
    ):
        _introduce(callbacks, model, options.verbose, 1, epochs.steps)
        runner = stack.enter_context(make_runner(model))
        outputs: list[np.ndarray[Any, Any]] = []
        model.stop_predicting = False
        callbacks.on_predict_begin()
        epochs.begin()
        most = _most(model, epochs, callbacks, "predict", stopped=model.stop_predicting)
        for span in epochs.spans(most):
            callbacks.on_predict_batch_begin(len(outputs))
            runner.predict(span, outputs.append)
            made = np.concatenate(outputs[-span.count :])
            callbacks.on_predict_batch_end(len(outputs) - 1, {"outputs": made})
            if model.stop_predicting:
                break
        callbacks.on_predict_end()
    return np.concatenate(outputs)


def _evaluate_batches(
    model: CompiledNetwork, runner: Runner, epochs: Epochs, callbacks: CallbackList
) -> dict[str, float]:
    means = RunningMeans(model)
    model.stop_evaluating = False
    callbacks.on_test_begin()
    done = 0
    most = _most(model, epochs, callbacks, "test", stopped=model.stop_evaluating)
    for span in epochs.spans(most):
        callbacks.on_test_batch_begin(done)
        runner.test(span, means.add)
        done += span.count
        callbacks.on_test_batch_end(done - 1, means.logs())
        if model.stop_evaluating:
            break
    logs = means.logs()
    callbacks.on_test_end(logs)
    return logs


def _most(
    model: CompiledNetwork, epochs: Epochs, callbacks: CallbackList, kind: str, *, stopped: bool
) -> int | None:
    """Return how many steps run between two calls of the callbacks' hooks; None: any number."""
    if stopped:  # Before it began: it ends with its first batch, as in Keras.
        return 1
    compilation = model._compilation
    asked = "auto" if compilation is None else compilation.steps_per_execution
    if isinstance(asked, int):
        return asked
    steps = epochs.steps or 100  # Where it is not known yet, a bar advances by one.
    between = callbacks.steps_between(kind, steps)
    return None if between >= steps else between


# ---------------------------------------------------------------------------- reporting


def _check_context(method: str) -> None:
    """Raise RuntimeError while a function is recorded, before anything changes."""
    if active_recorder() is not None:
        raise RuntimeError(
            f"`{method}` is a loop of Python, which a recorded function does not run. Received: a "
            "call while a function was being recorded. Make the call outside mr.function."
        )


def _callbacks(
    options: FitOptions | RunOptions, *more: Callback
) -> tuple[ProgressBar, CallbackList]:
    """Return the progress bar, and the list of it, the user's callbacks and more."""
    progress = ProgressBar(options.verbose)
    return progress, CallbackList([progress, options.callbacks, *more])


def _introduce(
    callbacks: CallbackList,
    model: CompiledNetwork,
    verbose: int | str,
    epochs: int,
    steps: int | None,
) -> None:
    """Tell the callbacks what is about to run."""
    callbacks.set_params({"verbose": verbose, "epochs": epochs, "steps": steps})
    callbacks.set_model(model)
