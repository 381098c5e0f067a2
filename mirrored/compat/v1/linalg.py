"""TensorFlow 1's `tf.linalg`."""

from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names

_list_names(__name__, {"mirrored.compat.v1.drawn_calls": _rows_of("linalg")})
