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
            Attention Average BatchNormalization CategoryEncoding Concatenate Cropping1D
            Cropping2D Cropping3D Dense Discretization Dot Dropout ELU EinsumDense
            Embedding Flatten GaussianDropout GaussianNoise GlobalAveragePooling1D
            GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D
            GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D
            GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D
            GroupNormalization GroupQueryAttention Identity Input InputLayer Lambda
            Layer LayerNormalization LeakyReLU Masking Maximum Minimum
            MultiHeadAttention Multiply Normalization PReLU Permute Pipeline
            RMSNormalization ReLU RepeatVector Rescaling Reshape ReversibleEmbedding
            Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D
            SpectralNormalization Subtract TimeDistributed UnitNormalization
            UpSampling1D UpSampling2D UpSampling3D Wrapper ZeroPadding1D ZeroPadding2D
            ZeroPadding3D add average concatenate dot maximum minimum multiply subtract
        """,
        "mirrored.layers.configurations": "deserialize serialize",
    },
)
