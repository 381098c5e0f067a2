"""A data set of Keras' from its files, as ``mr.keras.datasets.california_housing``.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.datasets.california_housing",
    __name__,
    {"mirrored.data.keras_files": "load_data=load_california_housing"},
)
