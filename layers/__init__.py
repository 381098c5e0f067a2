"""The layers that models are made of, and what layers are made with.

Everything public is named here; the modules below hold one concept each.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.layers",
    __name__,
    {
        "mirrored._naming": "reset_names",
        "mirrored.graph": "SymbolicTensor",
        "mirrored.layers": "activations constraints initializers regularizers",
        "mirrored.layers.activation": "Activation ELU LeakyReLU PReLU ReLU Softmax",
        "mirrored.layers.attention": "AdditiveAttention Attention",
        "mirrored.layers.batch_normalization": "BatchNormalization",
        "mirrored.layers.category_encoding": "CategoryEncoding Discretization",
        "mirrored.layers.convolution": """
            Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose Convolution1D
            Convolution1DTranspose Convolution2D Convolution2DTranspose Convolution3D
            Convolution3DTranspose DepthwiseConv1D DepthwiseConv2D SeparableConv1D SeparableConv2D
            SeparableConvolution1D SeparableConvolution2D
        """,
        "mirrored.layers.core": "ActivityRegularization Identity Lambda Masking Pipeline Rescaling",
        "mirrored.layers.dense": "Dense",
        "mirrored.layers.regularization": """
            AlphaDropout Dropout GaussianDropout GaussianNoise SpatialDropout1D
            SpatialDropout2D SpatialDropout3D
        """,
        "mirrored.layers.einsum_dense": "EinsumDense",
        "mirrored.layers.embedding": "Embedding ReversibleEmbedding",
        "mirrored.layers.global_pooling": """
            GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalAvgPool1D
            GlobalAvgPool2D GlobalAvgPool3D GlobalMaxPool1D GlobalMaxPool2D GlobalMaxPool3D
            GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D
        """,
        "mirrored.layers.image_augmentation": """
            RandomBrightness RandomContrast RandomFlip RandomRotation RandomTranslation RandomZoom
        """,
        "mirrored.layers.image_resizing": "CenterCrop Resizing",
        "mirrored.layers.input_layer": "Input InputLayer",
        "mirrored.layers.joining": "Concatenate Dot concatenate dot",
        "mirrored.layers.layer": "Layer",
        "mirrored.layers.layer_normalization": """
            GroupNormalization LayerNormalization RMSNormalization UnitNormalization
        """,
        "mirrored.layers.merging": """
            Add Average Maximum Minimum Multiply Subtract add average maximum minimum
            multiply subtract
        """,
        "mirrored.layers.multi_head_attention": "GroupQueryAttention MultiHeadAttention",
        "mirrored.layers.normalization": "Normalization",
        "mirrored.layers.pooling": """
            AveragePooling1D AveragePooling2D AveragePooling3D AvgPool1D AvgPool2D AvgPool3D
            MaxPool1D MaxPool2D MaxPool3D MaxPooling1D MaxPooling2D MaxPooling3D
        """,
        "mirrored.layers.reshaping": "Flatten Permute RepeatVector Reshape",
        "mirrored.layers.spatial": """
            Cropping1D Cropping2D Cropping3D UpSampling1D UpSampling2D UpSampling3D
            ZeroPadding1D ZeroPadding2D ZeroPadding3D
        """,
        "mirrored.layers.wrapper": "SpectralNormalization TimeDistributed Wrapper",
    },
)
