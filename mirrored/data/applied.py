"""Older names of methods of datasets, as functions: `tf.data.experimental`.

Most return a function for `Dataset.apply`. The methods of `Dataset` are documented there.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mirrored._arguments import explain_functions
from mirrored._types import DTypeLike
from mirrored.data.dataset import Dataset
from mirrored.data.dataset_iterators import DatasetIterator
from mirrored.data.element_transforms import Asserted
from mirrored.data.elements import FormCheck, as_whole, to_element
from mirrored.data.optional import Optional
from mirrored.data.source_transforms import Listed
from mirrored.ops import Tensor, int64

Applied = Callable[[Dataset[Any]], Dataset[Any]]


def assert_cardinality(expected_cardinality: int) -> Applied:
    """Return a function that sets the number of elements, which iterations then check.

    Args:
        expected_cardinality: The number, or INFINITE_CARDINALITY.

    Raises:
        TypeError: It is no integer.

    Example:
        >>> import mirrored as mr
        >>> some = mr.data.Dataset.range(4).filter(lambda x: x > 1)
        >>> len(some.apply(mr.data.experimental.assert_cardinality(2)))
        2
    """
    number = as_whole("expected_cardinality", expected_cardinality)
    return lambda dataset: Dataset(Asserted(dataset._transform, number))


def cardinality(dataset: Dataset[Any]) -> Tensor:
    """Return the number of elements, or one of the constants; see `Dataset.cardinality`.

    Args:
        dataset: The dataset.

    Example:
        >>> import mirrored as mr
        >>> int(mr.data.experimental.cardinality(mr.data.Dataset.range(3)))
        3
    """
    return dataset.cardinality()


def Counter(start: int = 0, step: int = 1, dtype: DTypeLike = int64) -> Dataset[Tensor]:
    """Return numbers without end; see `Dataset.counter`.

    Args:
        start: The first one.
        step: What is added.
        dtype: Their dtype.

    Example:
        >>> import mirrored as mr
        >>> [int(each) for each in mr.data.experimental.Counter(2, 5).take(3)]
        [2, 7, 12]
    """
    return Dataset.counter(start, step, dtype)


def enumerate_dataset(start: int = 0) -> Applied:
    """Return a function that pairs elements with numbers; see `Dataset.enumerate`.

    Args:
        start: The first number.

    Example:
        >>> import mirrored as mr
        >>> pairs = mr.data.Dataset.range(5, 7).apply(mr.data.experimental.enumerate_dataset())
        >>> [int(number) for number, _ in pairs]
        [0, 1]
    """
    return lambda dataset: dataset.enumerate(start)


def from_list(elements: list[Any], name: str | None = None) -> Dataset[Any]:
    """Return the elements of a list, which have one structure and the same dtypes.

    Args:
        elements: The list, which is not empty.
        name: Accepted for compatibility.

    Raises:
        ValueError: It is no list, or is empty, or its elements differ in kind.

    Example:
        >>> import mirrored as mr
        >>> [int(x) + int(y) for x, y in mr.data.experimental.from_list([(1, 2), (3, 4)])]
        [3, 7]
    """
    if not isinstance(elements, list):
        raise ValueError(
            f"Invalid `elements`. `elements` must be a list. Received: {elements!r:.200}."
        )
    if not elements:
        raise ValueError(
            "Invalid `elements`. `elements` should not be empty. If you want an empty dataset, use "
            "`mr.data.Dataset.range(0)`."
        )
    where, check = "`elements`[{}]".format, FormCheck()
    converted = [to_element(element, where(i)) for i, element in enumerate(elements)]
    return Dataset(Listed([check(element, where(i)) for i, element in enumerate(converted)]))


def get_next_as_optional(iterator: DatasetIterator[Any]) -> Optional:
    """Return the next element as an `Optional`, which has no value at the end.

    Args:
        iterator: An iterator over a dataset.

    Example:
        >>> import mirrored as mr
        >>> iterator = iter(mr.data.Dataset.range(1))
        >>> bool(mr.data.experimental.get_next_as_optional(iterator).has_value())
        True
    """
    return iterator.get_next_as_optional()


def get_single_element(dataset: Dataset[Any]) -> Any:
    """Return the one element of a dataset; see `Dataset.get_single_element`.

    Args:
        dataset: The dataset.

    Example:
        >>> import mirrored as mr
        >>> int(mr.data.experimental.get_single_element(mr.data.Dataset.range(1)))
        0
    """
    return dataset.get_single_element()


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the structure of an element, with a `TensorSpec` for each tensor.

    Args:
        dataset_or_iterator: A dataset, or an iterator over one.

    Raises:
        TypeError: It is neither.

    Example:
        >>> import mirrored as mr
        >>> mr.data.experimental.get_structure(mr.data.Dataset.range(3)).shape
        ()
    """
    if not isinstance(dataset_or_iterator, Dataset | DatasetIterator):
        raise TypeError(
            "Invalid `dataset_or_iterator`. It must be a dataset, or an iterator over a dataset. "
            f"Received: a {type(dataset_or_iterator).__name__}."
        )
    return dataset_or_iterator.element_spec


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: int | None = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Applied:
    """Return a function that groups elements by a key; see `Dataset.group_by_window`.

    Args:
        key_func: From an element to its key.
        reduce_func: From a key and a dataset of elements that have it to a dataset.
        window_size: How many elements are given to it at a time.
        window_size_func: From a key to that number.

    Example:
        >>> import mirrored as mr
        >>> pairs = mr.data.experimental.group_by_window(
        ...     lambda x: x % 2, lambda key, window: window.batch(2), window_size=2
        ... )
        >>> [each.numpy().tolist() for each in mr.data.Dataset.range(4).apply(pairs)]
        [[0, 2], [1, 3]]
    """
    return lambda dataset: dataset.group_by_window(
        key_func, reduce_func, window_size, window_size_func
    )


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Applied:
    """Return a function that maps and then batches; see `Dataset.map` and `Dataset.batch`.

    Args:
        map_func: From an element to a result.
        batch_size: How many results a batch joins.
        num_parallel_batches: Accepted; calls are made one after another.
        drop_remainder: Whether to leave out a last batch that has fewer.
        num_parallel_calls: Accepted and checked.

    Example:
        >>> import mirrored as mr
        >>> twice = mr.data.experimental.map_and_batch(lambda x: x * 2, 2)
        >>> [each.numpy().tolist() for each in mr.data.Dataset.range(3).apply(twice)]
        [[0, 2], [4]]
    """
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(
        batch_size, drop_remainder
    )


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Applied:
    """Return a function that carries a state from element to element; see `Dataset.scan`.

    Args:
        initial_state: The first state.
        scan_func: From a state and an element to a pair of the next state and a result.

    Example:
        >>> import mirrored as mr
        >>> count = mr.data.experimental.scan(0, lambda n, x: (n + 1, n))
        >>> [int(each) for each in mr.data.Dataset.range(5, 8).apply(count)]
        [0, 1, 2]
    """
    return lambda dataset: dataset.scan(initial_state, scan_func)


def shuffle_and_repeat(
    buffer_size: int, count: int | None = None, seed: int | None = None
) -> Applied:
    """Return a function that shuffles and repeats elements; see `Dataset.shuffle`.

    Args:
        buffer_size: How many elements the buffer holds.
        count: How many times; None: for ever.
        seed: An integer; None takes one from the global seed.

    Example:
        >>> import mirrored as mr
        >>> twice = mr.data.experimental.shuffle_and_repeat(3, 2)
        >>> sorted(int(each) for each in mr.data.Dataset.range(3).apply(twice))
        [0, 0, 1, 1, 2, 2]
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def take_while(predicate: Callable[..., Any]) -> Applied:
    """Return a function that ends at the first element for which a predicate is false.

    Args:
        predicate: From an element to a bool.

    Example:
        >>> import mirrored as mr
        >>> small = mr.data.experimental.take_while(lambda x: x < 2)
        >>> [int(each) for each in mr.data.Dataset.range(5).apply(small)]
        [0, 1]
    """
    return lambda dataset: dataset.take_while(predicate)


def unbatch() -> Applied:
    """Return a function that splits elements into their rows; see `Dataset.unbatch`.

    Example:
        >>> import mirrored as mr
        >>> rows = mr.data.Dataset.range(3).batch(2).apply(mr.data.experimental.unbatch())
        >>> [int(each) for each in rows]
        [0, 1, 2]
    """
    return lambda dataset: dataset.unbatch()


def ignore_errors(log_warning: bool = False) -> Applied:
    """Return a function that skips elements that raise an error; see `Dataset.ignore_errors`.

    Args:
        log_warning: As there.
    """
    return lambda dataset: dataset.ignore_errors(log_warning)


def unique() -> Applied:
    """Return a function that skips elements that were seen before; see `Dataset.unique`.

    Example:
        >>> import mirrored as mr
        >>> numbers = mr.data.Dataset.from_tensor_slices([1, 2, 1])
        >>> [int(each) for each in numbers.apply(mr.data.experimental.unique())]
        [1, 2]
    """
    return lambda dataset: dataset.unique()


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Applied:
    """Return a function that batches by length; see `Dataset.bucket_by_sequence_length`.

    Args:
        element_length_func: From an element to its length.
        bucket_boundaries: The least length of each bucket but the first.
        bucket_batch_sizes: The batch size of each bucket.
        padded_shapes: As for `padded_batch`.
        padding_values: As for `padded_batch`.
        pad_to_bucket_boundary: Whether to pad to the greatest length of the bucket.
        no_padding: Whether to join them as `batch` does.
        drop_remainder: Whether to leave out batches that have fewer elements.

    Example:
        >>> import mirrored as mr
        >>> rows = mr.data.Dataset.from_generator(lambda: [[1], [2, 3, 4], [5, 6]])
        >>> buckets = mr.data.experimental.bucket_by_sequence_length(len, [3], [2, 1])
        >>> [batch.numpy().tolist() for batch in rows.apply(buckets)]
        [[[2, 3, 4]], [[1, 0], [5, 6]]]
    """
    return lambda dataset: dataset.bucket_by_sequence_length(
        element_length_func,
        bucket_boundaries,
        bucket_batch_sizes,
        padded_shapes,
        padding_values,
        pad_to_bucket_boundary,
        no_padding,
        drop_remainder,
    )


def choose_from_datasets(
    datasets: Sequence[Dataset[Any]],
    choice_dataset: Dataset[Tensor],
    stop_on_empty_dataset: bool = False,
) -> Dataset[Any]:
    """Return elements of datasets by number; see `Dataset.choose_from_datasets`.

    Args:
        datasets: The datasets.
        choice_dataset: Their numbers, as int64 scalars.
        stop_on_empty_dataset: Whether to end where one is chosen that has no more elements.

    Example:
        >>> import mirrored as mr
        >>> both = [mr.data.Dataset.range(3), mr.data.Dataset.range(10, 13)]
        >>> chosen = mr.data.experimental.choose_from_datasets(both, mr.data.Dataset.range(2))
        >>> [int(each) for each in chosen]
        [0, 10]
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset[Any]],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset[Any]:
    """Return elements of datasets by weight; see `Dataset.sample_from_datasets`.

    Args:
        datasets: The datasets.
        weights: A number for each; None: they are alike.
        seed: An integer; None takes one from the global seed.
        stop_on_empty_dataset: Whether to end where one is drawn that has no more elements.

    Example:
        >>> import mirrored as mr
        >>> both = [mr.data.Dataset.range(2), mr.data.Dataset.range(2)]
        >>> sorted(int(each) for each in mr.data.experimental.sample_from_datasets(both))
        [0, 0, 1, 1]
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


explain_functions(__name__)
