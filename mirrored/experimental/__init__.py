"""The names that TensorFlow keeps under ``tf.experimental``.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.data.optional import Optional as Optional
from mirrored.experimental import dlpack as dlpack

if _typing.TYPE_CHECKING:
    from mirrored.experimental import numpy as numpy

_public_module("tf.experimental", __name__, {__name__: "numpy"})
