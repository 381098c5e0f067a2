"""Methods of datasets that join elements, and take them apart: batches, windows, groups.

They are those of `Dataset`, which is too long for one file.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self

from mirrored._arguments import explained
from mirrored._tracebacks import shortened_methods
from mirrored.data.buckets import Buckets
from mirrored.data.choosing_methods import ChoosingMethods
from mirrored.data.dataset_arguments import as_count, check_parallel_calls, sizes_of
from mirrored.data.nested_transforms import Grouped
from mirrored.data.padded_batches import PaddedBatched
from mirrored.data.pipeline import ElementT
from mirrored.data.row_transforms import Batched
from mirrored.data.spec import check_callable
from mirrored.data.unbatching import Rebatched, Unbatched
from mirrored.ops import Tensor


@shortened_methods
@explained
class BatchingMethods(ChoosingMethods[ElementT]):
    """A dataset, as far as its methods join elements and take them apart."""

    _part_of = "Dataset"

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """Return elements joined, so many at a time, along a new first axis.

        Args:
            batch_size: How many; with a strategy, over all replicas together.
            drop_remainder: Whether to leave out a last batch that has fewer.
            num_parallel_calls: Accepted and checked; batches are made one after another.
            deterministic: Accepted; the order is always that of the elements.
            name: Accepted for compatibility.

        Raises:
            ValueError: `batch_size` is not positive. Elements of different shapes are an error
                of the iteration.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(3).batch(2).as_numpy_iterator())
            [array([0, 1]), array([2])]
        """
        size = as_count("batch_size", batch_size, least=1)
        check_parallel_calls(num_parallel_calls)
        return self._of(Batched(self._transform, size, bool(drop_remainder)))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Return elements of several shapes joined, so many at a time; smaller ones are padded.

        Args:
            batch_size: How many; with a strategy, over all replicas together.
            padded_shapes: The shape to pad to, in the elements' structure of tuples and dicts:
                a list of sizes, and of None or -1 for those that are the largest of a batch.
                None: all are.
            padding_values: What to pad with, of the elements' dtype: in their structure, or one
                for all. None: zeros, and False.
            drop_remainder: Whether to leave out a last batch that has fewer.
            name: Accepted for compatibility.

        Raises:
            ValueError: `batch_size` is not positive, or a shape does not fit the elements; where
                that is not known before, it is an error of the iteration.
            TypeError: What is given has another structure, or a value another dtype.
            InvalidArgumentError: In the iteration: an element is larger than it is padded to.

        Example:
            >>> import mirrored as mr
            >>> rows = mr.data.Dataset.from_generator(lambda: [[1], [2, 3], [4]])
            >>> [batch.numpy().tolist() for batch in rows.padded_batch(2)]
            [[[1, 0], [2, 3]], [[4]]]
        """
        size = as_count("batch_size", batch_size, least=1)
        return self._of(
            PaddedBatched(
                self._transform, size, padded_shapes, padding_values, bool(drop_remainder)
            )
        )

    def unbatch(self, name: str | None = None) -> Self:
        """Return the rows of each element, one after another.

        Args:
            name: Accepted for compatibility.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return self._of(Unbatched(self._transform))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Return batches of elements of about one length, padded; each length has its bucket.

        Args:
            element_length_func: Called as `map`'s function is; returns an element's length.
            bucket_boundaries: The least length of each bucket but the first, in order.
            bucket_batch_sizes: The batch size of each bucket, one more than there are boundaries.
            padded_shapes: As for `padded_batch`.
            padding_values: As for `padded_batch`.
            pad_to_bucket_boundary: Whether sizes that are not known are padded to the greatest
                length of the bucket; all elements are then shorter than the last boundary.
            no_padding: Whether to join them as `batch` does.
            drop_remainder: Whether to leave out batches that have fewer elements.
            name: Accepted for compatibility.

        Raises:
            ValueError: There are not as many sizes as buckets. The rest as for `padded_batch`.
            InvalidArgumentError: In the iteration: an element is too long for its bucket.

        Example:
            >>> import mirrored as mr
            >>> rows = mr.data.Dataset.from_generator(lambda: [[1], [2, 3, 4], [5, 6], [7, 8, 9]])
            >>> batches = rows.bucket_by_sequence_length(lambda row: len(row), [3], [2, 2])
            >>> [batch.numpy().tolist() for batch in batches]
            [[[1, 0], [5, 6]], [[2, 3, 4], [7, 8, 9]]]
        """
        check_callable("element_length_func", element_length_func)
        buckets = Buckets(element_length_func, [*bucket_boundaries], [*bucket_batch_sizes])

        def batched(bucket: Tensor, group: BatchingMethods[ElementT]) -> Any:
            size, shapes = buckets.size(bucket), padded_shapes
            if no_padding:
                return group.batch(size, drop_remainder)
            if pad_to_bucket_boundary:
                shapes = buckets.bounded(int(bucket), group._transform, shapes)
            return group.padded_batch(size, shapes, padding_values, drop_remainder)

        return self._of(Grouped(self._transform, buckets.number, batched, buckets.size, self._of))

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> Self:
        """Return batches of another size, of the same rows in the same order.

        Args:
            batch_size: How many rows each has, or a list of such numbers, which take turns.
            drop_remainder: Whether to leave out a last batch that has fewer.
            name: Accepted for compatibility.

        Raises:
            ValueError: A number is not positive, or elements are no batches.

        Example:
            >>> import mirrored as mr
            >>> batches = mr.data.Dataset.range(6).batch(4).rebatch(3)
            >>> [batch.numpy().tolist() for batch in batches]
            [[0, 1, 2], [3, 4, 5]]
        """
        sizes = sizes_of(batch_size)
        return self._of(Rebatched(self._transform, sizes, bool(drop_remainder)))
