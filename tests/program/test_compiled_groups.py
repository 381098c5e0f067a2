"""What is compiled for the host has the bits of NumPy's calls, whatever the shapes and the rule."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import layers, ops
from mirrored.devices import place
from mirrored.ops.spec import TensorSpec
from mirrored.program.compiled_groups import loop_start
from mirrored.program.dataflow import Node, Value

RULES: dict[str, Callable[[], Any]] = {
    "SGD": lambda: mr.optim.SGD(0.1),
    "momentum": lambda: mr.optim.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: mr.optim.Adam(0.01, amsgrad=True),
    "AdamW": lambda: mr.optim.AdamW(0.01, use_ema=True, clipnorm=0.1),
}


def trained(rule: str, replicas: int, bits: Any) -> Any:
    """Return the bits of a trained network's weights, and of the losses."""
    mr.devices.reset_devices() if hasattr(mr, "devices") else None
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 7)).astype("float32"), rng.integers(0, 3, 50)
    layers.reset_names()
    ops.set_seed(20)
    with mr.MirroredStrategy(replicas=replicas).scope():
        model = mr.Sequential(
            [
                layers.Dense(33, "relu"),
                layers.Dense(20, "tanh"),
                layers.BatchNormalization(),
                layers.Dense(3),
            ]
        )
        loss = mr.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(RULES[rule](), loss)
    history = model.fit(x, y, batch_size=16, epochs=2, verbose=0)
    return history.history["loss"], bits(model.get_weights())


@pytest.mark.parametrize(
    ("rule", "replicas"),
    [
        pytest.param(rule, replicas, marks=[pytest.mark.long] * ((i + replicas) % 2))
        for i, rule in enumerate(RULES)
        for replicas in (1, 2)
    ],
)
def test_training(
    rule: str, replicas: int, compiled: dict[str, Any], bits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = trained(rule, replicas, bits)
    assert len(compiled) > 3
    assert all(kernel.function for kernel in compiled.values())
    monkeypatch.setenv("MIRRORED_CC", "")
    assert found == trained(rule, replicas, bits)


# The shapes of x, and of what is read beside it; whether one loop computes all.
SHAPES = [
    ([(6, 4), (4,), (6, 4)], True),
    ([(6, 4), (6, 1), ()], True),
    ([(6, 4), (1, 4), (6, 1)], True),
    ([(2, 3, 4), (3, 4), (1, 1)], True),
    ([(2, 3, 4), (2, 1, 4), ()], False),
    ([(2, 3, 4), (3, 4), (4,)], False),
]


@pytest.mark.parametrize(("shapes", "together"), SHAPES)
def test_what_is_repeated(
    shapes: list[tuple[int, ...]], together: bool, compiled: dict[str, Any], bits: Any
) -> None:
    rng = np.random.default_rng(4)
    x, y, z = (rng.normal(size=shape).astype("float32") for shape in shapes)

    @mr.function
    def function(x: Any, y: Any, z: Any) -> Any:
        return mr.nn.relu((x * y - z) * x)

    assert bits([function(x, y, z).numpy()]) == bits([np.maximum((x * y - z) * x, np.float32(0))])
    assert any(text.count("const float v") == 4 for text in compiled) == together


def test_a_part_is_read_of_what_was_computed(compiled: dict[str, Any], bits: Any) -> None:
    """A loop computes element by element, so what it has computed is not read elsewhere."""
    x = np.random.default_rng(5).normal(size=(8, 4)).astype("float32")

    @mr.function
    def function(x: Any) -> Any:
        y = x * x - x
        turned = mr.reshape(y, (4, 8)) * 3.0
        return turned + 1.0, mr.reshape(y[:4], (16,)) - mr.reshape(y[4:], (16,)) * 2.0, y[0] - y

    y = x * x - x
    expected = y.reshape(4, 8) * np.float32(3) + 1, (y[:4] - y[4:] * 2).reshape(16), y[0] - y
    assert bits([each.numpy() for each in function(mr.constant(x))]) == bits(expected)
    assert compiled


def test_a_reader_that_does_not_run(compiled: dict[str, Any], bits: Any) -> None:
    """A loop does not write what only such ops read: a later result may be in its memory."""
    x = np.arange(12.0, dtype="float32").reshape(3, 4)

    @mr.function
    def function(x: Any) -> Any:
        is_more = x > mr.nn.relu(x) - 1.0
        mr.where(is_more, x, x)
        number = mr.cast(is_more, "float32")
        return number, -number, number * number

    results = [result.numpy() for result in function(x)]
    assert bits(results) == bits([np.ones_like(x), -np.ones_like(x), np.ones_like(x)])
    assert compiled


# The shape of what is summed, the axes, and whether NumPy adds it row by row.
SUMS = [
    ((6, 4), (0,), True),
    ((300, 17), (0,), True),
    ((3, 5, 2, 9), (0, 1), True),
    ((3, 5, 2, 9), (0,), True),
    ((70_000, 2), (0,), True),
    ((2, 20_000), (0,), True),
    ((6, 4), (1,), False),
    ((3, 5, 2), (0, 2), False),
    ((600, 1), (0,), False),
    ((1, 600), (0,), False),
    ((600,), (0,), False),
]


@pytest.mark.parametrize(
    ("shape", "axes", "joins", "dtype"),
    [
        pytest.param(*case, dtype, marks=[pytest.mark.long] * ((i + j) % 2))
        for i, case in enumerate(SUMS)
        for j, dtype in enumerate(("float32", "float64"))
    ],
)
def test_sums(
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    joins: bool,
    dtype: str,
    compiled: dict[str, Any],
    bits: Any,
) -> None:
    rng = np.random.default_rng(6)
    x = (rng.normal(size=shape) * 10.0 ** rng.integers(-9, 9, shape)).astype(dtype)
    x[..., 0] = -0.0
    x.reshape(-1)[1::97] = np.inf

    @mr.function
    def function(x: Any) -> Any:
        y = x * abs(x)
        sums = mr.reduce_sum(y, axes)
        mean = mr.reduce_mean(y - x, axes, keepdims=True)
        return sums, mean, y - mean

    results = [result.numpy() for result in function(mr.constant(x))]
    y = x * abs(x)
    with np.errstate(invalid="ignore"):
        mean = np.add.reduce(y - x, axes, keepdims=True)
        mean /= np.asarray(x.size // mean.size, dtype)
        assert bits(results) == bits([np.add.reduce(y, axes), mean, y - mean])
    assert any(text.count("] += v") == 2 for text in compiled) == joins
    assert all(kernel.function for kernel in compiled.values())


@pytest.mark.parametrize(("count", "start"), [(3, 0), (100, 37)])
def test_a_sum_begins_with_its_loop(count: int, start: int) -> None:
    """A loop has 64 nodes at the most, however many of their size run before a sum."""
    device = place("Sum", ("CPU",))
    values = [Value(TensorSpec((3, 4), np.dtype("float32")), device) for _ in range(count + 1)]
    nodes = [Node(ops.OPS["Neg"], (x,), {}, y, 0) for x, y in itertools.pairwise(values)]
    total = Value(TensorSpec((4,), np.dtype("float32")), device)
    attrs = {"axis": (0,), "keepdims": False}
    nodes.append(Node(ops.OPS["Sum"], values[-1:], attrs, total, 0))
    assert loop_start(nodes, count) == start


@pytest.mark.parametrize("count", [3, 8])
def test_many_small_ops(
    count: int, compiled: dict[str, Any], bits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many calls of NumPy as a loop saves time with are compiled, however small."""
    monkeypatch.setattr("mirrored.program.compiled_groups.COMPILED_FROM", 1 << 13)
    x = np.random.default_rng(7).normal(size=5).astype("float32")

    @mr.function
    def function(x: Any) -> Any:
        y = x
        for _ in range(count):
            y = y * x - x
        return y

    y = x
    for _ in range(count):
        y = y * x - x
    assert bits([function(mr.constant(x)).numpy()]) == bits([y])
    assert bool(compiled) == (count == 8)


@pytest.mark.parametrize(("columns", "is_compiled"), [(3, True), (300, False)])
def test_one_call(columns: int, is_compiled: bool, compiled: dict[str, Any], bits: Any) -> None:
    """One call of NumPy is compiled where its rows are short."""
    x = np.random.default_rng(8).normal(size=(50, columns)).astype("float32")
    total = mr.function(lambda x: mr.reduce_sum(x, 0))(mr.constant(x))
    assert bits([total.numpy()]) == bits([np.add.reduce(x, 0)])
    assert bool(compiled) == is_compiled
