"""TensorFlow 1's `tf.nn`."""

import typing as _typing

from mirrored.compat.v1.calls import ROWS as _ROWS
from mirrored.compat.v1.calls import named_call as _named_call
from mirrored.compat.v1.special import dropout as dropout
from mirrored.compat.v1.special import embedding_lookup as embedding_lookup
from mirrored.compat.v1.special import in_top_k as in_top_k
from mirrored.compat.v1.special import relu_layer as relu_layer
from mirrored.compat.v1.special import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from mirrored.compat.v1.special import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from mirrored.compat.v1.special import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from mirrored.compat.v1.special import xw_plus_b as xw_plus_b


def __getattr__(name: str) -> _typing.Any:
    if f"nn.{name}" in _ROWS:
        call = globals()[name] = _named_call(f"nn.{name}")
        return call
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. docs/from-tensorflow-1.md lists what is "
        "there."
    )
