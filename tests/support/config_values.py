"""Objects of all kinds with arguments of all kinds, for any `keras`: what they are written as.

What config_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0. Where these are installed,
`python tests/support/config_values.py` writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")

# Calls by the modules of Keras that they are of. What a layer is built for stands behind a `|`.
LAYERS = """
Dense(3, name="d") | (None, 4)
Dense(3)
Dense(3, "relu", False, name="d", dtype="float64", trainable=False)
Dense(2, "softmax", kernel_initializer="he_normal", bias_initializer="ones", name="d") | (2, 3, 4)
Dense(2, kernel_regularizer="l2", bias_regularizer="l1", activity_regularizer="l2", name="d")
Dense(2, kernel_constraint="max_norm", bias_constraint="non_neg", dtype="mixed_bfloat16", name="d")
Dense(2, kernel_initializer=keras.initializers.GlorotNormal(seed=3), name="d")
Activation("tanh", name="a") | (None, 3)
Activation("linear", activity_regularizer=keras.regularizers.L1L2(0.1, 0.2), name="a")
ReLU(name="a") | (None, 3)
ReLU(6.0, 0.1, 0.5, name="a")
LeakyReLU(name="a")
LeakyReLU(0.2, name="a") | (None, 3)
ELU(name="a") | (None, 3)
ELU(0.5, name="a")
PReLU(name="a") | (None, 3)
PReLU("ones", "l2", "non_neg", [1, 2], name="a") | (None, 4, 5, 3)
Softmax(name="a") | (None, 3)
Softmax([1, 2], name="a")
Dropout(0.5, name="n") | (None, 3)
Dropout(0.25, seed=7, name="n")
GaussianNoise(0.5, name="n")
GaussianNoise(0.25, seed=7, name="n") | (None, 3)
GaussianDropout(0.5, name="n")
GaussianDropout(0.25, seed=7, name="n")
AlphaDropout(0.5, name="n")
AlphaDropout(0.25, seed=7, name="n")
SpatialDropout1D(0.5, name="n")
SpatialDropout1D(0.25, seed=7, name="n", dtype="float64")
ActivityRegularization(name="r") | (None, 3)
ActivityRegularization(0.1, 0.2, name="r")
BatchNormalization(name="b") | (None, 3)
BatchNormalization(1, 0.9, 0.01, False, False, synchronized=True, name="b") | (None, 3, 4)
BatchNormalization(renorm=True, renorm_momentum=0.5, name="b") | (None, 3)
BatchNormalization(renorm=True, renorm_clipping={"rmax": 2.0}, name="b")
BatchNormalization(beta_initializer="ones", gamma_regularizer="l2", beta_constraint="non_neg")
LayerNormalization(name="b") | (None, 3)
LayerNormalization([1, 2], 0.1, False, name="b") | (None, 4, 3)
LayerNormalization(gamma_initializer="he_normal", beta_regularizer="l1", name="b")
RMSNormalization(name="b") | (None, 3)
RMSNormalization([1, 2], 0.1, name="b")
UnitNormalization(name="b") | (None, 3)
UnitNormalization([1, 2], name="b")
GroupNormalization(name="b")
GroupNormalization(2, 1, 0.1, False, False, name="b") | (None, 4, 3)
Embedding(5, 3, name="e") | (None, 2)
Embedding(5, 3, mask_zero=True, name="e")
Masking(name="m") | (None, 2, 3)
Masking(-1.0, name="m")
Embedding(5, 3, "ones", "l2", "non_neg", activity_regularizer="l1", name="e")
Flatten(name="f") | (None, 3, 4)
Flatten("channels_first", name="f")
Reshape((2, -1), name="f") | (None, 6)
Permute((2, 1), name="f") | (None, 3, 4)
RepeatVector(3, name="f") | (None, 4)
Resizing(3, 2, name="i") | (None, 4, 4, 3)
Resizing(3, 2, "nearest", True, fill_value=2.0, data_format="channels_first", name="i")
CenterCrop(3, 2, name="i") | (None, 4, 4, 3)
RandomFlip(name="i") | (None, 4, 4, 3)
RandomFlip("vertical", 7, "channels_first", name="i", dtype="float64")
RandomTranslation(0.1, (-0.2, 0.3), name="i") | (None, 4, 4, 3)
RandomTranslation([0.1, 0.2], 0.3, "wrap", "nearest", 7, 2.0, "channels_first", name="i")
RandomRotation(0.1, name="i") | (None, 4, 4, 3)
RandomRotation((-0.2, 0.3), "constant", "nearest", 7, 2.0, "channels_first", name="i")
RandomZoom(0.1, name="i") | (None, 4, 4, 3)
RandomZoom((0.1, 0.2), (-0.2, 0.3), "nearest", "nearest", 7, 2.0, "channels_first", name="i")
RandomContrast(0.1, name="i") | (None, 4, 4, 3)
RandomContrast((0.2, 0.3), (0.0, 1.0), 7, data_format="channels_first", name="i")
RandomBrightness(0.1, name="i") | (None, 4, 4, 3)
RandomBrightness((-0.2, 0.3), (1.0, 0.0), 7, data_format="channels_first", name="i")
Rescaling(0.5, name="s") | (None, 4)
Rescaling([1.0, 2.0], 0.5, name="s")
Identity(name="i") | (None, 4)
GlobalAveragePooling1D(name="p") | (None, 4, 3)
GlobalAveragePooling1D("channels_first", True, name="p")
Conv1D(4, 3, name="c") | (None, 6, 2)
Conv1D(4, 3, padding="causal", dilation_rate=2, groups=2, name="c")
Conv2D(4, (3, 2), 2, "same", activation="relu", use_bias=False, name="c") | (None, 6, 6, 2)
Conv2D(4, 1, data_format="channels_first", kernel_regularizer="l2", activity_regularizer="l1")
Conv3D(2, 2, name="c") | (None, 4, 4, 4, 1)
Conv1DTranspose(2, 3, 2, "same", 1, name="c")
Conv2DTranspose(2, 3, (2, 1), name="c") | (None, 4, 4, 3)
Conv3DTranspose(2, 2, bias_constraint="non_neg", kernel_initializer="ones", name="c")
DepthwiseConv1D(3, depth_multiplier=2, name="c")
DepthwiseConv2D(3, 2, "same", depthwise_regularizer="l2", name="c") | (None, 6, 6, 2)
SeparableConv1D(4, 3, depth_multiplier=2, name="c") | (None, 6, 2)
SeparableConv2D(4, (2, 3), pointwise_constraint="non_neg", activation="tanh", name="c")
MaxPooling1D(name="p") | (None, 6, 2)
MaxPooling2D(3, 2, "same", name="p")
MaxPooling3D((1, 2, 3), data_format="channels_first", name="p")
AveragePooling1D(2, name="p")
AveragePooling2D((2, 3), 1, name="p") | (None, 6, 6, 2)
AveragePooling3D(2, padding="same", name="p")
GlobalMaxPooling1D(name="p")
GlobalMaxPooling1D(keepdims=True, name="p") | (None, 4, 3)
GlobalAveragePooling2D(name="p") | (None, 4, 4, 3)
GlobalMaxPooling2D("channels_first", True, name="p")
GlobalAveragePooling3D("channels_first", name="p")
GlobalMaxPooling3D(keepdims=True, name="p") | (None, 4, 4, 4, 3)
ZeroPadding1D(name="z") | (None, 4, 3)
ZeroPadding1D((1, 2), "channels_first", name="z")
ZeroPadding2D(name="z") | (None, 4, 4, 3)
ZeroPadding2D(((1, 2), 3), "channels_first", name="z")
ZeroPadding3D(2, name="z") | (None, 4, 4, 4, 3)
Cropping1D(name="c") | (None, 4, 3)
Cropping2D(name="c") | (None, 4, 4, 3)
Cropping2D((1, (0, 2)), "channels_first", name="c")
Cropping3D((1, 2, 3), name="c")
UpSampling1D(3, name="u") | (None, 4, 3)
UpSampling2D(name="u") | (None, 4, 4, 3)
UpSampling2D((1, 2), "channels_first", "bilinear", name="u")
UpSampling3D(3, name="u") | (None, 4, 4, 4, 3)
SpatialDropout2D(0.5, name="n") | (None, 4, 4, 3)
SpatialDropout2D(0.25, "channels_first", 7, name="n", dtype="float64")
SpatialDropout3D(0.25, "channels_first", seed=7, name="n")
Add(name="m") | [(None, 3), (None, 3)]
Subtract(name="m")
Multiply(name="m", dtype="float64")
Average(name="m")
Maximum(name="m")
Minimum(name="m")
Concatenate(name="m") | [(None, 3), (None, 4)]
Concatenate(1, name="m")
Dot(1, name="m") | [(None, 3), (None, 3)]
Dot([1, 2], True, name="m")
InputLayer((3,), name="x")
InputLayer((3, None), 5, "int32", name="x")
InputLayer(batch_shape=(None, 3), name="x")
Lambda(keras.activations.relu, name="l") | (None, 3)
Lambda(keras.activations.relu, mask=keras.activations.relu, name="l")
Lambda(keras.activations.relu, (3,), arguments={"negative_slope": 0.5}, name="l")
EinsumDense("abc,cd->abd", (None, 5), "relu", "d", name="e") | (None, 3, 4)
EinsumDense("...c,cd->...d", 5, kernel_initializer="ones", activity_regularizer="l2", name="e")
Normalization(name="n") | (None, 3)
Normalization(1, [1.0, 2.0], [3.0, 4.0], True, name="n") | (None, 2, 3)
Normalization(None, np.array(1.0), np.array(4.0), name="n")
CategoryEncoding(5, name="c") | (None, 3)
CategoryEncoding(5, "one_hot", dtype="int64", name="c")
Discretization([0.0, 1.0], name="d") | (None, 3)
Discretization(num_bins=4, epsilon=0.1, output_mode="count", dtype="float64", name="d")
MultiHeadAttention(2, 3, name="m")
MultiHeadAttention(2, 3, 4, 0.5, False, 6, -2, 5, activity_regularizer="l1", seed=3, name="m")
MultiHeadAttention(2, 3, use_gate=True, bias_initializer="ones", kernel_constraint="non_neg")
GroupQueryAttention(3, 4, 2, name="g")
GroupQueryAttention(3, 4, 2, 0.5, False, 4, use_gate=True, bias_regularizer="l2", seed=3, name="g")
GroupQueryAttention(3, 4, 2, activity_regularizer="l2", name="g")
ReversibleEmbedding(5, 3, name="e") | (None, 2)
ReversibleEmbedding(5, 3, False, "ones", mask_zero=True, logit_soft_cap=2.0, name="e")
SpectralNormalization(keras.layers.Dense(2, name="d"), 3, name="s") | (None, 3)
TimeDistributed(keras.layers.Dense(2, name="d"), name="t") | (None, 4, 3)
Pipeline([keras.layers.Rescaling(0.5, name="s"), keras.layers.ReLU(name="r")], name="p")
Attention(name="a") | [(None, 3, 4), (None, 5, 4)]
Attention(True, "concat", 0.5, 3, name="a")
AdditiveAttention(name="a") | [(None, 3, 4), (None, 5, 4)]
AdditiveAttention(False, 0.5, seed=3, dtype="float64", name="a")
"""
INITIALIZERS = """
Constant(2.0)
Constant([1.0, 2.0])
Constant(np.array([1.0, 2.0]))
Zeros()
Ones()
Identity()
Identity(0.5)
Orthogonal()
Orthogonal(0.5, seed=3)
RandomNormal()
RandomNormal(0.5, 0.25, 3)
RandomUniform()
RandomUniform(0.25, 0.5, 3)
TruncatedNormal()
TruncatedNormal(0.5, 0.25, 3)
VarianceScaling()
VarianceScaling(2.0, "fan_out", "uniform", 3)
VarianceScaling(2.0, "fan_avg", "normal")
GlorotNormal()
GlorotUniform(3)
HeNormal()
HeUniform(3)
LecunNormal()
LecunUniform(3)
GlorotUniform(keras.random.SeedGenerator(3, name="drawn"))
"""
REGULARIZERS = """
L1()
L1(0.5)
L2()
L2(0.5)
L1L2()
L1L2(0.5, 0.25)
OrthogonalRegularizer()
OrthogonalRegularizer(0.5, "columns")
"""
CONSTRAINTS = """
MaxNorm()
MaxNorm(3, 1)
MinMaxNorm()
MinMaxNorm(0.5, 2.0, 0.5, 1)
NonNeg()
UnitNorm()
UnitNorm([0, 1])
"""
OPTIMIZERS = """
SGD()
SGD(0.1, 0.9, True, weight_decay=0.1, clipnorm=1.0, name="mine")
SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9))
SGD(0.1, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=3, global_clipnorm=2.0)
Adam()
Adam(0.1, 0.8, 0.9, 1e-5, True, clipvalue=0.5, loss_scale_factor=2.0)
Adam(gradient_accumulation_steps=4)
AdamW()
AdamW(0.1, 0.2)
Adadelta(0.1, 0.9, 1e-5)
Adafactor()
Adafactor(0.1, -0.7, 1e-20, 1e-2, 2.0, False)
Adagrad(0.1, 0.2, 1e-5)
Adamax(0.1, 0.8, 0.9, 1e-5)
Ftrl(0.1, -0.4, 0.2, 0.3, 0.4, 0.5, 0.6)
Lamb(0.1, 0.8, 0.9, 1e-5)
Lion(0.1, 0.8, 0.9)
Nadam(0.1, 0.8, 0.9, 1e-5)
RMSprop()
RMSprop(0.1, 0.8, 0.7, 1e-5, True)
Muon(0.1, 0.8)
Muon(exclude_layers=["a"], ns_steps=3, rms_rate=None)
ScheduleFreeAdamW(0.1, 0.8, 0.9, 1e-5, 3)
LossScaleOptimizer(keras.optimizers.SGD(0.1), 8.0, 5)
MultiOptimizer(keras.optimizers.OptimizerMap(keras.optimizers.SGD()), 2.0)
OptimizerMap(keras.optimizers.SGD(), {"a": keras.optimizers.Lion()})
schedules.ExponentialDecay(0.1, 10, 0.9, True)
schedules.InverseTimeDecay(0.1, 10, 0.9)
schedules.PolynomialDecay(0.1, 10, 0.01, 2.0, True, name="mine")
schedules.PiecewiseConstantDecay([1, 2], [0.3, 0.2, 0.1])
schedules.CosineDecay(0.1, 10, 0.2, warmup_target=0.5, warmup_steps=3)
schedules.CosineDecayRestarts(0.1, 10, 3.0, 0.5, 0.1)
"""
LOSSES = """
MeanSquaredError()
MeanSquaredError("sum", "mine")
MeanSquaredError(dtype="float64")
MeanAbsoluteError()
MeanAbsolutePercentageError()
MeanSquaredLogarithmicError("none")
CosineSimilarity()
CosineSimilarity(1)
Huber()
Huber(2.0)
LogCosh()
Poisson()
KLDivergence()
Hinge()
SquaredHinge()
CategoricalHinge()
BinaryCrossentropy()
BinaryCrossentropy(True, 0.1, reduction="mean_with_sample_weight")
CategoricalCrossentropy(True, 0.1, 1)
SparseCategoricalCrossentropy()
SparseCategoricalCrossentropy(True, 3)
SparseCategoricalCrossentropy(axis=1)
BinaryFocalCrossentropy(True, 0.3, 3.0, True, 0.1)
CategoricalFocalCrossentropy(0.3, 3.0, True, 0.1)
CategoricalGeneralizedCrossEntropy(0.3)
Dice()
Dice(axis=(1, 2))
Tversky(0.3, 0.6)
Circle(0.5, 0.3, False)
"""
METRICS = """
Accuracy()
BinaryAccuracy()
BinaryAccuracy("mine", "float64", 0.3)
CategoricalAccuracy()
SparseCategoricalAccuracy()
TopKCategoricalAccuracy(3)
SparseTopKCategoricalAccuracy(3)
Mean()
Mean("mine", "float64")
Sum()
MeanSquaredError()
RootMeanSquaredError()
MeanAbsoluteError()
MeanAbsolutePercentageError()
MeanSquaredLogarithmicError()
CosineSimilarity()
CosineSimilarity(axis=1)
LogCoshError()
Poisson()
KLDivergence()
Hinge()
SquaredHinge()
CategoricalHinge()
BinaryCrossentropy(from_logits=True, label_smoothing=0.1)
CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, axis=1)
SparseCategoricalCrossentropy(from_logits=True, ignore_class=3)
TruePositives()
TrueNegatives(0.3)
FalsePositives([0.3, 0.6])
FalseNegatives()
Precision()
Precision([0.3, 0.6], class_id=1)
Recall(top_k=3)
SensitivityAtSpecificity(0.5)
SpecificityAtSensitivity(0.5, 10, 1)
PrecisionAtRecall(0.5)
RecallAtPrecision(0.5, 10)
AUC()
AUC(10, "PR", "minoring", from_logits=True)
AUC(thresholds=[0.3, 0.6], multi_label=True, num_labels=2, label_weights=[1.0, 2.0])
FBetaScore()
FBetaScore("micro", 2.0, 0.3)
F1Score("macro")
IoU(3, [0, 1])
BinaryIoU()
BinaryIoU([1], 0.3)
MeanIoU(3, ignore_class=1)
OneHotIoU(3, [0, 2])
OneHotMeanIoU(3, sparse_y_pred=True)
PearsonCorrelation()
ConcordanceCorrelation(axis=1)
R2Score()
R2Score("variance_weighted_average", 2)
MeanMetricWrapper(keras.losses.mean_absolute_error, "mine")
MeanMetricWrapper(keras.losses.huber, delta=2.0)
"""
KINDS = {
    "layers": LAYERS,
    "initializers": INITIALIZERS,
    "regularizers": REGULARIZERS,
    "constraints": CONSTRAINTS,
    "optimizers": OPTIMIZERS,
    "losses": LOSSES,
    "metrics": METRICS,
}


def chain(keras: Any) -> Any:
    """Return a chain of layers, one of which trains always."""
    layers = keras.layers
    x = keras.Input((4,), name="x")
    y = layers.LayerNormalization(name="n")(layers.Dense(3, name="d")(x))
    return keras.Model(x, layers.Dropout(0.5, name="o")(y, training=True), name="chain")


def graph(keras: Any) -> Any:
    """Return a graph of two inputs by name, a shared layer, models inside, and operations."""
    layers = keras.layers
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    shared = layers.Dense(4, name="shared")
    inner = keras.Model(a, layers.Dense(4, name="in")(a), name="inner")
    listed = keras.Sequential([layers.Dense(2, name="first")], name="listed")
    joined = shared(a) + shared(b) * 2.0
    total = keras.ops.sum(joined, axis=1, keepdims=True)
    part = 2.0 - keras.ops.relu(joined[:, 1:3])
    outputs = [joined, inner(layers.Add(name="added")([a, b])), listed(b), total, part]
    return keras.Model({"a": a, "b": b}, outputs, name="graph")


def called(keras: Any) -> Any:
    """Return a model whose layers and models are called in all ways."""
    layers = keras.layers
    x, y = keras.Input((4,), name="x"), keras.Input((4,), dtype="int32", name="y")
    pair = keras.Model([x, y], layers.Concatenate(name="c")([x, x]), name="pair")
    a = keras.Input((4,), name="a")
    named = keras.Model({"a": a}, layers.Dropout(0.5, name="e")(a), name="named")
    outputs = [
        *(pair([x, y]), named({"a": x}), named({"a": x}, training=True)),
        *(layers.Dropout(0.5, name="d")(x), layers.Dropout(0.5, name="f")(y)),
        layers.BatchNormalization(name="b")(x, training=True),
        layers.Attention(name="t")([layers.Reshape((2, 2), name="r")(x)] * 2),
        layers.Dot(1, name="o")([x, x]),
    ]
    return keras.Model([x, y], outputs, name="called")


def structures(keras: Any) -> Any:
    """Return a model whose outputs are in a structure."""
    layers = keras.layers
    x = keras.Input((4,), name="x")
    y, z = layers.Dense(3, name="y")(x), layers.Dense(2, name="z")(x)
    return keras.Model([x], {"p": y, "q": (x * 1.0, [z])}, name="structures")


def again(keras: Any) -> Any:
    """Return one that shares a layer with another model, and calls it twice."""
    layers = keras.layers
    x = keras.Input((4,), name="x")
    same = layers.Dense(4, name="same")
    other = layers.Dense(4, name="other")
    keras.Model(x, same(x))
    return keras.Model(x, same(other(same(x))), name="again")


def listed(keras: Any) -> Any:
    """Return a list of layers that is not built."""
    return keras.Sequential([keras.layers.Dense(2, name="d")], name="listed")


def begun(keras: Any) -> Any:
    """Return one that begins with an input."""
    first = keras.Input((3,), name="x")
    return keras.Sequential([first, keras.layers.Dense(2, name="d")], name="begun")


def built(keras: Any) -> Any:
    """Return one that was built afterwards."""
    model = keras.Sequential([keras.layers.Dense(2, name="d")], name="built", trainable=False)
    model.build((None, 3))
    return model


def compiled(keras: Any) -> Any:
    """Return a model that is compiled with objects."""
    model = begun(keras)
    losses, metrics = keras.losses, keras.metrics
    rate = keras.optimizers.schedules.CosineDecay(0.1, 10)
    model.compile(
        keras.optimizers.Adam(rate, clipnorm=1.0),
        losses.Huber(name="h"),
        loss_weights=0.5,
        metrics=[metrics.Precision(0.3, name="p"), "mae", losses.mean_squared_error],
        weighted_metrics=[metrics.MeanSquaredError(name="w")],
        steps_per_execution=2,
    )
    return model


def compiled_by_names(keras: Any) -> Any:
    """Return a model of two outputs that is compiled with names, for each of them."""
    x = keras.Input((4,), name="x")
    y, z = keras.layers.Dense(3, "softmax", name="y")(x), keras.layers.Dense(2, name="z")(x)
    model = keras.Model(x, [y, z], name="named")
    model.compile(
        "adamw",
        {"y": "categorical_crossentropy", "z": "mse"},
        {"y": 0.5, "z": 2.0},
        {"y": ["accuracy"], "z": ["mae", "mse"]},
        run_eagerly=True,
    )
    return model


def masked(keras: Any) -> Any:
    """Return a model with masks."""
    layers = keras.layers
    x = keras.Input((4,), dtype="int32", name="x")
    y = layers.Embedding(5, 3, mask_zero=True, name="e")(x)
    y = layers.GlobalAveragePooling1D(name="p")(layers.Dropout(0.5, name="d")(y))
    return keras.Model(x, layers.Softmax(name="s")(y), name="masked")


def operations(keras: Any) -> Any:
    """Return a model of operations, by Python's operators and by functions."""
    ops = keras.ops
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    q = keras.Input((2, 3, 4), name="q")
    outputs = [
        *(
            x + y,
            x - 1.0,
            2.0 * x,
            x / y,
            x // 2.0,
            x % 3.0,
            x**2,
            -x,
            abs(y),
            x @ ops.ones((4, 2)),
        ),
        *(x > y, x >= 1.0, x < y, x <= 1.0, x[0], x[:, 1:], x[..., None], x[1:3, ::2]),
        *(ops.exp(x), ops.log1p(x), ops.sqrt(x), ops.rsqrt(x), ops.tanh(x), ops.sigmoid(x)),
        *(ops.softplus(x), ops.softmax(x), ops.log_softmax(x, axis=-1), ops.floor(x), ops.sign(x)),
        *(ops.mean(x, axis=1), ops.max(x, axis=-1, keepdims=True), ops.logsumexp(x, axis=1)),
        *(ops.concatenate([x, y], axis=1), ops.stack([x, y], axis=1), ops.transpose(x, (1, 0))),
        *(ops.reshape(x, (-1, 2)), ops.expand_dims(x, 1), ops.clip(x, 0.0, 1.0), ops.argmax(x, 1)),
        *(ops.where(x > 0.0, x, y), ops.maximum(x, y), ops.matmul(x, ops.transpose(y))),
        *(ops.not_equal(x, y), ops.logical_and(x > 0.0, y > 0.0), ops.zeros_like(x)),
        *(ops.stop_gradient(x), ops.dot_product_attention(q, q, value=q, is_causal=True)),
    ]
    return keras.Model([x, y, q], outputs, name="operations")


_GRAPHS = (chain, graph, called, structures, again, masked, operations)
_LISTS = (listed, begun, built, compiled, compiled_by_names)
MODELS = {each.__name__: each for each in (*_GRAPHS, *_LISTS)}
CASES = [
    *(f"{kind}.{line}" for kind, lines in KINDS.items() for line in lines.strip().splitlines()),
    *MODELS,
]


def made(keras: Any, case: str) -> Any:
    """Return the object of a case.

    Args:
        keras: The module.
        case: One of `CASES`.
    """
    if case in MODELS:
        return MODELS[case](keras)
    call, _, shape = case.partition(" | ")
    found = eval(f"keras.{call}", {"keras": keras, "np": np})
    if shape:
        found.build(eval(shape))
    return found


def plain(config: Any) -> Any:
    """Return a configuration as JSON has it."""
    return json.loads(json.dumps(config))


def main() -> None:
    """Write down what Keras writes."""
    import keras

    written = {}
    for case in CASES:
        keras.utils.clear_session()
        written[case] = plain(keras.utils.serialize_keras_object(made(keras, case)))
    lines = [f"{json.dumps(case)}: {json.dumps(config)}" for case, config in written.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
