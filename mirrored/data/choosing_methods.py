"""Methods of datasets that leave elements as they are: which come, in which order, and when.

They are those of `Dataset`, which is too long for one file.
"""

import sys
from collections.abc import Callable
from typing import Any, Self, TypeVar

from mirrored._arguments import explained
from mirrored._files import PathName
from mirrored._tracebacks import shortened_methods
from mirrored.data import transforms
from mirrored.data.dataset_arguments import AUTOTUNE, as_count, parts_of_classes
from mirrored.data.options import Options
from mirrored.data.options_transform import Optioned
from mirrored.data.pipeline import ElementT, Pipeline
from mirrored.data.prefetching import Prefetched
from mirrored.data.resampling import Resampled
from mirrored.data.rng import Rng
from mirrored.data.row_transforms import Repeated, Shuffled
from mirrored.data.sources import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Slices
from mirrored.data.spec import check_callable
from mirrored.errors import InvalidArgumentError

AppliedT = TypeVar("AppliedT")

_AHEAD = 2  # What AUTOTUNE means for `prefetch`: one element is made while another one waits.


@shortened_methods
@explained
class ChoosingMethods(Pipeline[ElementT]):
    """A dataset, as far as its methods choose and order elements."""

    _part_of = "Dataset"

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Return the elements of which a predicate is true.

        Args:
            predicate: Called as `map`'s function is; returns a bool.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is not callable.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).filter(lambda x: x > 2)]
            [3, 4]
        """
        check_callable("predicate", predicate)
        return self._of(transforms.Filtered(self._transform, predicate))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
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
            >>> [float(each) for each in dataset.map(inverse).ignore_errors()]
            [1.0, 0.25]
        """
        if not isinstance(log_warning, bool):
            raise TypeError(f"Expected bool for argument 'log_warning' not {log_warning!r}.")
        return self._of(transforms.Ignored(self._transform, logs=log_warning))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """Return the elements before the first one of which a predicate is not true.

        Args:
            predicate: Called as `map`'s function is; returns a bool.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is not callable.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).take_while(lambda x: x < 2)]
            [0, 1]
        """
        check_callable("predicate", predicate)
        return self._of(transforms.TakenWhile(self._transform, predicate))

    def unique(self, name: str | None = None) -> Self:
        """Return the elements that differ from all before them.

        Args:
            name: Accepted for compatibility.

        Raises:
            TypeError: They are not of int32 or int64.
            InvalidArgumentError: They have several parts.

        Example:
            >>> import mirrored as mr
            >>> dataset = mr.data.Dataset.from_tensor_slices([1, 2, 1, 3])
            >>> [int(each) for each in dataset.unique()]
            [1, 2, 3]
        """
        return self._of(transforms.Unique(self._transform))

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
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
            >>> [(int(label), int(each)) for label, each in dataset.take(2)]
            [(1, 0), (1, 1)]
        """
        check_callable("class_func", class_func)
        target = parts_of_classes("target_dist", target_dist)
        initial = None
        if initial_dist is not None:
            initial = parts_of_classes("initial_dist", initial_dist, len(target))
        return self._of(Resampled(self._transform, class_func, target, initial, Rng(seed)))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> Self:
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
            >>> sorted(int(each) for each in mr.data.Dataset.range(4).shuffle(4))
            [0, 1, 2, 3]
        """
        size = sys.maxsize
        is_endless = self._transform.cardinality == INFINITE_CARDINALITY
        if buffer_size != UNKNOWN_CARDINALITY or is_endless:
            size = as_count("buffer_size", buffer_size, least=1)
        anew = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        return self._of(Shuffled(self._transform, size, Rng(seed), anew))

    def repeat(self, count: int | None = None, name: str | None = None) -> Self:
        """Return the elements so many times over; a shuffled dataset is in another order each time.

        Args:
            count: How many times; None and -1: for ever.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        times = -1 if count is None else as_count("count", count, least=-1)
        return self._of(Repeated(self._transform, None if times == -1 else times))

    def take(self, count: int, name: str | None = None) -> Self:
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
        return self if number == -1 else self._chosen(0, number)

    def skip(self, count: int, name: str | None = None) -> Self:
        """Return the elements after the first `count`.

        Args:
            count: How many to leave out; -1: all.
            name: Accepted for compatibility.

        Raises:
            ValueError: It is less than -1.

        Example:
            >>> import mirrored as mr
            >>> [int(each) for each in mr.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        number = as_count("count", count, least=-1)
        return self._chosen(0, 0) if number == -1 else self._chosen(number, None)

    def shard(self, num_shards: int, index: int, name: str | None = None) -> Self:
        """Return every `num_shards`-th element, from number `index` on.

        Args:
            num_shards: How many shards there are.
            index: Which one this is, counted from 0.
            name: Accepted for compatibility.

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
        return self._of(transforms.Chosen(self._transform, number, None, shards))

    def _chosen(self, start: int, stop: int | None) -> Self:
        if isinstance(self._transform, Slices):
            end = self._transform.cardinality if stop is None else stop
            return self._of(self._transform.part(start, end))
        return self._of(transforms.Chosen(self._transform, start, stop))

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
        made = transformation_func(self)
        if not isinstance(made, Pipeline):
            raise TypeError(
                f"`transformation_func` must return a `mr.data.Dataset` object. Got {type(made)!r}."
            )
        return made

    def concatenate(self, dataset: Pipeline[Any], name: str | None = None) -> Self:
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
        if not isinstance(dataset, Pipeline):
            raise TypeError(f"`dataset` is a Dataset. Received: a {type(dataset).__name__}.")
        return self._of(transforms.Concatenated(self._transform, dataset._transform))

    def cache(self, filename: PathName = "", name: str | None = None) -> Self:
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
            return self._of(transforms.Cached(self._transform))
        from mirrored.data.cached_files import CachedInFile  # Few programs need it.

        return self._of(CachedInFile(self._transform, filename))

    def with_options(self, options: Options, name: str | None = None) -> Self:
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
            >>> [int(each) for each in mr.data.Dataset.range(3).with_options(options)]
            [0, 1, 2]
        """
        merged = Options().merge(options)  # A copy: theirs may change.
        return self._of(Optioned(self._transform, merged))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> Self:
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
            >>> [int(each) for each in dataset]
            [0, 1, 2]
        """
        wanted = AUTOTUNE if buffer_size is None else buffer_size
        size = as_count("buffer_size", wanted, least=-1)
        if size == 0:
            return self
        return self._of(Prefetched(self._transform, _AHEAD if size == AUTOTUNE else size))
