"""Keras' names of activations, as ``mr.keras.activations``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.layers.activations import celu as celu
from mirrored.layers.activations import deserialize as deserialize
from mirrored.layers.activations import elu as elu
from mirrored.layers.activations import exponential as exponential
from mirrored.layers.activations import gelu as gelu
from mirrored.layers.activations import get as get
from mirrored.layers.activations import glu as glu
from mirrored.layers.activations import hard_shrink as hard_shrink
from mirrored.layers.activations import hard_sigmoid as hard_sigmoid
from mirrored.layers.activations import hard_silu as hard_silu
from mirrored.layers.activations import hard_swish as hard_swish
from mirrored.layers.activations import hard_tanh as hard_tanh
from mirrored.layers.activations import leaky_relu as leaky_relu
from mirrored.layers.activations import linear as linear
from mirrored.layers.activations import log_sigmoid as log_sigmoid
from mirrored.layers.activations import log_softmax as log_softmax
from mirrored.layers.activations import mish as mish
from mirrored.layers.activations import relu as relu
from mirrored.layers.activations import relu6 as relu6
from mirrored.layers.activations import selu as selu
from mirrored.layers.activations import serialize as serialize
from mirrored.layers.activations import sigmoid as sigmoid
from mirrored.layers.activations import silu as silu
from mirrored.layers.activations import soft_shrink as soft_shrink
from mirrored.layers.activations import softmax as softmax
from mirrored.layers.activations import softplus as softplus
from mirrored.layers.activations import softsign as softsign
from mirrored.layers.activations import sparse_plus as sparse_plus
from mirrored.layers.activations import sparse_sigmoid as sparse_sigmoid
from mirrored.layers.activations import sparsemax as sparsemax
from mirrored.layers.activations import squareplus as squareplus
from mirrored.layers.activations import swish as swish
from mirrored.layers.activations import tanh as tanh
from mirrored.layers.activations import tanh_shrink as tanh_shrink
from mirrored.layers.activations import threshold as threshold

_public_module("tf.keras.activations", __name__)
