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

_CONVOLUTIONS = "Convolutions and pooling are out of this library's scope."
_CELLS = "There are no cells of recurrent networks: write one, and use `tf.scan` or unroll it."
_SAMPLED = "Use `sparse_softmax_cross_entropy_with_logits` over all classes."
# What is refused, by the names of TensorFlow 1's.
_REFUSED = {
    **dict.fromkeys(("conv1d", "conv2d", "conv2d_transpose", "conv3d"), _CONVOLUTIONS),
    **dict.fromkeys(("max_pool", "avg_pool", "depthwise_conv2d", "lrn"), _CONVOLUTIONS),
    **dict.fromkeys(("rnn_cell", "dynamic_rnn", "static_rnn", "raw_rnn"), _CELLS),
    **dict.fromkeys(("nce_loss", "sampled_softmax_loss"), _SAMPLED),
}


def __getattr__(name: str) -> _typing.Any:
    if name in _REFUSED:
        raise AttributeError(f"{__name__} has no {name!r}. {_REFUSED[name]}")
    if f"nn.{name}" in _ROWS:
        call = globals()[name] = _named_call(f"nn.{name}")
        return call
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. docs/from-tensorflow-1.md lists what is "
        "there."
    )
