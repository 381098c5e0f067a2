"""The helpers that Keras keeps in its utilities, as ``mr.keras.utils``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.data.py_dataset import PyDataset as PyDataset
from mirrored.data.sequences import pad_sequences as pad_sequences
from mirrored.layers import reset_names as _reset_names
from mirrored.training.utilities import pack_x_y_sample_weight as pack_x_y_sample_weight
from mirrored.training.utilities import set_random_seed as set_random_seed
from mirrored.training.utilities import to_categorical as to_categorical
from mirrored.training.utilities import unpack_x_y_sample_weight as unpack_x_y_sample_weight

Sequence = PyDataset
clear_session = _reset_names

_public_module("tf.keras.utils", __name__)
