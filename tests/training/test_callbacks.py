"""Every hook reaches every callback, in order and with the same logs."""

import inspect
from typing import Any

import pytest
from case_table import cases

from mirrored.training.callbacks import Callback, CallbackList, History

INDEXED = [
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
]
PLAIN = [f"on_{what}_{when}" for what in ("train", "test", "predict") for when in ("begin", "end")]
ALIASES = {"on_train_batch_begin": "on_batch_begin", "on_train_batch_end": "on_batch_end"}


class Recorder(Callback):
    """Notes the calls of every hook."""

    def __init__(self, calls: list[tuple[Any, ...]], name: str = "") -> None:
        super().__init__()
        for hook in [*INDEXED, *PLAIN]:
            setattr(self, hook, lambda *args, hook=hook: calls.append((name, hook, *args)))


def test_the_tables_name_every_hook() -> None:
    hooks = {name for name in vars(Callback) if name.startswith("on_")}
    assert hooks == {*INDEXED, *PLAIN, *ALIASES.values()}
    assert hooks == {name for name in vars(CallbackList) if name.startswith("on_")}


@cases("hook", [*INDEXED, *PLAIN, *ALIASES.values()])
def test_signatures_are_those_of_keras(hook: str) -> None:
    parameters = inspect.signature(getattr(Callback, hook)).parameters
    index = [] if hook in PLAIN else ["epoch" if "epoch" in hook else "batch"]
    assert list(parameters) == ["self", *index, "logs"]
    assert parameters["logs"].default is None
    if hook in PLAIN:
        getattr(Callback(), hook)()
    else:
        getattr(Callback(), hook)(3)


@cases("hook", [*INDEXED, *PLAIN])
def test_list_calls_all_in_order_with_the_same_logs(hook: str) -> None:
    calls: list[tuple[Any, ...]] = []
    callbacks = CallbackList([Recorder(calls, "a"), [Recorder(calls, "b")]])
    callbacks.append(Recorder(calls, "c"))
    index = () if hook in PLAIN else (5,)
    logs = {"loss": 1.0}
    getattr(callbacks, hook)(*index, logs)
    assert calls == [(name, hook, *index, logs) for name in "abc"]
    assert all(call[-1] is logs for call in calls)
    calls.clear()
    getattr(callbacks, hook)(*index)  # Callbacks may count on a dict.
    assert calls == [(name, hook, *index, {}) for name in "abc"]


@pytest.mark.parametrize(("hook", "alias"), ALIASES.items())
def test_batch_aliases(hook: str, alias: str) -> None:
    calls: list[tuple[int, Any]] = []

    class Old(Callback):
        pass

    setattr(Old, alias, lambda self, batch, logs=None: calls.append((batch, logs)))
    getattr(CallbackList(Old()), hook)(2, {"loss": 1.0})
    getattr(CallbackList(Old()), alias)(3, {"loss": 2.0})
    assert calls == [(2, {"loss": 1.0}), (3, {"loss": 2.0})]


def test_what_a_callback_adds_later_ones_see() -> None:
    class Rate(Callback):
        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
            if logs is not None:
                logs["rate"] = 0.5

    history = History()
    CallbackList([Rate(), history]).on_epoch_end(0, {"loss": 1.0})
    assert history.history == {"loss": [1.0], "rate": [0.5]}


class Model:
    """Something to train."""

    stop_training = False
    history: Any = None


def test_model_and_params_reach_all() -> None:
    model, params = Model(), {"epochs": 2, "steps": 3, "verbose": 0}
    first, second = Callback(), Callback()
    CallbackList([first, second], model=model, **params)
    assert first.model is model
    assert second.model is model
    assert first.params == second.params == params
    second.model.stop_training = True
    assert model.stop_training


def test_history() -> None:
    model, history = Model(), History()
    callbacks = CallbackList(history, model=model, epochs=4)
    callbacks.on_train_begin()
    callbacks.on_epoch_end(2, {"loss": 1.0})
    callbacks.on_epoch_end(3, {"loss": 0.5, "val_loss": 0.7})
    assert history.history == {"loss": [1.0, 0.5], "val_loss": [0.7]}
    assert history.epoch == [2, 3]
    assert history.params == {"epochs": 4}
    callbacks.on_train_begin()
    callbacks.on_epoch_end(0, {"loss": 0.25})
    assert history.history == {"loss": [1.0, 0.5, 0.25], "val_loss": [0.7]}  # As in Keras.
    assert history.epoch == [0]


@cases(
    ("callbacks", "message"),
    [
        ([History], r"<class .*History'> of type type\. Did you forget the parentheses\?"),
        ([Callback(), print], r"Received: <built-in function print> of type"),
        ("history", r"Received: 'history' of type str"),
    ],
)
def test_what_is_no_callback(callbacks: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"`callbacks` must hold instances of .*{message}"):
        CallbackList(callbacks)


def test_exception_in_a_callback_reaches_the_caller() -> None:
    class Broken(Callback):
        def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
            raise KeyError("mine")

    calls: list[tuple[Any, ...]] = []
    with pytest.raises(KeyError, match="mine"):
        CallbackList([Broken(), Recorder(calls)]).on_train_batch_end(0)
    assert calls == []


class Counts(Callback):
    """Has a hook for training batches, under their other name."""

    def on_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...


class Predicts(Callback):
    def on_predict_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None: ...


def assigned() -> Callback:
    callback = Callback()
    callback.on_test_batch_end = print  # type: ignore[method-assign]
    return callback


# A callback; how many of seven steps may run between its hooks in training, tests and prediction.
BETWEEN: dict[str, tuple[Any, tuple[int, int, int]]] = {
    "no hooks": (Callback(), (7, 7, 7)),
    "the history": (History(), (7, 7, 7)),
    "a training hook": (Counts(), (1, 7, 7)),
    "a prediction hook": (Predicts(), (7, 7, 1)),
    "a hook of one object": (assigned(), (7, 1, 7)),
    "several": (CallbackList([History(), [Counts(), Predicts()]]), (1, 7, 1)),
    "none": (CallbackList(None), (7, 7, 7)),
}


@cases(("callback", "steps"), BETWEEN.values(), ids=BETWEEN)
def test_steps_between_hooks(callback: Callback, steps: tuple[int, int, int]) -> None:
    kinds = ("train", "test", "predict")
    assert tuple(callback.steps_between(kind, 7) for kind in kinds) == steps
    assert min(callback.steps_between(kind, 0) for kind in kinds) in (0, 1)
