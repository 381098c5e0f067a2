"""The names that TensorFlow keeps under ``tf.debugging``.

Scripts find them in the same place; what they do is in ``mirrored.devices`` and ``mirrored.ops``.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.debugging",
    __name__,
    {
        "mirrored._tracebacks": """
            disable_traceback_filtering enable_traceback_filtering
            is_traceback_filtering_enabled
        """,
        "mirrored.devices": "get_log_device_placement set_log_device_placement",
        "mirrored.profiling.variable_placement": "plot_placement",
        "mirrored.ops": """
            Assert assert_all_finite assert_equal assert_greater assert_greater_equal
            assert_integer assert_less assert_less_equal assert_near assert_negative
            assert_non_negative assert_non_positive assert_none_equal assert_positive
            assert_proper_iterable assert_rank assert_rank_at_least assert_rank_in
            assert_same_float_dtype assert_scalar assert_shapes assert_type
            check_numerics is_numeric_tensor
        """,
        "mirrored.training.replica_comparison": "compare_replicas",
        "mirrored.training.mixing_operations": "mixing_operations",
    },
)
