"""A program that fits one neuron under MirroredStrategy on any number of GPUs.

What it prints are TensorFlow's numbers, and its placement log is compared line by line.
"""

import ast
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

FULL = "/job:localhost/replica:0/task:0/device:"

BUILD = """
import numpy as np
import mirrored as tf

{before}
strategy = tf.distribute.MirroredStrategy()
print('Number of devices:', strategy.num_replicas_in_sync)
with strategy.scope():
    inputs = tf.keras.layers.Input(shape=(1,))
    predictions = tf.keras.layers.Dense(1)(inputs)
    model = tf.keras.models.Model(inputs=inputs, outputs=predictions)
    model.compile(loss='mse', optimizer=tf.keras.optimizers.SGD(learning_rate=0.2))
"""
FIT = """
model.set_weights([np.array([[-2.5]]), np.array([0.5])])
history = model.fit(dataset, epochs=2)
print('loss', history.history['loss'])
print('evaluate', model.evaluate(dataset))
print('predict', model.predict(x).tolist())
print('weights', [weights.tolist() for weights in model.get_weights()])
"""
ONE_POINT = """
dataset = tf.data.Dataset.from_tensors(([1.], [1.])).repeat(100).batch(10)
x = tf.data.Dataset.from_tensors(([3.],)).repeat(3).batch(2)
"""
# 21 examples in batches of 8: neither 8 nor the 5 of the last batch are divided evenly.
SINE = """
x = np.linspace(-1, 1, 21, dtype=np.float32).reshape(-1, 1)
dataset = tf.data.Dataset.from_tensor_slices((x, np.sin(3 * x))).batch(8)
x = x[:3]
"""


# TensorFlow 2.21 with Keras 3.15 prints these on one device. On two it prints the same for the one
# point, and other ones for the sine: it averages the means of shards that are not equally large.
@pytest.mark.behaviour("uneven-shards")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            ONE_POINT,
            {
                "loss": [0.9374999403953552, 5.684341970784096e-15],
                "evaluate": 0.0,
                "predict": [[-1.0], [-1.0], [-1.0]],
                "weights": [[[-1.0]], [2.0]],
            },
        ),
        (
            SINE,
            {
                "loss": [5.037736415863037, 1.9460320472717285],
                "evaluate": 0.7130190134048462,
                "predict": [[0.4784056544303894], [0.47027480602264404], [0.4621439576148987]],
                "weights": [[[-0.08130855858325958]], [0.397097110748291]],
            },
        ),
    ],
    ids=["one point", "sine"],
)
@pytest.mark.parametrize(
    "gpus", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)]
)
def test_the_numbers_are_tensorflows(
    run_program: Callable[..., Any], gpus: int, data: str, expected: dict[str, Any]
) -> None:
    done = run_program(BUILD.format(before="") + data + FIT, gpus=gpus)
    assert done.out[0] == f"Number of devices: {gpus}"
    printed = {
        name: ast.literal_eval(value)
        for name, value in (line.split(" ", 1) for line in done.out[1:])
        if name in expected
    }
    assert printed.keys() == expected.keys()
    for name, value in expected.items():
        for ours, theirs in zip(_leaves(printed[name]), _leaves(value), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6, err_msg=name)


def _leaves(value: Any) -> list[float]:
    """Return the numbers in nested lists."""
    return [leaf for each in value for leaf in _leaves(each)] if type(value) is list else [value]


LOGGED = "tf.debugging.set_log_device_placement(True)"


@pytest.mark.behaviour("log-of-a-mirrored-variable")
@pytest.mark.parametrize("gpus", [1, 4])
def test_the_placement_log_of_building_it(
    run_program: Callable[..., Any],
    created: Callable[..., list[str]],
    executing: Callable[..., list[str]],
    gpus: int,
) -> None:
    done = run_program(BUILD.format(before=LOGGED), gpus=gpus)
    made = ["VarHandleOp GPU:0", "AssignVariableOp GPU:0"]
    for i in range(1, gpus):
        made += ["ReadVariableOp GPU:0", f"Identity GPU:{i}"]
        made += [f"VarHandleOp GPU:{i}", f"AssignVariableOp GPU:{i}"]
    # An initial value is computed once, on the first GPU: of the kernel a uniform number that is
    # scaled and moved, of the bias a zero, of the optimizer its step count and learning rate, of
    # the mean of the loss a total and a count.
    kernel = ["RandomUniform", "_EagerConst", "Mul", "_EagerConst", "AddV2"]
    initial = [kernel, ["Fill"], ["_EagerConst"], ["_EagerConst"], ["Fill"], ["Fill"]]
    expected = [each for ops in initial for each in [*(f"{op} GPU:0" for op in ops), *made]]
    assert done.log[: 1 + gpus] == created(*range(gpus))
    names = ", ".join(f"'{FULL}GPU:{i}'" for i in range(gpus)) + ("," if gpus == 1 else "")
    assert done.log[-len(expected) - 1] == f"Using MirroredStrategy with devices ({names})"
    assert done.log[-len(expected) :] == executing(*expected)


def test_the_placement_log_of_training_it(
    run_program: Callable[..., Any], executing: Callable[..., list[str]]
) -> None:
    gpus, steps = 4, 10
    text = BUILD.format(before="") + ONE_POINT + LOGGED + FIT
    others = (
        "Reduce to",
        "one device would be faster",
    )  # What is said of sums, and of steps this short.
    log = [
        line
        for line in run_program(text, gpus=gpus).log
        if not any(each in line for each in others)
    ]

    # Each op of the step once, when it is recorded, then one line a step.
    placed = re.compile(rf"(\S+): \((\w+)\): {FULL}(GPU:\d)")
    called = re.compile(rf"Executing op (__inference_train_function_\d+) in device {FULL}GPU:0")
    calls = [number for number, line in enumerate(log) if called.fullmatch(line)]
    first, last = calls[0], calls[-1]
    # Between the epochs the total and the count of the mean of the loss are set and cleared, on the
    # first replica: those of the others are 0 and stay so.
    epoch = [log[first]] * steps
    assigned = executing(*["AssignVariableOp GPU:0"] * 2 * 2)
    assert log[first : last + 1] == [*epoch, *assigned, *epoch]

    start = max(number for number in range(first) if not placed.fullmatch(log[number])) + 1
    nodes = [placed.fullmatch(line).groups() for line in log[start:first]]
    names = [name for name, _, _ in nodes]
    assert len(set(names)) == len(names)
    assert all(re.sub(r"^replica_\d/|_\d+$", "", name) == op for name, op, _ in nodes)

    # The replicas do the same, each on its own GPU, and the products are theirs.
    for i in range(gpus):
        products = [name for name, op, device in nodes if (op, device) == ("MatMul", f"GPU:{i}")]
        prefix = f"replica_{i}/" if i else ""
        assert products == [f"{prefix}MatMul", f"{prefix}MatMul_1"]  # Forward, backward.
    parts = [
        [
            (name.removeprefix(f"replica_{i}/"), op)
            for name, op, _ in nodes
            if f"replica_{i}/" in name
        ]
        for i in range(1, gpus)
    ]
    assert parts == [[(name, op) for name, op, _ in nodes[: len(parts[0])]]] * (gpus - 1)
