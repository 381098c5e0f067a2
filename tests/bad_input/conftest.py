"""What the tests of bad input share: a classifier trained for one step, and what must hold after.

After each row of training a model must train on bit for bit like one that never met the error, on
one replica and on several.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

CLASSES = 3
X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, CLASSES, size=12)
_states: dict[tuple[tuple[str, ...], int], tuple[list[bytes], list[bytes]]] = {}
BATCH = 6  # Two steps an epoch; three replicas get two examples each.


@pytest.fixture(params=[1, 3], ids=["one replica", "three replicas"])
def replicas(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture
def strategy(replicas: int, request: pytest.FixtureRequest) -> mr.MirroredStrategy:
    if "shared" in request.fixturenames:
        strategies: dict[int, mr.MirroredStrategy] = request.getfixturevalue("shared").strategies
        return strategies[replicas]
    request.getfixturevalue("simulate")(replicas)
    return mr.MirroredStrategy()


def _make_model(strategy: mr.MirroredStrategy, **compile: Any) -> mr.Model:
    """Return a classifier that has been trained for one step, so that its slots are not zero."""
    mr.random.set_seed(2)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input(shape=(5,)), mr.layers.Dense(4, "tanh")])
        model.add(mr.layers.Dense(CLASSES, "softmax"))
        options = {
            "optimizer": mr.optim.SGD(0.1, momentum=0.9),
            "loss": "sparse_categorical_crossentropy",
            "metrics": ["accuracy"],
        }
        model.compile(**{**options, **compile})
    model.fit(X, Y, batch_size=BATCH, steps_per_epoch=1, shuffle=False, verbose=0)
    return model


class Shared:
    """Devices for all rows of a file, and a model for each number of replicas.

    One row after the other has the model as it was after its first step. One that a row did not
    find unchanged is given to no other.
    """

    def __init__(self) -> None:
        mr.config.experimental.set_simulated_gpus(3)
        self.strategies = {1: mr.MirroredStrategy(["GPU:0"]), 3: mr.MirroredStrategy()}
        self._free: dict[mr.MirroredStrategy, tuple[mr.Model, list[np.ndarray]]] = {}
        self._taken: dict[mr.Model, list[np.ndarray]] = {}

    def make_model(self, strategy: mr.MirroredStrategy, **compile: Any) -> mr.Model:
        mr.layers.reset_names()
        if compile:
            return _make_model(strategy, **compile)
        model, values = self._free.pop(strategy, None) or (_make_model(strategy), [])
        variables = [*model.variables, *model.optimizer.variables]
        for variable, value in zip(variables, values, strict=bool(values)):
            variable.assign(value)
        self._taken = {model: values or [each.numpy() for each in variables]}
        return model

    def check_refused(self, model: mr.Model, *args: Any, **options: Any) -> BaseException:
        error = _check_refused(model, *args, **options)
        if model in self._taken:  # It has passed all checks.
            self._free[model.distribute_strategy] = model, self._taken.pop(model)
        return error


@pytest.fixture(scope="module")
def shared(clean_module: None) -> Shared:
    """Return what the rows of a file share whose own `clean_state` asks for this."""
    return Shared()


def _train(model: mr.Model, **change: Any) -> mr.callbacks.History:
    options: dict[str, Any] = {"x": X, "y": Y, "batch_size": BATCH, "verbose": 0, "shuffle": False}
    return model.fit(**{**options, **change})


def _state(model: mr.Model) -> list[bytes]:
    """Return the bits of weights, slots, step count and learning rate on every replica."""
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.variables, *model.optimizer.variables]
    return [copy.numpy().tobytes() for variable in variables for copy in local(variable)]


def _check_refused(
    model: mr.Model,
    act: Callable[[mr.Model], Any],
    error: type[BaseException],
    *messages: str,
    steps: int = 0,
    make: Callable[[mr.MirroredStrategy], mr.Model] = _make_model,
) -> BaseException:
    """Check that `act` raises, leaves nothing, and that training goes on as if nothing were.

    Args:
        model: What `make` returned.
        act: What goes wrong.
        error: The class of the error, exactly.
        messages: What its text contains.
        steps: The number of steps that `act` takes before it goes wrong.
        make: Makes the model that never meets the error.
    """
    caught: BaseException | None = None
    try:
        act(model)
    except BaseException as raised:
        caught = raised
    assert type(caught) is error, caught
    for message in messages:
        assert message in str(caught)
    assert threading.enumerate() == [threading.main_thread()]
    assert not mr.distribute.has_strategy()
    before, after = _states_without_error(make, model.distribute_strategy, steps)
    assert _state(model) == before
    assert _train(model, epochs=2).epoch == [0, 1]
    assert _state(model) == after
    return caught


def _states_without_error(
    make: Callable[[mr.MirroredStrategy], mr.Model], strategy: mr.MirroredStrategy, steps: int
) -> tuple[list[bytes], list[bytes]]:
    """Return the bits of a model that takes so many steps, and those after two epochs more.

    Many rows are held to the same ones, which are computed for the first of them.
    """
    key = (tuple(device.full_name for device in strategy.devices), steps)
    found = _states.get(key) if make is _make_model else None
    if found is None:
        reference = make(strategy)
        if steps:
            _train(reference, epochs=-(-steps // 2), callbacks=[StopAfter(steps)])
        before = _state(reference)
        assert _train(reference, epochs=2).epoch == [0, 1]
        found = before, _state(reference)
        if make is _make_model:
            _states[key] = found
    return found


class StopAfter(mr.callbacks.Callback):
    """Ends training after so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.left -= 1
        self.model.stop_training = self.left == 0


@pytest.fixture
def make_model(request: pytest.FixtureRequest) -> Callable[..., mr.Model]:
    """Return ``make_model(strategy, **compile)``: a classifier after one step."""
    if "shared" in request.fixturenames:
        made: Callable[..., mr.Model] = request.getfixturevalue("shared").make_model
        return made
    return _make_model


@pytest.fixture
def train() -> Callable[..., mr.callbacks.History]:
    """Return ``train(model, **change)``: `fit` on the shared data, but for what is changed."""
    return _train


@pytest.fixture
def state() -> Callable[[mr.Model], list[bytes]]:
    """Return ``state(model)``: the bits of all that training changes."""
    return _state


@pytest.fixture
def check_refused(request: pytest.FixtureRequest) -> Callable[..., BaseException]:
    """Return ``check_refused(model, act, error, *messages)``, as described above."""
    if "shared" in request.fixturenames:
        check: Callable[..., BaseException] = request.getfixturevalue("shared").check_refused
        return check
    return _check_refused


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and labels that `train` takes."""
    return X, Y
