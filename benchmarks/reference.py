"""What all contenders are held to: a workload trained in float64, one plain line after the other.

It computes losses and weights, and is not measured.
"""

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.workloads import (
    ADAM_EPSILON,
    BETAS,
    CHECK_EPOCHS,
    NORM_EPSILON,
    Array,
    Workload,
    initial_weights,
    make_data,
)


class Reference:
    """Trains a workload.

    Attributes:
        workload: What is trained.
        weights: Kernel and bias of each layer, and then scale and offset of each normalisation.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.weights = [each.astype(np.float64) for each in initial_weights(workload)]
        if workload.normalized:
            for size in workload.sizes[1:-1]:
                self.weights += [np.ones(size), np.zeros(size)]
        self.layers = len(workload.sizes) - 1
        self.velocities = [np.zeros_like(each) for each in self.weights]
        self._squares = [np.zeros_like(each) for each in self.weights]
        self._steps = 0

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
        return self._loss(self._forward(x)[0][-1], y)[0]

    def _step(self, x: Array, y: Array) -> float:
        outputs, normals = self._forward(x)
        loss, gradient = self._loss(outputs[-1], y)
        gradients = [np.zeros_like(each) for each in self.weights]
        for layer in reversed(range(self.layers)):
            entering = outputs[layer]
            if normals[layer] is not None:
                place = 2 * (self.layers + layer)
                z, deviation = normals[layer]
                gradients[place : place + 2] = [(gradient * z).sum(axis=0), gradient.sum(axis=0)]
                inner = gradient * self.weights[place]
                gradient = inner - inner.mean(axis=0) - z * (inner * z).mean(axis=0)
                gradient /= deviation
            gradients[2 * layer : 2 * layer + 2] = [entering.T @ gradient, gradient.sum(axis=0)]
            if layer:
                slope = 1.0 - entering**2 if self.workload.activation == "tanh" else entering > 0
                gradient = (gradient @ self.weights[2 * layer].T) * slope
        self._update(gradients)
        return loss

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

    def _forward(self, x: Array) -> tuple[list[Array], list[tuple[Array, Array] | None]]:
        """Return the inputs and what each layer makes of them, and each normalisation's results."""
        outputs = [x]
        normals: list[tuple[Array, Array] | None] = []
        for layer in range(self.layers):
            z = outputs[-1] @ self.weights[2 * layer] + self.weights[2 * layer + 1]
            hidden = layer < self.layers - 1
            normal = None
            if hidden and self.workload.normalized:
                scale, offset = self.weights[2 * (self.layers + layer) :][:2]
                deviation = np.sqrt(z.var(axis=0) + NORM_EPSILON)
                normal = ((z - z.mean(axis=0)) / deviation, deviation)
                z = normal[0] * scale + offset
            if hidden:
                z = np.tanh(z) if self.workload.activation == "tanh" else np.maximum(z, 0.0)
            outputs.append(z)
            normals.append(normal)
        return outputs, normals

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
