"""Keras' backend: its settings and its older functions, as ``mr.keras.backend``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.backend",
    __name__,
    {
        "mirrored.keras_functions.backend": """
            all any argmax argmin backend batch_flatten batch_get_value batch_set_value
            cast_to_floatx clip concatenate constant count_params epsilon expand_dims
            flatten get_value hard_sigmoid int_shape l2_normalize max
            mean min ndim one_hot ones_like permute_dimensions pow prod repeat reshape
            result_type reverse set_value shape softmax sqrt squeeze stack std
            stop_gradient sum tile transpose update update_add update_sub var zeros_like
        """,
        "mirrored.keras_functions.core": "cast dtype",
        "mirrored.layers": "clear_session=reset_names",
        "mirrored.ops": """
            abs cos equal exp floatx greater greater_equal image_data_format less less_equal
            log maximum minimum not_equal round set_floatx set_image_data_format sigmoid sign
            sin square tanh
        """,
    },
)
