"""Activations: functions that a layer may apply to its outputs, by Keras' names."""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.activations",
    __name__,
    {
        "mirrored.layers.activation_registry": "Activation deserialize get serialize",
        "mirrored.layers.nonlinearities": """
            celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish
            hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu
            sigmoid silu soft_shrink softmax softplus softsign sparse_plus
            sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold
        """,
    },
)
