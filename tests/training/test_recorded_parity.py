"""A recorded step computes the bits of the eager one, whatever a model is made of.

One table for each kind of part; each fails when a class is missing from it.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.layers import activations, regularizers
from mirrored.optim.hyperparameters import Settings

pytestmark = pytest.mark.usefixtures("one_blas_thread")

RNG = np.random.default_rng(0)
BATCH = 8
SIZE = 9  # The last batch has a single example, so most replicas have none.
X = RNG.normal(size=(SIZE, 2, 3)).astype(np.float32)
WEIGHTS = RNG.uniform(0, 2, SIZE)
LABELS = RNG.integers(0, 3, SIZE)
TARGETS: dict[str, np.ndarray] = {
    "values": RNG.normal(size=(SIZE, 3)),
    "labels": LABELS,
    "classes": np.eye(3, dtype=np.float32)[LABELS],
    "flags": RNG.integers(0, 2, (SIZE, 3)),
}
Parts = Callable[[], Any]


class Row(NamedTuple):
    """A model to train.

    Attributes:
        layers: Makes the layers before the last one, which has three outputs.
        last: The activation of that one.
        loss: Makes the loss.
        targets: What the targets are.
        optimizer: Makes the optimizer.
        metrics: Makes the metrics, weighted or not.
    """

    layers: Parts = lambda: [mr.layers.Flatten(), mr.layers.Dense(4, "tanh")]
    last: str | None = None
    loss: Parts = lambda: "mse"
    targets: str = "values"
    optimizer: Parts = lambda: mr.optim.SGD(0.1)
    metrics: Parts = list


def dense(*layers: Parts, **options: Any) -> Row:
    """Return a row with layers between two dense ones."""
    return Row(
        lambda: [
            mr.layers.Flatten(),
            mr.layers.Dense(4, **options),
            *(make() for make in layers),
            mr.layers.Dense(4),
        ]
    )


def _dense_of(activation: str) -> mr.layers.Layer:
    return mr.layers.Dense(4, activation)


class Custom(mr.layers.Layer):
    """Slices, joins, reads a variable twice, and treats training differently."""

    def build(self, input_shape: Any) -> None:
        self.scale = self.add_weight(shape=(4,), initializer="ones", name="scale")
        self.still = self.add_weight(shape=(4,), initializer="ones", trainable=False, name="still")

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        halves = [inputs[:, 2:] * self.scale[:2], inputs[:, :2] / (1.0 + abs(self.scale[2:]))]
        joined = mr.concat(halves, axis=1) + self.scale * self.still
        return mr.maximum(joined, 0.1 * joined) if training else joined


class Joined(mr.layers.Layer):
    """Puts its input's rows together in another order, and takes them apart."""

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        count = inputs.shape[0]
        twice = mr.concat([mr.tanh(inputs), mr.exp(-mr.square(inputs))], axis=0)
        return twice[:count] - twice[count:]


class Running(mr.layers.Layer):
    """Keeps a sum over all examples that it is trained on, and reads it once it is written."""

    def build(self, input_shape: Any) -> None:
        self.total = mr.Variable(
            np.zeros(4, np.float32), trainable=False, aggregation=mr.VariableAggregation.SUM
        )

    def call(self, inputs: mr.Tensor, training: bool = False) -> mr.Tensor:
        if training:
            self.total.assign_add(mr.reduce_sum(inputs, axis=0))
        return inputs - 0.01 * mr.tanh(self.total)


class Twice(mr.layers.Wrapper):
    """Calls a layer of as many outputs as inputs twice."""

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        outputs: mr.Tensor = self.layer(self.layer(inputs))
        return outputs


class Attends(mr.layers.Layer):
    """Calls every layer of attention, dropping weights."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = [
            mr.layers.MultiHeadAttention(2, 3, dropout=0.4, use_gate=True),
            mr.layers.GroupQueryAttention(2, 4, 2, sliding_window=2),
        ]
        self.plain = [
            mr.layers.Attention(True, dropout=0.4),
            mr.layers.AdditiveAttention(dropout=0.2, seed=3),
        ]

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        for layer in self.heads:
            inputs = mr.tanh(inputs + layer(inputs, inputs, use_causal_mask=True))
        for layer in self.plain:
            inputs = mr.tanh(inputs + layer([inputs, inputs[:, :1]]))
        return inputs


MERGES = ["Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract"]


class Merged(mr.layers.Layer):
    """Calls every layer of several inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.merges = [
            mr.layers.Dot(axes=1) if name == "Dot" else getattr(mr.layers, name)()
            for name in MERGES
        ]

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        pair = [inputs, mr.tanh(inputs)]
        return mr.concat([each(pair) for each in self.merges], axis=1)


_IMAGE_LAYERS = ["Cropping2D", "GlobalAveragePooling2D", "GlobalMaxPooling2D"]
_IMAGE_LAYERS += ["SpatialDropout2D", "UpSampling2D", "ZeroPadding2D"]
_VOLUME_LAYERS = [name.replace("2D", "3D") for name in _IMAGE_LAYERS]


def _images() -> list[Any]:
    return [
        mr.layers.Dense(8),
        mr.layers.Reshape((2, 2, -1)),
        mr.layers.ZeroPadding2D(((0, 1), 2)),
        mr.layers.UpSampling2D((2, 1)),
        mr.layers.Cropping2D((1, (0, 3))),
        mr.layers.SpatialDropout2D(0.4),
        mr.layers.BatchNormalization(),
        mr.layers.Lambda(mr.tanh),
        Pooled(mr.layers.GlobalAveragePooling2D(), mr.layers.GlobalMaxPooling2D()),
    ]


_PICTURE_LAYERS = ["CenterCrop", "RandomBrightness", "RandomContrast", "RandomFlip"]
_PICTURE_LAYERS += ["RandomRotation", "RandomTranslation", "RandomZoom", "Resizing"]


def _pictures() -> list[Any]:
    return [
        mr.layers.Dense(8),
        mr.layers.Reshape((2, 2, -1)),
        mr.layers.Resizing(4, 3),
        mr.layers.CenterCrop(3, 3),
        mr.layers.RandomFlip(),
        mr.layers.RandomTranslation(0.4, 0.4),
        mr.layers.RandomRotation(0.3, "wrap"),
        mr.layers.RandomZoom(0.4, fill_mode="constant"),
        mr.layers.RandomContrast(0.5, (-9.0, 9.0)),
        mr.layers.RandomBrightness(0.1, (-9.0, 9.0)),
        mr.layers.Lambda(mr.tanh),
        mr.layers.Flatten(),
    ]


def _volumes() -> list[Any]:
    return [
        mr.layers.Dense(8),
        mr.layers.Reshape((-1, 2, 1, 2)),
        mr.layers.ZeroPadding3D(1, "channels_first"),
        mr.layers.UpSampling3D((1, 2, 1), "channels_first"),
        mr.layers.Cropping3D((0, (1, 2), 1), "channels_first"),
        mr.layers.SpatialDropout3D(0.4, "channels_first"),
        mr.layers.BatchNormalization(axis=1),
        Pooled(
            mr.layers.GlobalAveragePooling3D("channels_first"),
            mr.layers.GlobalMaxPooling3D("channels_first"),
        ),
    ]


class Pooled(mr.layers.Layer):
    """What several layers return, next to each other."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self.layers = list(layers)

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        return mr.concat([layer(inputs) for layer in self.layers], axis=1)


def on_images(name: str, rank: int) -> Row:
    """Return a row with a layer of convolution or pooling, of so many spatial axes."""
    is_pooling = "Pool" in name
    options = {"pool_size": 2} if is_pooling else {"kernel_size": 2}
    if not is_pooling and not name.startswith("Depthwise"):
        options["filters"] = 3
    return dense(
        lambda: mr.layers.Dense(2 * 3**rank),
        lambda: mr.layers.Reshape((*(3,) * rank, 2)),
        lambda: getattr(mr.layers, name)(**options),
        lambda: mr.layers.Flatten(),
    )


IMAGE_KINDS = ("Conv", "MaxPooling", "AveragePooling")
LAYERS: dict[str, Row] = {
    **{
        f"{kind}{rank}D": on_images(f"{kind}{rank}D", rank)
        for kind in IMAGE_KINDS
        for rank in (1, 2, 3)
    },
    **{f"Conv{rank}DTranspose": on_images(f"Conv{rank}DTranspose", rank) for rank in (1, 2, 3)},
    **{
        f"{kind}Conv{rank}D": on_images(f"{kind}Conv{rank}D", rank)
        for kind in ("Depthwise", "Separable")
        for rank in (1, 2)
    },
    **dict.fromkeys(MERGES, dense(Merged)),
    "Activation": dense(lambda: mr.layers.Activation("relu")),
    "ActivityRegularization": dense(lambda: mr.layers.ActivityRegularization(0.1, 0.2)),
    "AlphaDropout": dense(lambda: mr.layers.AlphaDropout(0.4)),
    "BatchNormalization": dense(
        lambda: mr.layers.BatchNormalization(synchronized=True),
        lambda: mr.layers.BatchNormalization(momentum=0.5),
        lambda: mr.layers.BatchNormalization(renorm=True, renorm_clipping={"rmax": 1.5}),
    ),
    "Dense": dense(use_bias=False),
    "Dropout": dense(lambda: mr.layers.Dropout(0.4), lambda: mr.layers.Dropout(0.2, seed=3)),
    "ELU": dense(lambda: mr.layers.ELU(0.5)),
    "EinsumDense": Row(
        lambda: [
            mr.layers.EinsumDense("abc,cd->adb", (4, 2), "tanh", "d"),
            mr.layers.EinsumDense("...b,bc->...c", 3),
            mr.layers.Flatten(),
        ]
    ),
    "Pipeline": dense(
        lambda: mr.layers.Pipeline([mr.layers.GaussianNoise(0.2, seed=3), mr.layers.ReLU()])
    ),
    "ReversibleEmbedding": Row(
        lambda: [
            mr.layers.Lambda(mr.abs),
            mr.layers.ReversibleEmbedding(9, 2, tie_weights=False),
            mr.layers.Flatten(),
        ]
    ),
    "SpectralNormalization": dense(
        lambda: mr.layers.SpectralNormalization(mr.layers.Dense(4, "tanh"), 2)
    ),
    "TimeDistributed": dense(
        lambda: mr.layers.Reshape((-1, 2)),
        lambda: mr.layers.TimeDistributed(mr.Sequential([mr.layers.Dense(3, "tanh")])),
        lambda: mr.layers.Flatten(),
    ),
    "Wrapper": dense(lambda: Twice(mr.layers.Dense(4, "tanh"))),
    "Normalization": dense(lambda: mr.layers.Normalization(mean=0.5, variance=2.0)),
    **dict.fromkeys(
        ("CategoryEncoding", "Discretization"),
        Row(
            lambda: [
                mr.layers.Normalization(),
                mr.layers.Discretization([-1.0, 0.0, 1.0]),
                mr.layers.CategoryEncoding(4, "count"),
                mr.layers.Flatten(),
            ]
        ),
    ),
    "Embedding": Row(
        lambda: [
            mr.layers.Lambda(mr.abs),
            mr.layers.Embedding(99, 2),
            mr.layers.Flatten(),
        ]
    ),
    **dict.fromkeys(
        ("AdditiveAttention", "Attention", "MultiHeadAttention"),
        Row(lambda: [Attends(), mr.layers.Flatten()]),
    ),
    "Flatten": dense(),
    "GaussianDropout": dense(lambda: mr.layers.GaussianDropout(0.2)),
    "GaussianNoise": dense(lambda: mr.layers.GaussianNoise(0.2, seed=3)),
    "GlobalAveragePooling1D": dense(
        lambda: mr.layers.Reshape((2, 2)), lambda: mr.layers.GlobalAveragePooling1D()
    ),
    "GlobalMaxPooling1D": dense(
        lambda: mr.layers.Reshape((-1, 2)), lambda: mr.layers.GlobalMaxPooling1D()
    ),
    "Identity": dense(lambda: mr.layers.Identity()),
    "Lambda": dense(lambda: mr.layers.Lambda(mr.tanh)),
    "LeakyReLU": dense(lambda: mr.layers.LeakyReLU()),
    "Masking": dense(
        lambda: mr.layers.Reshape((-1, 2)),
        lambda: mr.layers.Masking(),
        lambda: mr.layers.GlobalAveragePooling1D(),
    ),
    "PReLU": dense(lambda: mr.layers.PReLU("ones")),
    "Permute": dense(
        lambda: mr.layers.Reshape((2, 2)),
        lambda: mr.layers.Permute((2, 1)),
        lambda: mr.layers.Flatten(),
    ),
    "ReLU": dense(lambda: mr.layers.ReLU(2.0, 0.1, 0.2)),
    "RepeatVector": dense(lambda: mr.layers.RepeatVector(2), lambda: mr.layers.Flatten()),
    "Rescaling": dense(lambda: mr.layers.Rescaling(0.5, 0.1)),
    "Reshape": dense(lambda: mr.layers.Reshape((2, 2)), lambda: mr.layers.Flatten()),
    "Softmax": dense(lambda: mr.layers.Softmax()),
    "SpatialDropout1D": dense(
        lambda: mr.layers.Reshape((2, 2)),
        lambda: mr.layers.SpatialDropout1D(0.4),
        lambda: mr.layers.Flatten(),
    ),
    **dict.fromkeys(_IMAGE_LAYERS, Row(_images)),
    **dict.fromkeys(_PICTURE_LAYERS, Row(_pictures)),
    **dict.fromkeys(_VOLUME_LAYERS, Row(_volumes)),
    **dict.fromkeys(
        ("Cropping1D", "UpSampling1D", "ZeroPadding1D"),
        dense(
            lambda: mr.layers.Reshape((2, 2)),
            lambda: mr.layers.ZeroPadding1D((0, 2)),
            lambda: mr.layers.UpSampling1D(2),
            lambda: mr.layers.Cropping1D(),
            lambda: mr.layers.Flatten(),
        ),
    ),
    "GroupNormalization": dense(lambda: mr.layers.GroupNormalization(2)),
    "InputLayer": Row(lambda: [mr.layers.InputLayer((2, 3)), mr.layers.Flatten()]),
    "LayerNormalization": dense(lambda: mr.layers.LayerNormalization()),
    "RMSNormalization": dense(lambda: mr.layers.RMSNormalization()),
    "UnitNormalization": dense(lambda: mr.layers.UnitNormalization()),
    "of a user": dense(Custom, Joined),
    "of a user, with a sum": dense(Running),
}


def _stack_of(names: Sequence[str]) -> Row:
    return Row(lambda: [mr.layers.Flatten(), *map(_dense_of, names)])


_SMOOTH, _KINKED = _stack_of(("sigmoid", "linear", "softmax")), _stack_of(("tanh", "relu"))
ACTIVATIONS = {
    "linear": _SMOOTH,
    "relu": _KINKED,
    "sigmoid": _SMOOTH,
    "softmax": _SMOOTH,
    "tanh": _KINKED,
    "of a user": dense(activation=lambda x: mr.sigmoid(x) * x),
}
# Not those that halve the width, or that have settings which a name does not give.
_NAMES = {*activations._REGISTRY} - {"glu", "threshold"}
_OTHERS = sorted(_NAMES - {*ACTIVATIONS})
_STACKS = [_stack_of(_OTHERS[i::4]) for i in range(4)]
ACTIVATIONS |= {name: _STACKS[i % 4] for i, name in enumerate(_OTHERS)}
REGULARIZERS: dict[str, Row] = {
    "L1": dense(kernel_regularizer=mr.layers.regularizers.L1(0.1)),
    "L2": dense(kernel_regularizer="l2", bias_regularizer="l2"),
    "OrthogonalRegularizer": dense(kernel_regularizer="orthogonal_regularizer"),
    "L1L2": dense(bias_regularizer=mr.layers.regularizers.L1L2(0.1, 0.2)),
    "of a user": dense(kernel_regularizer=lambda w: 0.1 * mr.reduce_sum(mr.sqrt(1.0 + w * w))),
}
ERRORS = [
    "CosineSimilarity",
    "LogCoshError",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "RootMeanSquaredError",
    "Hinge",
    "SquaredHinge",
]
HITS = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "KLDivergence",
    "TopKCategoricalAccuracy",
]


class FirstFlags(mr.metrics.BinaryIoU):
    """Weights of examples fit predictions that are one an example."""

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        super().update_state(y_true[:, 0], y_pred[:, 0], sample_weight)


_ROWS = {"num_classes": 3, "dtype": "float32"}
_DENSE = {"sparse_y_true": False, "sparse_y_pred": False, **_ROWS}
COUNTS: dict[str, dict[str, Any]] = {
    **{key: {} for key in ("TruePositives", "TrueNegatives", "FalsePositives", "FalseNegatives")},
    **{key: {} for key in ("Precision", "Recall", "AUC", "R2Score")},
    **{key: {} for key in ("PearsonCorrelation", "ConcordanceCorrelation")},
    "F1Score": {"average": "micro"},
    "FBetaScore": {"average": "macro"},
    "SensitivityAtSpecificity": {"specificity": 0.4},
    "SpecificityAtSensitivity": {"sensitivity": 0.4},
    "PrecisionAtRecall": {"recall": 0.4},
    "RecallAtPrecision": {"precision": 0.4},
    "IoU": {"target_class_ids": [1], **_DENSE},
    "MeanIoU": _DENSE,
    "OneHotIoU": {"target_class_ids": [1], **_ROWS},
    "OneHotMeanIoU": _ROWS,
}
METRICS: dict[str, Row] = {
    "Accuracy": Row(metrics=lambda: [mr.metrics.Accuracy()], targets="flags"),
    "BinaryAccuracy": Row(
        last="sigmoid",
        metrics=lambda: ["accuracy", "BinaryAccuracy"],
        loss=lambda: "bce",
        targets="flags",
    ),
    "CategoricalAccuracy": Row(
        last="softmax",
        metrics=lambda: ["categorical_accuracy", "accuracy"],
        loss=lambda: "categorical_crossentropy",
        targets="classes",
    ),
    "MeanSquaredError": Row(metrics=lambda: ["mse", lambda y, p: mr.reduce_sum(y * p, axis=1)]),
    "SparseCategoricalAccuracy": Row(
        metrics=lambda: ["accuracy"],
        loss=lambda: mr.losses.SparseCategoricalCrossentropy(True),
        targets="labels",
    ),
    **dict.fromkeys(ERRORS, Row(metrics=lambda: [getattr(mr.metrics, each)() for each in ERRORS])),
    **dict.fromkeys(
        (*COUNTS, "BinaryIoU"),
        Row(
            last="softmax",
            metrics=lambda: [
                FirstFlags(threshold=0.3, dtype="float32"),
                *(getattr(mr.metrics, each)(**given) for each, given in COUNTS.items()),
            ],
            targets="classes",
        ),
    ),
    **dict.fromkeys(
        HITS,
        Row(
            last="softmax",
            metrics=lambda: [getattr(mr.metrics, each)() for each in HITS],
            targets="classes",
        ),
    ),
    **dict.fromkeys(
        ("SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy"),
        Row(
            last="softmax",
            metrics=lambda: [
                mr.metrics.SparseCategoricalCrossentropy(),
                mr.metrics.SparseTopKCategoricalAccuracy(2),
            ],
            loss=lambda: "sparse_categorical_crossentropy",
            targets="labels",
        ),
    ),
}
LOSSES: dict[str, list[Row]] = {
    "MeanSquaredError": [
        METRICS["MeanSquaredError"],
        Row(loss=lambda: mr.losses.MeanSquaredError(reduction="sum")),
        Row(loss=lambda: lambda y, p: mr.reduce_mean(abs(y - p), axis=1)),
    ],
    "BinaryCrossentropy": [
        METRICS["BinaryAccuracy"],
        Row(last="tanh", loss=lambda: mr.losses.BinaryCrossentropy(True), targets="flags"),
        Row(last="softmax", loss=lambda: "bce", targets="flags"),
    ],
    "CategoricalCrossentropy": [
        METRICS["CategoricalAccuracy"],
        Row(last="sigmoid", loss=lambda: "categorical_crossentropy", targets="classes"),
        Row(loss=lambda: mr.losses.CategoricalCrossentropy(True), targets="classes"),
    ],
    "SparseCategoricalCrossentropy": [
        Row(last="softmax", loss=lambda: "sparse_categorical_crossentropy", targets="labels"),
        Row(last="sigmoid", loss=lambda: "sparse_categorical_crossentropy", targets="labels"),
        METRICS["SparseCategoricalAccuracy"],
    ],
    **{
        name: [Row(loss=partial(str, name))]
        for name in [
            "CosineSimilarity",
            "LogCosh",
            "MeanAbsoluteError",
            "MeanAbsolutePercentageError",
        ]
    },
    "Huber": [Row(loss=lambda: mr.losses.Huber(0.5))],
    "MeanSquaredLogarithmicError": [Row(last="softplus", loss=lambda: "msle")],
    "Poisson": [Row(last="softplus", loss=lambda: "poisson")],
    "KLDivergence": [Row(last="softmax", loss=lambda: "kld", targets="classes")],
    "BinaryFocalCrossentropy": [
        Row(loss=lambda: mr.losses.BinaryFocalCrossentropy(from_logits=True), targets="flags")
    ],
    "CategoricalFocalCrossentropy": [
        Row(last="softmax", loss=lambda: "categorical_focal_crossentropy", targets="classes")
    ],
    "CategoricalGeneralizedCrossEntropy": [
        Row(
            last="softmax",
            loss=lambda: mr.losses.CategoricalGeneralizedCrossEntropy(0.75),
            targets="labels",
        )
    ],
    "Circle": [Row(last="softmax", loss=lambda: "circle", targets="labels")],
    "Dice": [Row(last="softmax", loss=lambda: "dice", targets="classes")],
    "Tversky": [Row(last="softmax", loss=lambda: mr.losses.Tversky(0.75), targets="classes")],
    "CategoricalHinge": [Row(loss=lambda: "categorical_hinge", targets="classes")],
    "Hinge": [Row(loss=lambda: "hinge", targets="flags")],
    "SquaredHinge": [Row(loss=lambda: "squared_hinge", targets="flags")],
}
AVERAGES: dict[str, Any] = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 2}
SETTINGS: dict[str, list[dict[str, Any]]] = {  # Plain SGD is that of all other rows.
    "SGD": [
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "clipnorm": 0.05},
        {"momentum": 0.5, "clipvalue": 0.01, **AVERAGES},
        {"global_clipnorm": 0.1},
    ],
    "Adam": [
        {},
        {"amsgrad": True, "beta_1": 0.5, "beta_2": 0.6, "clipnorm": 0.05},
        {"weight_decay": 0.1, "epsilon": 1e-3, "clipvalue": 0.01, **AVERAGES},
        {"amsgrad": True, "global_clipnorm": 0.1},
    ],
    # One for each way that what is kept may be: several for a weight or one for all, numbers to
    # start from, other shapes, weights one by one.
    "RMSprop": [
        {"rho": 0.5, "momentum": 0.9, "centered": True, "epsilon": 1e-3},
        {"gradient_accumulation_steps": 2},
    ],
    "Nadam": [
        {"weight_decay": 0.1, "gradient_accumulation_steps": 2, **AVERAGES},
        {"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-3},
    ],
    "Adagrad": [
        {"loss_scale_factor": 8.0, "clipvalue": 0.01},
        {"initial_accumulator_value": 0.5, "epsilon": 1e-3},
    ],
    "Adafactor": [
        {"gradient_accumulation_steps": 2, "clipnorm": 0.05, "clip_threshold": 0.5},
        {"beta_2_decay": -0.5, "epsilon_1": 1e-3, "epsilon_2": 0.5, "relative_step": False},
    ],
    "AdamW": [
        {"weight_decay": 0.1, "beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-3, "amsgrad": True}
    ],
    "Adadelta": [{"rho": 0.5, "epsilon": 1e-3}],
    "Adamax": [{"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-3}],
    "Ftrl": [
        {"learning_rate_power": -0.75, "initial_accumulator_value": 0.5, "beta": 0.5},
        {
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.1,
        },
    ],
    "Lamb": [{"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-3}],
    "Lion": [{"beta_1": 0.5, "beta_2": 0.6}],
    "Muon": [
        {
            **{"adam_beta_1": 0.5, "adam_beta_2": 0.6, "adam_weight_decay": 0.1, "epsilon": 1e-3},
            **{"exclude_embeddings": False, "weight_decay": 0.1},
            **{"muon_a": 3.0, "muon_b": -4.0, "muon_c": 2.0, "adam_lr_ratio": 0.5},
            **{"momentum": 0.5, "ns_steps": 2, "nesterov": False, "rms_rate": 0.1},
        },
        {"exclude_layers": ["kernel"]},
    ],
    "ScheduleFreeAdamW": [{"beta_1": 0.5, "beta_2": 0.6, "epsilon": 1e-3, "warmup_steps": 3}],
}
# The base of all, and those around others, which are beside that of a user's below.
WITHOUT_RULES = {"Optimizer", "LossScaleOptimizer", "MultiOptimizer"}


def scaled(**settings: Any) -> mr.optim.Optimizer:
    return mr.optim.LossScaleOptimizer(
        mr.optim.Adam(0.1, **settings), initial_scale=4.0, dynamic_growth_steps=2
    )


def by_kind() -> mr.optim.Optimizer:
    kernels = mr.optim.OptimizerMap(mr.optim.SGD(0.1), {".*/kernel": mr.optim.Nadam(0.1)})
    return mr.optim.LossScaleOptimizer(mr.optim.MultiOptimizer(kernels))


class Signs(mr.optim.Optimizer):
    """An optimizer of a user's that looks at a whole weight at once."""

    slot_names = ("mean",)

    def update(self, gradient: Any, value: Any, slots: Any, learning_rate: Any, step: Any) -> Any:
        norm = mr.sqrt(mr.reduce_sum(mr.square(gradient))) + 1e-3
        mean = 0.5 * slots[0] + gradient / (norm * step)
        return value - learning_rate * mean, (mean,)


class Adamantine(mr.optim.Adam):
    """One whose `update_step` is that of the one that it is of, and counts."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.counts = [self.add_variable(()) for _ in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient * 0.5, variable, learning_rate)
        self.assign_add(self.counts[self._get_variable_index(variable)], 1)


def names(module: Any, base: type[Any], *, but: set[str]) -> set[str]:
    """Return the names of the public classes of a kind."""
    held = [getattr(module, name) for name in dir(module)]  # Some load when they are asked for.
    found = {each.__name__ for each in held if inspect.isclass(each)}
    kinds = {each for each in found if issubclass(getattr(module, each, object), base)}
    return {each for each in kinds if not each.startswith("_")} - but


_REGULARIZER = regularizers.Regularizer
# Those are of numbers that a user computes, or of a function: `compile` does not take them so.
WITHOUT_TARGETS = {"Metric", "Mean", "Sum", "MeanMetricWrapper"}
TABLES: dict[str, tuple[Mapping[str, Any], set[str]]] = {
    "layers": (LAYERS, names(mr.layers, mr.layers.Layer, but={"Layer"})),
    "activations": (ACTIVATIONS, _NAMES),
    "regularizers": (
        REGULARIZERS,
        names(regularizers, _REGULARIZER, but={"Regularizer"}),
    ),
    "losses": (LOSSES, names(mr.losses, mr.losses.Loss, but={"Loss"})),
    "metrics": (METRICS, names(mr.metrics, mr.metrics.Metric, but=WITHOUT_TARGETS)),
    "optimizers": (SETTINGS, names(mr.optim, mr.optim.Optimizer, but=WITHOUT_RULES)),
}


def defaults(optimizer: type[Any]) -> dict[str, Any]:
    """Return the settings of an optimizer's own, with their defaults."""
    parameters = inspect.signature(optimizer.__init__).parameters
    own = parameters.keys() - {"self", "learning_rate", "settings"}
    return {name: parameters[name].default for name in parameters if name in own}


def _only(metric: str) -> list[Any]:
    return [getattr(mr.metrics, metric)()]


# What no row is written for is tried with its defaults.
for _name in TABLES["layers"][1] - LAYERS.keys():
    LAYERS[_name] = dense(getattr(mr.layers, _name))
for _name in TABLES["losses"][1] - LOSSES.keys():
    LOSSES[_name] = [Row(loss=getattr(mr.losses, _name))]
for _name in TABLES["metrics"][1] - METRICS.keys():
    METRICS[_name] = Row(metrics=partial(_only, _name))
for _name in TABLES["optimizers"][1] - SETTINGS.keys():
    SETTINGS[_name] = [defaults(getattr(mr.optim, _name))]


@cases(("table", "there_are"), TABLES.values(), ids=TABLES)
def test_a_table_has_all_there_are(table: Mapping[str, Any], there_are: set[str]) -> None:
    assert {name for name in table if not name.startswith("of a user")} == there_are


@cases("name", SETTINGS)
def test_the_table_has_every_setting_of_an_optimizer(name: str) -> None:
    settings = {key for each in SETTINGS[name] for key in each}
    parameters = set(inspect.signature(getattr(mr.optim, name).__init__).parameters)
    assert parameters - {"self", "learning_rate", "settings"} <= settings


def test_the_table_has_every_setting_that_all_optimizers_have() -> None:
    settings = {key for rows in SETTINGS.values() for each in rows for key in each}
    assert settings >= Settings.__annotations__.keys() - {"name"}


def rows() -> dict[str, Row]:
    """Return rows by name in which every part of the tables is, beside others by turns."""
    layers = {
        f"{kind} {name}": row.layers
        for kind, table in (
            ("layer", LAYERS),
            ("activation", ACTIVATIONS),
            ("regularizer", REGULARIZERS),
        )
        for name, row in table.items()
    }
    ends = {f"metric {name}": row for name, row in METRICS.items()}
    for name, several in LOSSES.items():
        ends |= {f"loss {name} {i}": row for i, row in enumerate(several)}
    optimizers: dict[str, Parts] = {
        "optimizer of a user": lambda: Signs(0.1),
        "optimizer of a user by update_step": lambda: Adamantine(0.1, clipnorm=0.5),
        "LossScaleOptimizer": lambda: scaled(gradient_accumulation_steps=2, **AVERAGES),
        "MultiOptimizer": by_kind,
    }
    for name, settings in SETTINGS.items():
        for each in [{}, *settings]:
            make = partial(getattr(mr.optim, name), 0.1, **each)
            optimizers[" ".join([name, *each])] = make
    parts = [list(_without_twins(table).items()) for table in (layers, ends, optimizers)]
    longest = max(map(len, parts))
    # All metrics of counts at once take seconds to record: they have one turn.
    again = [(name, row) for name, row in parts[1] if "BinaryIoU" not in name]
    parts[1] = list(itertools.islice(itertools.chain(parts[1], itertools.cycle(again)), longest))
    found = {}
    for number in range(longest):
        chosen = [table[number % len(table)] for table in parts]
        (_, stack), (_, end), (_, optimizer) = chosen
        found[", ".join(name for name, _ in chosen)] = end._replace(
            layers=stack, optimizer=optimizer
        )
    return found


def _without_twins(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with each part once, also where several names have it."""
    return {name: part for part, name in {part: name for name, part in table.items()}.items()}


PLACES = {
    "2 on threads": (2, "threads"),
    "3 on threads": (3, "threads"),
    "3 in turn": (3, "serial"),
    "1": (1, "auto"),
}


def cases() -> Iterator[Any]:
    """Yield each row in one place, by turns: slow ones, and a few that every run tries."""
    turns = itertools.cycle(PLACES)
    for number, (name, row) in enumerate(rows().items()):
        turn = "2 on threads" if "BinaryIoU" in name else next(turns)
        place = {2: "3 in turn", 7: "1"}.get(number, turn if number % 10 else "2 on threads")
        marks = [] if number in (2, 7) or number % 10 == 0 else [pytest.mark.slow]
        yield pytest.param(row, PLACES[place], id=f"{place}-{name}", marks=marks)


@pytest.fixture
def strategy(request: Any, simulate: Callable[..., Any]) -> Iterator[mr.MirroredStrategy]:
    replicas, executor = request.param
    simulate(replicas)
    strategy = mr.MirroredStrategy(executor=executor)
    yield strategy
    strategy.close()


def make(row: Row, strategy: mr.distribute.Strategy, *, eager: bool) -> mr.Model:
    mr.random.set_seed(5)
    with strategy.scope():
        model = mr.Sequential([*row.layers(), mr.layers.Dense(3, row.last)])
        plain, weighted = row.metrics(), row.metrics()
        if len(plain) > 9:  # They take seconds to record: half of them have weights.
            plain, weighted = plain[::2], weighted[1::2]
        metrics = {"metrics": plain, "weighted_metrics": weighted}
        model.compile(row.optimizer(), row.loss(), **metrics, run_eagerly=eager)
    return model


def outcome(row: Row, strategy: mr.distribute.Strategy, *, eager: bool) -> dict[str, Any]:
    """Return all that comes of training, validation and prediction."""
    model, y = make(row, strategy, eager=eager), TARGETS[row.targets]
    options: dict[str, Any] = {"batch_size": BATCH, "verbose": 0}
    weighted = model.fit(
        *(X, y),
        epochs=2,
        sample_weight=WEIGHTS,
        validation_data=(X, y, WEIGHTS),
        validation_freq=2,
        **options,
    )
    inner = model.optimizer.within[-1]  # It may be around others.
    inner.learning_rate = 0.03
    plain = model.fit(X[:BATCH], y[:BATCH], shuffle=False, **options)
    local = strategy.experimental_local_results
    variables = [*model.variables, *model.optimizer.variables]
    return {
        "history": (weighted.history, plain.history),
        "weights": [copy.numpy() for each in variables for copy in local(each)],
        "predict": model.predict(X[:BATCH], **options),
    }


_known: dict[tuple[int, int], tuple[Row, dict[str, Any]]] = {}


def eager_outcome(row: Row, strategy: mr.distribute.Strategy) -> dict[str, Any]:
    """Return what eager steps give, once for each number of replicas: no executor has a part."""
    key = id(row), strategy.num_replicas_in_sync
    if key not in _known:
        _known[key] = row, outcome(row, strategy, eager=True)
    return _known[key][1]


def check_equal(row: Row, strategy: mr.distribute.Strategy, bits: Any) -> None:
    eager, recorded = eager_outcome(row, strategy), outcome(row, strategy, eager=False)
    for name in ("weights", "predict"):
        assert bits(recorded[name]) == bits(eager[name]), name
    assert repr(recorded["history"]) == repr(eager["history"])


@pytest.mark.parametrize(("row", "strategy"), list(cases()), indirect=["strategy"])
def test_recorded_steps_give_the_bits_of_eager_ones(
    row: Row, strategy: mr.MirroredStrategy, bits: Any
) -> None:
    check_equal(row, strategy, bits)


@pytest.mark.parametrize("floatx", ["float32", "float64"])
def test_without_a_strategy(floatx: str, bits: Any) -> None:
    mr.keras.backend.set_floatx(floatx)
    row = Row(LAYERS["Dropout"].layers, optimizer=lambda: mr.optim.Adam(0.1, amsgrad=True))
    check_equal(row, mr.distribute.get_strategy(), bits)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(place, id=name, marks=[] if name == "3 in turn" else [pytest.mark.slow])
        for name, place in PLACES.items()
    ],
    indirect=True,
)
def test_layers_of_two_dtypes(strategy: mr.MirroredStrategy, bits: Any) -> None:
    """Each dtype has memory of its own, which one update takes in one pass."""
    layers = [mr.layers.Flatten, lambda: mr.layers.Dense(4, "relu", dtype="float64")]
    row = Row(
        lambda: [*(make() for make in layers), mr.layers.Dense(4, "tanh")],
        optimizer=lambda: mr.optim.SGD(0.1, momentum=0.9, clipnorm=0.1),
    )
    check_equal(row, strategy, bits)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mr.optim.ScheduleFreeAdamW(0.05),
        lambda: mr.optim.SGD(0.05, use_ema=True, ema_momentum=0.5),
        lambda: mr.optim.LossScaleOptimizer(mr.optim.ScheduleFreeAdamW(0.05)),
    ],
    ids=["schedule free", "averages", "loss scale"],
)
def test_slots_that_begin_as_a_kernel_that_its_layer_assigns(make: Callable[[], Any]) -> None:
    """They begin as what it was before the first step; unused weights have none."""

    class Unused(mr.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.unused = self.add_weight(shape=(2,), name="unused")

        def call(self, inputs: Any) -> Any:
            return inputs

    x = np.random.default_rng(0).standard_normal((12, 3))
    found = []
    for eager in (False, True):
        mr.keras.utils.set_random_seed(1)
        normalized = mr.layers.SpectralNormalization(mr.layers.Dense(4, dtype="float64"))
        model = mr.Sequential([mr.layers.Input((3,)), normalized, Unused(), mr.layers.Dense(2)])
        optimizer = make()
        model.compile(optimizer, "mse", run_eagerly=eager)
        model.fit(x, x[:, :2] ** 2, batch_size=4, shuffle=False, verbose=0)
        slots = [slot for _, own in optimizer.slots.snapshot().values() for slot in own]
        found.append([each.numpy() for each in (*model.weights, *slots)])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
