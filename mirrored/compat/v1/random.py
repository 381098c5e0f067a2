"""TensorFlow 1's `tf.random`."""

from mirrored.compat.v1.call_table import rows_of as _rows_of
from mirrored.compat.v1.listing import list_names as _list_names

_list_names(
    __name__,
    {
        "mirrored.compat.v1.drawn_calls": _rows_of("random"),
        "mirrored.compat.v1.graph_draws": """
            normal=random_normal truncated_normal uniform=random_uniform
        """,
        "mirrored.compat.v1.special": "poisson=random_poisson set_random_seed",
    },
)
