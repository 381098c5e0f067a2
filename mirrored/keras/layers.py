"""Keras' names of layers, as ``mr.keras.layers``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.layers",
    __name__,
    {
        "mirrored.layers": """
            Activation ActivityRegularization Add AdditiveAttention AlphaDropout
            Attention Average AveragePooling1D AveragePooling2D AveragePooling3D
            AvgPool1D AvgPool2D AvgPool3D BatchNormalization CategoryEncoding CenterCrop
            Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D
            Conv3DTranspose Convolution1D Convolution1DTranspose Convolution2D
            Convolution2DTranspose Convolution3D Convolution3DTranspose Cropping1D
            Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D Discretization
            Dot Dropout ELU EinsumDense Embedding Flatten GaussianDropout GaussianNoise
            GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D
            GlobalAvgPool1D GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D
            GlobalMaxPool2D GlobalMaxPool3D GlobalMaxPooling1D GlobalMaxPooling2D
            GlobalMaxPooling3D GroupNormalization GroupQueryAttention Identity Input
            InputLayer Lambda Layer LayerNormalization LeakyReLU Masking MaxPool1D
            MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum
            MultiHeadAttention Multiply Normalization PReLU Permute Pipeline
            RMSNormalization RandomBrightness RandomContrast RandomFlip RandomRotation
            RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape Resizing
            ReversibleEmbedding SeparableConv1D SeparableConv2D SeparableConvolution1D
            SeparableConvolution2D Softmax SpatialDropout1D SpatialDropout2D
            SpatialDropout3D SpectralNormalization Subtract TimeDistributed
            UnitNormalization UpSampling1D UpSampling2D UpSampling3D Wrapper
            ZeroPadding1D ZeroPadding2D ZeroPadding3D add average concatenate dot
            maximum minimum multiply subtract
        """,
        "mirrored.layers.configurations": "deserialize serialize",
    },
)
