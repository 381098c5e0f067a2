"""Activations: functions that a layer may apply to its outputs, by Keras' names."""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.activations",
    __name__,
    {
        "mirrored.layers.activation_registry": "Activation deserialize get serialize",
        "mirrored.layers.nonlinearities": """
            celu elu exponential gelu hard_sigmoid hard_silu hard_swish hard_tanh
            leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu sigmoid silu
            softmax softplus softsign swish tanh
        """,
        "mirrored.layers.sparse_nonlinearities": """
            glu hard_shrink soft_shrink sparse_plus sparse_sigmoid sparsemax squareplus
            tanh_shrink threshold
        """,
    },
)
