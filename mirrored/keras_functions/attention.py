"""`keras.ops.dot_product_attention`: attention of queries, keys and values in heads."""

import math
from typing import Any

from mirrored import ops
from mirrored._arguments import explained
from mirrored.keras_functions.promotion import common as _common
from mirrored.ops import Tensor


@explained
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    scale: Any = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: None = None,
) -> Tensor:
    """Return for each query a mean of values, weighed by how well their keys match it.

    Vaswani et al., Attention Is All You Need, 2017: https://arxiv.org/abs/1706.03762

    Args:
        query: Floats of shape (batch, queries, heads, size).
        key: Floats of shape (batch, keys, heads, size); of fewer heads each is shared by as many
            of the query's.
        value: The same.
        bias: What is added to the products of queries and keys, of a shape that broadcasts to
            (batch, heads, queries, keys); None: nothing.
        mask: Booleans that broadcast to that shape: which keys each query may look at; None: all.
        scale: What the products are multiplied by; None: 1 / sqrt(size).
        is_causal: Whether a query may look at nothing behind its own place.
        flash_attention: False or None: there is no such implementation here.
        attn_logits_soft_cap: None, as in Keras but on TPUs.

    Raises:
        ValueError: One of the three has not four axes; or what is not here is asked for.

    Example:
        >>> import mirrored as mr
        >>> query, key = mr.ones((2, 4, 8, 16)), mr.ones((2, 6, 8, 16))
        >>> mr.keras.ops.dot_product_attention(query, key, key).shape
        (2, 4, 8, 16)
    """
    from mirrored.ops.attention import attended  # Few programs need it.

    if attn_logits_soft_cap is not None:
        raise ValueError(
            "attn_logits_soft_cap is only supported for JAX on TPU. Set attn_logits_soft_cap=None "
            "when not using JAX on TPU."
        )
    if flash_attention:
        raise ValueError("There is no flash attention here. Leave `flash_attention` out.")
    query, key, value = _common(query, key, value)
    if not query.ndim == key.ndim == value.ndim == 4:
        raise ValueError(
            "`dot_product_attention` only supports 4D inputs. Received: query.shape="
            f"{query.shape}, key.shape={key.shape}, value.shape={value.shape}."
        )
    heads, groups = query.shape[2], key.shape[2]
    if heads > groups > 1:
        key, value = (ops.repeat(tensor, heads // groups, axis=2) for tensor in (key, value))
    if mask is not None:
        mask = ops.cast(mask, ops.bool_)
    if is_causal:
        rows, columns = ops.range(query.shape[1]), ops.range(key.shape[1])
        before = ops.greater_equal(ops.reshape(rows, (-1, 1)), columns)
        mask = before if mask is None else ops.logical_and(mask, before)
    factor = 1.0 / math.sqrt(key.shape[-1]) if scale is None else scale
    return attended(query, key, value, mask, factor, bias)
