"""What users' own code raises in callbacks, losses, metrics and layers reaches the caller.

The model is as after its last whole step, and trains on from there.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr


class Broken(Exception):
    """What users' code raises here."""


# The hook, and how many steps are over when it is called first.
HOOKS = {
    "on_train_begin": 0,
    "on_epoch_begin": 0,
    "on_train_batch_begin": 0,
    "on_train_batch_end": 1,
    "on_test_begin": 2,
    "on_test_batch_begin": 2,
    "on_test_batch_end": 2,
    "on_test_end": 2,
    "on_epoch_end": 2,
    "on_train_end": 2,
}


@pytest.mark.parametrize(("hook", "steps"), HOOKS.items())
def test_an_exception_in_a_callback(
    hook: str,
    steps: int,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    class Breaks(mr.callbacks.Callback):
        pass

    def breaks(self: Breaks, *args: Any) -> None:
        raise Broken(hook)

    setattr(Breaks, hook, breaks)
    options: dict[str, Any] = {"callbacks": [Breaks()], "validation_data": data}
    check_refused(
        make_model(strategy), lambda model: train(model, **options), Broken, hook, steps=steps
    )


@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_an_exception_in_a_callback_of(
    method: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    check_refused: Callable[..., BaseException],
    data: tuple[np.ndarray, np.ndarray],
) -> None:
    class Breaks(mr.callbacks.Callback):
        def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
            raise Broken

        on_predict_batch_end = on_test_batch_end

    given = data if method == "evaluate" else data[:1]
    check_refused(
        make_model(strategy),
        lambda model: getattr(model, method)(*given, verbose=0, callbacks=[Breaks()]),
        Broken,
    )


CALLBACKS: dict[str, tuple[Any, str]] = {
    "a class": ([mr.callbacks.Callback], "Did you forget the parentheses?"),
    "a function": (print, "must hold instances of `mr.callbacks.Callback`"),
}


@pytest.mark.parametrize(("callbacks", "message"), CALLBACKS.values(), ids=CALLBACKS)
def test_callbacks_that_are_none(
    callbacks: Any,
    message: str,
    strategy: mr.MirroredStrategy,
    make_model: Callable[..., mr.Model],
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    check_refused(
        make_model(strategy), lambda model: train(model, callbacks=callbacks), TypeError, message
    )


class Switch:
    """Code of a user's that fails while it is on, in the last replica alone."""

    def __init__(self) -> None:
        self.on = False

    def check(self) -> None:
        context = mr.distribute.get_replica_context()
        last = context is not None and (
            context.replica_id_in_sync_group == context.num_replicas_in_sync - 1
        )
        if self.on and last:
            raise Broken("of the user's")


@pytest.mark.parametrize("what", ["loss", "metric", "layer"])
def test_an_exception_in_a_users_code(
    what: str,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    check_refused: Callable[..., BaseException],
) -> None:
    """It reaches the caller with the replica and the device named."""
    switch = Switch()

    def loss(y_true: mr.Tensor, y_pred: mr.Tensor) -> mr.Tensor:
        switch.check()
        return mr.square(y_true - y_pred)

    class Layer(mr.layers.Layer):
        def call(self, inputs: mr.Tensor) -> mr.Tensor:
            switch.check()
            return inputs

    def make(strategy: mr.MirroredStrategy) -> mr.Model:
        mr.random.set_seed(2)
        with strategy.scope():
            model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
            if what == "layer":
                model.add(Layer())
            model.compile(
                mr.optim.SGD(0.1, momentum=0.9),
                loss if what == "loss" else "mse",
                metrics=[loss] if what == "metric" else None,
            )
        train(model)
        return model

    def act(model: mr.Model) -> None:
        switch.on = True
        try:
            train(model)
        finally:
            switch.on = False

    model = make(strategy)
    error = check_refused(model, act, Broken, "of the user's", make=make)
    notes = "".join(getattr(error, "__notes__", []))
    last = strategy.num_replicas_in_sync - 1
    if last:
        assert f"Raised in replica {last} on {strategy.devices[last].full_name}." in notes


LOSSES: dict[str, tuple[Callable[..., Any], str]] = {
    "a mean over the batch": (
        lambda y_true, y_pred: mr.reduce_mean(mr.square(y_true - y_pred)),
        "must return one value an example",
    ),
    "None": (lambda y_true, y_pred: None, "None"),
}


@pytest.mark.parametrize(("loss", "message"), LOSSES.values(), ids=LOSSES)
def test_a_loss_of_another_shape(
    loss: Callable[..., Any],
    message: str,
    strategy: mr.MirroredStrategy,
    train: Callable[..., mr.callbacks.History],
    state: Callable[..., list[bytes]],
) -> None:
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(1)])
        model.compile("sgd", loss)
    before = state(model)
    with pytest.raises((ValueError, TypeError), match=message):
        train(model)
    assert state(model) == before
