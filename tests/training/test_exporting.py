"""`Model.export`: the numbers of a file, by ONNX's own evaluator, are the model's for any batch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from mirrored import layers
from mirrored.layers import activations

RNG = np.random.default_rng(0)
Layers = list[Callable[[], Any]]


def chain(*made: Any, shape: Any = (4, 6), dtype: Any = None) -> mr.Model:
    """Return a model of layers one after the other."""
    return mr.Sequential([layers.Input(shape, dtype=dtype, name="x"), *made])


def pair(layer: Any, *, steps: int | None = 4) -> mr.Model:
    """Return a model of two inputs."""
    inputs = [layers.Input((steps, 6), name="one"), layers.Input((steps, 6), name="other")]
    return mr.Model(inputs, layer(inputs))


class Both(mr.Model):
    """A model of a user's, with two outputs in a dict, that looks at sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = layers.Dense(3)

    def call(self, inputs: Any) -> Any:
        count, steps = inputs.shape[0], inputs.shape[1]
        order = mr.cast(mr.range(steps), mr.float32)[None, :, None]
        mask = mr.linalg.band_part(mr.ones((steps, steps)), -1, 0)
        scores = mr.matmul(inputs, inputs, transpose_b=True) * mask
        hidden = self.dense(inputs + order) / mr.cast(count, mr.float32)
        return {"scores": scores, "hidden": mr.reshape(hidden, (count * steps, 3))[::-1, None]}


def attending() -> mr.Model:
    """Return a model of texts that attends to what came before, without filled places."""
    words = layers.Input((None,), dtype="int32", name="words")
    hidden = layers.Embedding(5, 6, mask_zero=True)(words)
    hidden = layers.MultiHeadAttention(2, 3)(hidden, hidden, use_causal_mask=True)
    return mr.Model(words, layers.GlobalAveragePooling1D()(hidden))


def reversed_() -> mr.Model:
    """Return a model of words, and of scores of words."""
    words, embedding = layers.Input((None,), dtype="int32"), layers.ReversibleEmbedding(5, 4)
    hidden = embedding(words)
    return mr.Model(words, [hidden, embedding(hidden, reverse=True)])


def located(x: Any) -> Any:
    """Return rows with their places in waves, and with what is beside them."""
    count = x.shape[1]
    places = mr.cast(mr.range(count), mr.float32)[:, None]
    waves = mr.sin(places / mr.pow(100.0, mr.cast(mr.range(6), mr.float32) / 6.0))
    beside = mr.linalg.band_part(mr.ones((count, count)), 1, 1) - mr.eye(count)
    return mr.matmul(beside, x + waves) / mr.sqrt(mr.cast(count, mr.float32))


def slopes(x: Any) -> Any:
    """Return the gradient of an energy."""
    with mr.GradientTape() as tape:
        tape.watch(x)
        energy = mr.reduce_sum(
            mr.tanh(x[:, 1:, :3] * x[:, :-1, 3:]) * mr.sigmoid(x[:, :1, ::-2]), (1, 2)
        )
    return tape.gradient(energy, x)


def images() -> mr.Model:
    """Return a model that pads, crops and enlarges images of unknown sizes."""
    return chain(
        layers.ZeroPadding2D(((0, 1), (2, 1)), "channels_first"),
        layers.UpSampling2D((2, 3)),
        layers.Cropping2D(((1, 0), (0, 1))),
        layers.SpatialDropout2D(0.5),
        shape=(3, None, None),
    )


def pictures() -> mr.Model:
    """Return a model that resizes images, and that changes them in training."""
    return chain(
        layers.Resizing(5, 4),
        layers.Resizing(3, 7, "nearest"),
        layers.CenterCrop(3, 4),
        *(getattr(layers, name)(0.5) for name in COLOURS),
        layers.RandomTranslation(0.1, 0.2),
        layers.RandomFlip(),
        shape=(4, 5, 3),
    )


def volumes() -> mr.Model:
    """Return a model that pads, crops and enlarges volumes."""
    return chain(
        layers.ZeroPadding3D((1, 0, (0, 2))),
        layers.UpSampling3D((2, 1, 2)),
        layers.Cropping3D(1),
        layers.SpatialDropout3D(0.5, "channels_first"),
        shape=(2, 3, 2, 4),
    )


def convolved(rank: int, *shape: int | None) -> mr.Model:
    """Return a model with all layers that have windows along a number of axes."""

    def layer(name: str, *args: Any, **options: Any) -> Any:
        return getattr(layers, name.format(rank))(*args, **options)

    filters = [
        layer("Conv{}D", 4, 3, padding="same", activation="relu", groups=2),
        layer("Conv{}DTranspose", 2, 3, strides=2, padding="same"),
    ]
    if rank < 3:
        filters += [
            layer("DepthwiseConv{}D", 2, depth_multiplier=2, dilation_rate=2),
            layer("SeparableConv{}D", 3, 2, strides=2),
        ]
    pools = [layer("MaxPooling{}D", 2, 1), layer("AveragePooling{}D", 2, 1, "same")]
    return chain(*filters, *pools, shape=shape)


class Two(mr.Model):
    """A model that takes two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.built = True

    def call(self, one: Any, other: Any) -> Any:
        return one + other


NOISES = ("Dropout", "GaussianDropout", "GaussianNoise", "AlphaDropout", "SpatialDropout1D")
SEQUENCES = ("ZeroPadding1D", "Cropping1D", "UpSampling1D")
IMAGES = ("ZeroPadding2D", "Cropping2D", "UpSampling2D", "SpatialDropout2D")
COLOURS = ("RandomBrightness", "RandomContrast", "RandomRotation", "RandomZoom")
PICTURES = ("Resizing", "CenterCrop", "RandomTranslation", "RandomFlip", *COLOURS)
VOLUMES = ("ZeroPadding3D", "Cropping3D", "UpSampling3D", "SpatialDropout3D")
CONVOLUTIONS = ("Conv{}D", "Conv{}DTranspose", "MaxPooling{}D", "AveragePooling{}D")
CONVOLUTIONS += ("DepthwiseConv{}D", "SeparableConv{}D")
# No activations, or those with another width or settings that a name does not give.
_OTHERS = {"Activation", "deserialize", "get", "serialize", "glu", "threshold"}
MERGES = ("Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract")
MODELS: dict[str, Callable[[], mr.Model]] = {
    "Activation": lambda: chain(*map(layers.Activation, sorted({*activations.__all__} - _OTHERS))),
    "ActivityRegularization": lambda: chain(layers.ActivityRegularization(0.1)),
    "AdditiveAttention": lambda: pair(layers.AdditiveAttention(), steps=None),
    "Attention": lambda: pair(
        lambda given: layers.Attention(use_scale=True)(given, use_causal_mask=True), steps=None
    ),
    "BatchNormalization": lambda: chain(
        layers.BatchNormalization(), layers.BatchNormalization(axis=1)
    ),
    "CategoryEncoding": lambda: pair(Encoded()),
    "Dense": lambda: chain(layers.Dense(3, "relu"), layers.Dense(2, use_bias=False)),
    "Discretization": lambda: chain(
        layers.Discretization([-1.0, 0.0, 1.0], output_mode="multi_hot"), shape=(6,)
    ),
    "Dot": lambda: pair(layers.Dot(axes=2, normalize=True)),
    "ELU": lambda: chain(layers.ELU(0.5)),
    "EinsumDense": lambda: chain(
        layers.EinsumDense("abc,cd->abd", output_shape=(None, 3), bias_axes="d"), shape=(None, 6)
    ),
    "Embedding": lambda: chain(layers.Embedding(5, 3), shape=(None,), dtype="int32"),
    "Flatten": lambda: chain(layers.Flatten()),
    "GlobalAveragePooling1D": lambda: chain(layers.GlobalAveragePooling1D(), shape=(None, 6)),
    "GlobalMaxPooling1D": lambda: chain(layers.GlobalMaxPooling1D(keepdims=True)),
    "GlobalAveragePooling2D": lambda: chain(layers.GlobalAveragePooling2D(), shape=(None, None, 3)),
    "GlobalAveragePooling3D": lambda: chain(
        layers.GlobalAveragePooling3D("channels_first"), shape=(3, 2, 4, 2)
    ),
    "GlobalMaxPooling2D": lambda: chain(
        layers.GlobalMaxPooling2D("channels_first", True), shape=(3, None, 4)
    ),
    "GlobalMaxPooling3D": lambda: chain(layers.GlobalMaxPooling3D(), shape=(2, 3, 4, 2)),
    **dict.fromkeys(SEQUENCES, lambda: chain(*(getattr(layers, name)() for name in SEQUENCES))),
    **dict.fromkeys(IMAGES, images),
    **dict.fromkeys(PICTURES, pictures),
    **dict.fromkeys(VOLUMES, volumes),
    **{
        name.format(rank): model
        for rank, model in {
            1: lambda: convolved(1, 7, 4),
            2: lambda: convolved(2, None, 6, 4),
            3: lambda: convolved(3, 4, 3, 4, 4),
        }.items()
        for name in CONVOLUTIONS[: 4 if rank == 3 else None]
    },
    "channels first": lambda: chain(
        layers.Conv2D(4, 2, 2, data_format="channels_first"),
        layers.AveragePooling2D(2, 1, "same", data_format="channels_first"),
        shape=(3, 8, 8),
    ),
    "GroupNormalization": lambda: chain(layers.GroupNormalization(2)),
    "GroupedQueryAttention": lambda: pair(
        lambda given: layers.GroupQueryAttention(4, 4, 2)(*given), steps=None
    ),
    "Identity": lambda: chain(layers.Identity()),
    "InputLayer": lambda: mr.Sequential([layers.InputLayer((4, 6)), layers.Dense(2)]),
    "Lambda": lambda: chain(layers.Lambda(lambda x: x[:, ::-2, 1:] / len(x))),
    "LayerNormalization": lambda: chain(layers.LayerNormalization(axis=[1, 2])),
    "LeakyReLU": lambda: chain(layers.LeakyReLU()),
    "Masking": lambda: chain(layers.Masking(), layers.GlobalAveragePooling1D()),
    "MultiHeadAttention": attending,
    "Normalization": lambda: chain(layers.Normalization(mean=1.0, variance=2.0)),
    "PReLU": lambda: chain(layers.PReLU(shared_axes=[1])),
    "Pipeline": lambda: chain(layers.Pipeline([layers.Dense(3), layers.Softmax()])),
    "Permute": lambda: chain(layers.Permute((2, 1)), shape=(None, 6)),
    "RMSNormalization": lambda: chain(layers.RMSNormalization()),
    "ReLU": lambda: chain(layers.ReLU(2.0, 0.1, 0.2)),
    "RepeatVector": lambda: chain(layers.RepeatVector(3), shape=(6,)),
    "Rescaling": lambda: chain(layers.Rescaling(0.5, 0.1)),
    "Reshape": lambda: chain(layers.Reshape((-1, 3)), layers.Reshape((6, -1)), shape=(None, 6)),
    "ReversibleEmbedding": reversed_,
    "Softmax": lambda: chain(layers.Softmax(axis=1)),
    "SpectralNormalization": lambda: chain(layers.SpectralNormalization(layers.Dense(3))),
    "TimeDistributed": lambda: chain(
        layers.Masking(), layers.TimeDistributed(layers.Dense(3, "relu"))
    ),
    "UnitNormalization": lambda: chain(layers.UnitNormalization()),
    **dict.fromkeys(
        MERGES, lambda: pair(lambda given: [getattr(layers, name)()(given) for name in MERGES])
    ),
    **dict.fromkeys(NOISES, lambda: chain(*(getattr(layers, name)(0.5) for name in NOISES))),
    "bilinear": lambda: chain(
        layers.UpSampling2D((2, 3), interpolation="bilinear"), shape=(3, 2, 2)
    ),
    "bfloat16": lambda: chain(layers.Dense(3, dtype="mixed_bfloat16"), layers.Softmax()),
    "float16": lambda: chain(layers.Lambda(lambda x: mr.exp(mr.cast(x, mr.float16)) - 0.5)),
    "float64": lambda: chain(layers.Dense(3, "gelu", dtype="float64"), dtype="float64"),
    "of a user": Both,
    "slopes": lambda: chain(layers.Lambda(slopes)),
    "waves": lambda: chain(layers.Lambda(located), shape=(None, 6)),
    "one length": lambda: pair(layers.Add(), steps=None),
    "lengths of their own": lambda: pair(layers.Dot(axes=2), steps=None),
}
_KINDS = [getattr(layers, name) for name in layers.__all__]
# Layers that need no arguments, and that no row is written for.
MODELS |= {
    kind.__name__: lambda kind=kind: chain(kind())  # type: ignore[misc]
    for kind in _KINDS
    if isinstance(kind, type) and issubclass(kind, layers.Layer)
    if kind.__name__ not in {"Layer", "Wrapper", *MODELS}
}


class Encoded(layers.Layer):
    """Encodes categories in each way."""

    def __init__(self) -> None:
        super().__init__()
        modes = ("multi_hot", "count", "one_hot")
        self.parts = [layers.CategoryEncoding(9, output_mode=mode) for mode in modes]

    def call(self, inputs: Any) -> Any:
        first, last = (mr.cast(mr.abs(each[:, 0]), mr.int32) for each in inputs)
        return [part(first) for part in self.parts[:2]] + [self.parts[2](last[:, :1])]


def exported(model: mr.Model, path: Path, **options: Any) -> Any:
    """Return an evaluator of a model's file."""
    reference = pytest.importorskip("onnx.reference")
    model.export(path, verbose=False, **options)
    return reference.ReferenceEvaluator(str(path))


def drawn(dtype: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return an input."""
    if np.dtype(dtype).kind == "i":
        return RNG.integers(0, 5, shape).astype(dtype)
    return np.asarray(RNG.normal(size=shape) * 2, dtype)


def compare(model: mr.Model, session: Any, feeds: dict[str, np.ndarray[Any, Any]]) -> None:
    """Compare a model's outputs for inputs by name with those of its file."""
    given = [feeds[name] for name in session.input_names]
    outputs = mr.nest.flatten(model(given if len(given) > 1 else given[0], training=False))
    with np.errstate(all="ignore"):
        found = session.run(None, feeds)
    for one, other in zip(outputs, found, strict=True):
        assert (one.numpy().dtype, one.numpy().shape) == (other.dtype, other.shape)
        # Of bfloat16 NumPy knows no tolerance.
        expected, value = (np.asarray(each, np.float64) for each in (one.numpy(), other))
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.behaviour("exports")
@pytest.mark.slow
@pytest.mark.parametrize("name", {make: name for name, make in MODELS.items()}.values())
def test_every_layer(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    if not model.built:
        model(np.ones((2, 3, 6), np.float32))
    for variable in model.weights:
        if variable.dtype.kind == "f":
            variable.assign(RNG.uniform(0.2, 1.5, variable.shape).astype(variable.dtype))
    signature = None
    if not hasattr(model, "inputs"):
        signature = [mr.TensorSpec((None, None, 6), mr.float32, name="steps")]
    session = exported(model, tmp_path / "m.onnx", input_signature=signature)
    for count in (1, 5):
        feeds = {}
        for info, dtype in zip(session.proto_.graph.input, _dtypes(model), strict=True):
            dims = info.type.tensor_type.shape.dim
            sizes = [each.dim_value or 4 + len(each.dim_param) for each in dims]
            feeds[info.name] = drawn(dtype, (count, *sizes[1:]))
        compare(model, session, feeds)


def _dtypes(model: mr.Model) -> list[Any]:
    return [each._dtype for each in getattr(model, "inputs", [])] or [np.float32]


def shared() -> mr.Model:
    """Return a model with a layer that is called twice, two inputs and three outputs."""
    left, right = layers.Input((3,), name="left"), layers.Input((3,), name="right")
    dense = layers.Dense(3, name="dense")
    first, second = dense(left), dense(right)
    return mr.Model({"a": left, "b": right}, [first, second, mr.tanh(first + second), left])


@pytest.mark.slow
def test_names_of_inputs_outputs_and_weights(tmp_path: Path) -> None:
    model = shared()
    session = exported(model, tmp_path / "m.onnx")
    assert session.input_names == ["a", "b"]
    assert session.output_names[:2] == ["dense", "dense_1"]
    assert len({*session.input_names, *session.output_names}) == 6
    graph = session.proto_.graph
    assert {"dense/kernel", "dense/bias"} <= {each.name for each in graph.initializer}
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    feeds = {name: drawn(np.float32, (7, 3)) for name in "ab"}
    for one, other in zip(model(feeds), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_replicas_write_what_one_does(
    tmp_path: Path, simulated_gpus: Callable[[int], None]
) -> None:
    simulated_gpus(3)
    alone = chain(layers.Dense(3), layers.BatchNormalization())
    with mr.MirroredStrategy().scope():
        mirrored = chain(layers.Dense(3), layers.BatchNormalization())
    mirrored.set_weights(alone.get_weights())
    for name, model in {"one": alone, "three": mirrored}.items():
        compare(
            model,
            exported(model, tmp_path / name, format="onnx"),
            {"x": drawn("float32", (2, 4, 6))},
        )


@pytest.mark.behaviour("exports")
@pytest.mark.slow
def test_what_is_refused_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"as it was")
    with pytest.raises(NotImplementedError, match=r"'Lgamma'.*'gamma'"):
        exported(chain(layers.Lambda(mr.math.lgamma, name="gamma")), path)
    assert path.read_bytes() == b"as it was"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_what_no_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    monkeypatch.setattr("mirrored.export.onnx_file._LARGEST", 83)
    with pytest.raises(NotImplementedError, match=r"at most 2 GiB.* of 84 bytes"):
        chain(layers.Dense(3), shape=(6,)).export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.behaviour("exports")
@pytest.mark.parametrize(
    ("model", "path", "options", "error", "text"),
    [
        (
            chain,
            "m",
            {},
            NotImplementedError,
            "Pass format='onnx', or a file name that ends in '.onnx'",
        ),
        (chain, "m.onnx", {"format": "litert"}, NotImplementedError, "only export format"),
        (chain, "m.onnx", {"format": "pb"}, ValueError, "Unrecognized format=pb"),
        (chain, "m.onnx", {"opset_version": 9}, ValueError, "opset 18"),
        (chain, "m.onnx", {"strict": True}, TypeError, "unexpected keyword argument 'strict'"),
        (chain, 3, {"format": "onnx"}, TypeError, "path"),
        (Both, "m.onnx", {}, ValueError, "not yet been built"),
        (Two, "m.onnx", {}, ValueError, "one spec per argument"),
        (lambda: chain(layers.Identity()), "m.onnx", {"input_signature": [3]}, TypeError, "3"),
    ],
)
def test_wrong_arguments(
    model: Any, path: Any, options: Any, error: type[Exception], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=text):
        model().export(tmp_path / path if isinstance(path, str) else path, **options)
    assert not list(tmp_path.iterdir())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match="extra `onnx`"):
        chain(layers.Dense(1)).export(tmp_path / "m.onnx")
