"""The helpers that Keras keeps in its utilities, as ``mr.keras.utils``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.utils",
    __name__,
    {
        "mirrored.data.keras_files": "get_file",
        "mirrored.data.py_dataset": "PyDataset Sequence=PyDataset",
        "mirrored.data.padded_sequences": "pad_sequences",
        "mirrored.data.array_datasets": "split_dataset timeseries_dataset_from_array",
        "mirrored.layers": "clear_session=reset_names",
        "mirrored.serialization.configs": "deserialize_keras_object serialize_keras_object",
        "mirrored.serialization.class_names": """
            CustomObjectScope custom_object_scope get_custom_objects get_registered_name
            get_registered_object register_keras_serializable
        """,
        "mirrored.training.diagrams": "model_to_dot plot_model",
        "mirrored.training.progbar": "Progbar",
        "mirrored.training.utilities": """
            pack_x_y_sample_weight set_random_seed to_categorical unpack_x_y_sample_weight
        """,
    },
)
