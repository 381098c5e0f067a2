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
        "mirrored.layers.activation": "Activation",
        "mirrored.layers.activity_regularization": "ActivityRegularization",
        "mirrored.layers.advanced_activations": "ELU LeakyReLU PReLU ReLU Softmax",
        "mirrored.layers.attention": "AdditiveAttention Attention",
        "mirrored.layers.batch_normalization": "BatchNormalization",
        "mirrored.layers.category_encoding": "CategoryEncoding",
        "mirrored.layers.dense": "Dense",
        "mirrored.layers.discretization": "Discretization",
        "mirrored.layers.dropout": "Dropout",
        "mirrored.layers.einsum_dense": "EinsumDense",
        "mirrored.layers.embedding": "Embedding",
        "mirrored.layers.flatten": "Flatten",
        "mirrored.layers.global_pooling": """
            GlobalAveragePooling1D GlobalAvgPool1D GlobalMaxPool1D GlobalMaxPooling1D
        """,
        "mirrored.layers.group_normalization": "GroupNormalization",
        "mirrored.layers.grouped_query_attention": "GroupQueryAttention",
        "mirrored.layers.input": "Input InputLayer",
        "mirrored.layers.joining": "Concatenate Dot concatenate dot",
        "mirrored.layers.layer": "Layer",
        "mirrored.layers.layer_normalization": """
            LayerNormalization RMSNormalization UnitNormalization
        """,
        "mirrored.layers.masking": "Masking",
        "mirrored.layers.merging": """
            Add Average Maximum Minimum Multiply Subtract add average maximum minimum
            multiply subtract
        """,
        "mirrored.layers.multi_head_attention": "MultiHeadAttention",
        "mirrored.layers.noise": "AlphaDropout GaussianDropout GaussianNoise SpatialDropout1D",
        "mirrored.layers.normalization": "Normalization",
        "mirrored.layers.pipeline": "Pipeline",
        "mirrored.layers.plain": "Identity Lambda Rescaling",
        "mirrored.layers.reshaping": "Permute RepeatVector Reshape",
        "mirrored.layers.reversible_embedding": "ReversibleEmbedding",
        "mirrored.layers.time_distributed": "TimeDistributed",
        "mirrored.layers.wrapper": "SpectralNormalization Wrapper",
    },
)
