"""Keras' names of functions on structures, as ``mr.keras.tree``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.tree",
    __name__,
    {
        "mirrored.keras_functions.tree": """
            MAP_TO_NONE assert_same_paths assert_same_structure flatten
            flatten_with_path is_nested lists_to_tuples map_shape_structure
            map_structure map_structure_up_to pack_sequence_as traverse
        """,
    },
)
