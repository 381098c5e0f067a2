"""Methods of datasets whose elements are those of other datasets: one after another, or by turns.

They are those of `Dataset`, which is too long for one file.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar, cast

from mirrored._arguments import explained
from mirrored._tracebacks import shortened_methods
from mirrored.data.batching_methods import BatchingMethods
from mirrored.data.dataset_arguments import (
    AUTOTUNE,
    as_count,
    check_parallel_calls,
    mixed_by_choices,
    mixed_by_weights,
)
from mirrored.data.nested_transforms import FlatMapped, Grouped, Interleaved
from mirrored.data.pipeline import ElementT, Pipeline
from mirrored.data.spec import check_callable
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor

# How many datasets `interleave` takes turns between where nobody says: in TensorFlow as many as the
# machine has cores, but an order is not to depend on the machine.
_CYCLE = 8

DatasetT = TypeVar("DatasetT", bound=Pipeline[Any])


@shortened_methods
@explained
class MixingMethods(BatchingMethods[ElementT]):
    """A dataset, as far as its methods give elements of other datasets."""

    _part_of = "Dataset"

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[DatasetT],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> DatasetT:
        """Return elements of datasets, each time of one that is drawn by its weight.

        Args:
            datasets: A list of datasets whose elements are of one kind.
            weights: A number for each, relative to the others, or a dataset of such lists; None:
                they are alike.
            seed: An integer; None takes one from the global seed. What is drawn is not what
                TensorFlow draws from it.
            stop_on_empty_dataset: Whether to end where one is drawn that has no more elements;
                else it is passed over.
            rerandomize_each_iteration: Whether each iteration draws anew.

        Raises:
            ValueError: There is no dataset, or not a weight for each.
            TypeError: Weights are not floating-point, or elements are of different kinds.

        Example:
            >>> import mirrored as mr
            >>> ones, twos = (mr.data.Dataset.from_tensors(x).repeat(2) for x in (1, 2))
            >>> mixed = mr.data.Dataset.sample_from_datasets([ones, twos], [0.25, 0.75], seed=1)
            >>> sorted(int(each) for each in mixed)
            [1, 1, 2, 2]
        """
        anew = bool(rerandomize_each_iteration)
        mixed = mixed_by_weights(datasets, weights, seed, stop_on_empty_dataset, anew)
        return datasets[0]._of(mixed)

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[DatasetT],
        choice_dataset: Pipeline[Tensor],
        stop_on_empty_dataset: bool = True,
    ) -> DatasetT:
        """Return elements of datasets, each time of the one whose number another dataset gives.

        Args:
            datasets: A list of datasets whose elements are of one kind.
            choice_dataset: Their numbers, as int64 scalars.
            stop_on_empty_dataset: Whether to end where one is chosen that has no more elements;
                else it is passed over.

        Raises:
            ValueError: There is no dataset.
            TypeError: `choice_dataset` is none of such numbers, or elements are of different kinds.
            InvalidArgumentError: In the iteration: there is no dataset of a number.

        Example:
            >>> import mirrored as mr
            >>> Dataset = mr.data.Dataset
            >>> both = [Dataset.range(3), Dataset.range(10, 13)]
            >>> chosen = Dataset.choose_from_datasets(both, Dataset.range(2).repeat(2))
            >>> [int(each) for each in chosen]
            [0, 10, 1, 11]
        """
        chosen = mixed_by_choices(datasets, choice_dataset, stop_on_empty_dataset)
        return datasets[0]._of(chosen)

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
            ValueError: `map_func` is not callable, a number is not positive, or there are more
                parallel calls than datasets that take turns.
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
            if num_parallel_calls is not None and num_parallel_calls > cycle:
                raise InvalidArgumentError(
                    "If `cycle_length` is set to a fixed value, `num_parallel_calls` must not be "
                    f"greater than it. Received: cycle_length={cycle}, "
                    f"num_parallel_calls={num_parallel_calls}."
                )
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
