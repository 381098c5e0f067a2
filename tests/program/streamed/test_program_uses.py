"""Functions and models on a card, in the ways that users write them, give what the host does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr

RNG = np.random.default_rng(7)
X = RNG.normal(size=(37, 6)).astype(np.float32)
Y = X[:, :4].argmax(axis=1)


def on_both(cards: Any, run: Callable[[list[str]], Any], parts: int = 1) -> tuple[Any, Any]:
    """Return what a function gives on logical devices of a card, and on one CPU."""
    mr.random.set_seed(5)
    expected = run(["CPU:0"])
    names = cards.make(parts)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    mr.random.set_seed(5)
    return run(names), expected


def test_variables_that_exchange_their_values(cards: Any) -> None:
    """Each is given what others were, or an input, by way of memory or of a chain."""

    def run(names: list[str]) -> list[Any]:
        with mr.device(names[0]):
            a, b, c = (mr.Variable(np.full((4, 3), n, np.float32)) for n in (1, 2, 3))

            @mr.function
            def step(x: Any) -> Any:
                old = a.read_value()
                a.assign(b)
                b.assign(c + old)
                c.assign(x)
                b.assign_sub(a * 0.5)
                return old, x, b.read_value(), c.read_value() * 2.0

            told = [part.numpy() for i in range(4) for part in step(X[i : i + 4, :3])]
            return [*told, a.numpy(), b.numpy(), c.numpy()]

    found, expected = on_both(cards, run)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, other)


def test_branches_loops_and_gradients_of_ones_own(cards: Any) -> None:
    """Of a branch that is not taken neither a write nor a gradient is seen."""

    def run(names: list[str]) -> list[Any]:
        with mr.device(names[0]):
            seen = mr.Variable(1.0)
            flip = mr.custom_gradient(lambda x: (x * 2.0, lambda g: -g))

            @mr.function
            def step(x: Any) -> Any:
                with mr.GradientTape() as tape:
                    tape.watch(x)
                    y = mr.cond(
                        mr.reduce_min(x) > 0.0,
                        lambda: seen.assign_add(1.0) * flip(x) / x,
                        lambda: mr.scan(lambda total, e: total * 0.5 + e, x),
                    )
                return y, tape.gradient(y, x), seen

            given = ([1.0, 4.0], [0.0, 4.0], [2.0, 4.0])
            return [part.numpy() for x in given for part in step(mr.constant(x))]

    found, expected = on_both(cards, run)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(each, other)


def test_what_a_function_returns_is_its_own(cards: Any) -> None:
    """Later calls change neither a result, nor what an input was."""
    (name,) = cards.make(1)
    with mr.device(name):
        variable = mr.Variable([1.0, 2.0])

        @mr.function
        def step(x: Any) -> Any:
            variable.assign_add(x)
            return x, variable, variable.read_value(), mr.reshape(x, (2, 1))[1:]

        given = [mr.constant([float(i), 1.0]) for i in (1, 2, 1)]
        results = [step(x) for x in (given[0], given[0], given[1], given[0], given[2])]
    assert [r[0].numpy().tolist() for r in results] == [[1, 1], [1, 1], [2, 1], [1, 1], [1, 1]]
    assert [r[2].numpy()[0] for r in results] == [2, 3, 5, 6, 7]
    assert all(r[3].numpy().tolist() == [[1]] for r in results)


def test_arrays_of_the_host_may_change_between_calls(cards: Any) -> None:
    cards.make(1)
    step, x = mr.function(lambda x: x * 2.0), np.zeros(3, np.float32)
    with mr.device("GPU:0"):
        for value in range(5):
            x[:] = value
            assert step(x).numpy().tolist() == [2 * value] * 3


def test_the_cpu_and_a_card_in_one_function(cards: Any) -> None:
    def run(names: list[str]) -> list[Any]:
        with mr.device("CPU:0"):
            count = mr.Variable(0.0)
        with mr.device(names[0]):
            total = mr.Variable(np.zeros((5, 6), np.float32))

            @mr.function
            def step(x: Any) -> Any:
                y = mr.nn.relu(x) + 1.0
                with mr.device("CPU:0"):
                    count.assign_add(mr.reduce_sum(y))
                    z = mr.transpose(mr.nn.softmax(y))
                total.assign_add(mr.transpose(z) * count)
                return z, total.read_value()

            told = [part.numpy() for i in range(4) for part in step(mr.constant(X[i : i + 5]))]
            return [*told, count.numpy(), total.numpy()]

    found, expected = on_both(cards, run)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other, rtol=1e-5, atol=1e-6)


def test_a_dataset_inside_a_function(cards: Any) -> None:
    def run(names: list[str]) -> list[Any]:
        strategy = mr.MirroredStrategy(names)
        with strategy.scope():
            total = mr.Variable(np.zeros(6, np.float32), aggregation=mr.VariableAggregation.SUM)
        dataset = mr.data.Dataset.from_tensor_slices(X).batch(5, drop_remainder=True)
        batches = strategy.experimental_distribute_dataset(dataset)

        @mr.function
        def epoch(batches: Any) -> Any:
            for batch in batches:
                strategy.run(
                    lambda x: total.assign_add(mr.reduce_sum(x * x, axis=0)), args=(batch,)
                )
            return total.read_value()

        return [epoch(batches).numpy() for _ in range(3)]

    found, expected = on_both(cards, run, parts=2)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


# ------------------------------------------------------------------------------ models


def squared_by_hand(y: Any, predicted: Any) -> Any:
    return mr.reduce_mean(mr.square(mr.cast(y, predicted.dtype)[:, None] - predicted), axis=-1)


class Centred(mr.layers.Layer):
    """Takes the mean over the examples of all replicas away, for which they meet."""

    def call(self, inputs: Any) -> Any:
        context: Any = mr.distribute.get_replica_context()
        total = context.all_reduce("sum", mr.reduce_sum(inputs, axis=0))
        count = context.all_reduce("sum", mr.reduce_sum(mr.ones_like(inputs[:, 0])))
        return inputs - total / count

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


# What is compiled with, and what is given to `fit`.
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clipped by value": (
        {"optimizer": lambda: mr.optim.SGD(0.5, clipvalue=0.01), "loss": squared_by_hand},
        {},
    ),
    "clipped by norm": (
        {"optimizer": lambda: mr.optim.SGD(0.5, clipnorm=0.02)},
        {"class_weight": {0: 0.5, 1: 2.0, 2: 0.0, 3: 1.0}},
    ),
    "clipped by the norm of all": (
        {"optimizer": lambda: mr.optim.Adam(0.05, global_clipnorm=0.05)},
        {},
    ),
}


@pytest.mark.parametrize("parts", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize(
    ("compiled", "fitted"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.slow] if name == "clipped by norm" else [])
        for name, each in MODELS.items()
    ],
)
def test_models(compiled: dict[str, Any], fitted: dict[str, Any], parts: int, cards: Any) -> None:
    def run(names: list[str]) -> list[Any]:
        with mr.MirroredStrategy(names).scope():
            model = mr.Sequential(
                [
                    mr.layers.Input(shape=(6,)),
                    mr.layers.Dense(7, activation="relu", kernel_regularizer="l1"),
                    Centred(),
                    mr.layers.Dense(4, bias_regularizer="l2"),
                ]
            )
            options: dict[str, Any] = {
                "optimizer": lambda: mr.optim.SGD(0.1, momentum=0.9),
                "loss": mr.losses.SparseCategoricalCrossentropy(from_logits=True),
            } | compiled
            model.compile(**(options | {"optimizer": options["optimizer"]()}))
        history = model.fit(X, Y, batch_size=8, shuffle=False, verbose=0, **fitted)
        evaluated = model.evaluate(X, Y, batch_size=8, verbose=0)
        predicted = model.predict(X, batch_size=8, verbose=0)
        values = [each for values in history.history.values() for each in values]
        return [*values, evaluated, predicted, *model.get_weights()]

    found, expected = on_both(cards, run, parts)
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other, rtol=2e-4, atol=1e-5)


def test_tensor_float_32_is_captured_anew(cards: Any) -> None:
    """What was captured before the switch was set is not launched behind it."""
    cards.make(1)
    step = mr.function(lambda x, y: x @ y)
    # TensorFloat-32 has ten binary digits behind the point.
    x, y = np.full((4, 4), 1 + 2.0**-12, np.float32), np.eye(4, dtype=np.float32)
    found = []
    for allowed in (True, False, True):
        mr.config.experimental.enable_tensor_float_32_execution(allowed)
        with mr.device("GPU:0"):
            results = [step(x, y).numpy() for _ in range(4)]
            eager = (mr.constant(x) @ mr.constant(y)).numpy()
        assert all((each == eager).all() for each in results)
        found.append(float(eager[0, 0]))
    assert found == [1.0, 1 + 2.0**-12, 1.0]
    assert cards.emulator.counts["graphs"] == 3 * 3
