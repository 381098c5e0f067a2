"""A batch in parts gives what the whole batch gives, and what mixes its rows is computed whole."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from random_ops import BINARY, UNARY

import mirrored as mr
from mirrored import devices, ops
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, Program, executor
from mirrored.program.batch_parts import RULES, _Parts, in_parts
from mirrored.program.dataflow import SHARED, Graph
from mirrored.program.executor import parts_of
from mirrored.program.thread_pool import idle_pools

ROWS, PARTS = 7, 3  # Parts of 3, 2 and 2 rows.
RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(2, ROWS, 4))
IMAGES, VOLUMES = RNG.normal(size=(ROWS, 5, 6, 2)), RNG.normal(size=(ROWS, 3, 4, 3, 2))
MATRIX, CUBE = RNG.normal(size=(4, 3)), RNG.normal(size=(ROWS, 4, 4))
LABELS = np.arange(ROWS, dtype=np.int32) % 4
FILTER, FILTER_3D = RNG.normal(size=(3, 2, 2, 3)), RNG.normal(size=(2, 2, 2, 2, 3))
DEPTHWISE = RNG.normal(size=(2, 3, 2, 2))


@pytest.fixture(autouse=True)
def ended_threads() -> Iterator[None]:
    yield
    idle_pools.lose_devices()


def recorded(function: Callable[..., Any], arrays: Sequence[Any]) -> Graph:
    recorder, device = GraphRecorder(), devices.get_device("CPU:0")
    inputs = [recorder.input(ops.TensorSpec(x.shape, x.dtype), device, 0) for x in arrays]
    with recorded_by(recorder):
        results = function(*inputs)
    return recorder.finish(list(results) if isinstance(results, list | tuple) else [results])


def values_of(graph: Graph, arrays: Sequence[Any], threads: int = 1) -> list[Any]:
    program = Program(graph, threads, 1)
    program.call(arrays)
    return [output.copy() for output in program.outputs]


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*inputs: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch(list(inputs))
            result = function(*inputs)
            target = ops.reduce_sum(ops.square(result))
        floats = [x for x in inputs if x.dtype != np.int32]
        return [result, *tape.gradient(target, floats, unconnected_gradients="zero")]

    return run


# Functions whose operations are all of them in parts, but for the sums at the end.
IN_PARTS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "BiasAdd Mul Sub": (lambda x, y, b: ops.bias_add(ops.tanh(x), b) * y - 2.0, [X, Y, X[0]]),
    "Relu": (ops.relu, [X]),
    "DivNoNan MulNoNan Xdivy Xlogy Xlog1py": (
        lambda x, y: ops.add_n(
            [
                mr.math.divide_no_nan(x, y),
                mr.math.multiply_no_nan(x, y),
                mr.math.xdivy(x, y),
                mr.math.xlogy(ops.square(x), ops.square(y)),
                mr.math.xlog1py(ops.square(x), ops.square(y)),
            ]
        ),
        [X, Y],
    ),
    "Elu Erf Erfc": (lambda x: mr.nn.elu(x) + mr.math.erf(x) + mr.math.erfc(x), [X]),
    "SigmoidCrossEntropyWithLogits": (
        lambda x, y: mr.nn.sigmoid_cross_entropy_with_logits(ops.sigmoid(y), x),
        [X, Y],
    ),
    "MatMul": (lambda x: ops.matmul(ops.tanh(ops.matmul(x, MATRIX)), MATRIX, False, True), [X]),
    "MatMul of both": (lambda x, y: ops.matmul(x, y, transpose_a=True), [X, Y]),
    "BatchMatMulV2": (lambda x: ops.matmul(x, ops.matmul(x, x, transpose_b=True)), [CUBE]),
    "BatchMatMulV2 of one": (lambda x: ops.matmul(x, np.ones((ROWS, 4, 2))), [CUBE]),
    "BatchMatMulV2 of one for all": (lambda x: ops.matmul(x, MATRIX[None]), [CUBE]),
    "BatchMatMulV2 of few axes": (lambda x: ops.matmul(MATRIX.T, x), [CUBE]),
    "Sum Mean Max Min Prod": (
        lambda x: ops.add_n(
            [
                ops.reduce_sum(x, axis=1),
                ops.reduce_mean(x, axis=1),
                ops.reduce_max(x, axis=1),
                mr.reduce_min(x, axis=1),
                mr.reduce_prod(x, axis=1),
            ]
        ),
        [X],
    ),
    "Sum of rows": (
        lambda x: ops.reduce_mean(x, axis=(0, 1, 2), keepdims=True) * ops.reduce_sum(x, axis=0),
        [IMAGES],
    ),
    "All Any ArgMax ArgMin": (
        lambda x: [
            mr.reduce_all(x > 0.0, axis=1),
            mr.reduce_any(x > 0.0, axis=1),
            ops.argmax(x, axis=1),
            mr.argmin(x, axis=-1),
        ],
        [X],
    ),
    "Softmax LogSoftmax": (lambda x: ops.softmax(x) + mr.nn.log_softmax(x), [X]),
    "Transpose": (lambda x: ops.transpose(ops.tanh(ops.transpose(x)) * 2.0) + 1.0, [X]),
    "Conv2D": (lambda x, f: mr.nn.conv2d(x, f, 1, "SAME"), [IMAGES, FILTER]),
    "Conv3D": (
        lambda x, f: mr.nn.conv3d(x, f, [1] * 5, "VALID"),
        [VOLUMES, FILTER_3D],
    ),
    "DepthwiseConv2dNative": (
        lambda x, f: mr.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], "SAME"),
        [IMAGES, DEPTHWISE],
    ),
    "MaxPool AvgPool": (
        lambda x: mr.nn.max_pool2d(x, 2, 1, "SAME") + mr.nn.avg_pool2d(x, 2, 1, "SAME"),
        [IMAGES],
    ),
    "MaxPool3D AvgPool3D": (
        lambda x: mr.nn.max_pool3d(x, 2, 1, "SAME") + mr.nn.avg_pool3d(x, 2, 1, "SAME"),
        [VOLUMES],
    ),
    "SparseSoftmaxCrossEntropyWithLogits": (
        lambda y, x: mr.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        [LABELS, X],
    ),
    "SparseSoftmaxCrossEntropyWithLogits of many classes": (
        lambda y, x: mr.nn.sparse_softmax_cross_entropy_with_logits(y, ops.matmul(x, WIDE)),
        [LABELS, X],
    ),
    "SoftmaxCrossEntropyWithLogits": (
        lambda x, y: mr.nn.softmax_cross_entropy_with_logits(ops.softmax(y), x),
        [X, Y],
    ),
    "ConcatV2": (lambda x, y: ops.concat([x, y], axis=1), [X, Y]),
}
WIDE = RNG.normal(size=(4, 40))


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("name", IN_PARTS)
def test_operations_in_parts(name: str, gradients: bool, check_plan: Any) -> None:
    function, arrays = IN_PARTS[name]
    if gradients and name.startswith("All"):
        return
    graph = recorded(with_gradients(function) if gradients else function, arrays)
    cut = _Parts(graph, PARTS).graph()
    names = set(name.split(" of ")[0].split())
    assert names <= {node.op.name for node in cut.nodes if node.replica != SHARED}
    check_plan(cut)
    expected, parts = values_of(graph, arrays), values_of(cut, arrays, PARTS)
    for whole, value in zip(expected, parts, strict=True):
        np.testing.assert_allclose(value, whole, rtol=1e-12, atol=1e-12)


def test_all_rules_are_tested() -> None:
    tested = set()
    for name, (function, arrays) in IN_PARTS.items():
        for run in (function,) if name.startswith("All") else (function, with_gradients(function)):
            cut = _Parts(recorded(run, arrays), PARTS).graph()
            tested |= {node.op.name for node in cut.nodes if node.replica != SHARED}
    # Gradients of gradients have the rules of the gradients.
    assert set(RULES) - tested <= {"MaxPool3DGradGrad", "MaxPoolGradGrad", "Mean", "SqrtGrad"}


# Functions of which some row depends on rows of other parts.
MIXING: dict[str, Callable[[Any], Any]] = {
    "cumsum": lambda x: ops.cumsum(x, axis=0),
    "softmax": lambda x: ops.softmax(x, axis=0),
    "reverse": lambda x: mr.reverse(x, axis=[0]),
    "sort": lambda x: mr.sort(x, axis=0),
    "max": lambda x: ops.reduce_max(x, axis=0) + x,
    "roll": lambda x: mr.roll(x, 1, axis=0),
    "gather": lambda x: mr.gather(x, [6, 0, 3, 3, 1, 2, 5]),
    "slices": lambda x: x[1:] * x[:-1],
    "rows joined": lambda x: ops.concat([x, x * 2.0], axis=0),
    "reshaped across rows": lambda x: ops.tanh(mr.reshape(x * 1.0, (4, ROWS))),
    "transposed and reshaped": lambda x: mr.reshape(ops.transpose(x * 1.0), (ROWS, 4)) + x,
    "rows of a product": lambda x: ops.matmul(x, x, transpose_b=True) @ x,
    "normalized": lambda x: x / mr.norm(x),
}


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_rows_is_computed_whole(name: str) -> None:
    function = MIXING[name]
    graph = recorded(lambda x: ops.sigmoid(function(ops.tanh(x))) * 2.0, [X])
    cut = _Parts(graph, PARTS).graph()
    for whole, value in zip(values_of(graph, [X]), values_of(cut, [X], PARTS), strict=True):
        np.testing.assert_allclose(value, whole, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    choices=st.lists(st.integers(0, 10_000), min_size=3, max_size=25),
    parts=st.integers(2, 4),
    gradients=st.booleans(),
)
def test_random_functions_in_parts(
    choices: list[int], parts: int, gradients: bool, check_plan: Any
) -> None:
    def function(x: Any, y: Any) -> Any:
        values = [x, y]
        for choice in choices:
            which, place = divmod(choice, 40)
            value = values[-1 - place % len(values)]
            if which % 3:
                values.append(UNARY[which % len(UNARY)](value))
            else:
                alike = [other for other in values if other.shape == value.shape]
                values.append(BINARY[which % len(BINARY)](value, alike[place % len(alike)]))
        return values[-1]

    arrays = [X.astype(np.float32), Y.astype(np.float32)]
    graph = recorded(with_gradients(function) if gradients else function, arrays)
    cut = _Parts(graph, parts).graph()
    check_plan(cut)
    for whole, value in zip(values_of(graph, arrays), values_of(cut, arrays, parts), strict=True):
        np.testing.assert_allclose(value, whole, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_summed_whole(dtype: str, bits: Any) -> None:
    """They are added in float32 and rounded once, so the bits are those of one part."""

    def function(x: Any, f: Any, y: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch([x, f])
            scores = mr.reduce_mean(mr.nn.conv2d(x, f, 1, "SAME"), axis=[1, 2])
            losses = mr.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
            loss = ops.reduce_sum(ops.bias_add(scores, f[0, 0, 0])) + ops.reduce_mean(losses)
        return [losses, *tape.gradient(loss, [x, f])]

    narrow = [ops.cast(array, dtype).numpy() for array in (IMAGES, FILTER)]
    arrays = [*narrow, LABELS % 3]
    graph = recorded(function, arrays)
    cut = _Parts(graph, PARTS).graph()
    assert "Conv2D" in {node.op.name for node in cut.nodes if node.replica != SHARED}
    assert bits(values_of(cut, arrays, PARTS)) == bits(values_of(graph, arrays))


def test_few_operations_of_parts_are_no_parts() -> None:
    graph = recorded(lambda x: ops.matmul(ops.cumsum(x, axis=0), MATRIX) + x[0, 0], [X])
    assert in_parts(graph, 2) is None
    weights = RNG.normal(size=(50, 50))
    graph = recorded(lambda x: ops.matmul(ops.tanh(mr.constant(weights) * x[0, 0]), weights), [X])
    assert in_parts(graph, 2) is None


# Cores, millions of operations, what they are of, the executor: the number of parts.
RULE: dict[str, tuple[int, int, str, str, int]] = {
    "a convolution": (2, 50, "convolution", "auto", 2),
    "as many as have enough work": (8, 70, "convolution", "auto", 3),
    "as many as there are rows": (16, 400, "convolution", "auto", ROWS),
    "too little work": (2, 30, "convolution", "auto", 1),
    "one core": (1, 100, "convolution", "auto", 1),
    "told not to": (2, 100, "convolution", "serial", 1),
    "a product": (2, 100, "product", "auto", 1),
    "a product, told to": (2, 100, "product", "threads", 2),
}


@pytest.mark.parametrize(("cores", "work", "kind", "wanted", "parts"), RULE.values(), ids=RULE)
def test_the_rule(
    cores: int, work: int, kind: str, wanted: str, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "available_threads", lambda: cores)
    function, arrays = IN_PARTS["Conv2D" if kind == "convolution" else "MatMul"]
    graph = recorded(function, arrays)
    total = sum(node.flops for node in graph.nodes)
    monkeypatch.setattr(executor, "THREADS_FROM", total * 20 / work)
    result = parts_of(graph, wanted)
    assert (1 if result is None else result.parts) == parts


def network() -> mr.Model:
    mr.random.set_seed(5)
    return mr.Sequential(
        [
            mr.layers.Input((6, 6, 2)),
            mr.layers.Conv2D(4, 3, padding="same", dtype="float64"),
            mr.layers.BatchNormalization(dtype="float64"),
            mr.layers.ReLU(dtype="float64"),
            mr.layers.MaxPooling2D(dtype="float64"),
            mr.layers.Flatten(dtype="float64"),
            mr.layers.Dropout(0.4, dtype="float64"),
            mr.layers.Dense(5, activation="softmax", dtype="float64"),
        ]
    )


@pytest.mark.usefixtures("one_blas_thread")
def test_a_model_trained_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, history, evaluations and predictions are those of one part, and the same twice."""
    x, y = RNG.normal(size=(23, 6, 6, 2)), RNG.integers(0, 5, 23)
    weights = RNG.uniform(0.5, 2.0, 23)
    chosen: list[Any] = []
    choose = executor.parts_of
    monkeypatch.setattr(executor, "available_threads", lambda: PARTS)
    monkeypatch.setattr(executor, "THREADS_FROM", 1.0)

    monkeypatch.setattr(
        executor, "parts_of", lambda *args: chosen.append(choose(*args)) or chosen[-1]
    )

    def trained(wanted: str) -> Any:
        strategy = mr.MirroredStrategy(["CPU:0"], executor=wanted)
        with strategy.scope():
            model = network()
            model.compile(
                loss="sparse_categorical_crossentropy",
                optimizer=mr.optim.Adam(0.01, global_clipnorm=1.0),
                metrics=["accuracy"],
            )
        history = model.fit(x, y, batch_size=8, epochs=2, sample_weight=weights, verbose=0)
        scores = model.evaluate(x, y, batch_size=8, verbose=0)
        predictions = model.predict(x, batch_size=8, verbose=0)
        strategy.close()
        states = [variable.numpy() for variable in model.optimizer.variables]
        losses = np.float32([*history.history.values(), scores])
        return [losses, predictions, *model.get_weights(), *states]

    whole = trained("serial")
    assert set(map(type, chosen)) == {type(None)}
    parts, again = trained("threads"), trained("threads")
    assert PARTS in [result.parts for result in chosen if result is not None]
    for expected, value, same in zip(whole, parts, again, strict=True):
        # Losses and metrics are float32.
        tolerance = 1e-10 if np.asarray(value).dtype == np.float64 and np.ndim(value) else 1e-6
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(value, same)


def test_a_trace_has_a_row_per_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(executor, "available_threads", lambda: 2)
    monkeypatch.setattr(executor, "THREADS_FROM", 1.0)
    strategy = mr.MirroredStrategy(["CPU:0"], executor="threads")
    with strategy.scope():
        model = mr.Sequential([mr.layers.Input((4,)), mr.layers.Dense(3), mr.layers.Dense(4)])
        model.compile("sgd", "mse")
    model.fit(X, Y, batch_size=ROWS, verbose=0)
    path = tmp_path / "trace.json"
    with mr.profiler.trace(path):
        model.fit(X, Y, batch_size=ROWS, epochs=2, verbose=0)
    strategy.close()
    events = json.loads(path.read_text())["traceEvents"]
    rows = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    of_steps = {"part 0 of 2 (CPU:0)", "part 1 of 2 (CPU:0)", "all parts"}
    assert {*rows.values()} - {"CPU:0"} == of_steps
    products = {rows[e["tid"]] for e in events if e["name"] == "MatMul"}
    assert products >= {"part 0 of 2 (CPU:0)", "part 1 of 2 (CPU:0)"}
    (axes,) = mr.profiler.plot_timeline(path, step=1).axes  # It finds the steps.
    assert of_steps <= {label.get_text() for label in axes.get_yticklabels()}
    plt.close("all")


def test_an_error_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "available_threads", lambda: 2)
    monkeypatch.setattr(executor, "THREADS_FROM", 1.0)
    v = mr.Variable(np.ones((3, 2, 2, 4)))

    @mr.function
    def step(x: Any, y: Any) -> Any:
        with mr.GradientTape() as tape:
            scores = mr.reduce_mean(mr.nn.conv2d(x, v, 1, "SAME"), axis=[1, 2])
            losses = mr.nn.sparse_softmax_cross_entropy_with_logits(y, scores)
            loss = mr.reduce_mean(losses)
        v.assign_sub(tape.gradient(loss, v))
        return loss

    first = step(mr.constant(IMAGES), mr.constant(LABELS)).numpy()
    before, bad = v.numpy(), LABELS.copy()
    bad[-1] = 4
    with pytest.raises(InvalidArgumentError, match="label value of 4"):
        step(mr.constant(IMAGES), mr.constant(bad))
    np.testing.assert_array_equal(v.numpy(), before)
    assert step(mr.constant(IMAGES), mr.constant(LABELS)).numpy() < first
