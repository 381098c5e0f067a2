"""The names that TensorFlow keeps under ``tf.data.experimental``.

Scripts find them in the same place; the work is done by methods of ``Dataset`` and its options.
"""

from mirrored._absent import public_module as _public_module

_public_module(
    "tf.data.experimental",
    __name__,
    {
        "mirrored.data.applied": """
            Counter assert_cardinality bucket_by_sequence_length cardinality
            choose_from_datasets enumerate_dataset from_list get_next_as_optional
            get_single_element get_structure group_by_window ignore_errors map_and_batch
            sample_from_datasets scan shuffle_and_repeat take_while unbatch unique
        """,
        "mirrored.data.csv_files": "CsvDataset make_csv_dataset",
        "mirrored.data.elements": "AUTOTUNE",
        "mirrored.data.optional": "Optional",
        "mirrored.data.dataset_options": """
            AutoShardPolicy AutotuneAlgorithm AutotuneOptions DistributeOptions
            ExternalStatePolicy OptimizationOptions ThreadingOptions
        """,
        "mirrored.data.transform": "INFINITE_CARDINALITY UNKNOWN_CARDINALITY",
    },
)
