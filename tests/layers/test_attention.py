"""Attention: against NumPy, on several replicas, in mixed precision, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

DRAWS = np.random.default_rng(0)
X = DRAWS.normal(size=(11, 4, 6)).astype(np.float32)
Y = DRAWS.normal(size=(11, 5, 6)).astype(np.float32)


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_heads_are_the_paper_s() -> None:
    layer = mr.layers.MultiHeadAttention(2, 3, value_dim=4, bias_initializer="normal")
    outputs, scores = layer(X, Y, return_attention_scores=True)
    (wq, bq), (wk, bk), (wv, bv), (wo, bo) = np.reshape(
        np.array(layer.get_weights(), dtype=object), (4, 2)
    )
    heads = []
    for head in range(2):
        query, key, value = (
            x @ w[:, head] + b[head] for x, w, b in [(X, wq, bq), (Y, wk, bk), (Y, wv, bv)]
        )
        weights = softmax(query @ key.swapaxes(1, 2) / np.sqrt(3.0))
        np.testing.assert_allclose(scores[:, head], weights, rtol=1e-4, atol=1e-6)
        heads.append(weights @ value @ wo[head])
    np.testing.assert_allclose(outputs, sum(heads) + bo, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer(X, Y), outputs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scores", [False, True])
def test_queries_that_may_look_at_nothing(scores: bool) -> None:
    """As in Keras they get the mean of all values, or, where weights are asked for, none."""
    layer = mr.layers.MultiHeadAttention(2, 3)
    mask = np.zeros((11, 4, 5), bool)
    found = layer(X, Y, attention_mask=mask, return_attention_scores=scores)
    values = layer.value_dense(Y).numpy().mean(axis=1, keepdims=True) * (not scores)
    expected = layer.output_dense(np.repeat(values, 4, axis=1))
    np.testing.assert_allclose(found[0] if scores else found, expected, rtol=1e-5, atol=1e-6)


class Block(mr.layers.Layer):
    """Each layer of attention, that drops weights, around what it is called on."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = [
            mr.layers.MultiHeadAttention(2, 3, dropout=0.4),
            mr.layers.GroupQueryAttention(3, 2, 1, dropout=0.2, seed=3),
        ]
        self.plain = [
            mr.layers.Attention(True, dropout=0.4),
            mr.layers.AdditiveAttention(dropout=0.2, seed=3),
        ]

    def call(self, inputs: mr.Tensor) -> mr.Tensor:
        for layer in self.heads:
            inputs = mr.tanh(inputs + layer(inputs, inputs))
        for layer in self.plain:
            inputs = mr.tanh(inputs + layer([inputs, inputs]))
        return inputs


def test_replicas_drop_what_one_device_drops(simulate: Callable[..., Any]) -> None:
    simulate(3)
    found = []
    for replicas in (1, 3):
        mr.random.set_seed(7)
        with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
            model = mr.Sequential([Block(), mr.layers.Flatten(), mr.layers.Dense(1)])
            model.compile("sgd", "mse")
        model.fit(X, X[:, 0, :1], batch_size=5, epochs=2, verbose=0)
        found.append(model.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scores", [False, True])
def test_mixed_precision(scores: bool) -> None:
    wide, mixed = (
        mr.layers.MultiHeadAttention(
            2, 3, kernel_initializer=mr.keras.initializers.RandomNormal(stddev=0.3, seed=3), **more
        )
        for more in ({}, {"dtype": "mixed_bfloat16"})
    )
    call = {"use_causal_mask": True, "return_attention_scores": scores}
    expected, found = (mr.nest.flatten(each(X, X, **call)) for each in (wide, mixed))
    for one, other in zip(expected, found, strict=True):
        assert other.dtype == mr.bfloat16
        np.testing.assert_allclose(mr.cast(other, "float32"), one, atol=0.05)
    assert {each.dtype.name for each in mixed.weights} == {"float32"}


def test_the_inputs_keep_their_masks() -> None:
    layer = mr.layers.MultiHeadAttention(2, 3)
    inputs = mr.layers.Embedding(5, 6, mask_zero=True)(np.array([[1, 2, 0], [3, 0, 0]]))
    outputs = layer(inputs, inputs)
    for each in (inputs, outputs):
        np.testing.assert_array_equal(each._keras_mask, [[1, 1, 0], [1, 0, 0]])


@cases(
    ("call", "text"),
    [
        (lambda: mr.layers.MultiHeadAttention(0, 3), "`num_heads`, expected a positive"),
        (lambda: mr.layers.MultiHeadAttention(2, 3, 2.5), "positive integer or `None`"),
        (lambda: mr.layers.MultiHeadAttention(2, 3, dropout=2), "Invalid value .* `dropout`"),
        (lambda: mr.layers.MultiHeadAttention(2, 3, output_shape="a"), "Invalid `output_shape`"),
        (
            lambda: mr.layers.MultiHeadAttention(2, 3, output_shape=[1] * 30)(X, X),
            "at most 26 axes.* 30 new ones",
        ),
        (lambda: mr.layers.MultiHeadAttention(2, 3, sliding_window=0), "positive integer"),
        (lambda: mr.layers.MultiHeadAttention(2, 3, attention_axes="a"), "int, list, or tuple"),
        (
            lambda: mr.layers.MultiHeadAttention(2, 3, attention_axes=2)(X, X),
            "between the batch axis",
        ),
        (lambda: mr.layers.MultiHeadAttention(2, 3)(X[0], X[0]), "min_ndim=3"),
        (lambda: mr.layers.MultiHeadAttention(2, 3)(X, Y, X), "`value` and `key`, except"),
        (
            lambda: mr.layers.MultiHeadAttention(2, 3, flash_attention=True)(X, Y),
            "ash attention is not supported",
        ),
        (
            lambda: mr.layers.MultiHeadAttention(2, 3, dropout=0.5, flash_attention=True),
            "Dropout is not supported",
        ),
        (lambda: mr.layers.GroupQueryAttention(2, 3, 2), "must be divisible"),
        (lambda: mr.layers.GroupQueryAttention(2, 4, 2)(X[0], X[0]), "ndim=3, found ndim=2"),
        (lambda: mr.layers.Attention(score_mode="sum"), "argument score_mode"),
        (lambda: mr.layers.Attention()(X), "must be called on a list"),
        (lambda: mr.layers.Attention()((X, Y)), "must be called on a list"),
        (lambda: mr.layers.AdditiveAttention()([X]), "list of length 2 or 3"),
        (lambda: mr.layers.Attention()([X, Y], mask=X[:, :, 0]), "mask must be a list"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.slow
def test_an_emulated_card_computes_the_same(emulated_cuda: Callable[..., Any]) -> None:
    def trained(device: str) -> list[Any]:
        mr.random.set_seed(7)
        mr.config.experimental.enable_tensor_float_32_execution(False)
        with mr.distribute.OneDeviceStrategy(device).scope():
            x = mr.layers.Input((4, 6))
            bins = mr.layers.Discretization([-1.0, 0.0, 1.0])(x)
            counts = mr.layers.CategoryEncoding(4, "count")(bins)
            h = Block()(mr.layers.Normalization(mean=0.5, variance=2.0)(x))
            h = mr.layers.MultiHeadAttention(2, 3)(h, x, use_causal_mask=True)
            h = mr.layers.SpectralNormalization(mr.layers.Dense(6))(h)
            h = mr.layers.EinsumDense("abc,cd->abd", (4, 6), "tanh", "d")(h)
            h = mr.layers.BatchNormalization(renorm=True)(h)
            h = mr.layers.concatenate([mr.layers.Flatten()(each) for each in (h, counts)])
            model = mr.Model(x, mr.layers.Dense(1)(h))
            model.compile("sgd", "mse")
        loss = model.fit(X[:10], X[:10, 0, :1], batch_size=5, verbose=0).history["loss"]
        return [loss, *model.get_weights()]

    expected = trained("CPU:0")
    emulated_cuda()
    for one, other in zip(expected, trained("GPU:0"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
