"""The names that TensorFlow keeps under ``tf.io``: TFRecord files and the examples in them.

An alias module without logic of its own.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module

if _typing.TYPE_CHECKING:
    from mirrored.data.examples import FixedLenFeature as FixedLenFeature
    from mirrored.data.examples import parse_example as parse_example
    from mirrored.data.examples import parse_single_example as parse_single_example
    from mirrored.data.records import TFRecordOptions as TFRecordOptions
    from mirrored.data.records import TFRecordWriter as TFRecordWriter

__all__ = [
    "FixedLenFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "parse_example",
    "parse_single_example",
]

_LATE = {
    "mirrored.data.examples": "FixedLenFeature parse_example parse_single_example",
    "mirrored.data.records": "TFRecordOptions TFRecordWriter",
}
_public_module("tf.io", __name__, _LATE)
