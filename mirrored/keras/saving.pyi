# Written by tests/support/stubs.py from the table in saving.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.serialization.class_names import CustomObjectScope as CustomObjectScope
from mirrored.serialization.class_names import custom_object_scope as custom_object_scope
from mirrored.serialization.configs import deserialize_keras_object as deserialize_keras_object
from mirrored.serialization.class_names import get_custom_objects as get_custom_objects
from mirrored.serialization.class_names import get_registered_name as get_registered_name
from mirrored.serialization.class_names import get_registered_object as get_registered_object
from mirrored.training.files.model_files import load_model as load_model
from mirrored.training.files.weights_files import load_weights as load_weights
from mirrored.serialization.class_names import register_keras_serializable as register_keras_serializable
from mirrored.training.files.model_files import save_model as save_model
from mirrored.training.files.weights_files import save_weights as save_weights
from mirrored.serialization.configs import serialize_keras_object as serialize_keras_object
