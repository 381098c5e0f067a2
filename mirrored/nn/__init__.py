"""The public names of neural-network ops, as ``mr.nn``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.ops import bias_add as bias_add
from mirrored.ops import dropout as dropout
from mirrored.ops import l2_normalize as l2_normalize
from mirrored.ops import log_poisson_loss as log_poisson_loss
from mirrored.ops import log_softmax as log_softmax
from mirrored.ops import relu as relu
from mirrored.ops import sigmoid as sigmoid
from mirrored.ops import sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits
from mirrored.ops import softmax as softmax
from mirrored.ops import softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits
from mirrored.ops import softplus as softplus
from mirrored.ops import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from mirrored.ops import tanh as tanh
from mirrored.ops import weighted_cross_entropy_with_logits as weighted_cross_entropy_with_logits
from mirrored.training.losses.scaling import compute_average_loss as compute_average_loss
from mirrored.training.losses.scaling import scale_regularization_loss as scale_regularization_loss

if _typing.TYPE_CHECKING:
    from mirrored.nn import experimental as experimental
    from mirrored.ops import batch_normalization as batch_normalization
    from mirrored.ops import crelu as crelu
    from mirrored.ops import elu as elu
    from mirrored.ops import embedding_lookup as embedding_lookup
    from mirrored.ops import gelu as gelu
    from mirrored.ops import in_top_k as in_top_k
    from mirrored.ops import l2_loss as l2_loss
    from mirrored.ops import leaky_relu as leaky_relu
    from mirrored.ops import moments as moments
    from mirrored.ops import normalize_moments as normalize_moments
    from mirrored.ops import relu6 as relu6
    from mirrored.ops import selu as selu
    from mirrored.ops import silu as silu
    from mirrored.ops import softsign as softsign
    from mirrored.ops import sufficient_statistics as sufficient_statistics
    from mirrored.ops import swish as swish
    from mirrored.ops import top_k as top_k
    from mirrored.ops import weighted_moments as weighted_moments
    from mirrored.ops import zero_fraction as zero_fraction

_LATE = {
    "mirrored.nn": "experimental",
    "mirrored.ops": (
        "batch_normalization crelu elu embedding_lookup gelu in_top_k l2_loss leaky_relu moments "
        "normalize_moments relu6 selu silu softsign sufficient_statistics swish top_k "
        "weighted_moments zero_fraction"
    ),
}
_public_module("tf.nn", __name__, _LATE)
