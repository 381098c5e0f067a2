"""Methods of datasets that join elements, and take them apart: batches, windows, groups.

They are those of `Dataset`, which is too long for one file.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

from mirrored._arguments import explained
from mirrored.data.choosing_methods import ChoosingMethods
from mirrored.data.dataset_arguments import AUTOTUNE, as_count, check_parallel_calls
from mirrored.data.nested_transforms import FlatMapped, Grouped, Interleaved
from mirrored.data.pipeline import ElementT, Pipeline
from mirrored.data.row_transforms import Batched, Unbatched
from mirrored.data.spec import check_callable
from mirrored.ops import Tensor

# How many datasets `interleave` takes turns between where nobody says: in TensorFlow as many as the
# machine has cores, but an order is not to depend on the machine.
_CYCLE = 8

DatasetT = TypeVar("DatasetT", bound=Pipeline[Any])


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

    def flat_map(self, map_func: Callable[..., DatasetT], name: str | None = None) -> DatasetT:
        """Return the elements of the datasets that a function makes, one dataset after another.

        What those datasets draw follows from this one's iteration, as for `map`.

        Args:
            map_func: Called as `map`'s function is; returns a dataset.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is not callable.
            TypeError: In the iteration: it does not return a dataset.

        Example:
            >>> import mirrored as mr
            >>> Dataset = mr.data.Dataset
            >>> [int(each) for each in Dataset.range(4).flat_map(lambda x: Dataset.range(x))]
            [0, 0, 1, 0, 1, 2]
        """
        check_callable("map_func", map_func)
        made: Any = self._of(FlatMapped(self._transform, map_func))
        return cast(DatasetT, made)

    def interleave(
        self,
        map_func: Callable[..., DatasetT],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> DatasetT:
        """Return the elements of the datasets that a function makes, some of each by turns.

        Args:
            map_func: As for `flat_map`.
            cycle_length: How many datasets take turns. None and AUTOTUNE: 8, where TensorFlow
                takes the number of the machine's cores.
            block_length: How many elements each gives at a time; None: 1.
            num_parallel_calls: Accepted and checked; the order is that of one call at a time.
            deterministic: Accepted; the order is always the same.
            name: Accepted for compatibility.

        Raises:
            ValueError: `map_func` is not callable, or a number is not positive.
            TypeError: In the iteration: it does not return a dataset.

        Example:
            >>> import mirrored as mr
            >>> Dataset = mr.data.Dataset
            >>> dataset = Dataset.range(2).interleave(lambda x: Dataset.range(10 * x, 10 * x + 3))
            >>> [int(each) for each in dataset]
            [0, 10, 1, 11, 2, 12]
        """
        check_callable("map_func", map_func)
        check_parallel_calls(num_parallel_calls)
        cycle = _CYCLE
        if cycle_length is not None and cycle_length != AUTOTUNE:
            cycle = as_count("cycle_length", cycle_length, least=1)
        block = as_count("block_length", 1 if block_length is None else block_length, least=1)
        made: Any = self._of(Interleaved(self._transform, map_func, cycle, block))
        return cast(DatasetT, made)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Tensor, Self], DatasetT],
        window_size: int | None = None,
        window_size_func: Callable[[Tensor], Any] | None = None,
        name: str | None = None,
    ) -> DatasetT:
        """Return what a function makes of elements with one key, so many at a time.

        What is left at the end comes in the order of the keys.

        Args:
            key_func: Called as `map`'s function is; returns an int64 scalar, the key.
            reduce_func: From a key and a dataset of elements that have it to a dataset, such as
                one of a single batch.
            window_size: How many elements are given to it at a time.
            window_size_func: From a key to that number, where it is not the same for all keys.
            name: Accepted for compatibility.

        Raises:
            ValueError: Both sizes are given, or none, or something is not callable. In the
                iteration: a key or a size is no int64 scalar.
            InvalidArgumentError: In the iteration: a size is not positive.
            TypeError: In the iteration: `reduce_func` does not return a dataset.

        Example:
            >>> import mirrored as mr
            >>> pairs = mr.data.Dataset.range(7).group_by_window(
            ...     lambda x: x % 2, lambda key, window: window.batch(2), window_size=2
            ... )
            >>> [each.numpy().tolist() for each in pairs]
            [[0, 2], [1, 3], [4, 6], [5]]
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be "
                f"specified. Received: window_size={window_size!r}, "
                f"window_size_func={window_size_func!r}."
            )
        size = window_size_func or (lambda key: window_size)
        for argument, function in (
            ("key_func", key_func),
            ("reduce_func", reduce_func),
            ("window_size_func", size),
        ):
            check_callable(argument, function)
        made: Any = self._of(Grouped(self._transform, key_func, reduce_func, size, self._of))
        return cast(DatasetT, made)
