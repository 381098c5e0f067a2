"""Random graphs: a model computes what its calls compute, recorded and on replicas too."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import mirrored as mr
from mirrored.layers import Add, Concatenate, Dense, Dropout, Input, Maximum

WIDTH, ROWS = 3, 7
RNG = np.random.default_rng(0)
DATA = [RNG.normal(size=(ROWS, WIDTH)).astype(np.float32) for _ in range(3)]
# Each step takes two of the tensors that there are, by their places.
KINDS = [
    "dense",
    "shared",
    "add",
    "joined",
    "maximum",
    "operators",
    "part",
    "sub",
    "scaled",
    "dropout",
    "sizes",
]
steps = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 99), st.integers(0, 99)),
    min_size=2,
    max_size=10,
)
graphs = st.tuples(st.integers(1, 3), steps, st.lists(st.integers(0, 99), min_size=1, max_size=3))
Graph = tuple[int, list[tuple[str, int, int]], list[int]]


def settings(examples: int) -> Callable[[Any], Any]:
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
    )


def sub_model() -> mr.Model:
    """Return a model of two inputs by name, in which a layer is called twice."""
    one, other = Input((WIDTH,), name="one"), Input((WIDTH,), name="other")
    dense = Dense(WIDTH, "tanh")
    return mr.Model({"one": one, "other": other}, [dense(one) - other, dense(other)])


def layers_of(graph: Graph) -> list[Any]:
    """Return what each step calls."""
    shared = Dense(WIDTH, "tanh")
    making: dict[str, Callable[[int], Any]] = {
        "dense": lambda i: Dense(WIDTH, "relu"),
        "shared": lambda i: shared,
        "add": lambda i: Add(),
        "joined": lambda i: (Concatenate(), Dense(WIDTH)),
        "maximum": lambda i: Maximum(),
        "sub": lambda i: sub_model(),
        "dropout": lambda i: Dropout(0.4, seed=i),
    }
    return [making.get(kind, lambda i: None)(i) for i, (kind, _, _) in enumerate(graph[1])]


def run(graph: Graph, layers: list[Any], tensors: list[Any]) -> list[Any]:
    """Return the outputs of a graph: placeholders for placeholders, values for values."""
    there = list(tensors)
    for (kind, first, second), layer in zip(graph[1], layers, strict=True):
        x, y = there[first % len(there)], there[second % len(there)]
        match kind:
            case "dense" | "shared" | "dropout":
                there.append(layer(x))
            case "add" | "maximum":
                there.append(layer([x, y]))
            case "joined":
                there.append(layer[1](layer[0]([x, y])))
            case "operators":
                there.append(0.5 * x - y / 2.0 + 1.0)
            case "part":
                there.append(mr.concat([x[:, 1:], y[:, :1]], axis=1))
            case "sub":
                there.extend(layer({"other": y, "one": x}))
            case "scaled":
                there.append(mr.tanh(x) * mr.reduce_mean(y, axis=1, keepdims=True))
            case "sizes":
                there.append(mr.reshape(mr.reshape(x, (-1,)), (mr.shape(y)[0], WIDTH)))
    return [there[-1 - place % len(there)] for place in graph[2]]


def drawn(graph: Graph) -> tuple[mr.Model, list[Any]]:
    inputs = [Input((WIDTH,)) for _ in range(graph[0])]
    layers = layers_of(graph)
    return mr.Model(inputs, run(graph, layers, inputs)), layers


def as_list(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else [outputs]


def check_a_model_is_its_calls(graph: Graph) -> None:
    mr.keras.utils.set_random_seed(1)
    model, layers = drawn(graph)
    values = [mr.constant(each) for each in DATA[: graph[0]]]
    # Layers that no output needs are none of the model's, and have their weights all the same.
    expected = run(graph, layers, values)
    for each in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        outputs = as_list(each(values))
        assert len(outputs) == len(each.outputs) == len(expected)
        for output, wanted, placeholder in zip(outputs, expected, model.outputs, strict=True):
            np.testing.assert_array_equal(output.numpy(), wanted.numpy())
            assert placeholder.shape.is_compatible_with(wanted.shape)
            assert placeholder.shape == (None, WIDTH)


def check_replicas(graph: Graph, simulate: Any) -> None:
    """A step of training has one outcome on one device and on three, recorded and not."""
    simulate(3)
    reached = []
    for replicas, recorded in ((1, False), (3, True), (3, False), (1, True)):
        mr.keras.utils.set_random_seed(1)
        strategy = mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)])
        with strategy.scope():
            model, _ = drawn(graph)
            optimizer = mr.optim.SGD(0.05)

        def replica(*x: Any, model: mr.Model = model, optimizer: Any = optimizer) -> Any:
            with mr.GradientTape() as tape:
                outputs = as_list(model(list(x), training=True))
                loss = mr.add_n([mr.reduce_sum(mr.square(each)) for each in outputs]) / ROWS
            variables = model.trainable_variables
            if variables:
                pairs = zip(tape.gradient(loss, variables), variables, strict=True)
                optimizer.apply_gradients([pair for pair in pairs if pair[0] is not None])
            return loss

        def step(x: Any, strategy: Any = strategy, replica: Any = replica) -> Any:
            return strategy.reduce("sum", strategy.run(replica, args=x))

        function = mr.function(step) if recorded else step
        data = mr.data.Dataset.from_tensor_slices(tuple(DATA[: graph[0]])).batch(ROWS)
        losses = [
            float(function(batch))
            for _ in range(2)
            for batch in strategy.experimental_distribute_dataset(data)
        ]
        reached.append([np.array(losses), *model.get_weights()])
        strategy.close()
    for each in reached[1:]:
        for one, other in zip(reached[0], each, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


@settings(20)
@hypothesis.given(graph=graphs)
def test_a_model_is_its_calls(graph: Graph) -> None:
    check_a_model_is_its_calls(graph)


@settings(3)
@hypothesis.given(graph=graphs)
def test_replicas_and_recordings_agree(graph: Graph, simulate: Any) -> None:
    check_replicas(graph, simulate)


@pytest.mark.slow
@settings(40)
@hypothesis.given(graph=graphs)
def test_many_models_are_their_calls(graph: Graph) -> None:
    check_a_model_is_its_calls(graph)


@pytest.mark.slow
@settings(12)
@hypothesis.given(graph=graphs)
def test_many_agree_on_replicas(graph: Graph, simulate: Any) -> None:
    check_replicas(graph, simulate)


def fitted(names: list[str], eager: bool = False) -> list[np.ndarray]:
    """Return the losses, weights and predictions of a graph of two inputs that was trained."""
    mr.keras.utils.set_random_seed(2)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    strategy = mr.MirroredStrategy(names)
    with strategy.scope():
        one, other = Input((WIDTH,), name="one"), Input((WIDTH,), name="other", dtype="int32")
        shared, numbers = Dense(4, "tanh"), mr.cast(other, "float32") / 2.0
        pair = [shared(one[:, ::-1]), shared(numbers)]
        joined = Concatenate()([Add()(pair), pair[0] * pair[1], Dropout(0.3, seed=1)(pair[1])])
        model = mr.Model({"one": one, "other": other}, Dense(2)(joined))
        model.compile(mr.optim.Adam(0.01), "mse", run_eagerly=eager)
    data = {"one": DATA[0], "other": np.arange(ROWS * WIDTH).reshape(ROWS, WIDTH) % 5}
    history = model.fit(data, DATA[1][:, :2], batch_size=4, epochs=2, shuffle=False, verbose=0)
    predicted = model.predict(data, verbose=0)
    strategy.close()
    return [np.array(history.history["loss"]), predicted, *model.get_weights()]


def test_fit_on_replicas_and_on_an_emulated_card(simulate: Any, emulated_cuda: Any) -> None:
    simulate(3)
    reached = [fitted(["GPU:0"]), fitted([f"GPU:{i}" for i in range(3)]), fitted(["GPU:1"], True)]
    emulated_cuda(cards=2)
    reached.append(fitted(["GPU:0", "GPU:1"]))
    for each in reached[1:]:
        for found, wanted in zip(each, reached[0], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
