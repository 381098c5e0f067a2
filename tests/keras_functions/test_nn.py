"""Attention as a function: against NumPy, for heads that share keys, and what it refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

K = mr.keras.ops
DRAWS = np.random.default_rng(0)
QUERY = DRAWS.normal(size=(2, 3, 4, 5)).astype(np.float32)
KEY, VALUE = DRAWS.normal(size=(2, 2, 6, 4, 5)).astype(np.float32)
BIAS = DRAWS.normal(size=(4, 3, 6)).astype(np.float32)
MASK = DRAWS.integers(0, 2, (2, 1, 3, 6)) == 1


def reference(key: Any, value: Any, bias: Any, mask: Any, scale: float) -> Any:
    scores = np.einsum("btnh,bsnh->bnts", QUERY, key) * scale + bias
    powers = np.exp(np.where(mask, scores, -1e30))
    return np.einsum("bnts,bsnh->btnh", powers / powers.sum(axis=-1, keepdims=True), value)


CALLS: dict[str, tuple[dict[str, Any], Any, Any, float]] = {
    "plain": ({}, 0, True, 5**-0.5),
    "scaled": ({"scale": 0.5}, 0, True, 0.5),
    "with a bias": ({"bias": BIAS}, BIAS, True, 5**-0.5),
    "masked": ({"mask": MASK}, 0, MASK, 5**-0.5),
    "causal": ({"is_causal": True, "mask": MASK[:, :, 1:2]}, 0, None, 5**-0.5),
}


@cases("call", CALLS)
def test_means_are_numpy_s(call: str) -> None:
    options, bias, mask, scale = CALLS[call]
    if mask is None:
        mask = MASK[:, :, 1:2] & np.tri(3, 6, dtype=bool)
    kept = np.broadcast_to(mask, (2, 4, 3, 6)).any(axis=-1).swapaxes(1, 2)
    with np.errstate(invalid="ignore"):
        expected = reference(KEY, VALUE, bias, mask, scale)
    found = K.dot_product_attention(QUERY, KEY, VALUE, **options).numpy()
    np.testing.assert_allclose(found[kept], expected[kept], rtol=1e-4, atol=1e-5)
    everything = np.broadcast_to(VALUE.mean(axis=1, keepdims=True), found.shape)
    np.testing.assert_allclose(found[~kept], everything[~kept], rtol=1e-4, atol=1e-5)


def test_heads_share_keys_and_values() -> None:
    found = K.dot_product_attention(QUERY, KEY[:, :, :2], VALUE[:, :, :2])
    each = K.dot_product_attention(QUERY, KEY[:, :, [0, 0, 1, 1]], VALUE[:, :, [0, 0, 1, 1]])
    np.testing.assert_array_equal(found, each)


@cases(
    ("call", "text"),
    [
        (lambda: K.dot_product_attention(QUERY[0], KEY, VALUE), "only supports 4D inputs"),
        (
            lambda: K.dot_product_attention(QUERY, KEY, VALUE, flash_attention=True),
            "ash attention is not supported",
        ),
        (
            lambda: K.dot_product_attention(QUERY, KEY, VALUE, attn_logits_soft_cap=2.0),
            "attn_logits_soft_cap=None",
        ),
        (lambda: K.dot_product_attention(QUERY, KEY[:, :, :3], VALUE), "dimension 4 at axis 2"),
    ],
)
def test_what_is_not_here_is_refused(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()
