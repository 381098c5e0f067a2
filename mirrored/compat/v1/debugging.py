"""TensorFlow 1's `tf.debugging`: assertions as operations of a graph."""

from mirrored.compat.v1.drawn_assertions import ASSERTIONS as _ASSERTIONS
from mirrored.compat.v1.listing import list_names as _list_names

_list_names(
    __name__,
    {
        "mirrored.compat.v1.drawn_assertions": " ".join(("Assert", *_ASSERTIONS)),
        "mirrored.compat.v1": """
            check_numerics is_finite is_inf is_nan is_non_decreasing is_strictly_increasing
        """,
        "mirrored._tracebacks": """
            disable_traceback_filtering enable_traceback_filtering is_traceback_filtering_enabled
        """,
        "mirrored.devices": "get_log_device_placement set_log_device_placement",
    },
)
