"""TensorFlow 1's `tf.debugging`: assertions as operations of a graph."""

import typing as _typing
from importlib import import_module as _import_module

from mirrored._tracebacks import disable_traceback_filtering as disable_traceback_filtering
from mirrored._tracebacks import enable_traceback_filtering as enable_traceback_filtering
from mirrored._tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
from mirrored.compat.v1.assertions import ASSERTIONS as _ASSERTIONS
from mirrored.compat.v1.assertions import Assert as Assert
from mirrored.devices import get_log_device_placement as get_log_device_placement
from mirrored.devices import set_log_device_placement as set_log_device_placement

# Names that `tf` has too.
_OF_TF = (
    *_ASSERTIONS,
    *("check_numerics", "is_finite", "is_inf", "is_nan"),
    *("is_non_decreasing", "is_strictly_increasing"),
)


def __getattr__(name: str) -> _typing.Any:
    if name in _OF_TF:
        return getattr(_import_module("mirrored.compat.v1"), name)
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}. It has {', '.join(_OF_TF)} and Assert."
    )


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name[0] != "_"), *_OF_TF})
