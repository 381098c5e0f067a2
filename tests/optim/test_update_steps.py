"""Optimizers that define `update_step` as Keras' do; their numbers: `test_rules`."""

import copy
import pickle
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from refused_allocations import Refusals

import mirrored as mr
from mirrored.errors import NonFiniteLossError, ResourceExhaustedError
from mirrored.optim import SGD, Adam, Optimizer
from tests.support import user_optimizers

CLASSES = user_optimizers.made_with(mr.keras)
X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(12, 2)
Y = X[:, :1] - X[:, 1:] + 0.5


class Counting(Optimizer):
    """Of which copies are pickled; it keeps a count in an attribute, and fails where it is told."""

    def __init__(self, learning_rate: float = 0.1, fails_at: str = "", **settings: Any) -> None:
        super().__init__(learning_rate, **settings)
        self.fails_at = fails_at
        self.count = mr.Variable(0.0, trainable=False)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        self.count.assign_add(1.0)
        self.assign_sub(variable, gradient * learning_rate)
        if self.fails_at and self.fails_at in variable.name:
            raise ValueError("stopped")


def fitted(
    optimizer: Callable[[], Any], strategy: Any, *, eager: bool = False, epochs: int = 2
) -> mr.Model:
    mr.random.set_seed(1)
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(3, "tanh")])
        model.add(mr.layers.Dense(1))
        model.compile(optimizer(), "mse", run_eagerly=eager)
    model.fit(X, Y, batch_size=5, epochs=epochs, shuffle=False, verbose=0)
    return model


def state(model: mr.Model) -> list[Any]:
    return [each.numpy() for each in (*model.variables, *model.optimizer.variables)]


def check(one: list[Any], other: list[Any], tolerance: float = 0.0) -> None:
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@cases("eager", [False, True])
@cases("replicas", [1, 3])
def test_fit_is_that_of_the_same_rule(
    replicas: int, eager: bool, simulate: Callable[..., Any]
) -> None:
    simulate(3)
    strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
    settings: dict[str, Any] = {"weight_decay": 0.1, "clipnorm": 0.5, "use_ema": True}
    mine = fitted(lambda: CLASSES["Momentum"](0.1, **settings), strategy, eager=eager)
    ours = fitted(lambda: SGD(0.1, momentum=0.9, **settings), strategy, eager=eager)
    check(state(mine), state(ours), 1e-6)
    for each in mine.optimizer.variables:
        first, *others = [part.numpy() for part in getattr(each, "copies", [each])]
        for other in others:
            np.testing.assert_array_equal(other, first)


def test_what_is_kept_in_attributes(simulate: Callable[..., Any]) -> None:
    simulate(2)
    optimizer = fitted(Counting, mr.MirroredStrategy()).optimizer
    assert [float(each) for each in optimizer.count.copies] == [24.0, 24.0]  # 4 weights, 6 steps.
    assert optimizer.variables[2] is optimizer.count
    twin = pickle.loads(pickle.dumps(Counting()))
    twin.apply([mr.constant(1.0)], [mr.Variable(1.0)])
    assert float(twin.variables[2]) == 1.0


@pytest.mark.parametrize("name", ["Means", "Doubled", "Momentum"])
def test_a_checkpoint_goes_on(name: str, tmp_path: Path) -> None:
    """Also in a model whose optimizer was not asked for anything yet."""
    strategy = mr.distribute.get_strategy()
    model = fitted(CLASSES[name], strategy)
    path = mr.train.Checkpoint(model=model).save(str(tmp_path / "c"))
    other = fitted(CLASSES[name], strategy, epochs=0)
    mr.train.Checkpoint(model=other).restore(path)
    for each in (model, other):
        each.fit(X, Y, batch_size=5, shuffle=False, verbose=0)
    check(state(model), state(other))
    values = model.optimizer
    copied = copy.deepcopy(values)
    assert [each.name for each in copied.variables] == [each.name for each in values.variables]


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_that_fails_changes_nothing(eager: bool) -> None:
    model = fitted(Counting, mr.distribute.get_strategy(), eager=eager)
    before = state(model)
    model.optimizer.fails_at = "dense_1/bias" if "dense_1" in model.weights[-1].name else "bias"
    with pytest.raises(ValueError, match="stopped"):
        model.fit(X[:4], Y[:4], batch_size=4, verbose=0)
    check(state(model), before)
    model.optimizer.fails_at = ""
    with pytest.raises(NonFiniteLossError):
        model.fit(X[:4] * np.inf, Y[:4], batch_size=4, verbose=0)
    check(state(model), before)


def test_other_variables_are_not_written() -> None:
    v, stray = mr.Variable(1.0), mr.Variable(0.0)

    class Straying(Optimizer):
        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            stray.assign_add(1.0)

    optimizer = Straying(0.1)
    for step in (optimizer.apply, mr.function(optimizer.apply)):
        with pytest.raises(ValueError, match="Straying may write only its variable argument"):
            step([mr.constant(1.0)], [v])
    assert (float(v), float(stray), int(optimizer.iterations)) == (1.0, 0.0, 0)


def test_variables_are_those_of_build() -> None:
    v, w = mr.Variable(1.0), mr.Variable(1.0)
    optimizer = CLASSES["Momentum"]()
    optimizer.apply([None, mr.constant(1.0)], [v, w])
    optimizer.build([v, w])
    assert len(optimizer.momentums) == 2  # As in Keras also for what has no gradient.
    assert len(optimizer.variables) == 4
    with pytest.raises(ValueError, match=r"^Unknown variable: .*originally built with"):
        optimizer.apply([mr.constant(1.0)], [mr.Variable(1.0)])
    with pytest.raises(KeyError, match="Unknown variable"):
        optimizer._get_variable_index(mr.Variable(1.0))


@pytest.mark.parametrize("kind", [CLASSES["Momentum"], SGD])
def test_averages_of_what_has_no_gradient(kind: Any) -> None:
    """They are its value, which it keeps when weights become their averages."""
    v, w = mr.Variable(3.0), mr.Variable(1.0)
    optimizer = kind(0.5, use_ema=True, ema_momentum=0.5)
    optimizer.build([v, w])
    for _ in range(2):
        optimizer.apply([None, mr.constant(1.0)], [v, w])
    optimizer.finalize_variable_values([v, w])
    assert float(v) == 3.0
    assert float(w) != 1.0


def test_no_memory_for_one_of_the_averages(
    simulate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights are not partly averages, whichever copy there is no room for."""
    simulate(2)
    strategy = mr.MirroredStrategy(["GPU:0", "GPU:1"])
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(2)])
        model.compile(SGD(0.5, use_ema=True, ema_momentum=0.5), "mse")
    data = np.ones((4, 2), np.float32)
    model.fit(data, data, batch_size=2, verbose=0)
    model.fit(data, data, batch_size=2, verbose=0)
    for weight in model.weights:
        weight.assign(weight * 2.0)
    before = [weight.numpy() for weight in model.weights]
    with monkeypatch.context() as patch:
        refusals = Refusals(patch)
        for call in count(1):
            refusals.left = call
            try:
                model.optimizer.finalize_variable_values(model.trainable_weights)
            except ResourceExhaustedError:
                for weight, value in zip(model.weights, before, strict=True):
                    for replica in weight.copies:
                        np.testing.assert_array_equal(replica.numpy(), value)
            else:
                break
    assert call > 1
    assert not np.array_equal(model.weights[0].numpy(), before[0])


def test_variables_that_are_added() -> None:
    optimizer = Counting()
    reference = mr.Variable([1.0, 2.0], dtype="float64", name="layer/kernel")
    made = optimizer.add_variable_from_reference(reference, "mean", mr.keras.initializers.Ones())
    assert (made.name, made.dtype, made.numpy().tolist()) == (
        "counting/layer_kernel_mean:0",
        np.float64,
        [1.0, 1.0],
    )
    both = optimizer.add_optimizer_variables([reference], ["a", "b"], "ones")
    assert [each.name for column in both for each in column] == [
        "counting/layer_kernel_a:0",
        "counting/layer_kernel_b:0",
    ]
    assert optimizer.add_variable((2,), dtype="int32").dtype == np.int32
    for wrong in ({"initializer": "foo"}, {"layout": 1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            optimizer.add_variable((), **wrong)
    with pytest.raises(ValueError, match="number of provided names"):
        optimizer.add_optimizer_variables([reference], ["a", "b"], ["zeros"])


def test_weights_in_and_out() -> None:
    v = mr.Variable([1.0, 2.0])
    one, other = Adam(0.1), Adam(0.2)
    with pytest.raises(ValueError, match="has not yet been built"):
        one.set_weights([])
    one.apply([mr.constant([1.0, 2.0])], [v])
    other.build([v])
    store: dict[str, Any] = {}
    one.save_own_variables(store)
    assert list(store) == ["0", "1", "2", "3"]
    with pytest.warns(UserWarning, match="Skipping variable loading for optimizer 'adam_?[0-9]*'"):
        Adam().load_own_variables(store)
    other.load_own_variables(store)
    check(*([each.numpy() for each in part.variables] for part in (one, other)))
    other.set_weights([7])
    assert int(other.iterations) == 7
    with pytest.raises(ValueError, match="shape"):
        other.set_weights([8, 0.1, [1.0], [1.0]])
    assert int(other.iterations) == 7
    with pytest.raises(ValueError, match="stateless_apply is not supported"):
        other.stateless_apply([], [], [])


@cases(
    ("method", "text"),
    [
        ("assign", "Define `update_step"),
        ("_apply_weight_decay", "exclude_from_weight_decay"),
        ("apply_gradients", "Define `update_step"),
    ],
)
def test_what_nothing_would_call(method: str, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        type("Mine", (Adam,), {method: lambda self, *_: None})
    if method == "assign":
        both = {method: lambda self, *_: None, "update_step": lambda self, *_: None}
        assert type("Mine", (Adam,), both)().rule.by_variable
