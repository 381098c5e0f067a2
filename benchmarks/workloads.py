"""The work that every contender does: sizes, data, initial weights and matrix products.

It is plain NumPy, so that each environment makes the same numbers from the same seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SEED = 20
CHECK_EPOCHS = 2  # Before anything is timed, to see that all do the same work.
RESULT_EPOCHS = 3  # Of the data that do not divide evenly.


@dataclass(frozen=True)
class Workload:
    """A network of dense layers, and how it is trained.

    Attributes:
        name: What the report calls it.
        sizes: Features of the inputs, of each hidden layer and of the outputs.
        batch: Examples a step, over all replicas together.
        examples: Examples an epoch.
        activation: What follows each layer but the last: "relu" or "tanh".
        loss: "mse", or "sparse" for the sparse cross-entropy from logits.
        learning_rate: SGD's.
        momentum: SGD's; 0 for none.
    """

    name: str
    sizes: tuple[int, ...]
    batch: int
    examples: int
    activation: str = "relu"
    loss: str = "sparse"
    learning_rate: float = 0.01
    momentum: float = 0.9

    @property
    def steps(self) -> int:
        """Steps an epoch; the last one may have fewer examples."""
        return math.ceil(self.examples / self.batch)

    @property
    def parameter_bytes(self) -> int:
        """The size of all gradients together, which an all-reduce moves."""
        pairs = zip(self.sizes, self.sizes[1:], strict=False)
        return 4 * sum((before + 1) * after for before, after in pairs)


def _many(name: str, sizes: tuple[int, ...], batch: int, steps: int, **options: Any) -> Workload:
    return Workload(name, sizes, batch, batch * steps, **options)


# Each has enough batches that what `fit` does once an epoch is a small part of a step.
TIMED = {
    each.name: each
    for each in (
        _many("line", (1, 1), 64, 512, loss="mse", learning_rate=0.05, momentum=0.0),
        _many("digits", (64, 128, 10), 128, 256),
        _many("mnist", (784, 512, 512, 10), 256, 64),
        _many("wide", (1024, 2048, 2048, 1024), 512, 16),
    )
}
# Neither 21 examples nor batches of 8 divide evenly over three replicas, nor the last 5 over any.
UNEVEN = Workload("uneven", (5, 16, 3), 8, 21, activation="tanh", learning_rate=0.1, momentum=0.0)
WORKLOADS = {**TIMED, UNEVEN.name: UNEVEN}


@dataclass(frozen=True)
class Product:
    """A matrix product of (rows, inner) and (inner, columns)."""

    kind: str
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.inner * self.columns


def matrix_products(workload: Workload) -> list[Product]:
    """Return the matrix products of a step, in their order.

    These are the layers' outputs, the weights' gradients, and the gradients of all layers' inputs
    but the first's, which no training needs.
    """
    layers = list(zip(workload.sizes, workload.sizes[1:], strict=False))
    batch = workload.batch
    products = [Product("forward", batch, before, after) for before, after in layers]
    for index in reversed(range(len(layers))):
        before, after = layers[index]
        products.append(Product("weight gradient", before, batch, after))
        if index:
            products.append(Product("input gradient", batch, after, before))
    return products


def make_data(workload: Workload) -> tuple[Array, Array]:
    """Return inputs and targets: rows of float32, and for "sparse" labels of int32.

    The targets follow from the inputs but for some noise, so that training makes progress and
    stays finite however long it is measured.
    """
    rng = np.random.default_rng(SEED)
    features, outputs = workload.sizes[0], workload.sizes[-1]
    x = rng.normal(size=(workload.examples, features)).astype(np.float32)
    teacher = rng.normal(size=(features, outputs)).astype(np.float32) / math.sqrt(features)
    scores = x @ teacher + 0.3 * rng.normal(size=(workload.examples, outputs)).astype(np.float32)
    if workload.loss == "mse":
        return x, scores.astype(np.float32)
    return x, scores.argmax(axis=1).astype(np.int32)


def initial_weights(workload: Workload) -> list[Array]:
    """Return kernel and bias of each layer: Glorot's uniform kernels, and biases of zero."""
    rng = np.random.default_rng(SEED + 1)
    weights: list[Array] = []
    for before, after in zip(workload.sizes, workload.sizes[1:], strict=False):
        limit = math.sqrt(6.0 / (before + after))
        weights.append(rng.uniform(-limit, limit, size=(before, after)).astype(np.float32))
        weights.append(np.zeros(after, np.float32))
    return weights


# ---------------------------------------------------------------------------- the reference


class Reference:
    """Trains a workload in float64, one plain line after the other.

    It is what the losses and weights of all contenders are held to.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.weights = [each.astype(np.float64) for each in initial_weights(workload)]
        self.velocities = [np.zeros_like(each) for each in self.weights]

    def fit(self, x: Array, y: Array, epochs: int) -> list[float]:
        """Train in the order of the data; return the mean loss of each epoch."""
        losses = []
        for _ in range(epochs):
            total = 0.0
            for start in range(0, len(x), self.workload.batch):
                rows = slice(start, start + self.workload.batch)
                total += self._step(x[rows].astype(np.float64), y[rows]) * len(x[rows])
            losses.append(total / len(x))
        return losses

    def _step(self, x: Array, y: Array) -> float:
        outputs = self._forward(x)
        loss, gradient = self._loss(outputs[-1], y)
        gradients: list[Array] = []
        for layer in reversed(range(len(outputs) - 1)):
            kernel, entering = self.weights[2 * layer], outputs[layer]
            gradients = [entering.T @ gradient, gradient.sum(axis=0), *gradients]
            if layer:
                slope = 1.0 - entering**2 if self.workload.activation == "tanh" else entering > 0
                gradient = (gradient @ kernel.T) * slope
        for weight, velocity, change in zip(self.weights, self.velocities, gradients, strict=True):
            velocity *= self.workload.momentum
            velocity -= self.workload.learning_rate * change
            weight += velocity
        return loss

    def _forward(self, x: Array) -> list[Array]:
        """Return the inputs and what each layer makes of them."""
        outputs = [x]
        layers = len(self.weights) // 2
        for layer in range(layers):
            z = outputs[-1] @ self.weights[2 * layer] + self.weights[2 * layer + 1]
            if layer < layers - 1:
                z = np.tanh(z) if self.workload.activation == "tanh" else np.maximum(z, 0.0)
            outputs.append(z)
        return outputs

    def _loss(self, z: Array, y: Array) -> tuple[float, Array]:
        if self.workload.loss == "mse":
            error = z - y
            return float((error**2).mean()), 2.0 * error / error.size
        shifted = z - z.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        examples = np.arange(len(y))
        gradient = np.exp(logs)
        gradient[examples, y] -= 1.0
        return float(-logs[examples, y].mean()), gradient / len(y)


def check_losses(workload: Workload) -> list[float]:
    """Return the losses that every contender must come to: the first step's, then two epochs'."""
    x, y = make_data(workload)
    reference = Reference(workload)
    first = reference.fit(x[: workload.batch], y[: workload.batch], 1)
    return first + reference.fit(x, y, CHECK_EPOCHS)


def largest_relative_error(values: Sequence[float], expected: Sequence[float]) -> float:
    """Return the largest difference in relation to what was expected."""
    pairs = zip(values, expected, strict=True)
    errors = [abs(value - each) / abs(each) for value, each in pairs]
    return math.inf if any(math.isnan(error) for error in errors) else max(errors)
