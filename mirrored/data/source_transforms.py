"""Transforms without a source: elements from arrays, files, generators, numbers, draws.

Each class is followed by the function that checks its method's arguments: that is done when the
method is called, since the pipeline runs much later, and elsewhere.
"""

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._files import as_path
from mirrored.data.elements import (
    DatasetBase,
    Element,
    Elements,
    FormCheck,
    as_whole,
    attempt,
    conform,
    host_scope,
    to_element,
    to_leaf,
)
from mirrored.data.leaf_specs import LeafSpec, as_signature, signature_of, unsliced
from mirrored.data.rng import Iteration, Rng
from mirrored.data.transform import INFINITE_CARDINALITY, Slices, Transform, named
from mirrored.errors import InvalidArgumentError
from mirrored.ops import as_dtype
from mirrored.ops.conversion import is_tensor, to_array
from mirrored.ops.rng_state import drawing_from
from mirrored.ops.strings import StringTensor, as_strings

_AT_ONCE = 256  # Random numbers.


def slices_of(tensors: Any) -> Slices:
    """Return the rows of the arrays that `from_tensor_slices` is given."""
    element = to_element(tensors, "`tensors`")
    if any(isinstance(leaf, DatasetBase) for leaf in _nest.flatten(element)):
        raise unsliced()
    shapes = [leaf.shape for leaf in _nest.flatten(element)]
    check_rows(shapes)
    return Slices(element, shapes[0][0])


def check_rows(shapes: Sequence[Any]) -> None:
    """Raise ValueError unless arrays may have one number of rows.

    Args:
        shapes: Their shapes, in which what is not known is None.
    """
    if () in shapes:
        raise ValueError(
            "Unbatching a tensor is only supported for rank >= 1. Received: `tensors` with the "
            f"shapes {shapes}. Use `from_tensors` for a single element."
        )
    sizes = [shape[0] for shape in shapes if shape and shape[0] is not None]
    if len(set(sizes)) > 1:
        other = next(size for size in sizes if size != sizes[0])
        raise ValueError(
            f"Dimensions {sizes[0]} and {other} are not compatible. Received: `tensors` with the "
            f"shapes {shapes}. Use arrays with the same first size, the number of elements."
        )


class Listed(Transform):
    """Elements that are there already.

    Args:
        elements: The elements.
        specs: Their structure; None: that of the first one.
    """

    def __init__(self, elements: Sequence[Element], specs: Any = None) -> None:
        self._elements = elements
        self.cardinality = len(elements)
        if specs is not None:
            self.declare(specs)

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator over them."""
        yield from self._elements


def element_of(tensors: Any) -> Transform:
    """Return the one element that `from_tensors` is given."""
    element = to_element(tensors, "`tensors`")
    if any(isinstance(leaf, DatasetBase) for leaf in _nest.flatten(element)):
        return Listed([element])
    return Slices(_nest.map_structure(lambda leaf: leaf[None], element), 1)


class Generated(Transform):
    """What a user's generator yields, of a signature or else of the form of the first element."""

    rng: Rng
    external = "from_generator"

    def __init__(
        self, generator: Callable[..., Any], args: Sequence[NDArray[Any]], signature: Any
    ) -> None:
        self._generator, self._args, self._signature = generator, args, signature
        if signature is not None:
            self.declare(signature)
        self.rng = Rng()

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of copies of what is yielded."""
        stream = self.rng.stream(iteration)
        with named("from_generator", 0), host_scope(), drawing_from(stream):
            iterator = iter(self._generator(*self._args))
        check = FormCheck()

        def following(index: int) -> Element:
            with named("from_generator", index):
                with host_scope(), drawing_from(stream):
                    value = next(iterator, _OVER)
                if value is _OVER:
                    return _OVER
                if self._signature is not None:
                    return conform(value, self._signature)
                label = "What the generator yielded"
                return check(to_element(value, label), label)

        try:
            for index in itertools.count():
                element = attempt(following, index)
                if element is _OVER:
                    return
                yield element
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()


_OVER = object()


def generated_by(
    generator: Callable[..., Any], args: Any, signature: Any, types: Any, shapes: Any
) -> Generated:
    """Return what the generator that `from_generator` is given yields."""
    if not callable(generator):
        raise TypeError(
            f"`generator` must be a Python callable. Received: {generator!r:.200}. Pass the "
            "function, without calling it."
        )
    specs = _signature(signature, types, shapes)
    if args is not None and not isinstance(args, tuple | list):
        raise TypeError(f"`args` must be a tuple. Received: args={args!r:.200}.")
    return Generated(generator, [to_leaf(argument)[()] for argument in args or ()], specs)


def _signature(signature: Any, types: Any, shapes: Any) -> Any:
    """Return the signature of `from_generator`'s arguments, of which some exclude each other."""
    if signature is not None:
        if types is not None or shapes is not None:
            older = "types" if types is not None else "shapes"
            raise TypeError(
                f"The `output_{older}` argument can not be used together with the "
                "`output_signature` argument. Pass only the signature."
            )
        return as_signature(signature)
    if types is not None:
        return signature_of(types, shapes)
    if shapes is not None:
        raise TypeError("`output_shapes` needs `output_types`. Pass `output_signature`.")
    return None


class Counted(Transform):
    """The numbers of a range."""

    def __init__(self, numbers: range, dtype: np.dtype[Any]) -> None:
        if dtype == np.bool_:
            raise InvalidArgumentError("Unsupported data type: bool. Use a numeric `output_type`.")
        self._numbers, self._dtype = numbers, dtype
        self.cardinality = len(numbers)
        self.declare(LeafSpec((), dtype))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of scalars."""
        for number in self._numbers:
            # Those that the dtype cannot hold wrap around, as in TensorFlow.
            yield np.array(number, np.int64).astype(self._dtype)


def range_of(args: tuple[Any, ...]) -> range:
    """Return the range that `Dataset.range` is given."""
    if not 1 <= len(args) <= 3:
        raise ValueError(
            f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
        )
    numbers = [as_whole("args", number) for number in args]
    if len(numbers) == 3 and numbers[2] == 0:
        raise InvalidArgumentError(
            f"step must be a non-zero integer. Received: range{tuple(numbers)}."
        )
    return range(*numbers)


class Endless(Transform):
    """Numbers without end, each a step further."""

    cardinality = INFINITE_CARDINALITY

    def __init__(self, start: NDArray[Any], step: NDArray[Any]) -> None:
        self._start, self._step = start, step
        self.declare(LeafSpec(start.shape, start.dtype))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of scalars."""
        number = self._start
        while True:
            yield number
            with np.errstate(over="ignore"):  # They wrap around, as in TensorFlow.
                number = np.asarray(number + self._step)


def counted_from(start: Any, step: Any, dtype: Any) -> Endless:
    """Return the numbers that `counter` is given."""
    numbers = []
    for name, value in (("start", start), ("step", step)):
        if is_tensor(value) and value.dtype != as_dtype(dtype):
            raise ValueError(
                f"{name}: Tensor conversion requested dtype {as_dtype(dtype).name} for Tensor with "
                f"dtype {value.dtype.name}: {value!r}. Use mr.cast."
            )
        number = value.numpy() if is_tensor(value) else value
        numbers.append(np.asarray(to_array(number, as_dtype(dtype))))
    return Endless(*numbers)


class Drawn(Transform):
    """Random numbers below 2**32, without end: the same in each iteration, unless `redraws`."""

    cardinality = INFINITE_CARDINALITY
    rng: Rng

    def __init__(self, rng: Rng, redraws: bool) -> None:
        self.rng, self._redraws = rng, redraws
        self.declare(LeafSpec((), np.dtype(np.int64)))

    def open(self, iteration: Iteration) -> Elements:
        """Return an iterator of int64 scalars."""
        generator = self.rng.stream(iteration if self._redraws else iteration.first()).generator()
        while True:
            for number in generator.integers(1 << 32, size=_AT_ONCE):
                yield np.asarray(number)


def names_of(value: Any, what: str) -> list[str]:
    """Return the names of files.

    Args:
        value: A path, a string of a dataset's element, or several in a list.
        what: The argument's name.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(value, StringTensor):
        return [os.fsdecode(name) for name in value._array.ravel()]
    if isinstance(value, bytes | str | os.PathLike):
        return [os.fsdecode(value)]
    if isinstance(value, Iterable):
        return [name for item in value for name in names_of(item, what)]
    raise TypeError(
        f"`{what}` must be a `mr.data.Dataset` of strings, or a path or a list of paths. Received: "
        f"{value!r:.200}."
    )


def matching(patterns: Any) -> list[str]:
    """Return the files that match any of some patterns, sorted.

    Raises:
        InvalidArgumentError: There is none.
    """
    wanted = [as_path(pattern, "file") for pattern in names_of(patterns, "file_pattern")]
    names = sorted({name for path in wanted for name in glob.glob(path, include_hidden=True)})
    if not names:
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(wanted)}")
    return names


def rows_of_names(names: list[str]) -> Slices:
    """Return the names of files as strings, one per element."""
    return Slices(as_strings([os.fsencode(name) for name in names]), len(names))
