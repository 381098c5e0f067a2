"""Datasets with TensorFlow's names: where they come from, and what their methods make of them.

A dataset describes a pipeline; each iteration over it runs the pipeline anew. The file is one
class, and most of it what that says to users: the work is in the transforms that it puts together.
Methods whose elements are of the same kind as before stand in the classes that it derives from.
"""

import os
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast, overload

import numpy as np

from mirrored import _overrides
from mirrored._absent import MembersOfClass, absent_members
from mirrored._arguments import explained
from mirrored._tracebacks import shortened_methods
from mirrored.data import transforms
from mirrored.data.dataset_arguments import (
    as_count,
    as_whole,
    check_parallel_calls,
    counted_from,
    element_of,
    generated_by,
    range_of,
    slices_of,
    transforms_of,
)
from mirrored.data.files import matching
from mirrored.data.mixing_methods import MixingMethods
from mirrored.data.mixtures import Drawn
from mirrored.data.nested_transforms import Windowed
from mirrored.data.pipeline import ElementT
from mirrored.data.rng import Rng
from mirrored.data.sources import Counted, Slices, Transform, zipped
from mirrored.data.spec import check_callable
from mirrored.data.states import Scanned, States
from mirrored.ops import Tensor, as_dtype, int64
from mirrored.ops.strings import StringTensor, as_strings
from mirrored.ops.tensor import Operators

_Array = np.ndarray[Any, Any] | Operators | list[Any]

# What a mapping may return that is an element as it is; numbers and arrays become tensors.
MappedT = TypeVar("MappedT", bound=Tensor | tuple[Tensor, ...] | dict[str, Tensor])


@shortened_methods
@explained
@absent_members("tf.data.Dataset")
class Dataset(MixingMethods[ElementT], _overrides.Subclassable, metaclass=MembersOfClass):
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

    _part_of = "Dataset"
    _never_called = _overrides.DATASET
    _elsewhere = "TensorFlow"

    def _of(self, transform: Transform) -> Self:
        return cast(Self, Dataset(transform))

    # ------------------------------------------------------------------ where they come from

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
        return cls(slices_of(tensors))

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
        return cls(element_of(tensors))

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
    def range(
        cls, *args: Any, output_type: Any = int64, name: str | None = None
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
            >>> [int(each) for each in mr.data.Dataset.range(1, 8, 3)]
            [1, 4, 7]
        """
        made = cls(Counted(range_of(args), as_dtype(output_type)))
        return cast("Dataset[Tensor]", made)

    @classmethod
    def list_files(
        cls,
        file_pattern: Any,
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
            >>> [each.numpy()[-5:] for each in mr.data.Dataset.list_files(folder / "*.csv")]
            [b'a.csv']
        """
        names = matching(file_pattern)
        files: Any = cls(Slices(as_strings([os.fsencode(each) for each in names]), len(names)))
        if shuffle is None or shuffle:
            files = files.shuffle(len(names), seed)
        return cast("Dataset[StringTensor]", files)

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
        return cls(zipped(transforms_of(args, datasets)))

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
            >>> [int(each) for each in numbers] == [int(each) for each in numbers]
            True
        """
        drawn: Any = cls(Drawn(Rng(seed), bool(rerandomize_each_iteration)))
        return cast("Dataset[Tensor]", drawn)

    @classmethod
    def counter(
        cls, start: Any = 0, step: Any = 1, dtype: Any = int64, name: str | None = None
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
            >>> [int(each) for each in mr.data.Dataset.counter(2, 5).take(3)]
            [2, 7, 12]
        """
        return cast("Dataset[Tensor]", cls(counted_from(start, step, dtype)))

    # ------------------------------------------------------------------ users' functions

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
            >>> [int(each) for each in dataset.map(lambda x, y: x + y)]
            [4, 6]
        """
        check_callable("map_func", map_func)
        check_parallel_calls(num_parallel_calls, synchronous)
        return Dataset(transforms.Mapped(self._transform, map_func))

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
        return Dataset(transforms.Enumerated(self._transform, as_whole("start", start)))

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
            >>> [int(each) for each in sums]
            [1, 3, 6, 10]
        """
        states = States(initial_state, "scan_func", scan_func)
        return Dataset(Scanned(self._transform, states))

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Return windows: datasets of some elements in a row.

        Of a tuple or dict each part has a dataset of its own. `flat_map` makes elements of them.

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
            >>> [each.numpy().tolist() for each in windows.flat_map(lambda window: window.batch(3))]
            [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        length = as_count("size", size, least=1)
        further = as_count("shift", length if shift is None else shift, least=1)
        step = as_count("stride", stride, least=1)
        windows = Windowed(self._transform, length, further, step, drop_remainder, self._of)
        return Dataset(windows)
