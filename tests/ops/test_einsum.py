"""Sums of products by Einstein's convention, held to NumPy's `einsum`."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored import ops
from mirrored.errors import InvalidArgumentError

RNG = np.random.default_rng(2)


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    return [RNG.normal(size=shape) for shape in shapes]


CASES: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij->ji", ((2, 3),)),
    ("ba", ((2, 3),)),
    ("ij->j", ((2, 3),)),
    ("...i->...", ((2, 3, 4),)),
    ("ii", ((3, 3),)),
    ("iij->j", ((3, 3, 2),)),
    ("iji->ij", ((3, 2, 3),)),
    ("iii->i", ((3, 3, 3),)),
    ("aaBBc->cBa", ((3, 3, 2, 2, 4),)),
    ("i,j->ji", ((2,), (3,))),
    ("ij,ji->ij", ((2, 3), (3, 2))),
    (",i->i", ((), (2,))),
    ("ij,kl->i", ((2, 3), (4, 5))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ji,kj->ik", ((3, 2), (4, 3))),
    (" ji , jk -> ki ", ((3, 2), (3, 4))),
    ("ijk,kjl->li", ((2, 3, 4), (4, 3, 5))),
    ("bqhd,bkhd->bhqk", ((2, 3, 2, 4), (2, 5, 2, 4))),
    ("bhqk,bkhd->bqhd", ((2, 2, 3, 5), (2, 5, 2, 4))),
    ("...ij,...jk->...ik", ((5, 1, 2, 3), (4, 3, 4))),
    ("i...,...j->i...j", ((2, 3), (3, 2))),
    ("i...,i...->...i", ((2, 3), (2, 1))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 5), (5, 2))),
    ("...i,...ij,...j->...", ((2, 3), (3, 4), (5, 2, 4))),
    ("i,j,ij->", ((2,), (3,), (2, 3))),
    ("ij,jk->ik", ((2, 0), (0, 3))),
]


@cases(("equation", "shapes"), CASES, ids=[each for each, _ in CASES])
def test_values(equation: str, shapes: Any) -> None:
    given = arrays(*shapes)
    expected = np.einsum(equation.replace(" ", ""), *given)
    np.testing.assert_allclose(
        ops.einsum(equation, *given).numpy(), expected, rtol=1e-12, atol=1e-14
    )


def test_integers() -> None:
    a, b = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)
    found = ops.einsum("ij,jk->ki", a, b)
    assert found.dtype == ops.int64
    np.testing.assert_array_equal(found.numpy(), (a @ b).T)


def test_gradients_and_recorded_functions() -> None:
    """A gradient by an input is another such sum."""
    a, b, g = arrays((2, 1, 3, 4), (5, 6, 4), (2, 5, 6, 3))
    x, y = ops.constant(a), ops.constant(b)

    @mr.function
    def gradients(x: Any, y: Any) -> Any:
        with mr.GradientTape() as tape:
            tape.watch([x, y])
            target = ops.reduce_sum(ops.einsum("...qd,...kd->...kq", x, y) * g)
        return tape.gradient(target, [x, y])

    by_x, by_y = gradients(x, y)
    wide = np.broadcast_to(a, (2, 5, 3, 4))
    expected = np.einsum("abkq,bkd->aqd", g, b)[:, None]
    np.testing.assert_allclose(by_x.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(by_y.numpy(), np.einsum("abkq,abqd->bkd", g, wide), rtol=1e-12)


@cases(
    ("equation", "shapes", "kind", "text"),
    [
        ("ij,jk->ik", ((2, 3),), ValueError, "Got 1 inputs for equation"),
        ("ij->ik", ((2, 3),), ValueError, "the label k not present"),
        ("ij->ii", ((2, 3),), ValueError, "label appearing more than once"),
        ("ij->i->j", ((2, 3),), ValueError, "incorrect format"),
        ("i0->i", ((2, 3),), ValueError, "incorrect format"),
        ("i.j->i", ((2, 3),), ValueError, "incorrect format"),
        ("...i...->i", ((2, 3),), ValueError, "Too many ellipses"),
        ("...ij->ij", ((2, 2, 3),), InvalidArgumentError, "1 broadcasting dimension"),
        ("ij,jk->ik", ((2, 3), (4, 4)), InvalidArgumentError, "Expected dimension 3 at axis 0"),
        ("ij,ij->ij", ((2, 1), (2, 4)), InvalidArgumentError, "Expected dimension 1 at axis 1"),
        ("ii->i", ((2, 3),), InvalidArgumentError, "Expected dimension 2 at axis 1"),
        ("ij->i", ((2, 3, 4),), InvalidArgumentError, "Expected input 0 to have rank 2"),
        ("...ij->...", ((2,),), InvalidArgumentError, "to have rank at least 2"),
        ("...i,...i->...", ((2, 3), (4, 3)), InvalidArgumentError, "Expected dimension 2 at"),
    ],
)
def test_what_is_refused(equation: str, shapes: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        ops.einsum(equation, *arrays(*shapes))


def test_options() -> None:
    a, b = arrays((2, 3), (3, 2))
    np.testing.assert_array_equal(ops.einsum("ij->ji", a, optimize="optimal").numpy(), a.T)
    with pytest.raises(KeyError, match="Path optimizer 'best' not found"):
        ops.einsum("ij,jk,kl->il", a, b, a, optimize="best")
    with pytest.raises(InvalidArgumentError, match=r"Value for attr 'T' of bool .* \[Op:Einsum\]"):
        ops.einsum("i->", [True])
    with pytest.raises(
        InvalidArgumentError, match="was expected to be a float tensor but is a int32"
    ):
        ops.einsum("i,i->", ops.constant([1.0]), ops.constant([1]))
