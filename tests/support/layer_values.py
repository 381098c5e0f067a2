"""Calls of layers, for any `keras`: outputs, masks, gradients, and what becomes of their weights.

What layer_values.json says is Keras 3.15.1's, on TensorFlow 2.21.0. Where these are installed,
`python tests/support/layer_values.py` writes it anew.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).with_suffix(".json")


class Case(NamedTuple):
    """A layer and what it is called on.

    Attributes:
        layer: Its class.
        shape: The inputs' shape.
        options: Its arguments.
        integers: The inputs are integers below this; 0: they are floats.
        masks: Which inputs of how many carry a mask, as in "101"; "": there is one, without.
        call: What else it is called with: values, or the shapes of masks.
    """

    layer: str
    shape: tuple[int, ...]
    options: Mapping[str, Any] = MappingProxyType({})
    integers: int = 0
    masks: str = ""
    call: Mapping[str, Any] = MappingProxyType({})


DRAWN = ("AdditiveAttention", "EinsumDense", "Embedding", "GroupQueryAttention")
DRAWN += ("MultiHeadAttention", "ReversibleEmbedding")
CONVOLUTIONS = tuple(f"Conv{rank}D{kind}" for kind in ("", "Transpose") for rank in (1, 2, 3))
CONVOLUTIONS += tuple(
    f"{kind}Conv{rank}D" for kind in ("Depthwise", "Separable") for rank in (1, 2)
)
DRAWN += CONVOLUTIONS  # What all of these start as differs.
IMAGES = {1: (2, 6, 4), 2: (2, 5, 4, 4), 3: (2, 3, 4, 3, 2)}
HEADS = {"MultiHeadAttention": {"num_heads": 2, "key_dim": 3}}
HEADS["GroupQueryAttention"] = {"head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2}
# Layers that are called with masks once, without options.
PLAIN = ("LayerNormalization", "UnitNormalization", "ReLU", "LeakyReLU", "ELU", "PReLU")
PLAIN += ("Identity", "RMSNormalization", "Flatten", "Normalization")
FIRST = "channels_first"
SCORES = {"return_attention_scores": True}
CASES = [
    Case("BatchNormalization", (5, 3)),
    Case("BatchNormalization", (5, 4, 3), {"axis": 1, "momentum": 0.5, "epsilon": 0.1}),
    Case("BatchNormalization", (5, 4, 3), {"center": False, "moving_mean_initializer": "ones"}),
    Case("BatchNormalization", (5, 3), {"scale": False, "synchronized": True}),
    Case("BatchNormalization", (5, 3), {"trainable": False}),
    Case("BatchNormalization", (5, 3), {"renorm": True, "momentum": 0.5}),
    Case(
        "BatchNormalization",
        (5, 4, 3),
        {
            "renorm": True,
            "renorm_clipping": {"rmin": 0.5, "rmax": 1.5, "dmax": 0.5},
            "renorm_momentum": 0.75,
            "center": False,
            "axis": 1,
        },
    ),
    Case("BatchNormalization", (5, 3), {"renorm": True, "scale": False, "synchronized": True}),
    Case("LayerNormalization", (5, 3)),
    Case("LayerNormalization", (5, 4, 3), {"axis": [1, 2], "epsilon": 0.1}),
    Case("LayerNormalization", (5, 4, 3), {"axis": 1, "center": False}),
    Case("LayerNormalization", (5, 4, 3), {"axis": -1, "scale": False}),
    Case("RMSNormalization", (5, 3)),
    Case("RMSNormalization", (5, 4, 3), {"axis": [1, 2], "epsilon": 0.1}),
    Case("UnitNormalization", (5, 3)),
    Case("UnitNormalization", (5, 4, 3), {"axis": [1, 2]}),
    Case("GroupNormalization", (5, 4), {"groups": 2}),
    Case("GroupNormalization", (5, 4, 6), {"groups": 3, "epsilon": 0.1}),
    Case("GroupNormalization", (5, 4, 6), {"groups": 2, "axis": 1, "center": False}),
    Case("GroupNormalization", (5, 4, 6), {"groups": -1, "scale": False}),
    Case("ReLU", (5, 3)),
    Case("ReLU", (5, 3), {"max_value": 2.0, "negative_slope": 0.5, "threshold": 1.0}),
    Case("LeakyReLU", (5, 3)),
    Case("LeakyReLU", (5, 3), {"negative_slope": 0.5}),
    Case("ELU", (5, 3)),
    Case("ELU", (5, 3), {"alpha": 0.5}),
    Case("PReLU", (5, 4, 3)),
    Case("PReLU", (5, 4, 3), {"shared_axes": [1], "alpha_initializer": "ones"}),
    Case("Softmax", (5, 3)),
    Case("Softmax", (5, 4, 3), {"axis": 1}),
    Case("Softmax", (5, 4, 3), {"axis": [1, 2]}),
    Case("Reshape", (5, 6), {"target_shape": [2, 3]}),
    Case("Reshape", (5, 2, 6), {"target_shape": [4, -1]}),
    Case("Permute", (5, 4, 3), {"dims": [2, 1]}),
    Case("RepeatVector", (5, 3), {"n": 4}),
    Case("Rescaling", (5, 3), {"scale": 0.5}),
    Case("Rescaling", (5, 3), {"scale": [1.0, 2.0, 3.0], "offset": 0.5}),
    Case("Identity", (5, 3)),
    Case("GlobalAveragePooling1D", (5, 4, 3)),
    Case("GlobalAveragePooling1D", (5, 4, 3), {"data_format": "channels_first"}),
    Case("GlobalMaxPooling1D", (5, 4, 3), {"keepdims": True}),
    Case("GlobalMaxPooling1D", (5, 4, 3), {"data_format": "channels_first", "keepdims": True}),
    *(
        Case(layer, (2, *sizes), options)
        for kind in ("Average", "Max")
        for layer, sizes, options in [
            (f"Global{kind}Pooling2D", (4, 3, 2), {}),
            (f"Global{kind}Pooling2D", (4, 3, 2), {"data_format": FIRST, "keepdims": True}),
            (f"Global{kind}Pooling3D", (2, 3, 2, 4), {"data_format": FIRST}),
            (f"Global{kind}Pooling3D", (2, 3, 2, 4), {"keepdims": True}),
        ]
    ),
    Case("ZeroPadding1D", (2, 4, 3)),
    Case("ZeroPadding1D", (2, 4, 3), {"padding": [2, 0], "data_format": FIRST}),
    Case("ZeroPadding2D", (2, 4, 3, 2), {"padding": [2, 1]}),
    Case("ZeroPadding2D", (2, 4, 3, 2), {"padding": [[0, 1], 2], "data_format": FIRST}),
    Case("ZeroPadding3D", (2, 2, 1, 2, 3), {"padding": 1}),
    Case("ZeroPadding3D", (2, 2, 1, 2, 3), {"padding": [1, [0, 2], 0], "data_format": FIRST}),
    Case("ZeroPadding2D", (2, 2, 2, 3), integers=5),
    Case("Cropping1D", (2, 4, 3)),
    Case("Cropping1D", (2, 4, 3), {"cropping": [2, 0]}),
    Case("Cropping2D", (2, 4, 3, 2), {"cropping": [[0, 3], 1]}),
    Case("Cropping2D", (2, 2, 4, 3), {"cropping": [1, 1], "data_format": FIRST}),
    Case("Cropping3D", (2, 3, 4, 3, 2)),
    Case("Cropping3D", (2, 2, 3, 4, 3), {"cropping": [1, [0, 2], 0], "data_format": FIRST}),
    Case("UpSampling1D", (2, 4, 3), {"size": 3}),
    Case("UpSampling1D", (2, 4, 3), masks="1"),
    Case("UpSampling2D", (2, 3, 2, 4)),
    Case("UpSampling2D", (2, 3, 2, 4), {"size": [1, 3], "data_format": FIRST}),
    Case("UpSampling2D", (2, 2, 2, 3), integers=5),
    Case("UpSampling2D", (2, 3, 2, 4), {"size": [2, 3], "interpolation": "bilinear"}),
    Case("UpSampling2D", (2, 2, 3, 4), {"interpolation": "bilinear", "data_format": FIRST}),
    *(
        Case("UpSampling2D", (2, 3, 2, 2), {"interpolation": interpolation})
        for interpolation in ("bicubic", "lanczos3", "lanczos5")
    ),
    Case("UpSampling3D", (2, 1, 2, 2, 3), {"size": [2, 1, 3]}),
    Case("UpSampling3D", (2, 1, 2, 2, 3), {"size": 2, "data_format": FIRST}),
    Case("BatchNormalization", (3, 4, 2, 3), {"momentum": 0.5}),
    Case("BatchNormalization", (3, 2, 4, 3), {"axis": 1, "momentum": 0.5}),
    *(
        Case(f"Conv{rank}D", shape, {"filters": 2, **options})
        for rank, shape in IMAGES.items()
        for options in (
            {"kernel_size": 2, "activation": "tanh"},
            {"kernel_size": 3, "strides": 2, "padding": "same"},
        )
    ),
    Case("Conv1D", IMAGES[1], {"filters": 2, "kernel_size": 2, "groups": 2, "use_bias": False}),
    Case("Conv1D", IMAGES[1], {"filters": 2, "kernel_size": 2, "padding": "causal"}),
    Case("Conv2D", IMAGES[2], {"filters": 2, "kernel_size": 2, "dilation_rate": 2}),
    Case("Conv2D", IMAGES[2], {"filters": 4, "kernel_size": (1, 2), "groups": 2}),
    *(
        Case(f"Conv{rank}DTranspose", shape, {"filters": 2, **options})
        for rank, shape in IMAGES.items()
        for options in (
            {"kernel_size": 2, "strides": 2},
            {"kernel_size": 3, "strides": 2, "padding": "same", "output_padding": 1},
        )
    ),
    Case("Conv2DTranspose", IMAGES[2], {"filters": 1, "kernel_size": 2, "padding": "same"}),
    *(
        Case(f"{kind}Conv{rank}D", IMAGES[rank], {**more, **options})
        for kind, more in (("Depthwise", {}), ("Separable", {"filters": 3}))
        for rank in (1, 2)
        for options in (
            {"kernel_size": 2, "depth_multiplier": 2},
            {"kernel_size": 3, "strides": 2, "padding": "same", "use_bias": False},
        )
    ),
    *(
        Case(f"{kind}Pooling{rank}D", shape, {"pool_size": 2, **options})
        for kind in ("Max", "Average")
        for rank, shape in IMAGES.items()
        for options in ({}, {"strides": 1, "padding": "same"})
    ),
    Case("Embedding", (5,), {"input_dim": 4, "output_dim": 3}, integers=4),
    Case("Embedding", (5, 4), {"input_dim": 6, "output_dim": 2}, integers=6),
    Case("EinsumDense", (5, 4, 3), {"equation": "abc,cde->abde", "output_shape": [4, 2, 3]}),
    Case(
        "EinsumDense",
        (5, 4, 3),
        {"equation": "...b,bc->...c", "output_shape": 2, "bias_axes": "c"},
    ),
    Case(
        "EinsumDense",
        (5, 4, 3, 2),
        {"equation": "ab...,bcd->adc...", "output_shape": [3, 2], "bias_axes": "d"},
    ),
    Case(
        "EinsumDense",
        (5, 4, 3),
        {"equation": "abc,bcd->ad", "output_shape": [2], "activation": "tanh"},
    ),
    Case("Normalization", (5, 3)),
    Case("Normalization", (5, 4, 3), {"axis": [1, -1]}),
    Case("Normalization", (5, 4, 3), {"axis": None, "invert": True}),
    Case("Normalization", (5, 4, 3), {"mean": [1.0, 2.0, 3.0], "variance": [4.0, 0.0, 1.0]}),
    Case("CategoryEncoding", (5, 4), {"num_tokens": 6}, integers=8),
    Case("CategoryEncoding", (5, 4), {"num_tokens": 6, "output_mode": "count"}, integers=8),
    Case("CategoryEncoding", (5, 4, 2), {"num_tokens": 6, "output_mode": "count"}, integers=8),
    Case("CategoryEncoding", (5, 4, 2), {"num_tokens": 6, "output_mode": "binary"}, integers=8),
    Case("CategoryEncoding", (5, 1), {"num_tokens": 6, "output_mode": "one_hot"}, integers=8),
    Case("Discretization", (5, 3), {"bin_boundaries": [-1.0, 0.5, 2.0]}),
    Case("Discretization", (5, 3), {"num_bins": 4, "output_mode": "one_hot"}),
    Case("Discretization", (50, 3), {"num_bins": 5, "epsilon": 0.1, "output_mode": "count"}),
    Case("Embedding", (5, 4), {"input_dim": 6, "output_dim": 2, "mask_zero": True}, integers=6),
    Case(
        "ReversibleEmbedding",
        (5, 4),
        {"input_dim": 6, "output_dim": 2, "tie_weights": False, "mask_zero": True},
        integers=6,
    ),
    Case(
        "ReversibleEmbedding",
        (5, 4, 2),
        {"input_dim": 6, "output_dim": 2, "logit_soft_cap": 2.0},
        call={"reverse": True},
    ),
    Case(
        "ReversibleEmbedding",
        (5, 4, 2),
        {"input_dim": 6, "output_dim": 2, "tie_weights": False, "reverse_dtype": "float64"},
        call={"reverse": True},
    ),
    Case("Masking", (5, 4, 1), {"mask_value": 1.118}),
    Case("Masking", (5, 4, 3), masks="1"),
    Case("Masking", (5, 4, 2), {"mask_value": 2.0}, integers=3),
    Case("Softmax", (5, 4), masks="1"),
    Case("Softmax", (4, 4, 4), {"axis": [1]}, masks="1"),
    Case("GlobalAveragePooling1D", (5, 4, 3), masks="1"),
    Case("GlobalAveragePooling1D", (5, 4, 4), {"data_format": "channels_first"}, masks="1"),
    Case("GlobalAveragePooling1D", (5, 4, 3), {"keepdims": True}, masks="1"),
    Case("BatchNormalization", (5, 4, 3), {"momentum": 0.5}, masks="1"),
    Case("BatchNormalization", (5, 4, 1), {"epsilon": 0.1}, masks="1"),
    *(
        Case(layer, (5, 4, 3), options, masks="1")
        for layer, options in {
            **{name: {} for name in PLAIN},
            "Dense": {"units": 2, "kernel_initializer": "ones"},
            "Activation": {"activation": "tanh"},
            "ActivityRegularization": {"l2": 0.5},
            "GroupNormalization": {"groups": 1},
            "GlobalMaxPooling1D": {},
            "Reshape": {"target_shape": (4, 3)},
            "Permute": {"dims": (1, 2)},
            "Rescaling": {"scale": 2.0},
        }.items()
    ),
    *(
        Case(layer, (5, 4, 3), masks=masks)
        for layer in ("Add", "Average", "Multiply", "Maximum", "Minimum", "Concatenate")
        for masks in ("11", "101")
    ),
    Case("Concatenate", (5, 4, 3), {"axis": 1}, masks="110"),
    Case("Multiply", (5, 4, 3), masks="01"),
    Case("Maximum", (5, 4, 3), masks="10"),
    Case("Minimum", (5, 4, 3), masks="011"),
    Case("Subtract", (5, 4, 3), masks="11"),
    Case("Dot", (5, 4, 3), {"axes": 2}, masks="11"),
    Case("Attention", (2, 4, 3), {"use_scale": True}, masks="00"),
    Case("Attention", (2, 4, 3), {"dropout": 0.0}, masks="11", call={"use_causal_mask": True}),
    Case("Attention", (2, 4, 3), {"score_mode": "concat"}, masks="011", call=SCORES),
    Case("Attention", (2, 4, 3), {"score_mode": "concat", "use_scale": True}, masks="10"),
    Case("AdditiveAttention", (2, 4, 3), masks="11", call=SCORES),
    Case("AdditiveAttention", (2, 4, 3), {"use_scale": False}, masks="000"),
    *(
        Case(layer, (2, 4, 5), {**options, **more}, masks=masks, call=call)
        for layer, options in HEADS.items()
        for more, masks, call in [
            ({}, "00", {}),
            ({}, "11", {}),
            ({}, "111", SCORES),
            ({"use_gate": True}, "01", {"use_causal_mask": True}),
            ({"use_bias": False, "sliding_window": 2}, "00", {"attention_mask": (2, 4, 4)}),
            ({}, "00", {"use_causal_mask": True}),
            ({}, "000", {"key_mask": (2, 4), "attention_mask": (2, 4, 4), **SCORES}),
        ]
    ),
    *(
        Case("MultiHeadAttention", (2, 3, 2, 4), {**HEADS["MultiHeadAttention"], **more}, 0, "00")
        for more in [
            {"output_shape": (2, 3), "value_dim": 2},
            {"attention_axes": 1},
            {"attention_axes": [2]},
        ]
    ),
]
NAMES = [
    f"{case.layer} {case.shape} {dict(case.options)}{f' {case.masks}' if case.masks else ''}"
    f"{f' {dict(case.call)}' if case.call else ''}"
    for case in CASES
]


def inputs_of(case: Case) -> np.ndarray:
    """Return what a layer is called on."""
    draws = np.random.default_rng(0)
    if case.integers:
        return draws.integers(case.integers, size=case.shape)
    return draws.normal(size=case.shape).astype(np.float32).round(3) * 2 + 1


def given(tf: Any, case: Case) -> list[Any]:
    """Return the tensors that a layer is called on, with the masks that they carry."""
    values = inputs_of(case)
    tensors = []
    for number, carries in enumerate(case.masks or "0"):
        tensor = tf.constant(values + number)
        if carries == "1":
            tensor._keras_mask = tf.constant(mask_of(case.shape[:2], number))
        tensors.append(tensor)
    return tensors


def mask_of(shape: tuple[int, ...], number: int) -> np.ndarray:
    """Return the mask of an input, given its number: other steps of each example."""
    return (sum(np.indices(shape)) + number) % 3 != 0


def called(tf: Any, layer: Any, case: Case, tensors: list[Any], training: bool) -> list[Any]:
    """Return what a layer returns, in a list."""
    masks = {k: tf.constant(mask_of(v, 5)) for k, v in case.call.items() if isinstance(v, tuple)}
    more = {**case.call, **masks, "training": training}
    if case.layer in HEADS:
        outputs = layer(*tensors, **more)
    else:
        outputs = layer(tensors if len(tensors) > 1 else tensors[0], **more)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def outcome(keras: Any, tf: Any, case: Case) -> dict[str, Any]:
    """Return what a layer returns, in training and not, and what becomes of its weights.

    Args:
        keras: The library.
        tf: That, or TensorFlow: what has `GradientTape`, `constant` and `reduce_sum`.
        case: The case.
    """
    layer = getattr(keras.layers, case.layer)(**case.options)
    if hasattr(layer, "adapt") and not {"mean", "bin_boundaries"}.intersection(case.options):
        layer.adapt(inputs_of(case))

    def run() -> Any:
        return called(tf, layer, case, given(tf, case), False)[0]

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found: dict[str, Any] = {"before": run()}
    if warned:  # It would at each call.
        # Where heads go by masks, Keras' projections warn that they do not.
        found |= {} if case.layer in HEADS else {"warnings": len(warned)}
        warnings.filterwarnings("ignore", ".*does not support masking")
    draws = np.random.default_rng(1)
    if case.layer in DRAWN:
        layer.set_weights([np.full_like(each, 0.125) for each in layer.get_weights()])
        found["before"] = run()
    layer.set_weights([each + draws.normal(size=each.shape) / 4 for each in layer.get_weights()])
    if case.layer == "Normalization":
        layer.finalize_state()
    tensors = given(tf, case)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs, *scores = called(tf, layer, case, tensors, True)
        weights = draws.normal(size=outputs.shape).astype(np.float32)
        weighed = tf.reduce_sum(tf.cast(outputs, "float32") * weights)
        for each in scores:
            weighed += tf.reduce_sum(each * draws.normal(size=each.shape).astype(np.float32))
    found["outputs"] = outputs
    found |= {"scores": scores[0]} if scores else {}
    weights = list(layer.trainable_variables)
    counts = case.integers or case.layer == "Discretization"
    sources = weights if counts else [*tensors, *weights]
    gradients = tape.gradient(weighed, sources)
    found["gradients"] = [
        np.zeros(source.shape) if each is None else tf.convert_to_tensor(each)
        for each, source in zip(gradients, sources, strict=True)
    ]
    mask = getattr(outputs, "_keras_mask", None)
    found |= {} if mask is None else {"mask": mask}
    found["after"] = run()
    found["weights"] = layer.get_weights()
    found["names"] = [each.name.split("/")[-1].split(":")[0] for each in layer.weights]
    return _as_lists(found)


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_lists(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_lists(each) for each in value]
    if isinstance(value, str):
        return value
    return np.round(np.asarray(value, np.float64), 7).tolist()


def _write() -> None:
    import keras
    import tensorflow as tf

    found = {name: outcome(keras, tf, case) for name, case in zip(NAMES, CASES, strict=True)}
    FILE.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    _write()
