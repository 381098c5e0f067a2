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


def zoo(keras: Any) -> Any:
    """Return a model of layers of every kind that has weights, or layers inside."""
    layers = keras.layers
    x, numbers = layers.Input((4,), name="x"), layers.Input((3,), dtype="int32", name="n")
    normal = layers.Normalization()
    normal.adapt(X)
    rows = layers.Reshape((2, 2))(normal(x))
    rows = layers.Concatenate(axis=1)([rows, layers.Embedding(5, 2)(numbers)])
    rows = layers.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d")(rows)
    rows = layers.MultiHeadAttention(2, 2, dropout=0.5)(rows, rows)
    rows = layers.GroupQueryAttention(2, 2, 1)(rows, rows)
    rows = layers.TimeDistributed(layers.Dense(4, activation="relu"))(rows)
    rows = layers.Attention(use_scale=True)([rows, layers.AdditiveAttention()([rows, rows])])
    for norm in (
        layers.LayerNormalization(),
        layers.RMSNormalization(),
        layers.GroupNormalization(2),
        layers.BatchNormalization(scale=False, synchronized=False),
        layers.PReLU(shared_axes=[1]),
    ):
        rows = norm(rows)
    rows = layers.Pipeline([layers.Rescaling(0.5), layers.Dense(4)])(rows)
    rows = layers.SpectralNormalization(layers.Dense(4))(rows)
    rows = layers.ReversibleEmbedding(5, 4)(rows, reverse=True)
    pooled = layers.Dropout(0.5)(layers.GlobalAveragePooling1D()(rows))
    codes = layers.CategoryEncoding(5, "count")(numbers)
    both = layers.GaussianNoise(0.1)(layers.Add()([pooled, layers.Dense(5)(codes)]))
    return keras.Model([x, numbers], layers.Dense(2, name="end")(both * 2.0))


def masked(keras: Any) -> Any:
    """Return a model whose layers go by masks, as they come from layers and from merged ones."""
    layers = keras.layers
    x, numbers = layers.Input((4,), name="x"), layers.Input((3,), dtype="int32", name="n")
    rows = layers.Embedding(5, 4, mask_zero=True)(numbers)
    rows = layers.Add()([layers.MultiHeadAttention(2, 2)(rows, rows), rows])
    rows = layers.LayerNormalization()(layers.Dropout(0.5)(rows))
    rows = layers.Activation("tanh")(layers.Dense(4)(rows))
    steps = layers.Masking(0.5)(layers.Reshape((2, 2))(x))
    steps = layers.GlobalAveragePooling1D()(layers.Dense(4)(steps))
    pooled = layers.Concatenate()([layers.GlobalAveragePooling1D()(rows), steps])
    return keras.Model([x, numbers], layers.Dense(2)(pooled))


def images(keras: Any) -> Any:
    """Return a model that changes, pads, enlarges and pools images, sequences and volumes."""
    layers = keras.layers
    x = layers.Input((4,), name="x")
    pixels = layers.RandomFlip(seed=3)(layers.Reshape((2, 2, 1))(x))
    pixels = layers.RandomZoom(0.1)(layers.RandomRotation((-0.1, 0.2), "wrap")(pixels))
    pixels = layers.RandomTranslation(0.1, [0.0, 0.2], seed=4)(pixels)
    pixels = layers.RandomContrast(0.1)(layers.RandomBrightness(0.2)(pixels))
    pixels = keras.ops.image.crop_images(keras.ops.image.pad_images(pixels, 1, 0, 0, 1), 0, 0, 1, 1)
    pixels = layers.CenterCrop(2, 2)(layers.Resizing(4, 4, "nearest")(pixels))
    pixels = layers.ZeroPadding2D(((1, 0), 2))(pixels)
    pixels = layers.BatchNormalization()(layers.SpatialDropout2D(0.5)(pixels))
    pixels = layers.Cropping2D((1, (0, 2)))(layers.UpSampling2D((2, 1))(pixels))
    pooled = [layers.GlobalMaxPooling2D()(pixels), layers.GlobalAveragePooling2D()(pixels)]
    steps = layers.UpSampling1D(2)(layers.ZeroPadding1D((0, 1))(layers.Reshape((4, 1))(x)))
    pooled.append(layers.Flatten()(layers.Cropping1D((3, 1))(steps)))
    volumes = layers.ZeroPadding3D((0, 1, (1, 0)), "channels_first")(
        layers.Reshape((2, 2, 1, 1))(x)
    )
    volumes = layers.SpatialDropout3D(0.25, "channels_first", seed=3)(volumes)
    volumes = layers.BatchNormalization(axis=1)(layers.UpSampling3D((1, 2, 1))(volumes))
    volumes = layers.Cropping3D((0, 1, 0), "channels_first")(volumes)
    pooled.append(layers.GlobalMaxPooling3D("channels_first")(volumes))
    pooled.append(layers.GlobalAveragePooling3D("channels_first")(volumes))
    return keras.Model(x, layers.Dense(2)(layers.Concatenate()(pooled)))


def inputs_of(name: str) -> Any:
    """Return what a model is given."""
    if name == "masked":
        x = np.concatenate([X[:, :2], np.where(X[:, :1] > 0, X[:, 2:], 0.5)], axis=1)
        return [x, np.array([[0, 1, 2], [3, 0, 4], [1, 0, 0]], np.int32)]
    return [X, np.array([[0, 1, 2], [3, 4, 4], [0, 0, 1]], np.int32)] if name == "zoo" else X


def _Block2Odd(layers: Any) -> Any:
    return type("_Block2Odd", (layers.Dense,), {})(2, name="odd")


MODELS: dict[str, Callable[[Any], Any]] = {
    "functional": functional,
    "subclass": subclass,
    "zoo": zoo,
    "masked": masked,
}


def compiled(name: str, keras: Any, optimizer: Any = "adam") -> Any:
    """Return a model that took two steps with gradients that are the same everywhere."""
    model = {**MODELS, "images": images}[name](keras)
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
    plain = (
        "Adagrad Adadelta AdamW Adamax Nadam Ftrl Lion Adafactor Lamb Muon RMSprop SGD "
        "ScheduleFreeAdamW"
    )
    return {
        **{name: getattr(kinds, name)(0.01) for name in plain.split()},
        "Adam": kinds.Adam(0.01, amsgrad=True, **kept),
        "RMSprop, centered": kinds.RMSprop(0.01, momentum=0.5, centered=True),
        "SGD, scheduled": kinds.SGD(rate, momentum=0.9),
        "Muon": kinds.Muon(0.01),
        "LossScaleOptimizer": kinds.LossScaleOptimizer(kinds.RMSprop(0.01, momentum=0.5), 8.0),
        "MultiOptimizer": kinds.MultiOptimizer(
            kinds.OptimizerMap(kinds.SGD(0.01, momentum=0.9), {".*kernel": kinds.Nadam(0.01)})
        ),
    }


def dense(keras: Any, optimizer: Any) -> Any:
    """Return a small model, with an optimizer that took two steps."""
    dense = keras.layers.Dense(2, kernel_initializer="ones")
    model = keras.Sequential([keras.layers.Input((4,)), dense])
    model.compile(optimizer, "mse")
    for number in (1, 2):
        step(model, number)
    return model


def cases(keras: Any) -> dict[str, Any]:
    """Return the models that are exchanged, each after two steps.

    None has a class of its own. Optimizers have all that can be in files: slots, averages, sums of
    gradients, schedules, other optimizers.
    """
    kinds = keras.optimizers
    rate = kinds.schedules.ExponentialDecay(0.1, 10, 0.5)
    kept = {"use_ema": True, "gradient_accumulation_steps": 2}
    return {
        "zoo": compiled("zoo", keras, kinds.Adam(0.01, amsgrad=True, **kept)),
        "masked": compiled("masked", keras),
        "images": compiled("images", keras),
        "scheduled": dense(keras, kinds.SGD(rate, momentum=0.9)),
        "scaled": dense(keras, kinds.LossScaleOptimizer(kinds.RMSprop(0.01, centered=True))),
    }


def come_of(models: dict[str, Any]) -> Any:
    """Return what models predict, what they predict after a step, and the optimizers' state."""
    found = {}
    for name, model in models.items():
        outputs = []
        for _ in range(2):
            outputs.append(np.asarray(model.predict(inputs_of(name), verbose=0)).tolist())
            step(model, 3)
        state = [np.asarray(each).tolist() for each in model.optimizer.variables]
        found[name] = {"outputs": outputs, "state": state}
    return found


def save(models: dict[str, Any], folder: Any) -> None:
    """Write models to files."""
    folder.mkdir(exist_ok=True)
    for name, model in models.items():
        model.save(folder / f"{name}.keras")


def load(keras: Any, folder: Any) -> dict[str, Any]:
    """Return the models in files."""
    paths = sorted(folder.glob("*.keras"))
    return {path.stem: keras.models.load_model(path) for path in paths}
