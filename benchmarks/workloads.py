"""The work that every contender does: sizes, data, initial weights and matrix products.

It is plain NumPy, so that each environment makes the same numbers from the same seeds.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SEED = 20
CHECK_EPOCHS = 2  # Before anything is timed, to see that all do the same work.
RESULT_EPOCHS = 3  # Of the data that do not divide evenly.


POOL = "pool"  # The stage that keeps the largest of 2 x 2 outputs.


@dataclass(frozen=True)
class Layer:
    """A layer with a kernel and a bias: a convolution by windows of 3 x 3, or a dense one.

    Attributes:
        kernel: The kernel's shape: inputs and outputs, for a convolution after the window's shape.
        places: The number of windows in an image; 1 for a dense layer.
        pooled: Whether pooling follows the activation.
    """

    kernel: tuple[int, ...]
    places: int = 1
    pooled: bool = False

    @property
    def convolves(self) -> bool:
        """Whether it is a convolution."""
        return len(self.kernel) > 2

    @property
    def inputs(self) -> int:
        """Inputs of each output."""
        return math.prod(self.kernel[:-1])

    @property
    def outputs(self) -> int:
        """Features or filters."""
        return self.kernel[-1]


@dataclass(frozen=True)
class Workload:
    """A network of dense layers, after convolutions or not, and how it is trained.

    Attributes:
        name: What the report calls it.
        sizes: Features of the inputs, of each hidden dense layer and of the outputs.
        batch: Examples a step, over all replicas together.
        examples: Examples an epoch.
        activation: What follows each layer but the last: "relu" or "tanh".
        loss: "mse", or "sparse" for the sparse cross-entropy from logits.
        learning_rate: The optimizer's.
        momentum: SGD's; 0 for none.
        optimizer: "sgd" or "adam", with Keras' settings.
        normalized: Whether batch normalisation comes before the activations, over the whole batch
            where a contender can.
        image: Rows, columns and channels of the inputs of a network with convolutions.
        stages: The filters of each convolution, and "pool" where pooling follows it.
        padding: The convolutions', "valid" or "same".
    """

    name: str
    sizes: tuple[int, ...]
    batch: int
    examples: int
    activation: str = "relu"
    loss: str = "sparse"
    learning_rate: float = 0.01
    momentum: float = 0.9
    optimizer: str = "sgd"
    normalized: bool = False
    image: tuple[int, ...] = ()
    stages: tuple[int | str, ...] = ()
    padding: str = "valid"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an example."""
        return self.image or self.sizes[:1]

    @property
    def layers(self) -> list[Layer]:
        """All layers with weights, in their order."""
        layers = []
        *sides, channels = self.shape
        for index, stage in enumerate(self.stages):
            if isinstance(stage, str):
                sides = [side // 2 for side in sides]
                continue
            if self.padding == "valid":
                sides = [side - 2 for side in sides]
            kernel = (3, 3, channels, stage)
            pooled = self.stages[index + 1 : index + 2] == (POOL,)
            layers.append(Layer(kernel, math.prod(sides), pooled))
            channels = stage
        return layers + [Layer(pair) for pair in itertools.pairwise(self.sizes)]

    @property
    def network(self) -> str:
        """The sizes of its parts as a short text."""
        images = ["x".join(map(str, self.image)), *self.stages] if self.image else self.sizes[:1]
        return "-".join(map(str, [*images, *self.sizes[1:]]))

    @property
    def steps(self) -> int:
        """Steps an epoch; the last one may have fewer examples."""
        return math.ceil(self.examples / self.batch)

    @property
    def parameter_bytes(self) -> int:
        """The size of all gradients together, which an all-reduce moves."""
        scales = 2 * sum(layer.outputs for layer in self.layers[:-1]) if self.normalized else 0
        return 4 * (sum((layer.inputs + 1) * layer.outputs for layer in self.layers) + scales)


def _many(name: str, sizes: tuple[int, ...], batch: int, steps: int, **options: Any) -> Workload:
    return Workload(name, sizes, batch, batch * steps, **options)


# Each has enough batches that what `fit` does once an epoch is a small part of a step.
TIMED = {
    workload.name: workload
    for workload in (
        _many("line", (1, 1), 64, 512, loss="mse", learning_rate=0.05, momentum=0.0),
        _many("digits", (64, 128, 10), 128, 256),
        _many("mnist", (784, 512, 512, 10), 256, 64),
        _many("wide", (1024, 2048, 2048, 1024), 512, 16),
        _many("adam", (784, 512, 512, 10), 256, 64, optimizer="adam", learning_rate=0.0003),
        _many("norm", (64, 128, 128, 10), 128, 256, normalized=True),
        _many("lenet", (1600, 128, 10), 128, 16, image=(28, 28, 1), stages=(32, POOL, 64, POOL)),
        _many(
            "cifar",
            (2048, 10),
            64,
            8,
            image=(32, 32, 3),
            stages=(32, 32, POOL, 64, 64, POOL, 128, 128, POOL),
            learning_rate=0.0003,
            padding="same",
            normalized=True,
        ),
    )
}
# Those that are measured in every form: loops of one's own, and short fits.
IN_EVERY_FORM = ("line", "digits", "mnist", "wide")
# Keras' defaults, which every contender takes.
BETAS = (0.9, 0.999)
ADAM_EPSILON = 1e-7
NORM_EPSILON = 1e-3
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
    but the first's, which no training needs. A convolution has a row for each window.
    """
    layers = [(workload.batch * x.places, x.inputs, x.outputs) for x in workload.layers]
    products = [Product("forward", *layer) for layer in layers]
    for index in reversed(range(len(layers))):
        rows, before, after = layers[index]
        products.append(Product("weight gradient", before, rows, after))
        if index:
            products.append(Product("input gradient", rows, after, before))
    return products


def make_data(workload: Workload) -> tuple[Array, Array]:
    """Return inputs and targets: rows or images of float32, and for "sparse" labels of int32.

    The targets follow from the inputs but for some noise, so that training makes progress and
    stays finite however long it is measured.
    """
    rng = np.random.default_rng(SEED)
    features, outputs = math.prod(workload.shape), workload.sizes[-1]
    x = rng.normal(size=(workload.examples, features)).astype(np.float32)
    teacher = rng.normal(size=(features, outputs)).astype(np.float32) / math.sqrt(features)
    scores = x @ teacher + 0.3 * rng.normal(size=(workload.examples, outputs)).astype(np.float32)
    if workload.loss == "mse":
        return x, scores.astype(np.float32)
    return x.reshape(-1, *workload.shape), scores.argmax(axis=1).astype(np.int32)


def initial_weights(workload: Workload) -> list[Array]:
    """Return kernel and bias of each layer: Glorot's uniform kernels, and biases of zero."""
    rng = np.random.default_rng(SEED + 1)
    weights: list[Array] = []
    for layer in workload.layers:
        window = math.prod(layer.kernel[:-2])
        limit = math.sqrt(6.0 / (layer.inputs + window * layer.outputs))
        weights.append(rng.uniform(-limit, limit, size=layer.kernel).astype(np.float32))
        weights.append(np.zeros(layer.outputs, np.float32))
    return weights
