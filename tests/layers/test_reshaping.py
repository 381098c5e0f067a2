"""Layers that change shapes, look up rows or call functions: in models, and wrong arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import InvalidArgumentError


def test_shapes_of_symbolic_tensors() -> None:
    x = mr.layers.Input((4, 6))
    assert mr.layers.Reshape((3, -1))(x).shape == (None, 3, 8)
    assert mr.layers.Permute((2, 1))(x).shape == (None, 6, 4)
    assert mr.layers.GlobalAveragePooling1D()(x).shape == (None, 6)
    assert mr.layers.GlobalMaxPool1D(keepdims=True)(x).shape == (None, 1, 6)
    assert mr.layers.RepeatVector(3)(mr.layers.Input((5,))).shape == (None, 3, 5)
    assert mr.layers.Embedding(5, 2)(mr.layers.Input((7,), dtype="int32")).shape == (None, 7, 2)
    assert mr.layers.Lambda(lambda x: x[:, :1])(x).shape == (None, 1, 6)
    assert mr.layers.Lambda(lambda x: x, output_shape=(4, 6))(x).shape == (None, 4, 6)
    unknown = mr.layers.Input((None, 6))
    assert mr.layers.Reshape((-1, 3))(unknown).shape == (None, None, 3)


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_model_of_them_trains(replicas: int, simulate: Callable[..., Any]) -> None:
    """Words as integers, of which the last batch has fewer than there are replicas."""
    simulate(3)
    words = np.random.default_rng(0).integers(9, size=(11, 4))
    with mr.MirroredStrategy([f"GPU:{i}" for i in range(replicas)]).scope():
        ids = mr.layers.Input((4,), dtype="int32")
        vectors = mr.layers.Embedding(9, 3, embeddings_initializer="ones")(ids)
        scaled = mr.layers.Lambda(lambda x, factor: x * factor, arguments={"factor": 2.0})(vectors)
        pooled = mr.layers.GlobalAveragePooling1D()(mr.layers.Permute((1, 2))(scaled))
        shaped = mr.layers.Reshape((3,))(mr.layers.Reshape((1, 3))(pooled))
        model = mr.Model(ids, mr.layers.Dense(1, kernel_initializer="ones")(shaped))
        model.compile("sgd", "mse")
    losses = model.fit(words, words[:, :1] / 9, batch_size=5, epochs=3, shuffle=False, verbose=0)
    # What one device prints, by NumPy in float64.
    np.testing.assert_allclose(losses.history["loss"], expected(words), rtol=1e-5)


def expected(words: Any) -> list[float]:
    """Return the losses of that model, from its formulas."""
    table, kernel, bias, rate = np.ones((9, 3)), np.ones((3, 1)), 0.0, 0.01
    found = []
    for _ in range(3):
        total = 0.0
        for start in range(0, 11, 5):
            batch = words[start : start + 5]
            pooled = 2 * table[batch].mean(axis=1)
            error = pooled @ kernel + bias - batch[:, :1] / 9
            total += (error**2).sum()
            g = 2 * error / len(batch)
            rows = np.zeros_like(table)
            np.add.at(rows, batch, (2 / 4 * g @ kernel.T)[:, np.newaxis])
            kernel, bias, table = (
                kernel - rate * pooled.T @ g,
                bias - rate * g.sum(),
                table - rate * rows,
            )
        found.append(total / 11)
    return found


def test_a_function_is_told_the_mode() -> None:
    layer = mr.layers.Lambda(lambda x, training: x + 1 if training else x)
    assert float(layer([[1.0]], training=True)[0, 0]) == 2.0
    assert float(layer([[1.0]])[0, 0]) == 1.0


def test_a_row_that_is_not_there() -> None:
    layer = mr.layers.Embedding(3, 2)
    with pytest.raises(InvalidArgumentError, match=r"3 is not in \[0, 3\)"):
        layer(np.array([0, 3]))


def test_an_embedding_begins_with_a_table_that_is_given() -> None:
    table = np.arange(6.0).reshape(3, 2)
    for weights in (table, [table]):
        layer = mr.layers.Embedding(3, 2, weights=weights)
        np.testing.assert_array_equal(layer.embeddings, table)
        assert "weights" not in layer.get_config()
    with pytest.raises(ValueError, match=r"weight shape \(2, 2\)"):
        mr.layers.Embedding(2, 2, weights=table)


@cases(
    ("make", "error", "match"),
    [
        (lambda: mr.layers.Reshape((2, -1, -1)), ValueError, "one of them may be -1"),
        (
            lambda: mr.layers.Reshape((4,))(np.ones((2, 3))),
            ValueError,
            "The total size of the tensor must be unchanged",
        ),
        (lambda: mr.layers.Permute((0, 1)), ValueError, "must be consecutive and start from 1"),
        (lambda: mr.layers.Permute((1, 2))(np.ones((2, 3))), ValueError, "expected ndim=3"),
        (lambda: mr.layers.RepeatVector(0), ValueError, "`n` should be a positive integer"),
        (lambda: mr.layers.RepeatVector("x"), TypeError, "Expected an integer value for `n`"),
        (lambda: mr.layers.RepeatVector(2)(np.ones((2, 3, 4))), ValueError, "expected ndim=2"),
        (lambda: mr.layers.Embedding(0, 2), ValueError, "`input_dim`, expected a positive integer"),
        (lambda: mr.layers.Lambda(3), TypeError, "`function` is called with the inputs"),
        (
            lambda: mr.layers.GlobalMaxPooling1D("last"),
            ValueError,
            "The `data_format` argument must be one of",
        ),
        (lambda: mr.layers.ReLU(negative_slope=-1.0), ValueError, "cannot be None or a negative"),
        (lambda: mr.layers.PReLU(shared_axes="x"), TypeError, "Expected an int or a list/tuple"),
    ],
)
def test_arguments_that_are_wrong(
    make: Callable[[], Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        make()
