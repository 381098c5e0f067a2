"""The loops over epochs and batches behind `fit`, `evaluate` and `predict`.

What they run on is checked before, so bad input changes nothing.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mirrored._files import alone_unless, note_unsettled, settle, unsettled
from mirrored._interrupt import InterruptGuard
from mirrored._numbers import check_count
from mirrored._threads import failed, raise_failed
from mirrored.data.arguments import DataArguments
from mirrored.data.batches import Span
from mirrored.data.epochs import Epochs
from mirrored.errors import NonFiniteLossError, WorkersChangedError
from mirrored.ops.hooks import active_recorder
from mirrored.program import functions_run_eagerly
from mirrored.training.callbacks import Callback, CallbackList, History
from mirrored.training.callbacks.callback import check_verbose
from mirrored.training.compilation import begin_running
from mirrored.training.custom_steps import means_of
from mirrored.training.eager_steps import EagerSteps
from mirrored.training.fit_joining import Joining
from mirrored.training.fit_state import FitState
from mirrored.training.inputs import epochs_of, epochs_to_validate, fit_epochs, prepare
from mirrored.training.recorded_steps import RecordedSteps
from mirrored.training.run_plan import RunPlan
from mirrored.training.running_means import EpochLogs
from mirrored.training.step import joined

if TYPE_CHECKING:
    from mirrored.training.model import Model

Callbacks = Sequence[Callback] | Callback | None
Steps = EagerSteps | RecordedSteps

# ---------------------------------------------------------------------------- fit


def fit(
    plan: RunPlan,
    training: DataArguments,
    validation: DataArguments,
    *,
    validation_split: float,
    validation_freq: int | Sequence[int],
    initial_epoch: int,
    epochs: int,
    callbacks: Callbacks,
    verbose: int | str,
) -> History:
    """Train a model; `Model.fit` says what the arguments mean and what is raised."""
    check_count("epochs", epochs, least=0)
    check_count("initial_epoch", initial_epoch, least=0)
    to_validate = epochs_to_validate(validation_freq, epochs)
    hooks = CallbackList(callbacks, add_history=True, add_progbar=check_verbose(verbose) != 0)
    history = hooks.history or History()
    model = plan.model
    with ExitStack() as stack:
        begin_running(model, "fit", stack)
        if plan.is_shared:
            from mirrored.distribute.worker_agreement import draw_alike

            # One worker may have drawn more random numbers than the others.
            draw_alike(plan.strategy.of_each_worker)
        trained, validated = fit_epochs(plan, training, validation, validation_split, stack)
        steps = _steps_of(plan, stack)
        state = FitState(plan, hooks)
        state.trained, state.validated = trained, validated
        with plan.strategy.scope(), InterruptGuard(may_break=True) as guard:
            try:
                hooks.set_params({"verbose": verbose, "epochs": epochs, "steps": trained.steps})
                hooks.set_model(model)
                # From the start, so that an interrupt leaves the epochs of this call there.
                model.history = history
                if getattr(model, "stop_training", None) is not False:
                    model.stop_training = False
                state.epoch = initial_epoch
                joining = Joining(plan, state) if plan.strategy.replaces_workers else None
                for backup in state.backups:
                    backup._follow_fit(state)
                hooks.on_train_begin()
                # In the middle of an epoch the hooks that begin it come before.
                if state.backups and not state.batches:
                    state.resume()
                logs = state.logs
                for epoch in range(state.epoch, 0 if state.has_stopped else epochs):
                    if joining is not None and not state.batches:
                        joining.meet(0, steps.reform)
                    if not trained.begin():
                        break
                    logs = _train_epoch(plan, steps, trained, hooks, guard, state, joining)
                    if validated is not None and epoch + 1 in to_validate and validated.begin():
                        results = _evaluate_batches(plan, steps, validated, hooks)
                        logs |= {f"val_{name}": value for name, value in results.items()}
                    hooks.on_epoch_end(epoch, dict(logs))
                    state.epoch, state.batches, state.means, state.logs = epoch + 1, 0, None, logs
                    for backup in state.backups:
                        backup._back_up_fit()
                    if model.stop_training or trained.ran_out:
                        break
                hooks._epochs_done()
                optimizer = model.required_compilation().optimizer
                if optimizer is not None and optimizer.slots.keeps_averages:
                    with guard.step():  # All of them or none.
                        optimizer.finalize_variable_values(model.trainable_weights)
                if plan.is_shared:  # Where the one that writes files has died, another ends them.
                    plan.strategy.of_each_worker(None, "the end of a fit")
                hooks.on_train_end(logs)
                if unsettled:
                    with alone_unless(plan.is_shared):
                        settle()
            except BaseException as error:
                with alone_unless(plan.is_shared):
                    note_unsettled(error)
                raise
            finally:
                hooks._let_go()
    return history


def _train_epoch(
    plan: RunPlan,
    steps: Steps,
    epochs: Epochs,
    callbacks: CallbackList,
    guard: InterruptGuard,
    state: FitState,
    joining: Joining | None,
) -> dict[str, float]:
    epoch, means = state.epoch, means_of(plan, "train")
    state.means = means
    callbacks.on_epoch_begin(epoch)
    if state.batches:
        state.resume()
    begun = time.perf_counter()
    after = state.batches
    try:
        for whole, before in _spans(plan, epochs, callbacks, "train", after):
            span: Span | None = whole
            while span is not None:  # More than once only where a signal has cut it.
                callbacks.on_train_batch_begin(before)
                where = f"of epoch {epoch + 1}"
                done, error = _train(
                    steps, span, means, guard, where, before, state.is_ending, joining
                )
                before += done
                after = state.batches = before
                if error is not None and not callbacks.look_at_losses:
                    raise error
                callbacks.on_train_batch_end(after - 1, means.logs())
                if error is not None and not plan.model.stop_training:
                    raise error
                if not plan.model.stop_training:  # Else the end of the epoch is part of it.
                    for backup in state.backups:
                        backup._back_up_fit()
                span = span.after(done) if error is None and done < span.count else None
    except BaseException as error:  # A callback's, or the data's: other workers hear of the step.
        vars(error).setdefault("training_step", f"what follows step {after} of epoch {epoch + 1}")
        raise
    callbacks._note_speed(means.examples, time.perf_counter() - begun)
    return means.finish()


def _train(
    steps: Steps,
    span: Span,
    means: EpochLogs,
    guard: InterruptGuard,
    epoch: str,
    before: int,
    is_ending: Callable[[], bool] = bool,
    joining: Joining | None = None,
) -> tuple[int, NonFiniteLossError | None]:
    """Take the steps of one execution; `before` is how many of the epoch came before it.

    Where `is_ending` returns True they end after the step that runs. Before each one in which
    workers are to join, `joining` lets them.

    Return how many there were, the one included whose loss was not finite; and its error.
    """
    first = means.steps

    def where(step: int) -> str:
        return f"step {before + done + step + 1} {epoch}"

    # More than once only where an interrupt did not end the program.
    while (done := means.steps - first) < span.count and not (done and is_ending()):
        if failed:  # A save that a thread has made.
            raise_failed()
        if joining is not None and before + done:
            joining.meet(before + done, steps.reform)
        left = span.after(done) if done else span
        try:
            with guard.step():
                steps.train(left, where, means.add, lambda: not (guard.pending or is_ending()))
        except WorkersChangedError:
            span = steps.shared_again(span)
            if not span.size:  # Only the others had rows of it.
                return span.count, None
        except NonFiniteLossError as error:
            return means.steps - first, error
        except Exception as error:  # Other workers are sent the step, too.
            vars(error).setdefault("training_step", where(means.steps - first - done))
            raise
    return done, None


def _retaken(
    steps: Steps,
    take: Callable[[Span, Any], None],
    span: Span,
    report: Any,
    done: Callable[[], int],
) -> None:
    """Run all steps of a span; those in which workers died are taken again by the others.

    Args:
        steps: The steps.
        take: Runs those of a span.
        span: The batches.
        report: Called with what they return.
        done: Returns how many of them were run.
    """
    while done() < span.count:
        try:
            take(span.after(done()) if done() else span, report)
        except WorkersChangedError:
            span = steps.shared_again(span)
            if not span.size:  # Only the others had rows of it.
                return


def _test(steps: Steps, span: Span, means: EpochLogs) -> None:
    first = means.steps
    _retaken(steps, steps.test, span, means.add, lambda: means.steps - first)


# ---------------------------------------------------------------------------- evaluate, predict


def evaluate(
    plan: RunPlan, data: DataArguments, *, callbacks: Callbacks, verbose: int | str
) -> dict[str, float]:
    """Return loss and metrics by name; `Model.evaluate` says what the arguments mean."""
    hooks = CallbackList(callbacks, add_progbar=check_verbose(verbose) != 0)
    with ExitStack() as stack:
        epochs = _begun(plan, data, hooks, verbose, stack)
        epochs.begin()
        steps = _steps_of(plan, stack)
        return _evaluate_batches(plan, steps, epochs, hooks)


def on_batch(
    plan: RunPlan, kind: str, data: DataArguments, *, goes_on: bool = False
) -> dict[str, float]:
    """Return the logs of one step; `Model.train_on_batch` and `test_on_batch` say the rest.

    Metrics are reset, unless they are to keep their values.
    """
    with ExitStack() as stack:
        epochs = epochs_of(plan, data, stack)
        prepare(plan, epochs, use=data.use)
        begin_running(plan.model, f"{kind}_on_batch", stack)
        steps = _steps_of(plan, stack)
        stack.enter_context(plan.strategy.scope())
        guard = stack.enter_context(InterruptGuard(may_break=True))
        epochs.begin()
        means = means_of(plan, kind, goes_on=goes_on)
        for span in epochs.spans(1):
            if kind == "train":
                _, error = _train(steps, span, means, guard, "of this batch", 0)
                if error is not None:
                    raise error
            else:
                _test(steps, span, means)
        return means.finish()


def predict(plan: RunPlan, data: DataArguments, *, callbacks: Callbacks, verbose: int | str) -> Any:
    """Return the outputs; `Model.predict` says what the arguments mean."""
    hooks = CallbackList(callbacks, add_progbar=check_verbose(verbose) != 0)
    with ExitStack() as stack:
        epochs = _begun(plan, data, hooks, verbose, stack)
        steps = _steps_of(plan, stack)
        outputs: list[Any] = []
        plan.model.stop_predicting = False
        hooks.on_predict_begin()
        epochs.begin()
        for span, before in _spans(plan, epochs, hooks, "predict"):
            hooks.on_predict_batch_begin(before)
            new: list[Any] = []
            _retaken(steps, steps.predict, span, new.append, new.__len__)
            outputs += new
            hooks.on_predict_batch_end(len(outputs) - 1, {"outputs": joined(new)})
        hooks.on_predict_end()
    return joined(outputs)


def _begun(
    plan: RunPlan,
    data: DataArguments,
    callbacks: CallbackList,
    verbose: int | str,
    stack: ExitStack,
) -> Epochs:
    """Return the batches of an evaluation or a prediction, which runs until the stack is closed."""
    epochs = epochs_of(plan, data, stack)
    prepare(plan, epochs, use=data.use)
    begin_running(plan.model, data.use, stack)
    stack.enter_context(plan.strategy.scope())
    stack.callback(callbacks._let_go)
    callbacks.set_params({"verbose": verbose, "epochs": 1, "steps": epochs.steps})
    callbacks.set_model(plan.model)
    return epochs


def _evaluate_batches(
    plan: RunPlan, steps: Steps, epochs: Epochs, callbacks: CallbackList
) -> dict[str, float]:
    means = means_of(plan, "test")
    plan.model.stop_evaluating = False
    callbacks.on_test_begin()
    for span, before in _spans(plan, epochs, callbacks, "test"):
        callbacks.on_test_batch_begin(before)
        _test(steps, span, means)
        callbacks.on_test_batch_end(before + span.count - 1, means.logs())
    logs = means.finish()
    callbacks.on_test_end(logs)
    return logs


# The model's attribute that ends each kind of batches after the one that is running.
_STOPS = {"train": "stop_training", "test": "stop_evaluating", "predict": "stop_predicting"}


def _spans(
    plan: RunPlan, epochs: Epochs, callbacks: CallbackList, kind: str, before: int = 0
) -> Iterator[tuple[Span, int]]:
    """Yield the batches that run between two calls of hooks, with how many came before them."""
    stop, first = _STOPS[kind], before
    model, strategy = plan.model, plan.strategy
    # Where it was stopped before it began, it ends with its first batch, as in Keras.
    most = 1 if getattr(model, stop) else _most(model, epochs, callbacks, kind)
    for span in epochs.spans(most):
        if plan.is_shared and before == first:
            batch = f"{span.size} examples"
            if span.sizes is None:  # Else each worker has other ones.
                batch += f" (check {span.check():08x})"
            facts = {"batches": [batch], **_values(model)}
            strategy.check_alike(facts, f"the first batch of an epoch to {kind}")
        yield span, before
        before += span.count
        if getattr(model, stop):
            break
    # A worker with fewer batches would go on to other steps, and the others add theirs to those.
    if plan.is_shared:
        facts = {"batches": [str(before)]}
        if kind == "train":  # What callbacks have changed in between.
            facts |= _values(model)
        strategy.check_alike(facts, f"the end of an epoch's steps to {kind}")


def _values(model: "Model") -> dict[str, list[str]]:
    """Return the values and settings that are the same on all workers wherever an epoch begins."""
    from mirrored.training.step_facts import values_of  # Of several workers.

    return values_of(model)


def _most(model: "Model", epochs: Epochs, callbacks: CallbackList, kind: str) -> int | None:
    """Return how many steps run between two calls of the callbacks' hooks; None: any number."""
    if isinstance(model.steps_per_execution, int):
        return model.steps_per_execution
    steps = epochs.steps or 100  # Where it is not known yet, a bar advances by one.
    between = callbacks.steps_between(kind, steps)
    return None if between >= steps else between


# ---------------------------------------------------------------------------- reporting


def check_context(method: str) -> None:
    """Raise RuntimeError while a function is recorded, before anything changes."""
    if active_recorder() is not None:
        raise RuntimeError(
            f"`{method}` is a Python loop, and a recorded function does not run Python. Received: "
            "a call while a function was being recorded. Make the call outside mr.function."
        )


# ---------------------------------------------------------------------------- running


def _steps_of(plan: RunPlan, stack: ExitStack) -> Steps:
    """Return what takes a model's steps: recorded ones, unless it is to run eagerly.

    The memory of recorded steps is given back when the stack is closed.
    """
    if plan.model.run_eagerly or functions_run_eagerly():
        return EagerSteps(plan)
    stack.enter_context(plan.model.__state__.traces)
    return RecordedSteps(plan)
