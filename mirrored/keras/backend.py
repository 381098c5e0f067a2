"""Keras' backend: its settings and its older functions, as ``mr.keras.backend``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.backend",
    __name__,
    {
        "mirrored.keras_functions.backend_numbers": """
            all any argmax argmin clip hard_sigmoid l2_normalize max mean min pow prod
            softmax sqrt std sum var
        """,
        "mirrored.keras_functions.backend_shapes": """
            batch_flatten concatenate expand_dims flatten one_hot ones_like
            permute_dimensions repeat reshape reverse squeeze stack stop_gradient tile
            transpose zeros_like
        """,
        "mirrored.keras_functions.backend_values": """
            batch_get_value batch_set_value cast cast_to_floatx constant count_params
            dtype epsilon get_value int_shape ndim result_type set_value shape update
            update_add update_sub
        """,
        "mirrored.keras_functions.settings": "backend image_data_format",
        "mirrored.layers": "clear_session=reset_names",
        "mirrored.ops": """
            abs cos equal exp floatx greater greater_equal less less_equal log maximum
            minimum not_equal round set_floatx sigmoid sign sin square tanh
        """,
    },
)
