"""Keras' names of layers, as ``mr.keras.layers``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.layers",
    __name__,
    {
        "mirrored.layers": """
            Activation ActivityRegularization Add AdditiveAttention AlphaDropout
            Attention Average BatchNormalization CategoryEncoding Concatenate Dense
            Discretization Dot Dropout ELU EinsumDense Embedding Flatten GaussianDropout
            GaussianNoise GlobalAveragePooling1D GlobalAvgPool1D GlobalMaxPool1D
            GlobalMaxPooling1D GroupNormalization GroupQueryAttention Identity Input
            InputLayer Lambda Layer LayerNormalization LeakyReLU Masking Maximum Minimum
            MultiHeadAttention Multiply Normalization PReLU Permute Pipeline
            RMSNormalization ReLU RepeatVector Rescaling Reshape ReversibleEmbedding
            Softmax SpatialDropout1D SpectralNormalization Subtract TimeDistributed
            UnitNormalization Wrapper add average concatenate dot maximum minimum
            multiply subtract
        """,
        "mirrored.layers.configurations": "deserialize serialize",
    },
)
