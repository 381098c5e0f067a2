"""Gradients: the tape and custom gradients, under TensorFlow's names.

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
