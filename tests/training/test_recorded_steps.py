"""What is recorded for `fit` and when again, and how many steps run between callbacks."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from replica_context import ONE_AND_THREE

import mirrored as mr
from mirrored.ops.hooks import shapes_alone

pytestmark = pytest.mark.usefixtures("one_blas_thread")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(14, 3)).astype(np.float32)
Y = RNG.normal(size=(14, 2)).astype(np.float32)
# Either way to run steps; how both do on any number of replicas is in `test_recorded_parity.py`.
EITHER = pytest.mark.parametrize(
    ("eager", "strategy"),
    [(True, 1), (False, 3)],
    ids=["eager", "recorded"],
    indirect=["strategy"],
)


class Traced(mr.layers.Layer):
    """Notes the shapes that Python runs with in replicas."""

    def __init__(self) -> None:
        super().__init__()
        self.inner: mr.layers.Layer = mr.layers.Activation("linear")
        self.shapes: list[tuple[int, ...]] = []

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        if mr.distribute.get_replica_context() is not None and not shapes_alone():
            self.shapes.append(inputs.shape)
        return self.inner(inputs)


def make(strategy: mr.MirroredStrategy, **compile: Any) -> tuple[mr.Model, list[Any]]:
    mr.random.set_seed(1)
    traced = Traced()
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((3,)), traced])
        model.add(mr.layers.Dense(4, "tanh", name="hidden"))
        model.add(mr.layers.Dense(2, name="last"))
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse", **compile)
    return model, traced.shapes


def fit(model: mr.Model, **change: Any) -> mr.callbacks.History:
    options: dict[str, Any] = {"batch_size": 6, "verbose": 0, "shuffle": False, **change}
    return model.fit(options.pop("x", X), options.pop("y", Y), **options)


def state(model: mr.Model) -> list[bytes]:
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.variables, *model.optimizer.variables]
    return [copy.numpy().tobytes() for variable in variables for copy in local(variable)]


def recordings(shapes: list[Any], act: Callable[[], Any]) -> int:
    """Return how many calls of the model by Python an action makes."""
    before = len(shapes)
    act()
    return len(shapes) - before


# ------------------------------------------------------------------------------ when


@ONE_AND_THREE
def test_python_runs_once_for_each_size_of_a_batch(strategy: mr.MirroredStrategy) -> None:
    replicas = strategy.num_replicas_in_sync
    model, shapes = make(strategy)
    fit(model, epochs=3)  # Of 6, 6 and 2 examples.
    seen = len(shapes)
    assert {sum(each[0] for each in shapes[:replicas])} == {6}
    assert recordings(shapes, lambda: fit(model, epochs=3, shuffle=True)) == 0
    assert recordings(shapes, lambda: fit(model, x=X[:12], y=Y[:12])) == 0
    assert seen <= 2 * 2 * replicas  # Once more where variables were brought together meanwhile.


SIX = {"x": X[:6], "y": Y[:6]}
# What changes that a step is recorded anew for, and what it goes on with.
AGAIN: dict[str, Callable[[mr.Model], Any]] = {
    "a setting of the optimizer": lambda model: setattr(model.optimizer, "momentum", 0.5),
    "a larger batch": lambda model: fit(model, x=X[:7], y=Y[:7], batch_size=7),
    "sample weights": lambda model: fit(model, **SIX, sample_weight=np.ones(6)),
    "another layer inside of one": lambda model: setattr(
        next(each for each in model.layers if isinstance(each, Traced)),
        "inner",
        mr.layers.Activation("tanh"),
    ),
    "a frozen layer": lambda model: setattr(model.get_layer("hidden"), "trainable", False),
}
NOT_AGAIN: dict[str, Callable[[mr.Model], Any]] = {
    "nothing": lambda model: fit(model, **SIX),
    "other data": lambda model: fit(model, x=-X[:6], y=2 * Y[:6]),
    "data of another dtype": lambda model: fit(model, x=X[:6].astype(np.float64), y=Y[:6]),
    "data in another order": lambda model: fit(model, x=np.asfortranarray(X[:6]), y=Y[:6]),
    "the learning rate": lambda model: setattr(model.optimizer, "learning_rate", 0.05),
    "weights": lambda model: model.set_weights([w + 1 for w in model.get_weights()]),
}


@pytest.mark.parametrize("strategy", [2], ids=["two replicas"], indirect=True)
@pytest.mark.parametrize("changes", [[each] for each in AGAIN] + [list(NOT_AGAIN)], ids=str)
def test_what_a_step_is_recorded_for(changes: list[str], strategy: mr.MirroredStrategy) -> None:
    """And whatever it is, what comes of it is what eager steps give."""
    model, shapes = make(strategy)
    eager, _ = make(strategy, run_eagerly=True)
    for each in (model, eager):
        fit(each, **SIX)
    for name in changes:
        change = {**AGAIN, **NOT_AGAIN}[name]
        again = recordings(shapes, lambda change=change: [change(model), fit(model, **SIX)]) > 0
        assert again == (name in AGAIN), name
        change(eager)
        fit(eager, **SIX)
        assert state(model) == state(eager), name


def test_a_layer_of_a_recorded_step_is_kept(strategy: mr.MirroredStrategy) -> None:
    """Or another one could have its identity, and be taken for it."""
    model, _ = make(strategy)
    fit(model)
    traced = next(each for each in model.layers if isinstance(each, Traced))
    before = weakref.ref(traced.inner)
    traced.inner = mr.layers.Activation("tanh")
    gc.collect()
    assert before() is not None


def test_compiling_again_records_again(strategy: mr.MirroredStrategy) -> None:
    model, shapes = make(strategy)
    fit(model)
    with strategy.scope():
        model.compile("sgd", "mse")
    assert recordings(shapes, lambda: fit(model)) > 0
    with strategy.scope():
        model.compile("sgd", "mse", run_eagerly=True)
    replicas = strategy.num_replicas_in_sync
    # In every one of three steps; a replica without examples does not run the model.
    assert recordings(shapes, lambda: fit(model)) == 2 * replicas + min(replicas, 2)


def test_weights_are_read_between_steps(strategy: mr.MirroredStrategy) -> None:
    """What callbacks read and keep stays as it was, while programs write the weights."""
    model, _ = make(strategy)
    eager, _ = make(strategy, run_eagerly=True)
    kept: dict[bool, list[Any]] = {True: [], False: []}

    class Keeps(mr.callbacks.Callback):
        def __init__(self, values: list[Any]) -> None:
            super().__init__()
            self.values = values

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            weight = self.model.trainable_variables[0]
            self.values.append(weight.read_value())
            if batch == 1:
                weight.assign(weight * 0.5)

    fit(model, epochs=2, callbacks=[Keeps(kept[False])])
    fit(eager, epochs=2, callbacks=[Keeps(kept[True])])
    recorded, expected = ([str(each) for each in kept[which]] for which in (False, True))
    assert recorded == expected
    assert len(set(expected)) == 6
    assert state(model) == state(eager)


def test_a_model_trained_inside_a_callback_of_another(strategy: mr.MirroredStrategy) -> None:
    outer, inner = make(strategy)[0], make(strategy)[0]
    alone, other = make(strategy)[0], make(strategy)[0]

    class Trains(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            fit(inner)

    fit(outer, epochs=2, callbacks=[Trains()])
    fit(alone, epochs=2)
    fit(other, epochs=1)
    fit(other, epochs=1)
    assert state(outer) == state(alone)
    assert state(inner) == state(other)


# ------------------------------------------------------------------------------ how many steps


class Hooks(mr.callbacks.Callback):
    """Notes the batches that hooks are called for, and the logs at their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.begins: list[int] = []
        self.ends: list[tuple[int, str]] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.begins.append(batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.ends.append((batch, repr(logs)))

    on_test_batch_begin = on_predict_batch_begin = on_train_batch_begin
    on_test_batch_end = on_predict_batch_end = on_train_batch_end


RUNS: dict[str, Callable[[mr.Model, Any], Any]] = {
    "fit": lambda model, hooks: fit(model, batch_size=2, callbacks=hooks),
    "evaluate": lambda model, hooks: model.evaluate(X, Y, 2, 0, callbacks=hooks),
    "predict": lambda model, hooks: model.predict(X, 2, 0, callbacks=hooks),
}
# As in Keras 3.15.1: hooks get the first and the last number of the steps that run between them.
STEPS: dict[Any, tuple[list[int], list[int]]] = {
    "auto": (list(range(7)), list(range(7))),
    1: (list(range(7)), list(range(7))),
    2: ([0, 2, 4, 6], [1, 3, 5, 6]),
    3: ([0, 3, 6], [2, 5, 6]),
    7: ([0], [6]),
    50: ([0], [6]),
}


_every: dict[Any, Any] = {}


def every_step(
    run: Callable[[mr.Model, Any], Any], strategy: mr.MirroredStrategy
) -> tuple[Any, Hooks, list[bytes]]:
    """Return what hooks see of every step, and what comes of it; once for all that is like it."""
    key = run, strategy.num_replicas_in_sync
    if key not in _every:
        hooks, (model, _) = Hooks(), make(strategy, steps_per_execution=1)
        _every[key] = run(model, hooks), hooks, state(model)
    return _every[key]


# What is run, and in how many steps at a time where Python runs each.
@pytest.mark.parametrize(
    ("name", "steps", "eager", "strategy"),
    [
        *(("fit", steps, False, 3) for steps in STEPS),
        *(("evaluate", "auto", False, 3), ("predict", 3, False, 3), ("fit", 2, True, 1)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                *(("evaluate", steps, False, 3) for steps in (2, 50)),
                *(("predict", steps, False, 3) for steps in ("auto", 7)),
                *(("fit", 50, True, 1), ("evaluate", 3, True, 1)),
                *(("predict", 7, True, 1), ("predict", "auto", True, 1)),
            )
        ),
    ],
    indirect=["strategy"],
)
def test_steps_per_execution(
    name: str, steps: Any, eager: bool, strategy: mr.MirroredStrategy
) -> None:
    run = RUNS[name]
    begins, ends = STEPS[steps]
    hooks = Hooks()
    model, _ = make(strategy, steps_per_execution=steps, run_eagerly=eager)
    result = run(model, hooks)
    expected, every, after = every_step(run, strategy)
    assert every.begins == list(range(7))
    assert hooks.begins == begins
    assert [batch for batch, _ in hooks.ends] == ends
    if run is RUNS["predict"]:
        np.testing.assert_array_equal(result, expected)
        return
    # The means so far are those at the same step where hooks see every one.
    assert hooks.ends == [every.ends[end] for end in ends]
    if run is RUNS["fit"]:
        assert repr(result.history) == repr(expected.history)
        assert state(model) == after


@pytest.mark.parametrize("steps", [0, -1, 1.5, "all", None])
def test_steps_per_execution_that_there_cannot_be(
    steps: Any, strategy: mr.MirroredStrategy
) -> None:
    with pytest.raises(ValueError, match=r"`steps_per_execution` must be an integer of 1 or more"):
        make(strategy, steps_per_execution=steps)


@EITHER
def test_training_that_is_to_stop_ends_with_the_execution(
    eager: bool, strategy: mr.MirroredStrategy
) -> None:
    class Stop(mr.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = True

    model, _ = make(strategy, steps_per_execution=3, run_eagerly=eager)
    fit(model, batch_size=2, epochs=3, callbacks=[Stop()])
    assert int(model.optimizer.iterations) == 3


@pytest.mark.parametrize(
    ("step", "steps", "eager", "strategy"),
    [
        *((0, 3, False, 3), (3, "auto", False, 3), (6, 1, False, 3)),
        *((0, "auto", True, 1), (3, 3, True, 1)),
        pytest.param(3, 3, False, 3, marks=pytest.mark.slow),
        pytest.param(6, "auto", False, 3, marks=pytest.mark.slow),
        pytest.param(6, 1, True, 1, marks=pytest.mark.slow),
    ],
    indirect=["strategy"],
)
def test_a_loss_that_is_not_finite_names_its_step(
    step: int, steps: Any, eager: bool, strategy: mr.MirroredStrategy
) -> None:
    model, _ = make(strategy, steps_per_execution=steps, run_eagerly=eager)
    reference, _ = make(strategy)
    x = X.copy()
    x[2 * step] = np.nan
    with pytest.raises(mr.errors.NonFiniteLossError) as caught:
        fit(model, x=x, batch_size=2)
    assert f"in step {step + 1} of epoch 1: nan" in str(caught.value)
    assert f"first on replica 0 ({strategy.devices[0].full_name})" in str(caught.value)
    if step:
        fit(reference, batch_size=2, steps_per_epoch=step)
    assert state(model) == state(reference)
    for each in (model, reference):
        fit(each)
    assert state(model) == state(reference)
