"""What the methods of `Dataset` are given, checked: arrays, numbers, functions and other datasets.

It is checked when a method is called: the pipeline runs much later, and elsewhere.
"""

from collections.abc import Callable
from typing import Any

from mirrored import _nest
from mirrored._numbers import as_integer
from mirrored.data.leaf_specs import as_signature, signature_of, unsliced
from mirrored.data.pipeline import Pipeline
from mirrored.data.sources import Generated, Slices
from mirrored.data.spec import Nested, to_element, to_leaf
from mirrored.errors import InvalidArgumentError

AUTOTUNE = -1


def slices_of(tensors: Any) -> Slices:
    """Return the rows of the arrays that `from_tensor_slices` is given."""
    element = to_element(tensors, "`tensors`")
    if any(isinstance(leaf, Nested) for leaf in _nest.flatten(element)):
        raise unsliced()
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
    return Slices(element, sizes[0])


def generated_by(
    generator: Callable[..., Any], args: Any, signature: Any, types: Any, shapes: Any
) -> Generated:
    """Return what the generator that `from_generator` is given yields."""
    if not callable(generator):
        raise TypeError(
            f"`generator` must be a Python callable. Received: {generator!r:.200}. Give the "
            "function itself, without calling it."
        )
    specs = _signature(signature, types, shapes)
    if args is not None and not isinstance(args, tuple | list):
        raise TypeError(f"`args` is a tuple. Received: args={args!r:.200}.")
    return Generated(generator, [to_leaf(each)[()] for each in args or ()], specs)


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


def range_of(args: tuple[Any, ...]) -> range:
    """Return the range that `Dataset.range` is given."""
    if not 1 <= len(args) <= 3:
        raise ValueError(
            f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}."
        )
    numbers = [as_whole("args", each) for each in args]
    if len(numbers) == 3 and numbers[2] == 0:
        raise InvalidArgumentError(
            f"step must be a non-zero integer. Received: range{tuple(numbers)}."
        )
    return range(*numbers)


def transforms_of(structure: Any) -> Any:
    """Return the transforms of the datasets that `zip` is given, in their structure."""
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
    return _nest.map_structure(lambda each: each._transform, structure)


def as_whole(name: str, value: Any) -> int:
    """Return an argument that is an integer; raises TypeError where it is none."""
    number = as_integer(value)
    if number is None:
        raise TypeError(f"`{name}` is an integer. Received: {name}={value!r:.200}.")
    return number


def as_count(name: str, value: Any, *, least: int) -> int:
    """Return an argument that is a number of things, in one wording for all methods."""
    number = as_whole(name, value)
    if number < least:
        kind = "greater than zero" if least == 1 else f"{least} or more"
        raise InvalidArgumentError(f"`{name}` must be {kind}. Received: {name}={number}.")
    return number


def check_parallel_calls(value: Any) -> None:
    """Raise where a number of parallel calls is neither None nor AUTOTUNE nor positive."""
    if value is not None and value != AUTOTUNE:
        as_count("num_parallel_calls", value, least=1)
