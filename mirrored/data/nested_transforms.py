"""Datasets of datasets: windows, groups, and functions that make a dataset of each element.

The dataset that a function returns draws random numbers from the iteration that calls it.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.data.elements import (
    DatasetBase,
    Element,
    Elements,
    Failure,
    Form,
    FormCheck,
    attempt,
    call_with,
    to_leaf,
)
from mirrored.data.leaf_specs import NestedSpec
from mirrored.data.rng import Iteration, Rng
from mirrored.data.source_transforms import Listed
from mirrored.data.transform import (
    UNKNOWN_CARDINALITY,
    Following,
    Transform,
    external_of,
    named,
    results_of,
)
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import is_tensor
from mirrored.ops.rng_state import drawing_from

AsDataset = Callable[[Transform], DatasetBase[Any]]


# ---------------------------------------------------------------------------- datasets of elements


class Windowed(Following):
    """Structures of datasets, each of one part of some elements in a row.

    Args:
        source: The transform of the elements.
        size: How many elements a window has.
        shift: How many elements further the next window begins.
        stride: How many elements further the next element of a window is.
        drop_remainder: Whether to leave out windows that have fewer.
        as_dataset: Returns the dataset of a transform.
    """

    def __init__(
        self,
        source: Transform,
        size: int,
        shift: int,
        stride: int,
        drop_remainder: bool,
        as_dataset: AsDataset,
    ) -> None:
        super().__init__(source)
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop_remainder
        self._span = (size - 1) * stride + 1  # From its first to its last element.
        self._as_dataset = as_dataset
        if self.cardinality > 0:
            begins = self.cardinality - (self._span - 1 if drop_remainder else 0)
            self.cardinality = len(range(0, max(begins, 0), shift))

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator of windows."""
        met: list[Element] = []
        form: Form | None = None
        specs = self._source.specs() if self.known else None

        def window(rows: list[Element]) -> Element:
            nonlocal form
            failed = next((row for row in rows if type(row) is Failure), None)
            if failed is not None:
                return failed
            form = form or Form(rows[0])
            leaves = [form.leaves(row, "An element of `window`") for row in rows]
            parts = [None] * len(leaves[0]) if specs is None else _nest.flatten(specs)
            columns = zip(zip(*leaves, strict=True), parts, strict=True)
            return form.pack([self._as_dataset(Listed(*column)) for column in columns])

        while True:
            met += itertools.islice(elements, self._span - len(met))
            if not met or (self._drop and len(met) < self._span):
                return
            yield attempt(window, met[:: self._stride])
            for _ in itertools.islice(elements, max(self._shift - len(met), 0)):
                pass
            del met[: self._shift]

    def specs(self) -> Any:
        """Return those of datasets of the elements' parts."""
        return _nest.map_structure(NestedSpec, self._source.specs())


# ---------------------------------------------------------------------------- elements of datasets


class FlatMapped(Following):
    """The elements of the datasets that a function returns, one dataset after another."""

    rng: Rng
    _method, _argument = "flat_map", "map_func"

    def __init__(self, source: Transform, function: Callable[..., Any]) -> None:
        super().__init__(source)
        self.known = False
        self._function = function
        self.cardinality = UNKNOWN_CARDINALITY
        self.rng = Rng()

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator over one dataset after another."""
        draws = self.rng.call_draws(iteration)
        return results_of(elements, _Opener(self).open, self._method, draws)

    def first(self) -> Element:
        """Return an element of the first dataset."""
        return self._inner().first()

    def specs(self) -> Any:
        """Return those of the first dataset."""
        return self._inner().specs() if self._declared is None else self._declared

    def _inner(self) -> Transform:
        """Return the transform of the first dataset."""
        element = self._source.first()
        with named(self._method, 0), drawing_from(self.rng.call_draws(Iteration())):
            return self.dataset_for(element)

    def dataset_for(self, element: Element) -> Transform:
        """Return the transform of the dataset that the function returns for an element."""
        dataset = call_with(self._function, element)
        if not isinstance(dataset, DatasetBase):
            raise TypeError(
                f"The `{self._argument}` argument must return a `Dataset` object. Got "
                f"{type(dataset)!r}. Convert it, for example with `Dataset.from_tensors`."
            )
        transform: Transform = dataset._transform
        return transform


class _Opener:
    """Opens the datasets that the function of a transform returns in one iteration."""

    def __init__(self, transform: FlatMapped) -> None:
        self._transform = transform
        self._check = FormCheck()

    def open(self, _: int, element: Element) -> Elements:
        """Return an iterator over the dataset of an element; all have elements of one form."""
        inner = self._transform.dataset_for(element)
        iteration = inner.begin()
        self._transform.external = self._transform.external or external_of(inner)
        return self._opened(inner.open(iteration))

    def _opened(self, opened: Elements) -> Elements:
        with closing(opened) as elements:
            for element in elements:
                if type(element) is Failure:
                    yield element
                    continue
                yield attempt(self._check, element, "An element of a dataset that was made")
                yield from elements


class Interleaved(FlatMapped):
    """The elements of the datasets that a function returns, taken round-robin.

    Args:
        source: The transform of the function's arguments.
        function: It makes the datasets.
        cycle_length: How many of them take turns.
        block_length: How many elements each gives at a time.
    """

    _method = "interleave"

    def __init__(
        self, source: Transform, function: Callable[..., Any], cycle_length: int, block_length: int
    ) -> None:
        super().__init__(source, function)
        self._cycle, self._block = cycle_length, block_length

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator that goes round."""
        draws, opener = self.rng.call_draws(iteration), _Opener(self)

        def opened(index: int, element: Element) -> tuple[Elements]:
            return (opener.open(index, element),)

        # One place for each that takes turns; None where one has ended. A place is filled when its
        # turn comes, as in TensorFlow.
        places: list[Elements | None] = []
        datasets = results_of(elements, opened, self._method, draws)
        is_over = False
        try:
            while not is_over or any(places):
                for place in itertools.count():
                    if place == self._cycle or (is_over and place == len(places)):
                        break
                    if place == len(places):
                        places.append(None)
                    while places[place] is None and not is_over:
                        dataset = next(datasets, None)
                        if type(dataset) is Failure:
                            yield dataset
                            continue
                        is_over = dataset is None
                        places[place] = dataset
                    yield from self._turn(places, place)
        finally:
            for dataset in places:
                if dataset is not None:
                    dataset.close()

    def _turn(self, places: list[Elements | None], place: int) -> Elements:
        """Yield a block of the dataset at a place; where it ends, the place is free."""
        opened = places[place]
        if opened is None:
            return
        count = 0
        for element in opened:
            yield element
            count += type(element) is not Failure
            if count == self._block:
                return
        places[place] = None


class Grouped(FlatMapped):
    """The elements of the datasets that a function returns for windows of elements with one key.

    Args:
        source: The transform of the elements.
        key: From an element to its key.
        function: From a key and a dataset of elements to a dataset.
        size: From a key to the number of elements in its windows.
        as_dataset: Returns the dataset of a transform.
    """

    _method, _argument = "group_by_window", "reduce_func"

    def __init__(
        self,
        source: Transform,
        key: Callable[..., Any],
        function: Callable[..., Any],
        size: Callable[[Any], Any],
        as_dataset: AsDataset,
    ) -> None:
        super().__init__(source, function)
        self._key, self._size, self._as_dataset = key, size, as_dataset

    def run(self, elements: Iterator[Element], iteration: Iteration) -> Elements:
        """Return an iterator over windows as they fill, then over those that are left by key."""
        draws, opener = self.rng.call_draws(iteration), _Opener(self)
        groups: dict[int, tuple[int, list[Element]]] = {}
        specs = self._source.specs() if self._source.known else None

        def step(index: int, element: Element) -> Iterable[Element]:
            key = self._key_of(element)
            if key not in groups:
                groups[key] = self._size_of(key), []
            size, group = groups[key]
            group.append(element)
            if len(group) < size:
                return ()
            del groups[key]
            return opener.open(index, self._pair(key, group, specs))

        yield from results_of(elements, step, self._method, draws)
        left = (self._pair(key, groups[key][1], specs) for key in sorted(groups))
        yield from results_of(left, opener.open, self._method, draws)

    def _pair(self, key: int, group: list[Element], specs: Any) -> Element:
        return np.array(key, np.int64), self._as_dataset(Listed(group, specs))

    def _key_of(self, element: Element) -> int:
        return _whole_scalar("key_func", call_with(self._key, element))

    def _size_of(self, key: int) -> int:
        size = _whole_scalar("window_size_func", call_with(self._size, np.array(key, np.int64)))
        if size <= 0:
            raise InvalidArgumentError(
                f"Window size must be greater than zero, but got {size}. It is the window size of "
                f"key {key}."
            )
        return size

    def _inner(self) -> Transform:
        element = self._source.first()
        with named(self._method, 0), drawing_from(self.rng.call_draws(Iteration())):
            return self.dataset_for(self._pair(self._key_of(element), [element], None))


def _whole_scalar(name: str, value: Any) -> int:
    """Return the key or the size that a user's function returned."""
    array = to_leaf(value)
    if array.shape != () or array.dtype != (np.int64 if is_tensor(value) else array.dtype):
        raise ValueError(
            f"Invalid `{name}`. `{name}` must return a single `mr.int64` scalar tensor but its "
            f"return type is shape={array.shape}, dtype={array.dtype.name}. Use "
            "`mr.cast(x, mr.int64)`."
        )
    if array.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must return an integer. Received: {value!r:.200}.")
    return int(array)
