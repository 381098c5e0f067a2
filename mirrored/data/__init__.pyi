# Written by tests/support/stubs.py from the table in __init__.py; do not edit it.
from mirrored._absent import public_module as _public_module
from mirrored.data.elements import AUTOTUNE as AUTOTUNE
from mirrored.data.dataset import Dataset as Dataset
from mirrored.data.leaf_specs import DatasetSpec as DatasetSpec
from mirrored.data.transform import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from mirrored.data.dataset_iterators import DatasetIterator as _DatasetIterator
Iterator = _DatasetIterator
from mirrored.data.dataset_iterators import NumpyIterator as NumpyIterator
from mirrored.data.dataset_options import Options as Options
from mirrored.data.records import TFRecordDataset as TFRecordDataset
from mirrored.data.dataset_options import ThreadingOptions as ThreadingOptions
from mirrored.data.transform import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from mirrored.data import experimental as experimental
