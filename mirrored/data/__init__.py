"""Input pipelines, with the names of `tf.data`: datasets, their iterators, options and sizes.

Training and strategies import everything else from the modules of this package.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.data",
    __name__,
    {
        "mirrored.data": "experimental",
        "mirrored.data.dataset": "Dataset",
        "mirrored.data.dataset_iterators": "Iterator=DatasetIterator NumpyIterator",
        "mirrored.data.dataset_options": "Options ThreadingOptions",
        "mirrored.data.elements": "AUTOTUNE",
        "mirrored.data.leaf_specs": "DatasetSpec",
        "mirrored.data.records": "TFRecordDataset",
        "mirrored.data.transform": "INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
    },
)
