"""The names that TensorFlow keeps under ``tf.data.experimental``.

Scripts find them in the same place; what they do are methods of ``Dataset``, and its options.
"""

from mirrored._absent import public_module as _public_module
from mirrored.data.applied import Counter as Counter
from mirrored.data.applied import assert_cardinality as assert_cardinality
from mirrored.data.applied import bucket_by_sequence_length as bucket_by_sequence_length
from mirrored.data.applied import cardinality as cardinality
from mirrored.data.applied import choose_from_datasets as choose_from_datasets
from mirrored.data.applied import enumerate_dataset as enumerate_dataset
from mirrored.data.applied import from_list as from_list
from mirrored.data.applied import get_next_as_optional as get_next_as_optional
from mirrored.data.applied import get_single_element as get_single_element
from mirrored.data.applied import get_structure as get_structure
from mirrored.data.applied import group_by_window as group_by_window
from mirrored.data.applied import ignore_errors as ignore_errors
from mirrored.data.applied import map_and_batch as map_and_batch
from mirrored.data.applied import sample_from_datasets as sample_from_datasets
from mirrored.data.applied import scan as scan
from mirrored.data.applied import shuffle_and_repeat as shuffle_and_repeat
from mirrored.data.applied import take_while as take_while
from mirrored.data.applied import unbatch as unbatch
from mirrored.data.applied import unique as unique
from mirrored.data.csv_files import CsvDataset as CsvDataset
from mirrored.data.csv_files import make_csv_dataset as make_csv_dataset
from mirrored.data.dataset_arguments import AUTOTUNE as AUTOTUNE
from mirrored.data.optional import Optional as Optional
from mirrored.data.options import AutoShardPolicy as AutoShardPolicy
from mirrored.data.options import AutotuneAlgorithm as AutotuneAlgorithm
from mirrored.data.options import AutotuneOptions as AutotuneOptions
from mirrored.data.options import DistributeOptions as DistributeOptions
from mirrored.data.options import ExternalStatePolicy as ExternalStatePolicy
from mirrored.data.options import OptimizationOptions as OptimizationOptions
from mirrored.data.options import ThreadingOptions as ThreadingOptions
from mirrored.data.sources import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from mirrored.data.sources import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "ThreadingOptions",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "make_csv_dataset",
    "map_and_batch",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]

_public_module("tf.data.experimental", __name__)
