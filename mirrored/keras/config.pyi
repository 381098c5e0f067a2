# Written by tests/support/stubs.py from the table in config.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.keras_functions.backend import backend as backend
from mirrored._tracebacks import disable_traceback_filtering as disable_traceback_filtering
from mirrored.layers.policy import dtype_policy as dtype_policy
from mirrored._tracebacks import enable_traceback_filtering as enable_traceback_filtering
from mirrored.keras_functions.backend import epsilon as epsilon
from mirrored.ops import floatx as floatx
from mirrored.ops import image_data_format as image_data_format
from mirrored._tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
from mirrored.layers.policy import set_dtype_policy as set_dtype_policy
from mirrored.ops import set_floatx as set_floatx
from mirrored.ops import set_image_data_format as set_image_data_format
