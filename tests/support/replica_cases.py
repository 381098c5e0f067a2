"""Training runs that are the same on any number of replicas, and of workers.

Data are continuous, so that no activation sits on its kink, and learning rates are small, so that
training is stable and rounding stays rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mirrored as mr
from mirrored import devices, layers

FEATURES, CLASSES = 5, 3
IMAGE = (5, 4, 2)
EPOCHS = 2


@dataclass(frozen=True)
class Case:
    """One training run, but for the number of replicas."""

    replicas: int
    examples: int
    batch_size: int
    optimizer: str
    clipping: str | None
    loss: str
    weighted: bool
    regularized: bool
    dropout: float
    activation: str
    validate: bool
    shuffle: bool
    seed: int
    images: bool = False


def make_optimizer(case: Case) -> mr.optim.Optimizer:
    clip: dict[str, Any] = {} if case.clipping is None else {case.clipping: 0.05}
    if case.optimizer == "adam":
        # A large epsilon: where a gradient is nearly 0, Adam's quotient would magnify rounding.
        return mr.optim.Adam(0.01, epsilon=0.1, **clip)
    options = {
        "sgd": {},
        "momentum": {"momentum": 0.9},
        "nesterov": {"momentum": 0.8, "nesterov": True},
        "decay": {"momentum": 0.5, "weight_decay": 0.1},
    }[case.optimizer]
    return mr.optim.SGD(0.05, **options, **clip)


def charbonnier(y_true: Any, y_pred: Any) -> Any:
    """A loss of the user's own, per element, whose gradient is bounded."""
    return mr.sqrt(mr.square(y_true - y_pred) + 1.0) - 1.0


def make_model(case: Case) -> mr.Model:
    penalty = mr.layers.regularizers.L1L2(0.01, 0.02) if case.regularized else None
    out = {"sparse": "softmax", "categorical": "softmax", "binary": "sigmoid"}.get(case.loss)
    loss: Any = {
        "sparse": "sparse_categorical_crossentropy",
        "categorical": "categorical_crossentropy",
        "binary": "binary_crossentropy",
        "function": charbonnier,
    }.get(case.loss, "mse")
    x = mr.layers.Input(shape=IMAGE if case.images else (FEATURES,))
    hidden = convolved(x, case.activation, penalty) if case.images else x
    hidden = mr.layers.Dense(7, activation=case.activation, kernel_regularizer=penalty)(hidden)
    hidden = mr.layers.Dropout(case.dropout)(hidden)
    outputs = mr.layers.Dense(CLASSES, activation=out, bias_regularizer=penalty)(hidden)
    model = mr.Model(x, outputs)
    metrics = ["accuracy"] if case.loss == "sparse" else ["mse"]
    model.compile(
        optimizer=make_optimizer(case),
        loss=loss,
        metrics=metrics,
        weighted_metrics=["mse"] if case.loss != "sparse" else None,
    )
    return model


def convolved(x: Any, activation: str, penalty: Any = None) -> Any:
    """Return features of images: what layers of convolution, pooling and normalization make."""
    stack = [
        mr.layers.Conv2D(3, 2, activation=activation, kernel_regularizer=penalty),
        mr.layers.BatchNormalization(momentum=0.5),
        mr.layers.DepthwiseConv2D(2, depth_multiplier=2, padding="same"),
        mr.layers.MaxPooling2D(2, strides=1),
        mr.layers.Conv2DTranspose(2, 3, strides=2, activation=activation),
        mr.layers.BatchNormalization(),
        mr.layers.AveragePooling2D(3, strides=2, padding="same"),
        mr.layers.Flatten(),
    ]
    for layer in stack:
        x = layer(x)
    return x


def make_data(case: Case) -> dict[str, Any]:
    rng = np.random.default_rng(case.seed)
    x = rng.normal(size=(case.examples, *(IMAGE if case.images else (FEATURES,))))
    y: Any = rng.uniform(0.1, 0.9, size=(case.examples, CLASSES))
    if case.loss == "sparse":
        y = rng.integers(0, CLASSES, size=case.examples)
    elif case.loss == "categorical":
        y = y / y.sum(axis=1, keepdims=True)
    weights = rng.uniform(0.5, 2.0, size=case.examples) if case.weighted else None
    return {"x": x, "y": y, "sample_weight": weights}


def begin(replicas: int, floatx: str, seed: int) -> None:
    """Let a run begin as the first one of a program does, with so many simulated GPUs."""
    devices.reset_devices()
    layers.reset_names()
    mr.keras.backend.set_floatx(floatx)
    mr.random.set_seed(seed)
    mr.config.experimental.set_simulated_gpus(replicas)


def train(
    case: Case,
    replicas: int,
    floatx: str,
    strategy_of: Callable[[], mr.distribute.Strategy] = mr.MirroredStrategy,
) -> dict[str, Any]:
    """Return everything that a run of two epochs leaves: weights, slots, history, outputs.

    With so many simulated GPUs, which a strategy makes replicas of.
    """
    begin(replicas, floatx, case.seed)
    with strategy_of().scope():
        model = make_model(case)
    data = make_data(case)
    history = model.fit(
        **data,
        batch_size=case.batch_size,
        epochs=EPOCHS,
        shuffle=case.shuffle,
        validation_data=(data["x"], data["y"]) if case.validate else None,
        verbose=0,
    )
    for variable in [*model.weights, *model.optimizer.variables]:
        copies = [copy.numpy() for copy in variable.copies]
        for copy in copies[1:]:
            np.testing.assert_array_equal(copy, copies[0], err_msg="replicas have come apart")
    return {
        **{v.name: v.numpy() for v in [*model.variables, *model.optimizer.variables[2:]]},
        **{f"history {name}": np.asarray(v) for name, v in history.history.items()},
        "outputs": model.predict(data["x"], batch_size=case.batch_size, verbose=0),
        "evaluation": np.asarray(model.evaluate(**data, batch_size=case.batch_size, verbose=0)),
    }


def check_alike(one: dict[str, Any], many: dict[str, Any], tolerance: float) -> None:
    """Fail unless two runs left the same, up to rounding."""
    assert one.keys() == many.keys()
    for name, b in one.items():
        a = many[name]
        assert a.dtype == b.dtype
        error, scale = np.abs(a - b).max(), np.abs(b).max()
        assert error <= tolerance * scale, f"{name}: {error} against {scale}"
