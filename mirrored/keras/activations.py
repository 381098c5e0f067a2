"""Keras' names of activations, as ``mr.keras.activations``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.activations",
    __name__,
    {
        "mirrored.layers.activations": """
            celu deserialize elu exponential gelu get glu hard_shrink hard_sigmoid
            hard_silu hard_swish hard_tanh leaky_relu linear log_sigmoid log_softmax
            mish relu relu6 selu serialize sigmoid silu soft_shrink softmax softplus
            softsign sparse_plus sparse_sigmoid sparsemax squareplus swish tanh
            tanh_shrink threshold
        """,
    },
)
