"""Datasets with TensorFlow's names: how elements are changed, ordered, batched and chosen.

A dataset describes a pipeline; each iteration over it runs the pipeline anew.
"""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from mirrored import _overrides
from mirrored._absent import MembersOfClass, absent_members
from mirrored._arguments import explained
from mirrored.data import checks, transforms
from mirrored.data.draws import Draws
from mirrored.data.pipeline import ElementT
from mirrored.data.prefetch import Prefetched
from mirrored.data.shuffle import Shuffled
from mirrored.data.sources import Sources
from mirrored.data.stages import Slices
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor

# What a mapping may return that is an element as it is; numbers and arrays become tensors.
MappedT = TypeVar("MappedT", bound=Tensor | tuple[Tensor, ...] | dict[str, Tensor])

AUTOTUNE = -1
_AHEAD = 2  # What AUTOTUNE means for `prefetch`: one element is made while another one waits.


@explained
@absent_members("tf.data.Dataset")
class Dataset(Sources[ElementT], _overrides.Subclassable, metaclass=MembersOfClass):
    """Elements, each a tensor or a tuple or dict of such, made while they are iterated over.

    Datasets come from `from_tensor_slices` and the other static methods, and each method returns
    a new one. Elements have the dtypes of tensors, and those that `constant` gives: Python's floats
    are float32 and its integers int32; arrays keep their dtype, and those of one that tensors
    cannot have are a TypeError. Tensors are on CPU:0. Functions that are given are called with
    tensors, outside of tapes and recordings, on CPU:0; they may return tensors, arrays or numbers.
    An exception in one of them reaches whoever iterates, with a note that names the method and the
    element's number.

    Args:
        stage: What makes the elements.

    Example:
        >>> import mirrored as mr
        >>> dataset = mr.data.Dataset.range(5).map(lambda x: x * 2).batch(2)
        >>> [batch.numpy().tolist() for batch in dataset]
        [[0, 2], [4, 6], [8]]
    """

    _never_called = _overrides.DATASET
    _elsewhere = "TensorFlow"

    # ------------------------------------------------------------------ users' functions

    @overload
    def map(
        self,
        map_func: Callable[..., MappedT],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> "Dataset[MappedT]": ...

    @overload
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> "Dataset[Any]": ...

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
    ) -> "Dataset[Any]":
        """Return what a function makes of each element.

        Random numbers that the function draws follow from a seed that is taken from the global one
        here, the iteration and the draw's number in it, whatever a `prefetch` makes ahead. So do
        those of `filter` and `from_generator`.

        Args:
            map_func: Called with the element's tensor or dict, or with the parts of a tuple.
            num_parallel_calls: Accepted and checked; calls are made one after another, in order.
            deterministic: Accepted; the order is always that of the elements.

        Raises:
            ValueError: `map_func` is not callable, or `num_parallel_calls` out of range.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices(([1, 2], [3, 4]))
            >>> [int(each) for each in dataset.map(lambda x, y: x + y)]
            [4, 6]
        """
        checks.check_callable("map_func", map_func)
        if num_parallel_calls is not None and num_parallel_calls != AUTOTUNE:
            checks.count("num_parallel_calls", num_parallel_calls, least=1)
        return Dataset(transforms.Mapped(self._stage, map_func))

    def filter(self, predicate: Callable[..., Any]) -> "Dataset[ElementT]":
        """Return the elements of which a predicate is true.

        Args:
            predicate: Called as `map`'s function is; returns a bool.

        Raises:
            ValueError: It is not callable.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).filter(lambda x: x > 2)]
            [3, 4]
        """
        checks.check_callable("predicate", predicate)
        return Dataset(transforms.Filtered(self._stage, predicate))

    # ------------------------------------------------------------------ order and batches

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
    ) -> "Dataset[ElementT]":
        """Return the elements in random order.

        A buffer is filled with the first elements; then one of those in it is picked each time,
        and the next element takes its place. So only a buffer for all elements gives all orders.

        Args:
            buffer_size: How many elements the buffer holds.
            seed: An integer; None takes one from the global seed. Datasets of one size and one
                seed are in the same order.
            reshuffle_each_iteration: Whether each iteration, and each pass of `repeat`, has an
                order of its own.

        Raises:
            ValueError: `buffer_size` is not positive.

        Example:
            >>> import mirrored as mr
            >>> sorted(int(each) for each in mr.data.Dataset.range(4).shuffle(4))
            [0, 1, 2, 3]
        """
        size = checks.count("buffer_size", buffer_size, least=1)
        anew = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        return Dataset(Shuffled(self._stage, size, Draws(seed), anew))

    def batch(self, batch_size: int, drop_remainder: bool = False) -> "Dataset[ElementT]":
        """Return elements joined, so many at a time, along a new first axis.

        Args:
            batch_size: How many; with a strategy, over all replicas together.
            drop_remainder: Whether to leave out a last batch that has fewer.

        Raises:
            ValueError: `batch_size` is not positive. Elements of different shapes are an error
                of the iteration.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(3).batch(2).as_numpy_iterator())
            [array([0, 1]), array([2])]
        """
        size = checks.count("batch_size", batch_size, least=1)
        return Dataset(transforms.Batched(self._stage, size, bool(drop_remainder)))

    def unbatch(self) -> "Dataset[ElementT]":
        """Return the rows of each element, one after another.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return Dataset(transforms.Unbatched(self._stage))

    def enumerate(self, start: int = 0) -> "Dataset[tuple[Tensor, ElementT]]":
        """Return pairs of a number and an element.

        Args:
            start: The first number.

        Raises:
            TypeError: It is no integer.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(5, 7).enumerate().as_numpy_iterator())
            [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
        """
        return Dataset(transforms.Numbered(self._stage, checks.integer("start", start)))

    # ------------------------------------------------------------------ which elements

    def repeat(self, count: int | None = None) -> "Dataset[ElementT]":
        """Return the elements so many times over; a shuffled dataset is in another order each time.

        Args:
            count: How many times; None and -1: for ever.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        times = -1 if count is None else checks.count("count", count, least=-1)
        return Dataset(transforms.Repeated(self._stage, None if times == -1 else times))

    def take(self, count: int) -> "Dataset[ElementT]":
        """Return at most the first `count` elements.

        Args:
            count: How many; -1: all.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(5).take(2))
            2
        """
        number = checks.count("count", count, least=-1)
        return self if number == -1 else self._chosen(0, number)

    def skip(self, count: int) -> "Dataset[ElementT]":
        """Return the elements after the first `count`.

        Args:
            count: How many to leave out; -1: all.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        number = checks.count("count", count, least=-1)
        return self._chosen(0, 0) if number == -1 else self._chosen(number, None)

    def shard(self, num_shards: int, index: int) -> "Dataset[ElementT]":
        """Return every `num_shards`-th element, from number `index` on.

        Args:
            num_shards: How many shards there are.
            index: Which one this is, counted from 0.

        Raises:
            ValueError: `num_shards` is not positive, or there is no such shard.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).shard(2, 1)]
            [1, 3]
        """
        shards = checks.count("num_shards", num_shards, least=1)
        number = checks.count("index", index, least=0)
        if number >= shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {shards - 1} (currently index = {number})."
            )
        return Dataset(transforms.Chosen(self._stage, number, None, shards))

    def _chosen(self, start: int, stop: int | None) -> "Dataset[ElementT]":
        if isinstance(self._stage, Slices):
            end = self._stage.cardinality if stop is None else stop
            return Dataset(self._stage.part(start, end))
        return Dataset(transforms.Chosen(self._stage, start, stop))

    def concatenate(self, dataset: "Dataset[Any]") -> "Dataset[ElementT]":
        """Return the elements of this dataset and then those of another.

        Args:
            dataset: The other one.

        Raises:
            TypeError: It is no dataset, or its elements have another structure or other dtypes.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(2).concatenate(mr.data.Dataset.range(3)))
            5
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`dataset` is a Dataset. Received: a {type(dataset).__name__}.")
        return Dataset(transforms.Concatenated(self._stage, dataset._stage))

    # ------------------------------------------------------------------ when they are made

    def cache(self) -> "Dataset[ElementT]":
        """Return the same elements, kept in memory from the first whole iteration on.

        Iterations before it, which did not come to the end, are in the same order and draw the same
        random numbers.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(3).cache())
            3
        """
        return Dataset(transforms.Kept(self._stage))

    def prefetch(self, buffer_size: int) -> "Dataset[ElementT]":
        """Return the same elements, made ahead of their use by a thread in the background.

        The thread ends with the iterator: when the elements end, with an exception, when the
        iterator is closed or deleted, or the loop over it is left. That waits for the element
        that is being made.

        Args:
            buffer_size: How many elements wait at most; AUTOTUNE: 2; 0: made when they are used.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.range(3).prefetch(mr.data.AUTOTUNE)
            >>> [int(each) for each in dataset]
            [0, 1, 2]
        """
        size = checks.count("buffer_size", buffer_size, least=-1)
        if size == 0:
            return self
        return Dataset(Prefetched(self._stage, _AHEAD if size == AUTOTUNE else size))
