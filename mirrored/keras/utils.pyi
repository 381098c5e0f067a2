# Written by tests/support/stubs.py from the table in utils.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.serialization.class_names import CustomObjectScope as CustomObjectScope
from mirrored.training.progbar import Progbar as Progbar
from mirrored.data.py_dataset import PyDataset as PyDataset
from mirrored.data.py_dataset import PyDataset as _PyDataset
Sequence = _PyDataset
from mirrored.layers import reset_names as _reset_names
clear_session = _reset_names
from mirrored.serialization.class_names import custom_object_scope as custom_object_scope
from mirrored.serialization.configs import deserialize_keras_object as deserialize_keras_object
from mirrored.serialization.class_names import get_custom_objects as get_custom_objects
from mirrored.data.keras_files import get_file as get_file
from mirrored.serialization.class_names import get_registered_name as get_registered_name
from mirrored.serialization.class_names import get_registered_object as get_registered_object
from mirrored.training.diagrams import model_to_dot as model_to_dot
from mirrored.training.utilities import pack_x_y_sample_weight as pack_x_y_sample_weight
from mirrored.data.padded_sequences import pad_sequences as pad_sequences
from mirrored.training.diagrams import plot_model as plot_model
from mirrored.serialization.class_names import register_keras_serializable as register_keras_serializable
from mirrored.serialization.configs import serialize_keras_object as serialize_keras_object
from mirrored.training.utilities import set_random_seed as set_random_seed
from mirrored.data.array_datasets import split_dataset as split_dataset
from mirrored.data.array_datasets import timeseries_dataset_from_array as timeseries_dataset_from_array
from mirrored.training.utilities import to_categorical as to_categorical
from mirrored.training.utilities import unpack_x_y_sample_weight as unpack_x_y_sample_weight
