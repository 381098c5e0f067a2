"""Gradients: the tape that takes them, and functions that say their own, where TensorFlow has them.

Gradients are made of ops too, so they are placed, logged and can themselves be differentiated.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.autodiff",
    __name__,
    {
        "mirrored.autodiff.tape": "GradientTape",
    },
)
