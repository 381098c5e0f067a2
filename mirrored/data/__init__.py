"""Input pipelines, with the names of `tf.data`: datasets, and what their sizes may be.

What training and strategies need beside them they import from the modules in here.
"""

from mirrored._absent import absent_names as _absent_names
from mirrored._absent import public_names as _public_names
from mirrored.data.dataset import AUTOTUNE as AUTOTUNE
from mirrored.data.dataset import Dataset as Dataset
from mirrored.data.stages import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from mirrored.data.stages import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
]

__dir__ = _public_names(__name__)
globals()["__getattr__"] = _absent_names("tf.data")
