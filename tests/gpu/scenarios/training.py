"""Networks that are trained on the host, on the card, or on virtual GPUs of it.

What they leave, weights and losses, is what the tests compare.
"""

import itertools
import logging.handlers
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import mirrored as mr
from mirrored.backends.cuda import graphs

Array = np.ndarray[Any, Any]
SEED = 20


def split(gpus: int, megabytes: int) -> list[str]:
    """Make virtual GPUs of the card; return the devices to train on, the host's for none."""
    if not gpus:
        return ["CPU:0"]
    card = mr.config.list_physical_devices("GPU")[0]
    if gpus > 1:
        part = mr.config.LogicalDeviceConfiguration(memory_limit=megabytes)
        mr.config.set_logical_device_configuration(card, [part] * gpus)
    return [f"GPU:{index}" for index in range(gpus)]


def make_data(features: int, classes: int, examples: int) -> tuple[Array, Array]:
    """Return inputs and labels that follow from them, but for some noise."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(examples, features))
    scores = x @ rng.normal(size=(features, classes)) + rng.normal(size=(examples, classes))
    return x, scores.argmax(axis=1)


def initial_weights(sizes: Sequence[int]) -> list[Array]:
    """Return kernels and biases; they are drawn by NumPy, the same on every device."""
    rng = np.random.default_rng(SEED + 1)
    weights: list[Array] = []
    for before, after in itertools.pairwise(sizes):
        limit = np.sqrt(6 / (before + after))
        weights += [rng.uniform(-limit, limit, size=(before, after)), np.zeros(after)]
    return weights


def make_optimizer(name: str, rate: float) -> mr.optim.Optimizer:
    """Return an optimizer; Adam's large epsilon does not magnify rounding of gradients near 0."""
    if name == "adam":
        return mr.optim.Adam(rate, epsilon=0.1)
    return mr.optim.SGD(rate, momentum=0.9 if name == "momentum" else 0.0)


def build(
    strategy: Any,
    sizes: Sequence[int],
    activation: str = "relu",
    optimizer: str = "momentum",
    rate: float = 0.05,
    eagerly: bool = False,
) -> mr.Model:
    """Return a compiled network of dense layers, with the initial weights."""
    mr.layers.reset_names()
    mr.random.set_seed(SEED)
    with strategy.scope():
        x = y = mr.layers.Input(shape=(sizes[0],))
        for size in sizes[1:-1]:
            y = mr.layers.Dense(size, activation=activation)(y)
        # In float32 at the least, as mixed precision wants the last layer.
        floatx = mr.keras.backend.floatx()
        model = mr.Model(x, mr.layers.Dense(sizes[-1], dtype=floatx)(y))
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        made = make_optimizer(optimizer, rate)
        model.compile(made, loss, metrics=["accuracy"], run_eagerly=eagerly)
    model.set_weights(initial_weights(sizes))
    return model


def train_one(
    strategy: Any,
    sizes: Sequence[int],
    batch: int,
    examples: int,
    epochs: int,
    floatx: str = "float32",
    optimizer: str = "sgd",
    rate: float = 0.05,
    activation: str = "relu",
    eagerly: bool = False,
    shuffle: bool = False,
    policy: str | None = None,
    verify: int = 0,
) -> dict[str, Any]:
    """Train one network, and verify each so-manieth step; return losses by epoch, and weights."""
    mr.keras.backend.set_floatx(floatx)
    if policy:
        mr.keras.mixed_precision.set_global_policy(policy)
    model = build(strategy, sizes, activation, optimizer, rate, eagerly)
    x, y = make_data(sizes[0], sizes[-1], examples)
    options = {"batch_size": batch, "epochs": epochs, "shuffle": shuffle, "verbose": 0}
    callbacks = [mr.callbacks.VerifySteps(verify)] if verify else []
    history = model.fit(x.astype(floatx), y, callbacks=callbacks, **options)
    weights = {f"weight {i}": weight for i, weight in enumerate(model.get_weights())}
    return {"losses": history.history["loss"], **weights}


def train(
    cases: list[dict[str, Any]], gpus: int, megabytes: int = 1024, replicas: int | None = None
) -> dict[str, Any]:
    """Train each case on so many virtual GPUs of the card, 0 for the host.

    Args:
        cases: Arguments of `train_one`.
        gpus: How many virtual GPUs.
        megabytes: The memory of each, where there are several.
        replicas: How many replicas; None: one per virtual GPU.

    Returns:
        What each case leaves, by "number/name".
    """
    strategy = mr.MirroredStrategy(split(gpus, megabytes), replicas=replicas)
    results = {}
    for number, case in enumerate(cases):
        found = train_one(strategy, **case)
        results.update({f"{number}/{name}": value for name, value in found.items()})
    return results


def captured(cases: list[dict[str, Any]], gpus: int) -> dict[str, Any]:
    """Train each case; return how often a graph was launched in it, and why others were not made.

    What cannot be captured is replayed kernel by kernel, and only a line of the log says so.
    """
    launched, told = 0, logging.handlers.BufferingHandler(1 << 20)
    launch = graphs.CapturedGraph.launch

    def counted(graph: graphs.CapturedGraph) -> None:
        nonlocal launched
        launched += 1
        launch(graph)

    vars(graphs)["CapturedGraph"].launch = counted
    log = logging.getLogger("mirrored")
    log.setLevel(logging.DEBUG)
    log.addHandler(told)
    strategy = mr.MirroredStrategy(split(gpus, 512))
    counts = []
    for case in cases:
        launched = 0
        train_one(strategy, **case)
        counts.append(launched)
    lines = [each.getMessage() for each in told.buffer]
    return {"launched": counts, "refused": [each for each in lines if "not be captured" in each]}


def trace(gpus: int) -> dict[str, Any]:
    """Trace some steps; return the trace's text, and what it leaves."""
    strategy = mr.MirroredStrategy(split(gpus, 512))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        with mr.profiler.trace(path):
            found = train_one(strategy, (16, 32, 4), 32, 128, 2)
        lines: list[str] = []
        mr.profiler.summary(print_fn=lines.append)
        return {"trace": path.read_text(), "summary": "\n".join(lines), **found}


def refused(kind: str) -> dict[str, Any]:
    """Train a step, then one on data that cannot be learnt from; return the error and weights.

    Args:
        kind: "label", "not a number", "infinite", or "gradient": that one alone is not finite.
    """
    strategy = mr.MirroredStrategy(split(1, 0))
    model = build(strategy, (8, 16, 4))
    x, y = make_data(8, 4, 64)
    model.fit(x, y, batch_size=32, verbose=0)
    before = model.get_weights()
    x_bad, y_bad = x[:32].copy(), y[:32].copy()
    if kind == "gradient":
        model.compile(
            "sgd", lambda _, outputs: mr.sqrt(mr.abs(outputs - outputs)), check_gradients=True
        )
    elif kind == "label":
        y_bad[5] = 4
    else:
        x_bad[5] = np.nan if kind == "not a number" else np.inf
    error: Exception | None = None
    try:
        model.fit(x_bad, y_bad, batch_size=32, verbose=0)
    except (mr.errors.NonFiniteLossError, ValueError) as caught:
        error = caught
    after = model.get_weights()
    model.compile("sgd", mr.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=32, verbose=0)
    return {
        "error": type(error).__name__,
        "text": str(error),
        "unchanged": all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)),
        "loss afterwards": history.history["loss"][-1],
    }
