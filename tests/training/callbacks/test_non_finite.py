"""`TerminateOnNaN`: the step writes nothing, whichever way steps are run, and `fit` ends."""

from typing import Any

import numpy as np
import pytest

import mirrored as mr

X = np.ones((40, 1), np.float32)


@pytest.mark.behaviour("terminate-on-nan")
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("penalty", [None, "l2"])
def test_the_step_writes_nothing(eager: bool, penalty: str | None, strategy: Any) -> None:
    def trained(x: np.ndarray, **options: Any) -> tuple[mr.Model, mr.callbacks.History]:
        with strategy.scope():
            model = mr.Sequential(
                [
                    mr.layers.Input(shape=(1,)),
                    mr.layers.Dense(1, kernel_initializer="ones", kernel_regularizer=penalty),
                ]
            )
            model.compile(
                mr.optim.SGD(0.1, momentum=0.5), "mse", metrics=["mse"], run_eagerly=eager
            )
        history = model.fit(x, 2 * X, batch_size=4, shuffle=False, verbose=0, **options)
        return model, history

    spoiled = X.copy()
    spoiled[14] = np.inf  # In the fourth step.
    seen: list[int] = []

    class Looks(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(batch)

    good, _ = trained(X, steps_per_epoch=3)
    for more in ([], [Looks()]):
        stop = mr.callbacks.TerminateOnNaN()
        model, history = trained(spoiled, epochs=3, callbacks=[stop, *more])
        assert history.epoch == [0]
        assert not np.isfinite(history.history["loss"]).any()
        assert not np.isfinite(history.history["mse"]).any()
        for one, other in zip(model.get_weights(), good.get_weights(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert int(model.optimizer.iterations) == 3
        model.fit(X, X, batch_size=4, verbose=0)  # It trains on.
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("eager", [False, True])
def test_a_custom_step_ends_the_same_way(eager: bool) -> None:
    class Custom(mr.Sequential):
        def train_step(self, data: Any) -> dict[str, Any]:
            """Take Keras' step."""
            return super().train_step(data)

    model = Custom([mr.layers.Input((1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=eager)
    x = np.array([[1.0], [np.nan], [1.0]])
    losses: list[float] = []
    look = mr.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(logs["loss"])
    )
    stop = mr.callbacks.TerminateOnNaN()
    model.fit(x, X[:3], 1, 2, verbose=0, shuffle=False, callbacks=[stop, look])
    assert np.isfinite(losses).tolist() == [True, False]
    assert np.isfinite(model.get_weights()[0]).all()


def test_hooks_run_only_where_the_step_says_so(make_line: Any) -> None:
    stop, spans = mr.callbacks.TerminateOnNaN(), []
    count = mr.callbacks.LambdaCallback(on_train_begin=lambda logs: spans.append(0))
    stop.on_batch_end = lambda batch, logs=None: spans.append(batch)  # type: ignore[method-assign]
    assert stop.steps_between("train", 9) == 1
    del stop.on_batch_end
    assert stop.steps_between("train", 9) == count.steps_between("train", 9) == 9


def test_who_looks_and_does_not_stop_gets_the_error(make_line: Any) -> None:
    class Looks(mr.callbacks.TerminateOnNaN):
        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            """Do nothing."""

    model = make_line()
    with pytest.raises(mr.errors.NonFiniteLossError, match="step 1 of epoch 1"):
        model.fit(X * np.nan, X, verbose=0, callbacks=[Looks()])
