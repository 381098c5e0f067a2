"""The layers that models are made of, and what layers are made with.

Everything public is named here; the modules below hold one concept each.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored._naming import reset_names as reset_names
from mirrored.graph import SymbolicTensor as SymbolicTensor
from mirrored.layers import activations as activations
from mirrored.layers import constraints as constraints
from mirrored.layers import initializers as initializers
from mirrored.layers import regularizers as regularizers
from mirrored.layers.dense import Dense as Dense
from mirrored.layers.dropout import Dropout as Dropout
from mirrored.layers.input import Input as Input
from mirrored.layers.input import InputLayer as InputLayer
from mirrored.layers.layer import Layer as Layer

if _typing.TYPE_CHECKING:
    from mirrored.layers.activation import Activation as Activation
    from mirrored.layers.activity_regularization import (
        ActivityRegularization as ActivityRegularization,
    )
    from mirrored.layers.advanced_activations import ELU as ELU
    from mirrored.layers.advanced_activations import LeakyReLU as LeakyReLU
    from mirrored.layers.advanced_activations import PReLU as PReLU
    from mirrored.layers.advanced_activations import ReLU as ReLU
    from mirrored.layers.advanced_activations import Softmax as Softmax
    from mirrored.layers.attention import AdditiveAttention as AdditiveAttention
    from mirrored.layers.attention import Attention as Attention
    from mirrored.layers.batch_normalization import BatchNormalization as BatchNormalization
    from mirrored.layers.category_encoding import CategoryEncoding as CategoryEncoding
    from mirrored.layers.discretization import Discretization as Discretization
    from mirrored.layers.einsum_dense import EinsumDense as EinsumDense
    from mirrored.layers.embedding import Embedding as Embedding
    from mirrored.layers.flatten import Flatten as Flatten
    from mirrored.layers.global_pooling import GlobalAveragePooling1D as GlobalAveragePooling1D
    from mirrored.layers.global_pooling import GlobalAvgPool1D as GlobalAvgPool1D
    from mirrored.layers.global_pooling import GlobalMaxPool1D as GlobalMaxPool1D
    from mirrored.layers.global_pooling import GlobalMaxPooling1D as GlobalMaxPooling1D
    from mirrored.layers.group_normalization import GroupNormalization as GroupNormalization
    from mirrored.layers.grouped_query_attention import GroupQueryAttention as GroupQueryAttention
    from mirrored.layers.joining import Concatenate as Concatenate
    from mirrored.layers.joining import Dot as Dot
    from mirrored.layers.joining import concatenate as concatenate
    from mirrored.layers.joining import dot as dot
    from mirrored.layers.layer_normalization import LayerNormalization as LayerNormalization
    from mirrored.layers.layer_normalization import RMSNormalization as RMSNormalization
    from mirrored.layers.layer_normalization import UnitNormalization as UnitNormalization
    from mirrored.layers.masking import Masking as Masking
    from mirrored.layers.merging import Add as Add
    from mirrored.layers.merging import Average as Average
    from mirrored.layers.merging import Maximum as Maximum
    from mirrored.layers.merging import Minimum as Minimum
    from mirrored.layers.merging import Multiply as Multiply
    from mirrored.layers.merging import Subtract as Subtract
    from mirrored.layers.merging import add as add
    from mirrored.layers.merging import average as average
    from mirrored.layers.merging import maximum as maximum
    from mirrored.layers.merging import minimum as minimum
    from mirrored.layers.merging import multiply as multiply
    from mirrored.layers.merging import subtract as subtract
    from mirrored.layers.multi_head_attention import MultiHeadAttention as MultiHeadAttention
    from mirrored.layers.noise import AlphaDropout as AlphaDropout
    from mirrored.layers.noise import GaussianDropout as GaussianDropout
    from mirrored.layers.noise import GaussianNoise as GaussianNoise
    from mirrored.layers.noise import SpatialDropout1D as SpatialDropout1D
    from mirrored.layers.normalization import Normalization as Normalization
    from mirrored.layers.pipeline import Pipeline as Pipeline
    from mirrored.layers.plain import Identity as Identity
    from mirrored.layers.plain import Lambda as Lambda
    from mirrored.layers.plain import Rescaling as Rescaling
    from mirrored.layers.reshaping import Permute as Permute
    from mirrored.layers.reshaping import RepeatVector as RepeatVector
    from mirrored.layers.reshaping import Reshape as Reshape
    from mirrored.layers.reversible_embedding import ReversibleEmbedding as ReversibleEmbedding
    from mirrored.layers.time_distributed import TimeDistributed as TimeDistributed
    from mirrored.layers.wrapper import SpectralNormalization as SpectralNormalization
    from mirrored.layers.wrapper import Wrapper as Wrapper

__all__ = [
    "ELU",
    "Activation",
    "ActivityRegularization",
    "Add",
    "AdditiveAttention",
    "AlphaDropout",
    "Attention",
    "Average",
    "BatchNormalization",
    "CategoryEncoding",
    "Concatenate",
    "Dense",
    "Discretization",
    "Dot",
    "Dropout",
    "EinsumDense",
    "Embedding",
    "Flatten",
    "GaussianDropout",
    "GaussianNoise",
    "GlobalAveragePooling1D",
    "GlobalAvgPool1D",
    "GlobalMaxPool1D",
    "GlobalMaxPooling1D",
    "GroupNormalization",
    "GroupQueryAttention",
    "Identity",
    "Input",
    "InputLayer",
    "Lambda",
    "Layer",
    "LayerNormalization",
    "LeakyReLU",
    "Masking",
    "Maximum",
    "Minimum",
    "MultiHeadAttention",
    "Multiply",
    "Normalization",
    "PReLU",
    "Permute",
    "Pipeline",
    "RMSNormalization",
    "ReLU",
    "RepeatVector",
    "Rescaling",
    "Reshape",
    "ReversibleEmbedding",
    "Softmax",
    "SpatialDropout1D",
    "SpectralNormalization",
    "Subtract",
    "SymbolicTensor",
    "TimeDistributed",
    "UnitNormalization",
    "Wrapper",
    "activations",
    "add",
    "average",
    "concatenate",
    "constraints",
    "dot",
    "initializers",
    "maximum",
    "minimum",
    "multiply",
    "regularizers",
    "reset_names",
    "subtract",
]

_LATE = {
    "mirrored.layers.reversible_embedding": "ReversibleEmbedding",
    "mirrored.layers.pipeline": "Pipeline",
    "mirrored.layers.time_distributed": "TimeDistributed",
    "mirrored.layers.wrapper": "SpectralNormalization Wrapper",
    "mirrored.layers.attention": "Attention AdditiveAttention",
    "mirrored.layers.grouped_query_attention": "GroupQueryAttention",
    "mirrored.layers.multi_head_attention": "MultiHeadAttention",
    "mirrored.layers.discretization": "Discretization",
    "mirrored.layers.category_encoding": "CategoryEncoding",
    "mirrored.layers.normalization": "Normalization",
    "mirrored.layers.advanced_activations": "ELU LeakyReLU PReLU ReLU Softmax",
    "mirrored.layers.reshaping": "Permute RepeatVector Reshape",
    "mirrored.layers.noise": "AlphaDropout GaussianDropout GaussianNoise SpatialDropout1D",
    "mirrored.layers.plain": "Identity Lambda Rescaling",
    "mirrored.layers.global_pooling": """
        GlobalAveragePooling1D GlobalAvgPool1D GlobalMaxPool1D GlobalMaxPooling1D
    """,
    "mirrored.layers.einsum_dense": "EinsumDense",
    "mirrored.layers.embedding": "Embedding",
    "mirrored.layers.activation": "Activation",
    "mirrored.layers.masking": "Masking",
    "mirrored.layers.activity_regularization": "ActivityRegularization",
    "mirrored.layers.batch_normalization": "BatchNormalization",
    "mirrored.layers.flatten": "Flatten",
    "mirrored.layers.group_normalization": "GroupNormalization",
    "mirrored.layers.layer_normalization": "LayerNormalization RMSNormalization UnitNormalization",
    "mirrored.layers.joining": "Concatenate Dot concatenate dot",
    "mirrored.layers.merging": """
        Add Average Maximum Minimum Multiply Subtract add average maximum minimum multiply subtract
    """,
}
_public_module("tf.keras.layers", __name__, _LATE)
