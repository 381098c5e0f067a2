"""Layers that make one tensor of several, against NumPy, and their errors against Keras 3.15."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import layers
from mirrored.layers.merging import Merge

RNG = np.random.default_rng(0)
A, B, C = (RNG.normal(size=(5, 3)) for _ in range(3))
T, U = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 3, 4))
ROW = RNG.normal(size=(5, 1))


def unit(x: np.ndarray, axis: int) -> np.ndarray:
    return x / np.sqrt((x * x).sum(axis=axis, keepdims=True))


# A layer, its inputs, and what NumPy makes of them.
CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray], np.ndarray]] = {
    "Add": (layers.Add, [A, B, C], A + B + C),
    "Add one": (layers.Add, [A], A),
    "Add broadcasting": (layers.Add, [A, ROW], A + ROW),
    "Add of other ranks": (layers.Add, [A, T], A[:, None] + T),
    "Subtract": (layers.Subtract, [A, B], A - B),
    "Multiply": (layers.Multiply, [A, B, C], A * B * C),
    "Average": (layers.Average, [A, B, C], (A + B + C) / 3),
    "Maximum": (layers.Maximum, [A, B, C], np.maximum(np.maximum(A, B), C)),
    "Minimum": (layers.Minimum, [T, A], np.minimum(T, A[:, None])),
    "Concatenate": (layers.Concatenate, [A, ROW, B], np.concatenate([A, ROW, B], -1)),
    "Concatenate axis 1": (
        lambda **options: layers.Concatenate(axis=1, **options),
        [T, U[..., :3]],
        np.concatenate([T, U[..., :3]], 1),
    ),
    "Dot": (lambda **o: layers.Dot(axes=1, **o), [A, B], (A * B).sum(1, keepdims=True)),
    "Dot of two axes": (
        lambda **options: layers.Dot(axes=(2, 1), **options),
        [T, U],
        np.einsum("bij,bjk->bik", T, U),
    ),
    "Dot from behind": (
        lambda **options: layers.Dot(axes=(-1, -2), **options),
        [A, U],
        np.einsum("bj,bjk->bk", A, U),
    ),
    "Dot rank 4": (
        lambda **options: layers.Dot(axes=(1, 2), **options),
        [U[:, :, None], T[..., None]],
        np.einsum("bjxk,bijy->bxkiy", U[:, :, None], T[..., None]),
    ),
    "Dot normalized": (
        lambda **options: layers.Dot(axes=1, normalize=True, **options),
        [A, B],
        (unit(A, 1) * unit(B, 1)).sum(1, keepdims=True),
    ),
}


def test_every_such_layer_is_in_the_table() -> None:
    public = {
        value
        for _, value in inspect.getmembers(layers)
        if isinstance(value, type) and issubclass(value, Merge)
    }
    assert public == {type(make()) for make, _, _ in CASES.values()}


@cases(("make", "inputs", "expected"), CASES.values(), ids=CASES)
def test_values_gradients_and_shapes(
    make: Callable[..., Any], inputs: list[np.ndarray], expected: np.ndarray
) -> None:
    tensors = [mr.constant(each) for each in inputs]
    layer = make(dtype="float64")
    with mr.GradientTape() as tape:
        tape.watch(tensors)
        output = layer(tensors)
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-12)
    assert None not in tape.gradient(output, tensors)
    drawn = [layers.Input(each.shape[1:], dtype="float64") for each in inputs]
    announced = make(dtype="float64")(drawn)
    shapes = [(None, *each.shape[1:]) for each in inputs]
    assert announced.shape == layer.compute_output_shape(shapes) == (None, *expected.shape[1:])
    model = mr.Model(drawn, announced)
    np.testing.assert_allclose(
        model([each[:2] for each in inputs]).numpy(), expected[:2], rtol=1e-12
    )
    # Placeholders may have batches and other sizes that are not known.
    drawn = [layers.Input((None,) * (each.ndim - 1), dtype="float64") for each in inputs]
    model = mr.Model(drawn, make(dtype="float64")(drawn))
    np.testing.assert_allclose(model(inputs).numpy(), expected, rtol=1e-12)


@cases("name", ["Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"])
def test_integers_and_the_functional_forms(name: str) -> None:
    ints, floats = np.arange(6).reshape(2, 3), np.ones((2, 3), np.float32)
    function = getattr(mr.keras.layers, name.lower())
    both = function([ints, ints], name="both")
    assert both.dtype == (np.float64 if name == "Average" else np.int64)
    assert function([ints, floats]).dtype == np.float32
    assert both.numpy().tolist() == getattr(layers, name)()([ints, ints]).numpy().tolist()
    drawn = function([layers.Input((3,), dtype="int64"), layers.Input((3,), dtype="int64")])
    assert drawn.dtype == both.dtype
    assert re.fullmatch(rf"{name.lower()}(_\d+)?", drawn.node.callee.name)
    assert isinstance(drawn.node.callee, getattr(layers, name))


def test_the_functional_forms_draw_layers() -> None:
    pair = [layers.Input((3,)), layers.Input((3,))]
    joined, product = layers.concatenate(pair, axis=1), layers.dot(pair, axes=1, name="product")
    assert isinstance(joined.node.callee, layers.Concatenate)
    assert isinstance(product.node.callee, layers.Dot)
    assert [each.shape for each in (joined, product)] == [(None, 6), (None, 1)]
    assert mr.Model(pair, [joined, product]).get_layer("product") is product.node.callee


x, y, z = layers.Input((3,)), layers.Input((4,)), layers.Input((2, 3))
REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    # In Keras' words (3.15.1).
    "no list": (
        lambda: layers.Add()(x),
        ValueError,
        "A merge layer should be called on a list of inputs. Received: input_shape=(None, 3)",
    ),
    "shapes": (
        lambda: layers.Add()([x, y]),
        ValueError,
        "Inputs have incompatible shapes. Received shapes (3,) and (4,)",
    ),
    "batches": (
        lambda: layers.Add()([np.ones((2, 3)), np.ones((3, 3))]),
        ValueError,
        "Cannot merge tensors with different batch sizes. Received tensors with shapes [(2, 3)",
    ),
    "three to subtract": (
        lambda: layers.subtract([x, x, x]),
        ValueError,
        "A `Subtract` layer should be called on exactly 2 inputs. Received: input_shape=[(None",
    ),
    "no list to join": (
        lambda: layers.concatenate(x),
        ValueError,
        "A `Concatenate` layer should be called on a list of at least 1 input. Received: input_sh",
    ),
    "other sizes": (
        lambda: layers.concatenate([x, z]),
        ValueError,
        "A `Concatenate` layer requires inputs with matching shapes except for the concatenation",
    ),
    "other sizes along others": (
        lambda: layers.Concatenate(axis=1)([z, layers.Input((2, 4))]),
        ValueError,
        "A `Concatenate` layer requires inputs with matching shapes except for the concatenation",
    ),
    "three to dot": (
        lambda: layers.dot([x, x, x], axes=1),
        ValueError,
        "A `Dot` layer should be called on a list of 2 inputs. Received: input_shape=[(None, 3)",
    ),
    "sizes of axes": (
        lambda: layers.dot([x, y], axes=1),
        ValueError,
        "Incompatible input shapes: axis values 3 (at axis 1) != 4 (at axis 1). Full input shapes",
    ),
    "the batch": (
        lambda: layers.dot([x, x], axes=0),
        ValueError,
        "Cannot perform batch_dot over axis 0.",
    ),
    "no axes": (lambda: layers.Dot("a"), TypeError, "Invalid type for argument `axes`: it should"),  # type: ignore[arg-type]
    "three axes": (
        lambda: layers.Dot((1, 2, 3)),  # type: ignore[arg-type]
        ValueError,
        "Invalid format for argument `axes`: it should contain two elements. Received: axes=(1, 2",
    ),
    "axes of floats": (
        lambda: layers.Dot((1, 2.0)),  # type: ignore[arg-type]
        ValueError,
        "Invalid format for argument `axes`: list elements should be integers. Received: axes=(1",
    ),
}


@pytest.mark.behaviour("merged-inputs")
@cases(("call", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()
