"""Datasets: their sources, their transforms as methods, and iteration.

A dataset describes a pipeline; each iteration runs the pipeline from the start. Most lines of the
file are documentation for users. The work is done in the transforms that the methods put together.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Self, TypeVar, cast, overload

import numpy as np

import mirrored.data.caching as caching
import mirrored.data.combining as combining
import mirrored.data.element_transforms as element_transforms
import mirrored.data.nested_transforms as nested_transforms
import mirrored.data.padded_batches as padded_batches
import mirrored.data.row_transforms as row_transforms
import mirrored.data.source_transforms as source_transforms
from mirrored import _overrides
from mirrored._absent import MembersOfClass, absent_members
from mirrored._numbers import counted
from mirrored._tracebacks import shortened_methods
from mirrored._types import DTypeLike, PathLike, TensorLike
from mirrored.data.dataset_iterators import DatasetIterator, NumpyIterator, elements_of
from mirrored.data.dataset_options import Optioned, Options, merged_options
from mirrored.data.elements import (
    AUTOTUNE,
    DatasetBase,
    ElementT,
    as_count,
    as_whole,
    check_callable,
    check_parallel_calls,
    to_tensors,
)
from mirrored.data.leaf_specs import public_specs
from mirrored.data.prefetching import Prefetched
from mirrored.data.rng import Rng
from mirrored.data.source_transforms import matching, rows_of_names
from mirrored.data.transform import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Transform
from mirrored.devices import get_device
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops import Tensor, as_dtype, int64, transfer
from mirrored.ops.hooks import active_recorder
from mirrored.ops.strings import StringTensor
from mirrored.ops.tensor import Operators

# How many datasets `interleave` takes turns between where nobody says: in TensorFlow as many as the
# machine has cores, but an order is not to depend on the machine.
_CYCLE = 8
_AHEAD = 2  # What AUTOTUNE means for `prefetch`: one element is made while another one waits.

_Array = np.ndarray[Any, Any] | Operators | list[Any]

# What a mapping may return that is an element as it is; numbers and arrays become tensors.
MappedT = TypeVar("MappedT", bound=Tensor | tuple[Tensor, ...] | dict[str, Tensor])
DatasetT = TypeVar("DatasetT", bound="Dataset[Any]")
AppliedT = TypeVar("AppliedT")


@shortened_methods
@absent_members("tf.data.Dataset")
class Dataset(DatasetBase[ElementT], _overrides.Subclassable, metaclass=MembersOfClass):
    """Elements, each a tensor or a tuple or dict of such, made while they are iterated over.

    Datasets come from `from_tensor_slices` and the other static methods, and each method returns
    a new one. Elements have the dtypes of tensors, and those that `constant` gives: Python's floats
    are float32 and its integers int32; arrays keep their dtype, and those of one that tensors
    cannot have are a TypeError. Tensors are on CPU:0. Functions that are given are called with
    tensors, outside of tapes and recordings, on CPU:0; they may return tensors, arrays or numbers.
    An exception in one of them reaches whoever iterates, with a note that names the method and the
    element's number; the iterator then goes on with the next element.

    Args:
        transform: What makes the elements.

    Example:
        >>> import mirrored as mr
        >>> dataset = mr.data.Dataset.range(5).map(lambda x: x * 2).batch(2)
        >>> [batch.numpy().tolist() for batch in dataset]
        [[0, 2], [4, 6], [8]]
    """

    __overrides__ = _overrides.DATASET
    _transform: Transform

    def __init__(self, transform: Transform) -> None:
        self._transform = transform

    # -------------------------------------------------------------------- where elements come from

    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: _Array, name: str | None = None) -> "Dataset[Tensor]": ...

    @overload
    @classmethod
    def from_tensor_slices(
        cls, tensors: tuple[_Array, _Array], name: str | None = None
    ) -> "Dataset[tuple[Tensor, Tensor]]": ...

    @overload
    @classmethod
    def from_tensor_slices(
        cls, tensors: dict[str, _Array], name: str | None = None
    ) -> "Dataset[dict[str, Tensor]]": ...

    @overload
    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> "Dataset[Any]": ...

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Any:
        """Return the rows of arrays, which are copied once.

        Args:
            tensors: An array, or a tuple or dict of arrays of one first size. A list is an array.
                Strings, as of names of files, become elements that functions are called with.
            name: Accepted for compatibility.

        Raises:
            ValueError: A part is a scalar, or first sizes differ.
            TypeError: A part holds neither numbers nor strings.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices(([1.0, 2.0], [3, 4]))
            >>> list(dataset.as_numpy_iterator())
            [(np.float32(1.0), np.int32(3)), (np.float32(2.0), np.int32(4))]
        """
        return cls(source_transforms.slices_of(tensors))

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Self:
        """Return a dataset of one element.

        Args:
            tensors: The element: an array, a number or a dataset, or a tuple or dict of such.
            name: Accepted for compatibility.

        Raises:
            TypeError: A part holds neither numbers nor strings.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.from_tensors([1.0, 2.0]))
            1
        """
        return cls(source_transforms.element_of(tensors))

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Self:
        """Return what a generator yields. Each iteration calls it again.

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
            >>> [int(x) for x in dataset]
            [1, 2, 3]
        """
        return cls(
            source_transforms.generated_by(
                generator, args, output_signature, output_types, output_shapes
            )
        )

    @classmethod
    def range(
        cls, *args: Any, output_type: DTypeLike = int64, name: str | None = None
    ) -> "Dataset[Tensor]":
        """Return the numbers of a range, as scalars.

        Args:
            *args: As of Python's `range`: stop; start, stop; or start, stop, step.
            output_type: Their dtype.
            name: Accepted for compatibility.

        Raises:
            ValueError: There are other numbers of arguments, or the step is 0.
            TypeError: They are not integers.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(1, 8, 3)]
            [1, 4, 7]
        """
        return cast(
            "Dataset[Tensor]",
            cls(source_transforms.Counted(source_transforms.range_of(args), as_dtype(output_type))),
        )

    @classmethod
    def list_files(
        cls,
        file_pattern: PathLike | Sequence[PathLike],
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset[StringTensor]":
        """Return the names of files that match patterns, as strings.

        Args:
            file_pattern: A pattern of Python's `glob`, or several in a list.
            shuffle: Whether they come in another random order in each iteration, as where it is
                None; else they are sorted.
            seed: The seed of that order; None takes one from the global seed.
            name: Accepted for compatibility.

        Raises:
            TypeError: A pattern is no path.
            InvalidArgumentError: No file matches.

        Example:
            >>> import pathlib, tempfile
            >>> import mirrored as mr
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> (folder / "a.csv").touch()
            >>> [x.numpy()[-5:] for x in mr.data.Dataset.list_files(folder / "*.csv")]
            [b'a.csv']
        """
        names = matching(file_pattern)
        files: Any = cls(rows_of_names(names))
        if shuffle is None or shuffle:
            files = files.shuffle(len(names), seed)
        return cast("Dataset[StringTensor]", files)

    @classmethod
    def random(
        cls,
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> "Dataset[Tensor]":
        """Return random int64 numbers of at least 0 and below 2**32, without end.

        Args:
            seed: An integer; None takes one from the global seed. The numbers are not those that
                TensorFlow draws from it.
            rerandomize_each_iteration: Whether each iteration draws others.
            name: Accepted for compatibility.

        Raises:
            TypeError: The seed is no integer.

        Example:
            >>> import mirrored as mr
            >>> numbers = mr.data.Dataset.random(seed=4).take(3)
            >>> [int(x) for x in numbers] == [int(x) for x in numbers]
            True
        """
        numbers = source_transforms.Drawn(Rng(seed), bool(rerandomize_each_iteration))
        return cast("Dataset[Tensor]", cls(numbers))

    @classmethod
    def counter(
        cls, start: int = 0, step: int = 1, dtype: DTypeLike = int64, name: str | None = None
    ) -> "Dataset[Tensor]":
        """Return numbers without end, each a step further.

        Args:
            start: The first one.
            step: What is added.
            dtype: Their dtype.
            name: Accepted for compatibility.

        Raises:
            TypeError: A number is none that the dtype can hold.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.counter(2, 5).take(3)]
            [2, 7, 12]
        """
        return cast("Dataset[Tensor]", cls(source_transforms.counted_from(start, step, dtype)))

    # ---------------------------------------------------------------- elements of several datasets

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Self:
        """Return elements of datasets side by side; the shortest dataset ends it.

        Args:
            *args: Datasets, whose elements make tuples; or one tuple or dict of datasets.
            datasets: That tuple or dict, by name.
            name: Accepted for compatibility.

        Raises:
            TypeError: Something is not a dataset.

        Example:
            >>> import mirrored as mr
            >>> Dataset = mr.data.Dataset
            >>> list(Dataset.zip(Dataset.range(2), Dataset.range(5, 9)).as_numpy_iterator())
            [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
        """
        return cls(combining.zipped(combining.transforms_of(args, datasets)))

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
            rerandomize_each_iteration: Whether each iteration draws other numbers.

        Raises:
            ValueError: There is no dataset, or not a weight for each.
            TypeError: Weights are not floating-point, or elements are of different kinds.

        Example:
            >>> import mirrored as mr
            >>> ones, twos = (mr.data.Dataset.from_tensors(x).repeat(2) for x in (1, 2))
            >>> mixed = mr.data.Dataset.sample_from_datasets([ones, twos], [0.25, 0.75], seed=1)
            >>> sorted(int(x) for x in mixed)
            [1, 1, 2, 2]
        """
        redraws = bool(rerandomize_each_iteration)
        mixed = combining.mixed_by_weights(datasets, weights, seed, stop_on_empty_dataset, redraws)
        return cast(DatasetT, Dataset(mixed))

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[DatasetT],
        choice_dataset: "Dataset[Tensor]",
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
            >>> [int(x) for x in chosen]
            [0, 10, 1, 11]
        """
        mixed = combining.mixed_by_choices(datasets, choice_dataset, stop_on_empty_dataset)
        return cast(DatasetT, Dataset(mixed))

    def concatenate(self, dataset: "Dataset[Any]", name: str | None = None) -> "Dataset[ElementT]":
        """Return the elements of this dataset and then those of another.

        Args:
            dataset: The other one.
            name: Accepted for compatibility.

        Raises:
            TypeError: It is no dataset, or its elements have another structure or other dtypes.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(2).concatenate(mr.data.Dataset.range(3)))
            5
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`dataset` must be a Dataset. Received: a {type(dataset).__name__}.")
        return Dataset(combining.Concatenated(self._transform, dataset._transform))

    # ---------------------------------------------------------------------------- users' functions

    @overload
    def map(
        self,
        map_func: Callable[..., MappedT],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> "Dataset[MappedT]": ...

    @overload
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> "Dataset[Any]": ...

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Return what a function makes of each element.

        Random numbers that the function draws follow from a seed that is taken from the global one
        here, the iteration and the draw's number in it, whatever a `prefetch` makes ahead. So do
        those of `filter` and `from_generator`. Draws with a seed of their own follow from the
        global seed, that one and the number of the call: each iterator begins again, and draws
        with one seed are alike in a call, as in TensorFlow.

        TensorFlow calls the function once, to trace it. Here a `print`, a counter, NumPy and
        Python's random numbers run for each element. A function that only calls ops on its
        arguments and on constants is recorded after 24 calls, and then replayed for each
        element, with the same bits; so is a predicate of `filter` or `take_while`. If a constant
        that it reads changes, the next element has the new value.

        Args:
            map_func: Called with the element's tensor or dict, or with the parts of a tuple.
            num_parallel_calls: Accepted and checked; calls are made one after another, in order.
            deterministic: Accepted; the order is always that of the elements.
            synchronous: Accepted; calls are always made where elements are asked for.
            use_unbounded_threadpool: Accepted; there is no pool of threads.
            name: Accepted for compatibility.

        Raises:
            ValueError: `map_func` is not callable, or `num_parallel_calls` out of range.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices(([1, 2], [3, 4]))
            >>> [int(x) for x in dataset.map(lambda x, y: x + y)]
            [4, 6]
        """
        check_callable("map_func", map_func)
        check_parallel_calls(num_parallel_calls, synchronous)
        return Dataset(element_transforms.Mapped(self._transform, map_func))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> "Dataset[ElementT]":
        """Return the elements of which a predicate is true.

        Args:
            predicate: Called as `map`'s function is; returns a bool.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is not callable.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(5).filter(lambda x: x > 2)]
            [3, 4]
        """
        check_callable("predicate", predicate)
        return Dataset(element_transforms.Filtered(self._transform, predicate))

    def take_while(
        self, predicate: Callable[..., Any], name: str | None = None
    ) -> "Dataset[ElementT]":
        """Return the elements before the first one of which a predicate is not true.

        Args:
            predicate: Called as `map`'s function is; returns a bool.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is not callable.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(5).take_while(lambda x: x < 2)]
            [0, 1]
        """
        check_callable("predicate", predicate)
        return Dataset(element_transforms.TakenWhile(self._transform, predicate))

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> "Dataset[Any]":
        """Return what a function makes of each element and of a state that it takes along.

        Args:
            initial_state: The first state: arrays or numbers, or a tuple or dict of such.
            scan_func: From a state and an element to a pair of the next state, of the same
                structure and dtypes, and a result.
            name: Accepted for compatibility.

        Raises:
            ValueError: `scan_func` is not callable.
            TypeError: In the iteration: it does not return a pair, or a state of other dtypes.

        Example:
            >>> import mirrored as mr
            >>> sums = mr.data.Dataset.range(1, 5).scan(
            ...     mr.constant(0, mr.int64), lambda total, x: (total + x, total + x)
            ... )
            >>> [int(x) for x in sums]
            [1, 3, 6, 10]
        """
        function = element_transforms.States(initial_state, "scan_func", scan_func)
        return Dataset(element_transforms.Scanned(self._transform, function))

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
            >>> [int(x) for x in Dataset.range(4).flat_map(lambda x: Dataset.range(x))]
            [0, 0, 1, 0, 1, 2]
        """
        check_callable("map_func", map_func)
        return cast(DatasetT, Dataset(nested_transforms.FlatMapped(self._transform, map_func)))

    def interleave(
        self,
        map_func: Callable[..., DatasetT],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> DatasetT:
        """Return the elements of the datasets that a function makes, some of each alternately.

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
            >>> [int(x) for x in dataset]
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
        return cast(
            DatasetT,
            Dataset(nested_transforms.Interleaved(self._transform, map_func, cycle, block)),
        )

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Tensor, "Dataset[ElementT]"], DatasetT],
        window_size: int | None = None,
        window_size_func: Callable[[Tensor], Any] | None = None,
        name: str | None = None,
    ) -> DatasetT:
        """Return what a function makes of elements with one key, in windows.

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
            >>> [x.numpy().tolist() for x in pairs]
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
        return cast(
            DatasetT,
            Dataset(
                nested_transforms.Grouped(self._transform, key_func, reduce_func, size, Dataset)
            ),
        )

    def apply(self, transformation_func: Callable[[Self], AppliedT]) -> AppliedT:
        """Return what a function makes of the dataset.

        Args:
            transformation_func: From a dataset to a dataset.

        Raises:
            TypeError: It does not return a dataset.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(5).apply(lambda dataset: dataset.batch(2)))
            3
        """
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(
                "`transformation_func` must return a `mr.data.Dataset` object. Got "
                f"{type(dataset)!r}."
            )
        return dataset

    # -------------------------------------------------------------- which elements, in which order

    def take(self, count: int, name: str | None = None) -> "Dataset[ElementT]":
        """Return at most the first `count` elements.

        Args:
            count: How many; -1: all.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(5).take(2))
            2
        """
        number = as_count("count", count, least=-1)
        return (
            self if number == -1 else Dataset(element_transforms.chosen(self._transform, 0, number))
        )

    def skip(self, count: int, name: str | None = None) -> "Dataset[ElementT]":
        """Return the elements after the first `count`.

        Args:
            count: How many to leave out; -1: all.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        number = as_count("count", count, least=-1)
        begin, end = (0, 0) if number == -1 else (number, None)
        return Dataset(element_transforms.chosen(self._transform, begin, end))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset[ElementT]":
        """Return every `num_shards`-th element, from number `index` on.

        Args:
            num_shards: How many shards there are.
            index: Which one this is, counted from 0.
            name: Accepted for compatibility.

        Raises:
            ValueError: `num_shards` is not positive, or there is no such shard.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(5).shard(2, 1)]
            [1, 3]
        """
        shards = as_count("num_shards", num_shards, least=1)
        number = as_count("index", index, least=0)
        if number >= shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {shards - 1} (currently index = {number})."
            )
        return Dataset(element_transforms.Chosen(self._transform, number, None, shards))

    def unique(self, name: str | None = None) -> "Dataset[ElementT]":
        """Return the elements that differ from all before them.

        Args:
            name: Accepted for compatibility.

        Raises:
            TypeError: They are not of int32 or int64.
            InvalidArgumentError: They have several parts.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices([1, 2, 1, 3])
            >>> [int(x) for x in dataset.unique()]
            [1, 2, 3]
        """
        return Dataset(element_transforms.Unique(self._transform))

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: TensorLike,
        initial_dist: TensorLike | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        """Return pairs of a class and an element, of which some are left out.

        Those that are left have classes in the wanted proportions, in the long run. Which are left
        is not what TensorFlow draws.

        Args:
            class_func: Called as `map`'s function is; returns an integer, from 0 on.
            target_dist: The part that each class is to have.
            initial_dist: The part that it has; None: it is estimated from the elements so far.
            seed: An integer; None takes one from the global seed.
            name: Accepted for compatibility.

        Raises:
            ValueError: `class_func` is not callable, or parts are none.
            InvalidArgumentError: In the iteration: there is no part for a class.
            TypeError: In the iteration: a class is no integer.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.range(100).rejection_resample(
            ...     lambda x: mr.cast(x < 20, mr.int32), [0.0, 1.0], [0.8, 0.2]
            ... )
            >>> [(int(label), int(x)) for label, x in dataset.take(2)]
            [(1, 0), (1, 1)]
        """
        check_callable("class_func", class_func)
        target = element_transforms.parts_of_classes("target_dist", target_dist)
        initial = None
        if initial_dist is not None:
            initial = element_transforms.parts_of_classes("initial_dist", initial_dist, len(target))
        return Dataset(
            element_transforms.Resampled(self._transform, class_func, target, initial, Rng(seed))
        )

    def ignore_errors(
        self, log_warning: bool = False, name: str | None = None
    ) -> "Dataset[ElementT]":
        """Return the elements for which the functions of `map` right before it raise no error.

        Args:
            log_warning: Whether each error is a warning of the log.
            name: Accepted for compatibility.

        Raises:
            TypeError: `log_warning` is no bool.

        Example:
            >>> import mirrored as mr
            >>> def inverse(x):
            ...     return mr.debugging.check_numerics(1.0 / x, "an inverse")
            >>> dataset = mr.data.Dataset.from_tensor_slices([1.0, 0.0, 4.0])
            >>> [float(x) for x in dataset.map(inverse).ignore_errors()]
            [1.0, 0.25]
        """
        if not isinstance(log_warning, bool):
            raise TypeError(f"Expected bool for argument 'log_warning' not {log_warning!r}.")
        return Dataset(element_transforms.Ignored(self._transform, logs=log_warning))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> "Dataset[ElementT]":
        """Return the elements in random order.

        A buffer is filled with the first elements; then one of those in it is picked each time,
        and the next element takes its place. So only a buffer for all elements gives all orders.

        Args:
            buffer_size: How many elements the buffer holds; UNKNOWN_CARDINALITY: all.
            seed: An integer; None takes one from the global seed. Datasets of one size and one
                seed are in the same order.
            reshuffle_each_iteration: Whether each iteration, and each pass of `repeat`, has an
                order of its own.
            name: Accepted for compatibility.

        Raises:
            ValueError: `buffer_size` is not positive.

        Example:
            >>> import mirrored as mr
            >>> sorted(int(x) for x in mr.data.Dataset.range(4).shuffle(4))
            [0, 1, 2, 3]
        """
        size = sys.maxsize
        is_endless = self._transform.cardinality == INFINITE_CARDINALITY
        if buffer_size != UNKNOWN_CARDINALITY or is_endless:
            size = as_count("buffer_size", buffer_size, least=1)
        reshuffles = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        return Dataset(row_transforms.Shuffled(self._transform, size, Rng(seed), reshuffles))

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset[ElementT]":
        """Return the elements `count` times; a shuffled dataset has another order each time.

        Args:
            count: How many times; None and -1: without end.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        times = -1 if count is None else as_count("count", count, least=-1)
        return Dataset(row_transforms.Repeated(self._transform, None if times == -1 else times))

    def enumerate(
        self, start: int = 0, name: str | None = None
    ) -> "Dataset[tuple[Tensor, ElementT]]":
        """Return pairs of a number and an element.

        Args:
            start: The first number.
            name: Accepted for compatibility.

        Raises:
            TypeError: It is no integer.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(5, 7).enumerate().as_numpy_iterator())
            [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
        """
        return Dataset(element_transforms.Enumerated(self._transform, as_whole("start", start)))

    # ------------------------------------------------------------------------- batches and windows

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset[ElementT]":
        """Return batches of elements, joined along a new first axis.

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
        return Dataset(row_transforms.Batched(self._transform, size, bool(drop_remainder)))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset[ElementT]":
        """Return batches of elements of several shapes; smaller elements are padded.

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
        return Dataset(
            padded_batches.PaddedBatched(
                self._transform, size, padded_shapes, padding_values, bool(drop_remainder)
            )
        )

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
    ) -> "Dataset[ElementT]":
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
        buckets = padded_batches.Buckets(
            element_length_func, [*bucket_boundaries], [*bucket_batch_sizes]
        )

        def batched(bucket: Tensor, group: "Dataset[ElementT]") -> Any:
            size, shapes = buckets.size(bucket), padded_shapes
            if no_padding:
                return group.batch(size, drop_remainder)
            if pad_to_bucket_boundary:
                shapes = buckets.bounded(int(bucket), group._transform, shapes)
            return group.padded_batch(size, shapes, padding_values, drop_remainder)

        return Dataset(
            nested_transforms.Grouped(
                self._transform, buckets.number, batched, buckets.size, Dataset
            )
        )

    def rebatch(
        self, batch_size: int | Sequence[int], drop_remainder: bool = False, name: str | None = None
    ) -> "Dataset[ElementT]":
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
        sizes = row_transforms.sizes_of(batch_size)
        return Dataset(row_transforms.Rebatched(self._transform, sizes, bool(drop_remainder)))

    def unbatch(self, name: str | None = None) -> "Dataset[ElementT]":
        """Return the rows of each element, one after another.

        Args:
            name: Accepted for compatibility.

        Example:
            >>> import mirrored as mr
            >>> [int(x) for x in mr.data.Dataset.range(3).batch(2).unbatch()]
            [0, 1, 2]
        """
        return Dataset(row_transforms.Unbatched(self._transform))

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Return windows: datasets of some elements in a row.

        Each part of a tuple or dict becomes a dataset. `flat_map` turns them into elements.

        Args:
            size: How many elements a window has; at the end there may be fewer.
            shift: How many elements further the next window begins; None: `size`.
            stride: How many elements further the next element of a window is.
            drop_remainder: Whether to leave out windows that have fewer elements.
            name: Accepted for compatibility.

        Raises:
            ValueError: A number is not positive.

        Example:
            >>> import mirrored as mr
            >>> windows = mr.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
            >>> [x.numpy().tolist() for x in windows.flat_map(lambda window: window.batch(3))]
            [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        length = as_count("size", size, least=1)
        further = as_count("shift", length if shift is None else shift, least=1)
        step = as_count("stride", stride, least=1)
        windows = nested_transforms.Windowed(
            self._transform, length, further, step, drop_remainder, Dataset
        )
        return Dataset(windows)

    # ---------------------------------------------------------------------- when elements are made

    def cache(self, filename: PathLike = "", name: str | None = None) -> "Dataset[ElementT]":
        """Return the same elements, kept in memory or in a file from the first whole iteration on.

        In memory, iterations before it, which did not come to the end, are in the same order and
        draw the same random numbers.

        Args:
            filename: The file, which later programs read too, whatever their dataset is: delete
                it where that changes. "": memory.
            name: Accepted for compatibility.

        Raises:
            TypeError: The filename is no path, or elements have datasets as parts.
            FileNotFoundError: There is no such folder.
            ValueError: There is something else than a file; in an iteration: it is damaged.

        Example:
            >>> import mirrored as mr
            >>> len(mr.data.Dataset.range(3).cache())
            3
        """
        if filename == "":
            return Dataset(caching.Cached(self._transform))
        return Dataset(caching.CachedInFile(self._transform, filename))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> "Dataset[ElementT]":
        """Return the same elements, made ahead of their use by a thread in the background.

        The thread ends with the iterator: when the elements end, with an exception, when the
        iterator is closed or deleted, or the loop over it is left. That waits for the element
        that is being made.

        Args:
            buffer_size: How many elements wait at most; AUTOTUNE and None: 2; 0: made when they
                are used.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.range(3).prefetch(mr.data.AUTOTUNE)
            >>> [int(x) for x in dataset]
            [0, 1, 2]
        """
        wanted = AUTOTUNE if buffer_size is None else buffer_size
        size = as_count("buffer_size", wanted, least=-1)
        if size == 0:
            return self
        return Dataset(Prefetched(self._transform, _AHEAD if size == AUTOTUNE else size))

    def with_options(self, options: Options, name: str | None = None) -> "Dataset[ElementT]":
        """Return the same elements, with options for what follows.

        They are TensorFlow's, and none of them changes an element here; see `Options`.

        Args:
            options: They count where they are set; the rest is as it was before.
            name: Accepted for compatibility.

        Raises:
            TypeError: They are no `Options`.

        Example:
            >>> import mirrored as mr
            >>> options = mr.data.Options()
            >>> options.threading.private_threadpool_size = 2
            >>> [int(x) for x in mr.data.Dataset.range(3).with_options(options)]
            [0, 1, 2]
        """
        merged = Options().merge(options)  # A copy: theirs may change.
        return Dataset(Optioned(self._transform, merged))

    def options(self) -> "Options":
        """Return what `with_options` has set, here and where the elements come from.

        Example:
            >>> import mirrored as mr
            >>> mr.data.Dataset.range(3).options().deterministic is None
            True
        """
        options = merged_options(self._transform)
        options._freeze()
        return options

    # -------------------------------------------------------------------------- iteration and size

    def __iter__(self) -> "DatasetIterator[ElementT]":
        """Return an iterator of tensors; its `close` ends the threads that work for it."""
        return DatasetIterator(self)

    def as_numpy_iterator(self) -> "NumpyIterator":
        """Return an iterator of NumPy arrays, and NumPy's scalars, that may be written to.

        Raises:
            TypeError: Elements have datasets as parts; where that is not known before, it is an
                error of the iteration.

        Example:
            >>> import mirrored as mr
            >>> list(mr.data.Dataset.range(2).as_numpy_iterator())
            [np.int64(0), np.int64(1)]
        """
        return NumpyIterator(self)

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """Return the last of the states that a function makes, one of another and an element.

        Gradients do not go through it.

        Args:
            initial_state: The first state: arrays or numbers, or a tuple or dict of such.
            reduce_func: From a state and an element to the next state, of the same structure and
                dtypes. A tuple is one argument.
            name: Accepted for compatibility.

        Raises:
            ValueError: `reduce_func` is not callable.
            TypeError: A new state has other dtypes.
            InvalidArgumentError: A new state has another number of parts.
            OperatorNotAllowedInGraphError: A function is being recorded.

        Example:
            >>> import mirrored as mr
            >>> zero = mr.constant(0, mr.int64)
            >>> int(mr.data.Dataset.range(5).reduce(zero, lambda total, x: total + x))
            10
        """
        if active_recorder() is not None:
            raise OperatorNotAllowedInGraphError(
                "`Dataset.reduce` is run by Python, and a recorded function does not run Python. "
                "Received: a call while a function was being recorded. Call it outside and pass "
                "the result to the function, or loop over the dataset in the function."
            )
        function = element_transforms.States(initial_state, "reduce_func", reduce_func)
        return to_tensors(element_transforms.reduced(elements_of(self._transform), function))

    def get_single_element(self, name: str | None = None) -> ElementT:
        """Return the one element of the dataset.

        Args:
            name: Accepted for compatibility.

        Raises:
            InvalidArgumentError: There is none, or more than one.

        Example:
            >>> import mirrored as mr
            >>> mr.data.Dataset.range(3).batch(5).get_single_element().numpy().tolist()
            [0, 1, 2]
        """
        with closing(iter(self)) as elements:
            firsts = list(itertools.islice(elements, 2))
        if len(firsts) != 1:
            wrong = "had more than one element" if firsts else "was empty"
            raise InvalidArgumentError(
                f"Dataset {wrong}. Received: {self!r}. `get_single_element` is for datasets of "
                "one element; iterate over other datasets."
            )
        return firsts[0]

    @property
    def element_spec(self) -> Any:
        """The structure of an element, with a `TensorSpec` for each tensor.

        A size that differs between elements is None, as the first one of batches is. After `map`,
        and after `from_generator` without a signature, it is that of the first element, which is
        made to find out.
        """
        return public_specs(self._transform.specs())

    def cardinality(self) -> Tensor:
        """Return the number of elements as an int64 scalar, or one of the constants.

        They are INFINITE_CARDINALITY and UNKNOWN_CARDINALITY.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.range(5)
            >>> int(dataset.cardinality()), int(dataset.repeat().cardinality())
            (5, -1)
        """
        return transfer(np.array(self._transform.cardinality, np.int64), get_device("CPU:0"))

    def __len__(self) -> int:
        """Return the number of elements; TypeError where there is none."""
        size = self._transform.cardinality
        if size == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if size == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return size

    def __bool__(self) -> bool:
        """Return True, as TensorFlow does, whether or not there is a length."""
        return True

    def __repr__(self) -> str:
        text = _length_of(self._transform)
        return f"<mr.data.Dataset: {type(self._transform).__name__}, {text}>"

    def _repr_html_(self) -> str:
        from mirrored import _html

        rows, waiting = [], [self._transform]
        while waiting:  # From the last transform to the sources.
            transform = waiting.pop()
            rows.append((type(transform).__name__, _length_of(transform)))
            waiting += reversed(transform.sources)
        specs = [("element", repr(self.element_spec))] if self._transform.known else []
        shown = _html.table([*reversed(rows), *specs])
        return _html.titled("Dataset", _length_of(self._transform), shown)


def _length_of(transform: Transform) -> str:
    size = transform.cardinality
    words = {INFINITE_CARDINALITY: "without end", UNKNOWN_CARDINALITY: "of unknown length"}
    return words.get(size, counted(size, "element"))
