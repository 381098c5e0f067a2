"""The names that TensorFlow keeps under ``tf.experimental``.

An alias module without logic of its own.
"""

from mirrored._absent import public_module as _public_module
from mirrored.data.optional import Optional as Optional
from mirrored.experimental import dlpack as dlpack

_public_module("tf.experimental", __name__)
