"""The names that TensorFlow keeps under ``tf.debugging``.

Scripts find them in the same place; what they do is in ``mirrored.devices`` and ``mirrored.ops``.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored._tracebacks import disable_traceback_filtering as disable_traceback_filtering
from mirrored._tracebacks import enable_traceback_filtering as enable_traceback_filtering
from mirrored._tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
from mirrored.devices import get_log_device_placement as get_log_device_placement
from mirrored.devices import set_log_device_placement as set_log_device_placement

if _typing.TYPE_CHECKING:
    from mirrored.ops import Assert as Assert
    from mirrored.ops import assert_all_finite as assert_all_finite
    from mirrored.ops import assert_equal as assert_equal
    from mirrored.ops import assert_greater as assert_greater
    from mirrored.ops import assert_greater_equal as assert_greater_equal
    from mirrored.ops import assert_integer as assert_integer
    from mirrored.ops import assert_less as assert_less
    from mirrored.ops import assert_less_equal as assert_less_equal
    from mirrored.ops import assert_near as assert_near
    from mirrored.ops import assert_negative as assert_negative
    from mirrored.ops import assert_non_negative as assert_non_negative
    from mirrored.ops import assert_non_positive as assert_non_positive
    from mirrored.ops import assert_none_equal as assert_none_equal
    from mirrored.ops import assert_positive as assert_positive
    from mirrored.ops import assert_proper_iterable as assert_proper_iterable
    from mirrored.ops import assert_rank as assert_rank
    from mirrored.ops import assert_rank_at_least as assert_rank_at_least
    from mirrored.ops import assert_rank_in as assert_rank_in
    from mirrored.ops import assert_same_float_dtype as assert_same_float_dtype
    from mirrored.ops import assert_scalar as assert_scalar
    from mirrored.ops import assert_shapes as assert_shapes
    from mirrored.ops import assert_type as assert_type
    from mirrored.ops import check_numerics as check_numerics
    from mirrored.ops import is_numeric_tensor as is_numeric_tensor
    from mirrored.training.comparison.replica_comparison import compare_replicas as compare_replicas
    from mirrored.training.mixing_operations import mixing_operations as mixing_operations

_LATE = {
    "mirrored.ops": (
        "Assert assert_all_finite assert_equal assert_greater assert_greater_equal assert_integer "
        "assert_less assert_less_equal assert_near assert_negative assert_non_negative "
        "assert_non_positive assert_none_equal assert_positive assert_proper_iterable assert_rank "
        "assert_rank_at_least assert_rank_in assert_same_float_dtype assert_scalar assert_shapes "
        "assert_type check_numerics is_numeric_tensor"
    ),
    "mirrored.training.comparison.replica_comparison": "compare_replicas",
    "mirrored.training.mixing_operations": "mixing_operations",
}
_public_module("tf.debugging", __name__, _LATE)
