"""Layers that pad, crop and enlarge: shapes of placeholders, replicas, and wrong arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import layers

SHAPES: list[tuple[Callable[[], Any], tuple[Any, ...], tuple[Any, ...]]] = [
    (lambda: layers.ZeroPadding1D((1, 2)), (None, 3), (None, None, 3)),
    (lambda: layers.ZeroPadding2D(1, "channels_first"), (3, None, 4), (None, 3, None, 6)),
    (lambda: layers.ZeroPadding3D(), (2, None, 4, 3), (None, 4, None, 6, 3)),
    (lambda: layers.Cropping1D(2), (None, 3), (None, None, 3)),
    (lambda: layers.Cropping2D((1, 2)), (None, 8, None), (None, None, 4, None)),
    (lambda: layers.Cropping3D(1, "channels_first"), (3, 4, None, 5), (None, 3, 2, None, 3)),
    (lambda: layers.UpSampling1D(3), (None, 3), (None, None, 3)),
    (lambda: layers.UpSampling2D((2, 3)), (None, 4, 3), (None, None, 12, 3)),
    (lambda: layers.UpSampling2D(2, None, "bilinear"), (None, 4, 3), (None, None, 8, 3)),
    (lambda: layers.UpSampling3D(2, "channels_first"), (3, 1, None, 2), (None, 3, 2, None, 4)),
    (lambda: layers.GlobalMaxPool2D("channels_first"), (None, 4, 3), (None, None)),
    (lambda: layers.GlobalAvgPool3D(None, True), (None, 4, None, 3), (None, 1, 1, 1, 3)),
    (lambda: layers.SpatialDropout2D(0.5), (None, 4, 3), (None, None, 4, 3)),
]


@cases(("make", "sizes", "expected"), SHAPES)
def test_shapes_of_placeholders(
    make: Callable[[], Any], sizes: tuple[Any, ...], expected: tuple[Any, ...]
) -> None:
    layer = make()
    assert layer(layers.Input(sizes)).shape == expected
    assert layer.compute_output_shape((5, *sizes)) == (5, *expected[1:])


def images(dtype: str) -> mr.Model:
    """Return a model of these layers, whose weights begin the same everywhere."""
    return mr.Sequential(
        [
            layers.ZeroPadding2D(((1, 0), 2), dtype=dtype),
            layers.SpatialDropout2D(0.25, seed=3, dtype=dtype),
            layers.BatchNormalization(dtype=dtype),
            layers.UpSampling2D(2, interpolation="bilinear", dtype=dtype),
            layers.BatchNormalization(axis=1, dtype=dtype),
            layers.Cropping2D(1, dtype=dtype),
            layers.Dense(3, kernel_initializer="ones", dtype=dtype),
            layers.GlobalMaxPooling2D(dtype=dtype),
            layers.Dense(1, kernel_initializer="ones"),
        ]
    )


@cases("policy", ["float32", "mixed_bfloat16"])
def test_replicas_train_as_one(policy: str, simulate: Callable[..., Any]) -> None:
    """Of the last batch one replica has an example, and two have none."""
    simulate(3)
    x = np.random.default_rng(0).normal(size=(11, 3, 4, 2)).astype(np.float32)
    outcomes = []
    for replicas in (1, 3):
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = images(policy)
            model.compile("sgd", "mse")
        options = {"batch_size": 5, "epochs": 2, "shuffle": False, "verbose": 0}
        history = model.fit(x, x[:, 0, 0, :1], **options).history
        outcomes.append([history["loss"], *model.get_weights()])
    tolerance = 1e-5 if policy == "float32" else 2e-2
    for one, three in zip(*outcomes, strict=True):
        np.testing.assert_allclose(three, one, rtol=tolerance, atol=tolerance)


@cases("dtype", ["bfloat16", "float64", "int8"])
def test_dtypes(dtype: str) -> None:
    x = mr.cast(np.arange(16).reshape((1, 2, 4, 2)), dtype)
    policy = {"int8": "float32", "bfloat16": "mixed_bfloat16"}.get(dtype, dtype)
    for make in (layers.ZeroPadding2D, layers.Cropping2D, layers.UpSampling2D):
        assert make(dtype=policy)(x).dtype == dtype
    assert layers.GlobalMaxPooling2D(dtype=policy)(x).dtype == dtype
    assert layers.UpSampling2D(interpolation="area", dtype=policy)(x).dtype == dtype
    average = layers.GlobalAveragePooling2D(dtype=policy)(x)
    assert average.dtype == ("float32" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(mr.cast(average, "float32"), [[7.0, 8.0]])


@cases(
    ("make", "error", "match"),
    [
        (lambda: layers.ZeroPadding1D(-1), ValueError, "`padding` argument must be a tuple of 2"),
        (lambda: layers.ZeroPadding1D((1, 2, 3)), ValueError, "must be a tuple of 2 integers"),
        (lambda: layers.ZeroPadding2D((1, 2, 3)), ValueError, "a tuple of 2 tuples of 2 ints"),
        (lambda: layers.ZeroPadding2D(1.5), ValueError, "`padding` should be either an int"),
        (lambda: layers.ZeroPadding2D("ab"), ValueError, "`padding` should be either an int"),
        (lambda: layers.ZeroPadding2D(((1, -2), 1)), ValueError, "`1st entry of padding`"),
        (lambda: layers.ZeroPadding3D((1, 2, 0.5)), ValueError, "`3rd entry of padding`"),
        (lambda: layers.ZeroPadding2D(data_format="x"), ValueError, "`data_format` argument must"),
        (lambda: layers.ZeroPadding2D()(np.ones((2, 3, 4))), ValueError, "found ndim=3"),
        (lambda: layers.Cropping2D(-1), ValueError, "`cropping` argument must be a tuple of 2"),
        (lambda: layers.Cropping2D((1, (2, 3, 4))), ValueError, "`2nd entry of cropping`"),
        (lambda: layers.Cropping3D((1, 2)), ValueError, "a tuple of 3 tuples of 2 ints"),
        (lambda: layers.Cropping1D(2)(np.ones((2, 4, 1))), ValueError, "than the input length"),
        (lambda: layers.Cropping2D((2, 0))(layers.Input((4, None, 1))), ValueError, "smaller than"),
        (lambda: layers.UpSampling1D(2.0), TypeError, "Expected an integer value for `size`"),
        (lambda: layers.UpSampling1D(0), ValueError, "`size` should be a positive integer"),
        (lambda: layers.UpSampling2D(0), ValueError, "`size` argument must be a tuple of 2"),
        (
            lambda: layers.UpSampling2D(interpolation="linear"),
            ValueError,
            "`interpolation` argument",
        ),
        (lambda: layers.UpSampling3D((1, 2)), ValueError, "`size` argument must be a tuple of 3"),
        (lambda: layers.GlobalMaxPooling2D()(np.ones((2, 3, 4))), ValueError, "found ndim=3"),
        (lambda: layers.GlobalAveragePooling3D("x"), ValueError, "`data_format` argument must"),
    ],
)
def test_arguments_that_are_wrong(
    make: Callable[[], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        make()
