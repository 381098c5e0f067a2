"""Datasets with TensorFlow's names: where they come from, and what their methods make of them.

A dataset describes a pipeline; each iteration over it runs the pipeline anew. The file is one
class, and most of it what that says to users: the work is in the transforms that it puts together.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast, overload

import numpy as np

from mirrored import _nest, _overrides
from mirrored._absent import MembersOfClass, absent_members
from mirrored._arguments import explained
from mirrored.data import transforms
from mirrored.data.dataset_arguments import (
    as_count,
    as_whole,
    check_callable,
    generated_by,
    range_of,
    slices_of,
    transforms_of,
)
from mirrored.data.pipeline import ElementT, Pipeline
from mirrored.data.prefetching import Prefetched
from mirrored.data.rng import Rng
from mirrored.data.row_transforms import Batched, Repeated, Shuffled, Unbatched
from mirrored.data.sources import Counted, Slices, zipped
from mirrored.data.spec import to_element
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor, as_dtype, int64
from mirrored.ops.tensor import Operators

_Array = np.ndarray[Any, Any] | Operators | list[Any]

# What a mapping may return that is an element as it is; numbers and arrays become tensors.
MappedT = TypeVar("MappedT", bound=Tensor | tuple[Tensor, ...] | dict[str, Tensor])

AUTOTUNE = -1
_AHEAD = 2  # What AUTOTUNE means for `prefetch`: one element is made while another one waits.


@explained
@absent_members("tf.data.Dataset")
class Dataset(Pipeline[ElementT], _overrides.Subclassable, metaclass=MembersOfClass):
    """Elements, each a tensor or a tuple or dict of such, made while they are iterated over.

    Datasets come from `from_tensor_slices` and the other static methods, and each method returns
    a new one. Elements have the dtypes of tensors, and those that `constant` gives: Python's floats
    are float32 and its integers int32; arrays keep their dtype, and those of one that tensors
    cannot have are a TypeError. Tensors are on CPU:0. Functions that are given are called with
    tensors, outside of tapes and recordings, on CPU:0; they may return tensors, arrays or numbers.
    An exception in one of them reaches whoever iterates, with a note that names the method and the
    element's number.

    Args:
        transform: What makes the elements.

    Example:
        >>> import mirrored as mr
        >>> dataset = mr.data.Dataset.range(5).map(lambda x: x * 2).batch(2)
        >>> [batch.numpy().tolist() for batch in dataset]
        [[0, 2], [4, 6], [8]]
    """

    _never_called = _overrides.DATASET
    _elsewhere = "TensorFlow"

    # ------------------------------------------------------------------ where they come from

    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: _Array) -> "Dataset[Tensor]": ...

    @overload
    @classmethod
    def from_tensor_slices(
        cls, tensors: tuple[_Array, _Array]
    ) -> "Dataset[tuple[Tensor, Tensor]]": ...

    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: dict[str, _Array]) -> "Dataset[dict[str, Tensor]]": ...

    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> "Dataset[Any]": ...

    @classmethod
    def from_tensor_slices(cls, tensors: Any) -> Any:
        """Return the rows of arrays, which are copied once.

        Args:
            tensors: An array, or a tuple or dict of arrays of one first size. A list is an array.

        Raises:
            ValueError: A part is a scalar, or first sizes differ.
            TypeError: A part does not hold numbers.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices(([1.0, 2.0], [3, 4]))
            >>> list(dataset.as_numpy_iterator())
            [(np.float32(1.0), np.int32(3)), (np.float32(2.0), np.int32(4))]
        """
        return cls(slices_of(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any) -> Self:
        """Return a dataset of one element.

        Args:
            tensors: The element: an array or a number, or a tuple or dict of such.

        Raises:
            TypeError: A part does not hold numbers.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.from_tensors([1.0, 2.0]))
            1
        """
        element = to_element(tensors, "`tensors`")
        return cls(Slices(_nest.map_structure(lambda leaf: leaf[None], element), 1))

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Self:
        """Return what a generator yields. It is called anew by each iteration.

        Args:
            generator: Returns an iterable.
            output_types: The dtypes of an element, in its structure; an older form of the
                signature.
            output_shapes: The shapes that go with them; None where they are not known.
            args: What to call it with, as NumPy arrays.
            output_signature: A `TensorSpec(shape, dtype)` for each part of an element, in its
                structure; elements are converted to it and checked. None: the first one tells.
            name: Accepted for compatibility.

        Raises:
            TypeError: `generator` is not callable, or arguments exclude each other.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_generator(lambda: iter([1, 2, 3]))
            >>> [int(each) for each in dataset]
            [1, 2, 3]
        """
        return cls(generated_by(generator, args, output_signature, output_types, output_shapes))

    @classmethod
    def range(cls, *args: Any, output_type: Any = int64) -> "Dataset[Tensor]":
        """Return the numbers of a range, as scalars.

        Args:
            *args: As of Python's `range`: stop; start, stop; or start, stop, step.
            output_type: Their dtype.

        Raises:
            ValueError: There are other numbers of arguments, or the step is 0.
            TypeError: They are not integers.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(1, 8, 3)]
            [1, 4, 7]
        """
        made = cls(Counted(range_of(args), as_dtype(output_type)))
        return cast("Dataset[Tensor]", made)

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None) -> Self:
        """Return elements of datasets side by side; the shortest dataset ends it.

        Args:
            *args: Datasets, whose elements make tuples; or one tuple or dict of datasets.
            datasets: That tuple or dict, by name.

        Raises:
            TypeError: Something is not a dataset.

        Example:
            >>> import mirrored as mr
            >>> Dataset = mr.data.Dataset
            >>> list(Dataset.zip(Dataset.range(2), Dataset.range(5, 9)).as_numpy_iterator())
            [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
        """
        if datasets is not None:
            args = (*args, datasets)
        structure = args[0] if len(args) == 1 else args
        return cls(zipped(transforms_of(structure)))

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
        check_callable("map_func", map_func)
        if num_parallel_calls is not None and num_parallel_calls != AUTOTUNE:
            as_count("num_parallel_calls", num_parallel_calls, least=1)
        return Dataset(transforms.Mapped(self._transform, map_func))

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
        check_callable("predicate", predicate)
        return Dataset(transforms.Filtered(self._transform, predicate))

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
        size = as_count("buffer_size", buffer_size, least=1)
        anew = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        return Dataset(Shuffled(self._transform, size, Rng(seed), anew))

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
        size = as_count("batch_size", batch_size, least=1)
        return Dataset(Batched(self._transform, size, bool(drop_remainder)))

    def unbatch(self) -> "Dataset[ElementT]":
        """Return the rows of each element, one after another.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return Dataset(Unbatched(self._transform))

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
        return Dataset(transforms.Enumerated(self._transform, as_whole("start", start)))

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
        times = -1 if count is None else as_count("count", count, least=-1)
        return Dataset(Repeated(self._transform, None if times == -1 else times))

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
        number = as_count("count", count, least=-1)
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
        number = as_count("count", count, least=-1)
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
        shards = as_count("num_shards", num_shards, least=1)
        number = as_count("index", index, least=0)
        if number >= shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {shards - 1} (currently index = {number})."
            )
        return Dataset(transforms.Chosen(self._transform, number, None, shards))

    def _chosen(self, start: int, stop: int | None) -> "Dataset[ElementT]":
        if isinstance(self._transform, Slices):
            end = self._transform.cardinality if stop is None else stop
            return Dataset(self._transform.part(start, end))
        return Dataset(transforms.Chosen(self._transform, start, stop))

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
        return Dataset(transforms.Concatenated(self._transform, dataset._transform))

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
        return Dataset(transforms.Cached(self._transform))

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
        size = as_count("buffer_size", buffer_size, least=-1)
        if size == 0:
            return self
        return Dataset(Prefetched(self._transform, _AHEAD if size == AUTOTUNE else size))
