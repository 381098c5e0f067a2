"""The public names of neural-network ops, as ``mr.nn``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.nn",
    __name__,
    {
        "mirrored.nn": "experimental",
        "mirrored.ops": """
            batch_normalization bias_add crelu dropout elu embedding_lookup gelu
            in_top_k l2_loss l2_normalize leaky_relu log_poisson_loss log_softmax
            moments normalize_moments relu relu6 selu sigmoid
            sigmoid_cross_entropy_with_logits silu softmax
            softmax_cross_entropy_with_logits softplus softsign
            sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh
            top_k weighted_cross_entropy_with_logits weighted_moments zero_fraction
        """,
        "mirrored.training.losses.scaling": "compute_average_loss scale_regularization_loss",
    },
)
