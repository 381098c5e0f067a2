"""Models that Keras and this library make of the same text, with the same files.

Each function is given the package: Keras itself, or `mirrored.keras`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def functional(keras: Any) -> Any:
    """Return a model with nested models, layers in layers, and weights that are not trained."""
    layers = keras.layers

    class Block(layers.Layer):  # type: ignore[misc, name-defined]
        """Layers in all kinds of attributes, one of them twice."""

        def __init__(self) -> None:
            super().__init__(name="block")
            self.zeta = layers.Dense(3)
            self.parts = [layers.Dense(3), [layers.Dense(3)], {"x": layers.Dense(3)}]
            self._late = layers.Dense(4)
            self._again = self.zeta

        @property
        def first(self) -> Any:
            return self.parts[0]

        def build(self, shape: Any) -> None:
            self.fixed = self.add_weight(shape=(2,), trainable=False, name="fixed")
            self.free = self.add_weight(shape=(3,), name="free")
            self.first.build(shape)
            for layer in (self.zeta, self.parts[1][0], self.parts[2]["x"], self._late):
                layer.build((None, 3))

        def call(self, x: Any) -> Any:
            for layer in (self.first, self.parts[1][0], self.parts[2]["x"], self.zeta):
                x = layer(x) + self.free
            return self._late(x)

    x = layers.Input((4,))
    hidden = layers.Dense(4, activation=layers.ReLU())(x)
    hidden = layers.BatchNormalization()(hidden) + 1.0
    hidden = Block()(hidden)
    hidden = keras.Sequential([layers.Dense(2), layers.Dropout(0.5), layers.PReLU()])(hidden)
    inner = layers.Input((2,))
    inner = keras.Model(inner, layers.Dense(2, use_bias=False)(inner))
    return keras.Model(x, layers.Dense(1)(inner(hidden)))


def subclass(keras: Any) -> Any:
    """Return a model whose layers' names stand on both sides of `layers`."""
    layers = keras.layers

    class Own(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="own")
            self.b = layers.Dense(2)
            self.out, self._private = layers.Dense(3), layers.Dense(3)
            self.blocks, self._hidden = [layers.Dense(2)], (layers.Dense(2),)
            self.odd2Name = [_Block2Odd(layers)]

        def call(self, x: Any) -> Any:
            x = self._private(self.out(self.b(x)))
            return self.odd2Name[0](self._hidden[0](self.blocks[0](x)))

    model = Own()
    model(X)
    return model


def _Block2Odd(layers: Any) -> Any:
    return type("_Block2Odd", (layers.Dense,), {})(2, name="odd")


MODELS: dict[str, Callable[[Any], Any]] = {"functional": functional, "subclass": subclass}


def compiled(name: str, keras: Any, optimizer: Any = "adam") -> Any:
    """Return a model that took two steps with gradients that are the same everywhere."""
    model = MODELS[name](keras)
    model.compile(optimizer, "mse")
    for number in (1, 2):
        step(model, number)
    return model


def step(model: Any, number: int) -> None:
    """Change a model's weights by its optimizer, by gradients that follow from their shapes."""
    variables = model.trainable_variables
    gradients = [
        np.cos(np.arange(np.prod(each.shape)) + 7 * i + number).reshape(each.shape)
        for i, each in enumerate(variables)
    ]
    if not model.optimizer.built:
        model.optimizer.build(variables)
    model.optimizer.apply([each.astype(np.float32) for each in gradients], variables)


def optimizers(keras: Any) -> dict[str, Any]:
    """Return optimizers with all that each can keep."""
    kinds = keras.optimizers
    rate = kinds.schedules.ExponentialDecay(0.1, 10, 0.5)
    kept = {"use_ema": True, "gradient_accumulation_steps": 2}
    plain = "Adagrad Adadelta AdamW Adamax Nadam Ftrl Lion Adafactor Lamb RMSprop SGD"
    return {
        **{name: getattr(kinds, name)(0.01) for name in plain.split()},
        "Adam": kinds.Adam(0.01, amsgrad=True, **kept),
        "RMSprop, centered": kinds.RMSprop(0.01, momentum=0.5, centered=True),
        "SGD, scheduled": kinds.SGD(rate, momentum=0.9),
    }


def dense(keras: Any, optimizer: Any) -> Any:
    """Return a small model, with an optimizer that took two steps."""
    dense = keras.layers.Dense(3, kernel_initializer="ones")
    model = keras.Sequential([keras.layers.Input((2,)), dense])
    model.compile(optimizer, "mse")
    for number in (1, 2):
        step(model, number)
    return model
