"""Where datasets come from: arrays, generators, ranges, and other datasets side by side.

Arrays are copied once, so that a dataset stays as it was made.
"""

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast, overload

import numpy as np

from mirrored import _nest
from mirrored._arguments import explained
from mirrored.data.checks import integer
from mirrored.data.elements import as_signature, signature_of, to_element, to_leaf
from mirrored.data.pipeline import ElementT, Pipeline
from mirrored.data.stages import Counted, Generated, Single, Slices, zipped
from mirrored.errors import InvalidArgumentError
from mirrored.ops import Tensor, as_dtype, int64
from mirrored.ops.tensor import Operators

if TYPE_CHECKING:
    from mirrored.data.dataset import Dataset

_Array = np.ndarray[Any, Any] | Operators | list[Any]


@explained
class Sources(Pipeline[ElementT]):
    """The ways to make a dataset of what is none; `Dataset` has them."""

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
        element = to_element(tensors, "`tensors`")
        shapes = [leaf.shape for leaf in _nest.flatten(element)]
        if () in shapes:
            raise ValueError(
                "Unbatching a tensor is only supported for rank >= 1. Received: `tensors` with the "
                f"shapes {shapes}. Use `from_tensors` for a single element."
            )
        sizes = [shape[0] for shape in shapes]
        if len(set(sizes)) > 1:
            other = next(size for size in sizes if size != sizes[0])
            raise ValueError(
                f"Dimensions {sizes[0]} and {other} are not compatible. Received: `tensors` with "
                f"the shapes {shapes}. Give arrays of one first size, the number of elements."
            )
        return cls(Slices(element, sizes[0]))

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
        return cls(Single(to_element(tensors, "`tensors`")))

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
        if not callable(generator):
            raise TypeError(
                f"`generator` must be a Python callable. Received: {generator!r:.200}. Give the "
                "function itself, without calling it."
            )
        signature = _signature(output_signature, output_types, output_shapes)
        if args is not None and not isinstance(args, tuple | list):
            raise TypeError(f"`args` is a tuple. Received: args={args!r:.200}.")
        return cls(Generated(generator, [to_leaf(each)[()] for each in args or ()], signature))

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
        if not 1 <= len(args) <= 3:
            raise ValueError(
                "Invalid `args`. The length of `args` should be between 1 and 3 but was "
                f"{len(args)}."
            )
        numbers = [integer("args", each) for each in args]
        if len(numbers) == 3 and numbers[2] == 0:
            raise InvalidArgumentError(
                f"step must be a non-zero integer. Received: range{tuple(numbers)}."
            )
        made = cls(Counted(builtins.range(*numbers), as_dtype(output_type)))
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
        if isinstance(structure, list):
            raise TypeError(
                "Invalid input to `zip`. Nested structures do not support Python lists; please use "
                f"a tuple instead. Received: a list of {len(structure)}."
            )
        leaves = _nest.flatten(structure)
        if not leaves:
            raise TypeError("Must pass at least one dataset to `zip`.")
        for leaf in leaves:
            if not isinstance(leaf, Pipeline):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of "
                    f"`mr.data.Dataset` objects but encountered object of type {type(leaf)}."
                )
        return cls(zipped(_nest.map_structure(lambda each: each._stage, structure)))


def _signature(signature: Any, types: Any, shapes: Any) -> Any:
    """Return the signature of `from_generator`'s arguments, of which some exclude each other."""
    if signature is not None:
        if types is not None or shapes is not None:
            given = "types" if types is not None else "shapes"
            raise TypeError(
                f"The `output_{given}` argument can not be used together with the "
                "`output_signature` argument. Give the signature alone."
            )
        return as_signature(signature)
    if types is not None:
        return signature_of(types, shapes)
    if shapes is not None:
        raise TypeError("`output_shapes` needs `output_types`. Give `output_signature`.")
    return None
