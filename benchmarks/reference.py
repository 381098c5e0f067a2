"""What all contenders are held to: a workload trained in float64, one plain line after the other.

It computes losses and weights, and is not measured. A convolution is a product of what its windows
hold, all at once; it shares nothing with the library.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.workloads import (
    ADAM_EPSILON,
    BETAS,
    CHECK_EPOCHS,
    NORM_EPSILON,
    Array,
    Layer,
    Workload,
    initial_weights,
    make_data,
)

PLACES = tuple(itertools.product(range(3), range(3)))  # In a window.


class Trace(NamedTuple):
    """What the way back needs of a layer.

    Attributes:
        entering: The layer's inputs.
        normal: Normalised values and their deviation, where there is normalisation.
        leaving: What follows from the activation, before pooling.
    """

    entering: Array
    normal: tuple[Array, Array] | None
    leaving: Array


class Reference:
    """Trains a workload.

    Attributes:
        workload: What is trained.
        weights: Kernel and bias of each layer, and then scale and offset of each normalisation.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.weights = [array.astype(np.float64) for array in initial_weights(workload)]
        self.layers = workload.layers
        for layer in self.layers[:-1] if workload.normalized else ():
            self.weights += [np.ones(layer.outputs), np.zeros(layer.outputs)]
        self.velocities = [np.zeros_like(weight) for weight in self.weights]
        self._squares = [np.zeros_like(weight) for weight in self.weights]
        self._steps = 0
        self._margin = 1 if workload.padding == "same" else 0

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

    def loss(self, x: Array, y: Array) -> float:
        """Return the loss of a batch."""
        return self._loss(self._forward(x)[-1].leaving, y)[0]

    def _step(self, x: Array, y: Array) -> float:
        traces = self._forward(x)
        loss, gradient = self._loss(traces[-1].leaving, y)
        gradients = [np.zeros_like(weight) for weight in self.weights]
        for index in reversed(range(len(self.layers))):
            layer, (entering, normal, leaving) = self.layers[index], traces[index]
            examples = tuple(range(leaving.ndim - 1))
            if index < len(self.layers) - 1:
                if layer.pooled:
                    gradient = _unpooled(leaving, gradient)
                tanh = self.workload.activation == "tanh"
                gradient = gradient.reshape(leaving.shape)
                gradient = gradient * (1.0 - leaving**2 if tanh else leaving > 0)
            if normal is not None:
                place = 2 * (len(self.layers) + index)
                z, deviation = normal
                scaled = (gradient * z).sum(axis=examples)
                gradients[place : place + 2] = [scaled, gradient.sum(axis=examples)]
                inner = gradient * self.weights[place]
                gradient = inner - inner.mean(axis=examples)
                gradient -= z * (inner * z).mean(axis=examples)
                gradient /= deviation
            kernel = self.weights[2 * index]
            weight, inputs = self._backward(layer, entering, kernel, gradient)
            gradients[2 * index : 2 * index + 2] = [weight, gradient.sum(axis=examples)]
            gradient = inputs
        self._update(gradients)
        return loss

    def _backward(
        self, layer: Layer, entering: Array, kernel: Array, gradient: Array
    ) -> tuple[Array, Array]:
        """Return the gradients of a kernel and of a layer's inputs."""
        if not layer.convolves:
            return entering.T @ gradient, gradient @ kernel.T
        patches = _patches(entering, self._margin)
        weight = np.tensordot(patches, gradient, ((0, 1, 2), (0, 1, 2)))
        spread = np.tensordot(gradient, kernel, (3, 3))
        inputs = np.zeros_like(_padded(entering, self._margin))
        for row, column in PLACES:
            _seen(inputs, row, column)[...] += spread[:, :, :, row, column]
        rows, columns = (slice(self._margin, side - self._margin) for side in inputs.shape[1:3])
        return weight, inputs[:, rows, columns]

    def _update(self, gradients: Sequence[Array]) -> None:
        rate, self._steps = self.workload.learning_rate, self._steps + 1
        if self.workload.optimizer == "adam":
            first, second = BETAS
            rate *= math.sqrt(1 - second**self._steps) / (1 - first**self._steps)
        slots = zip(self.weights, self.velocities, self._squares, gradients, strict=True)
        for weight, velocity, square, gradient in slots:
            if self.workload.optimizer == "adam":
                velocity += (gradient - velocity) * (1 - first)
                square += (gradient**2 - square) * (1 - second)
                weight -= rate * velocity / (np.sqrt(square) + ADAM_EPSILON)
                continue
            velocity *= self.workload.momentum
            velocity -= rate * gradient
            weight += velocity

    def _forward(self, x: Array) -> list[Trace]:
        """Return what each layer makes of the inputs."""
        traces = []
        for index, layer in enumerate(self.layers):
            kernel, bias = self.weights[2 * index : 2 * index + 2]
            entering = x if layer.convolves else x.reshape(len(x), -1)
            if layer.convolves:
                z = np.tensordot(_patches(entering, self._margin), kernel, 3) + bias
            else:
                z = entering @ kernel + bias
            hidden = index < len(self.layers) - 1
            normal = None
            if hidden and self.workload.normalized:
                examples = tuple(range(z.ndim - 1))
                scale, offset = self.weights[2 * (len(self.layers) + index) :][:2]
                deviation = np.sqrt(z.var(axis=examples) + NORM_EPSILON)
                normal = ((z - z.mean(axis=examples)) / deviation, deviation)
                z = normal[0] * scale + offset
            if hidden:
                z = np.tanh(z) if self.workload.activation == "tanh" else np.maximum(z, 0.0)
            traces.append(Trace(entering, normal, z))
            x = _blocks(z).max(axis=(2, 4)) if layer.pooled else z
        return traces

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


def _padded(x: Array, margin: int) -> Array:
    """Return images with zeros around them."""
    return np.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)))


def _seen(padded: Array, row: int, column: int) -> Array:
    """Return a view of what all windows have at a place."""
    _, rows, columns, _ = padded.shape
    return padded[:, row : row + rows - 2, column : column + columns - 2]


def _patches(x: Array, margin: int) -> Array:
    """Return what is in each window: examples, windows' rows and columns, 3, 3, channels."""
    padded = _padded(x, margin)
    patches = np.stack([_seen(padded, *place) for place in PLACES], axis=3)
    return patches.reshape(*patches.shape[:3], 3, 3, -1)


def _blocks(x: Array) -> Array:
    """Return 2 x 2 blocks on axes 2 and 4; a last odd row or column is in none."""
    examples, rows, columns, channels = x.shape
    even = x[:, : rows // 2 * 2, : columns // 2 * 2]
    return even.reshape(examples, rows // 2, 2, columns // 2, 2, channels)


def _unpooled(x: Array, gradient: Array) -> Array:
    """Return the gradient of pooling's inputs.

    Equal values in a block all get it: they are zeros of ReLU, which lets none through.
    """
    blocks = _blocks(x)
    largest = blocks.max(axis=(2, 4), keepdims=True)
    picked = (blocks == largest) * gradient.reshape(largest.shape)
    spread = np.zeros_like(x)
    even = picked.reshape(len(x), 2 * blocks.shape[1], 2 * blocks.shape[3], -1)
    spread[:, : even.shape[1], : even.shape[2]] = even
    return spread


def check_losses(workload: Workload) -> list[float]:
    """Return the losses that every contender must come to: the first step's, then two epochs'."""
    x, y = make_data(workload)
    reference = Reference(workload)
    first = reference.fit(x[: workload.batch], y[: workload.batch], 1)
    return first + reference.fit(x, y, CHECK_EPOCHS)


def largest_relative_error(values: Sequence[float], expected: Sequence[float]) -> float:
    """Return the largest difference in relation to what was expected."""
    pairs = zip(values, expected, strict=True)
    errors = [abs(value - expected) / abs(expected) for value, expected in pairs]
    return math.inf if any(math.isnan(error) for error in errors) else max(errors)
