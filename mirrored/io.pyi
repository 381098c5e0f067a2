# Written by tests/support/stubs.py from the table in io.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.examples import FixedLenFeature as FixedLenFeature
from mirrored.data.records import TFRecordOptions as TFRecordOptions
from mirrored.data.records import TFRecordWriter as TFRecordWriter
from mirrored.data.examples import parse_example as parse_example
from mirrored.data.examples import parse_single_example as parse_single_example
