"""Gradients of each element of a target. The numbers are TensorFlow 2.21's."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr


def test_against_differences() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3)), rng.standard_normal((3, 4))

    def compute(x: Any, w: Any) -> mr.Tensor:
        return mr.tanh(mr.matmul(x, w))

    variable = mr.Variable(w)
    given = mr.constant(x)
    with mr.GradientTape(persistent=True) as tape:
        tape.watch(given)
        y = compute(given, variable)
    found = tape.jacobian(y, {"x": given, "more": [variable]})
    for i, (value, by) in enumerate([(x, found["x"]), (w, found["more"][0])]):
        step = 1e-6 * rng.standard_normal(value.shape)
        both = [[x, w], [x, w]]
        both[0][i], both[1][i] = value + step, value - step
        moved = (compute(*both[0]) - compute(*both[1])).numpy() / 2.0
        assert by.shape == (2, 4, *value.shape)
        np.testing.assert_allclose(np.tensordot(by.numpy(), step, 2), moved, rtol=1e-6)
    whole = found["x"].numpy()
    batch = tape.batch_jacobian(y, given).numpy()
    np.testing.assert_array_equal(batch, np.stack([whole[i, :, i] for i in range(2)]))


@pytest.mark.parametrize("recorded", [False, True])
def test_hessians(recorded: bool) -> None:
    def hessian(x: Any) -> Any:
        with mr.GradientTape() as outer:
            outer.watch(x)
            with mr.GradientTape() as inner:
                inner.watch(x)
                y = mr.reduce_sum(x**3.0) + x[0] * x[1]
            by_once = inner.jacobian(y, x)
        return by_once, outer.jacobian(by_once, x)

    found = (mr.function(hessian) if recorded else hessian)(mr.constant([1.0, 2.0]))
    assert [each.numpy().tolist() for each in found] == [[5.0, 13.0], [[6.0, 1.0], [1.0, 12.0]]]


def test_unconnected() -> None:
    x, other = mr.constant([[1.0, 2.0]]), mr.constant([[5.0]])
    with mr.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    by_x, by_other = tape.jacobian(y, (x, other))
    assert (by_x.shape, by_other) == ((1, 2, 1, 2), None)
    for zero in ("zero", mr.UnconnectedGradients.ZERO):
        assert tape.jacobian(y, other, zero).numpy().tolist() == [[[[0.0]], [[0.0]]]]
    assert tape.batch_jacobian(y, other).numpy().tolist() == [[[0.0], [0.0]]]
    assert tape.jacobian(mr.cast(y, "int32"), x) is None


@cases(
    ("target", "source", "shape"),
    [((0,), (2,), (0, 2)), ((2,), (0,), (2, 0)), ((), (2,), (2,)), ((), (), ())],
)
def test_shapes(target: tuple[int, ...], source: tuple[int, ...], shape: tuple[int, ...]) -> None:
    x = mr.ones(source)
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = mr.reduce_sum(x) * mr.ones(target)
    assert tape.jacobian(y, x).shape == shape


def test_what_is_refused() -> None:
    x = mr.constant([[1.0, 2.0], [3.0, 4.0]])
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        row = y[0]
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'foo'"):
        tape.jacobian(y, x, "foo")
    with pytest.raises(RuntimeError, match="persistent=True to compute the jacobian"):
        tape.jacobian(y, x, experimental_use_pfor=False)
    with pytest.raises(AttributeError, match="The target of a jacobian must be one tensor"):
        tape.jacobian([y, y], x)
    with pytest.raises(ValueError, match=r"Shape \(2,\) must have rank at least 2"):
        tape.batch_jacobian(row, x)
    with pytest.raises(ValueError, match="Need first dimension of target shape"):
        tape.batch_jacobian(y[:1], x)
    assert tape.jacobian(y, x).shape == (2, 2, 2, 2)
    with pytest.raises(RuntimeError, match="only be used to compute one set of gradients"):
        tape.batch_jacobian(y, x)
