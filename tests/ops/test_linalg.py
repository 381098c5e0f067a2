"""Matrix products."""

import logging
from typing import Any

import numpy as np
import pytest
from case_table import cases

from mirrored import devices, ops
from mirrored.errors import InvalidArgumentError


def test_product_of_lists() -> None:
    product = ops.matmul([[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(product.numpy(), [[22, 28], [49, 64]])


@cases("shapes", [((2, 2), (2, 2)), ((2, 2), (3, 2, 2)), ((3, 2, 2), (2, 2))])
def test_function_and_operator_agree(shapes: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape) for shape in shapes)
    expected = np.matmul(a, b)
    for product in (
        ops.matmul(a, b),
        ops.constant(a) @ b,
        a @ ops.constant(b),
        ops.constant(a) @ ops.constant(b),
        a.tolist() @ ops.constant(b),
    ):
        assert product.dtype == ops.float64
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-14)


@pytest.mark.parametrize(("rank", "name"), [(2, "MatMul"), (3, "BatchMatMulV2")])
def test_op_is_named_by_rank(rank: int, name: str, caplog: pytest.LogCaptureFixture) -> None:
    a = ops.ones((2,) * rank)
    devices.set_log_device_placement(True)
    with caplog.at_level(logging.INFO, "mirrored"):
        caplog.clear()
        assert ops.matmul(a, a).shape == (a @ a).shape
    assert [message.split()[2] for message in caplog.messages] == [name, name]


@pytest.mark.behaviour("shapes-that-do-not-fit")
@cases(
    ("a", "b", "text"),
    [
        ((2, 3), (2, 3), "Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3] [Op:MatMul]"),
        ((3,), (3, 2), "must be matrices, or batches of them. Received: [3] and [3,2]"),
        ((2, 2, 2), (3, 2, 2), "Incompatible shapes: [2] vs. [3] [Op:BatchMatMulV2]"),
    ],
)
def test_shapes_that_do_not_fit(a: Any, b: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        ops.matmul(ops.ones(a), ops.ones(b))
    assert text in str(caught.value)
    with pytest.raises(InvalidArgumentError):
        ops.ones(a) @ ops.ones(b)


def test_matmul_op_itself_takes_matrices_alone() -> None:
    with pytest.raises(InvalidArgumentError, match="must be matrices"):
        ops.OPS["MatMul"](
            ops.ones((2, 2, 2)), ops.ones((2, 2, 2)), transpose_a=False, transpose_b=False
        )
