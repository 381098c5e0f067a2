"""The names that TensorFlow keeps under ``tf.io``: TFRecord files and the examples in them.

Its names are defined in other modules.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.io",
    __name__,
    {
        "mirrored.data.examples": "FixedLenFeature parse_example parse_single_example",
        "mirrored.data.records": "TFRecordOptions TFRecordWriter",
    },
)
