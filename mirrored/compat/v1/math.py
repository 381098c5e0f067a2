"""TensorFlow 1's `tf.math`."""

from mirrored.compat.v1.listing import list_names as _list_names
from mirrored.compat.v1.names import rows_of as _rows_of

_list_names(
    __name__,
    {
        "mirrored.compat.v1.calls": _rows_of("math"),
        "mirrored.compat.v1.special": "in_top_k",
    },
)
