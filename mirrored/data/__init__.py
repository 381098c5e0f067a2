"""Input pipelines, with the names of `tf.data`: datasets, and what their sizes may be.

What training and strategies need beside them they import from the modules in here.
"""

import typing as _typing

from mirrored._absent import public_module as _public_module
from mirrored.data.leaf_specs import DatasetSpec as DatasetSpec
from mirrored.data.pipeline import DatasetIterator as Iterator
from mirrored.data.pipeline import NumpyIterator as NumpyIterator
from mirrored.data.sources import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from mirrored.data.sources import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY

if _typing.TYPE_CHECKING:
    from mirrored.data import experimental as experimental
    from mirrored.data.dataset import Dataset as Dataset
    from mirrored.data.dataset_arguments import AUTOTUNE as AUTOTUNE
    from mirrored.data.options import Options as Options
    from mirrored.data.options import ThreadingOptions as ThreadingOptions
    from mirrored.data.record_files import TFRecordDataset as TFRecordDataset

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "Iterator",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "ThreadingOptions",
    "experimental",
]

_LATE = {
    "mirrored.data": "experimental",
    "mirrored.data.dataset": "Dataset",
    "mirrored.data.dataset_arguments": "AUTOTUNE",
    "mirrored.data.options": "Options ThreadingOptions",
    "mirrored.data.record_files": "TFRecordDataset",
}
_public_module("tf.data", __name__, _LATE)
