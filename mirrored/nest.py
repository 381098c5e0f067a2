"""The public names of functions on structures, as ``mr.nest``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.nest",
    __name__,
    {
        "mirrored.ops.structures": """
            assert_same_structure flatten is_nested map_structure pack_sequence_as
        """,
    },
)
