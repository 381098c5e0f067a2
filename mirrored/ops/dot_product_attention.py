"""Attention by products of queries and keys, for heads side by side.

The layers of several heads and `keras.ops.dot_product_attention` are made of it.
"""

from typing import Any

from mirrored.ops.contraction import einsum
from mirrored.ops.conversion import constant
from mirrored.ops.elementwise import ADD, MUL
from mirrored.ops.select import where
from mirrored.ops.shaping import cast
from mirrored.ops.softmax import softmax
from mirrored.ops.spec import float32, is_narrow
from mirrored.ops.tensor import Tensor

_LOWEST = -0.7 * 3.38953e38  # Keras' score of what a mask leaves out.


def attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Any, scale: float, bias: Any = None
) -> Tensor:
    """Return means of values, by the softmax of products of queries and keys in float32 or more.

    A query that may look at no key has the mean of all values.

    Args:
        query: Floats of shape (batch, queries, heads, size).
        key: The same dtype, and shape (batch, keys, heads, size).
        value: The same.
        mask: Booleans that broadcast to (batch, heads, queries, keys): which keys each query may
            look at; None: all.
        scale: What the products are multiplied by.
        bias: What is added to them then, of a shape that broadcasts likewise; None: nothing.
    """
    narrow = is_narrow(query.dtype)
    if not narrow:  # As well as the products, which are more.
        query = MUL(query, scale)
    scores = einsum("btnh,bsnh->bnts", query, key)
    if narrow:
        scores = MUL(cast(scores, float32), scale)
    if bias is not None:
        scores = ADD(scores, cast(bias, scores.dtype))
    if mask is not None:
        scores = where(mask, scores, constant(_LOWEST, scores.dtype))
    return einsum("bnts,bsnh->btnh", cast(softmax(scores), value.dtype), value)
