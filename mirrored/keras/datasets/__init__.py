"""Data sets that Keras has files of, as ``mr.keras.datasets``; nothing is downloaded.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.keras.datasets",
    __name__,
    {
        "mirrored.keras.datasets": """
            boston_housing california_housing cifar10 cifar100 fashion_mnist imdb mnist reuters
        """,
    },
)
