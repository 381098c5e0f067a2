"""NumPy's older functions of random numbers, as ``mr.experimental.numpy.random``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.experimental.numpy.random",
    __name__,
    {
        "mirrored.numpy_functions.legacy_random": """
            rand randint randn random seed standard_normal uniform
        """,
    },
)
