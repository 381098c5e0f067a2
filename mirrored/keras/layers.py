"""Keras' names of layers, as ``mr.keras.layers``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.layers import Dense as Dense
from mirrored.layers import Dropout as Dropout
from mirrored.layers import Input as Input
from mirrored.layers import InputLayer as InputLayer
from mirrored.layers import Layer as Layer

if _typing.TYPE_CHECKING:
    from mirrored.layers import ELU as ELU
    from mirrored.layers import Activation as Activation
    from mirrored.layers import ActivityRegularization as ActivityRegularization
    from mirrored.layers import Add as Add
    from mirrored.layers import AdditiveAttention as AdditiveAttention
    from mirrored.layers import AlphaDropout as AlphaDropout
    from mirrored.layers import Attention as Attention
    from mirrored.layers import Average as Average
    from mirrored.layers import BatchNormalization as BatchNormalization
    from mirrored.layers import CategoryEncoding as CategoryEncoding
    from mirrored.layers import Concatenate as Concatenate
    from mirrored.layers import Discretization as Discretization
    from mirrored.layers import Dot as Dot
    from mirrored.layers import EinsumDense as EinsumDense
    from mirrored.layers import Embedding as Embedding
    from mirrored.layers import Flatten as Flatten
    from mirrored.layers import GaussianDropout as GaussianDropout
    from mirrored.layers import GaussianNoise as GaussianNoise
    from mirrored.layers import GlobalAveragePooling1D as GlobalAveragePooling1D
    from mirrored.layers import GlobalAvgPool1D as GlobalAvgPool1D
    from mirrored.layers import GlobalMaxPool1D as GlobalMaxPool1D
    from mirrored.layers import GlobalMaxPooling1D as GlobalMaxPooling1D
    from mirrored.layers import GroupNormalization as GroupNormalization
    from mirrored.layers import GroupQueryAttention as GroupQueryAttention
    from mirrored.layers import Identity as Identity
    from mirrored.layers import Lambda as Lambda
    from mirrored.layers import LayerNormalization as LayerNormalization
    from mirrored.layers import LeakyReLU as LeakyReLU
    from mirrored.layers import Masking as Masking
    from mirrored.layers import Maximum as Maximum
    from mirrored.layers import Minimum as Minimum
    from mirrored.layers import MultiHeadAttention as MultiHeadAttention
    from mirrored.layers import Multiply as Multiply
    from mirrored.layers import Normalization as Normalization
    from mirrored.layers import Permute as Permute
    from mirrored.layers import Pipeline as Pipeline
    from mirrored.layers import PReLU as PReLU
    from mirrored.layers import ReLU as ReLU
    from mirrored.layers import RepeatVector as RepeatVector
    from mirrored.layers import Rescaling as Rescaling
    from mirrored.layers import Reshape as Reshape
    from mirrored.layers import ReversibleEmbedding as ReversibleEmbedding
    from mirrored.layers import RMSNormalization as RMSNormalization
    from mirrored.layers import Softmax as Softmax
    from mirrored.layers import SpatialDropout1D as SpatialDropout1D
    from mirrored.layers import SpectralNormalization as SpectralNormalization
    from mirrored.layers import Subtract as Subtract
    from mirrored.layers import TimeDistributed as TimeDistributed
    from mirrored.layers import UnitNormalization as UnitNormalization
    from mirrored.layers import Wrapper as Wrapper
    from mirrored.layers import add as add
    from mirrored.layers import average as average
    from mirrored.layers import concatenate as concatenate
    from mirrored.layers import dot as dot
    from mirrored.layers import maximum as maximum
    from mirrored.layers import minimum as minimum
    from mirrored.layers import multiply as multiply
    from mirrored.layers import subtract as subtract
    from mirrored.layers.configurations import deserialize as deserialize
    from mirrored.layers.configurations import serialize as serialize

_LATE = {
    "mirrored.layers": """
        Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average
        BatchNormalization CategoryEncoding Concatenate Discretization Dot ELU EinsumDense
        Embedding Flatten GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAvgPool1D
        GlobalMaxPool1D GlobalMaxPooling1D GroupNormalization GroupQueryAttention Identity Lambda
        LayerNormalization LeakyReLU Masking Maximum Minimum MultiHeadAttention Multiply
        Normalization PReLU Permute Pipeline RMSNormalization ReLU RepeatVector Rescaling Reshape
        ReversibleEmbedding Softmax SpatialDropout1D SpectralNormalization Subtract
        TimeDistributed UnitNormalization Wrapper add average concatenate dot maximum minimum
        multiply subtract
    """,
    "mirrored.layers.configurations": "deserialize serialize",
}
_public_module("tf.keras.layers", __name__, _LATE)
