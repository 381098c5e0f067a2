"""Keras' names for what is saved, loaded and configured, as ``mr.keras.saving``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.saving",
    __name__,
    {
        "mirrored.serialization.configs": "deserialize_keras_object serialize_keras_object",
        "mirrored.serialization.class_names": """
            CustomObjectScope custom_object_scope get_custom_objects get_registered_name
            get_registered_object register_keras_serializable
        """,
        "mirrored.training.files.model_files": "load_model save_model",
        "mirrored.training.files.weights_files": "load_weights save_weights",
    },
)
