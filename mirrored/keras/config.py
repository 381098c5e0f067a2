"""Keras' settings, as ``mr.keras.config``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.config",
    __name__,
    {
        "mirrored._tracebacks": """
            disable_traceback_filtering enable_traceback_filtering
            is_traceback_filtering_enabled
        """,
        "mirrored.keras_functions.backend": "backend epsilon",
        "mirrored.layers.policy": "dtype_policy set_dtype_policy",
        "mirrored.ops": "floatx image_data_format set_floatx set_image_data_format",
    },
)
