"""Datasets of the records of TFRecord files.

A record is a string, whatever is in it; `mirrored.data.examples` parses examples.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np

from mirrored._arguments import explained
from mirrored.data.dataset import Dataset
from mirrored.data.dataset_arguments import as_count
from mirrored.data.files import names_of, rows_of_names
from mirrored.data.leaf_specs import LeafSpec
from mirrored.data.records import compression_of, records_in
from mirrored.data.rng import Iteration
from mirrored.data.spec import DatasetBase, Elements
from mirrored.data.transform import Transform
from mirrored.ops.strings import StringTensor, as_strings


class Records(Transform):
    """The records of some files, one file after another, as strings.

    Args:
        names: The files.
        compression: How they are compressed.
    """

    known = True

    def __init__(self, names: Sequence[str], compression: str) -> None:
        self._names, self._compression = names, compression

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of scalars."""
        for name in self._names:
            with closing(records_in(name, self._compression)) as records:
                for record in records:
                    yield as_strings([record])[0, ...]

    def specs(self) -> Any:
        """Return that of a string."""
        return LeafSpec((), np.dtype(object))


@explained
class TFRecordDataset(Dataset[StringTensor]):
    """The records of TFRecord files, as strings that `io.parse_single_example` takes.

    Args:
        filenames: A file, several in a list, or a dataset of their names.
        compression_type: "GZIP", "ZLIB", or "" or None for none.
        buffer_size: Accepted; files have Python's buffers.
        num_parallel_reads: How many files records come from alternately; None: one file after
            another.
        name: Accepted for compatibility.

    Raises:
        TypeError: The names are none.
        InvalidArgumentError: There is no such compression.

    Example:
        >>> import mirrored as mr
        >>> mr.data.TFRecordDataset(["a.tfrecord", "b.tfrecord"]).element_spec.shape
        ()
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: str | None = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        compression = compression_of(compression_type)
        if num_parallel_reads is None and not isinstance(filenames, DatasetBase):
            super().__init__(Records(names_of(filenames, "filenames"), compression))
            return
        files: Any = filenames
        if not isinstance(filenames, DatasetBase):
            files = Dataset(rows_of_names(names_of(filenames, "filenames")))

        def opened(file: StringTensor) -> Dataset[StringTensor]:
            return TFRecordDataset(file, compression)

        if num_parallel_reads is None:
            super().__init__(files.flat_map(opened)._transform)
            return
        count = as_count("num_parallel_reads", num_parallel_reads, least=-1)
        super().__init__(files.interleave(opened, None if count < 1 else count)._transform)
