"""What the methods of `Dataset` are given, checked: arrays, numbers, functions and other datasets.

It is checked when a method is called: the pipeline runs much later, and elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._numbers import as_integer
from mirrored.data.leaf_specs import as_signature, public_specs, signature_of, unsliced
from mirrored.data.mixtures import Directed, Drawn, Endless, Picked
from mirrored.data.nested_transforms import Listed
from mirrored.data.rng import Rng
from mirrored.data.row_transforms import Repeated
from mirrored.data.sources import Generated, Slices, Transform
from mirrored.data.spec import DatasetBase, to_element, to_leaf
from mirrored.data.transforms import Chosen
from mirrored.errors import InvalidArgumentError
from mirrored.ops import TensorSpec, as_dtype, int64
from mirrored.ops.conversion import is_tensor, to_array

AUTOTUNE = -1


def element_of(tensors: Any) -> Transform:
    """Return the one element that `from_tensors` is given."""
    element = to_element(tensors, "`tensors`")
    if any(isinstance(leaf, DatasetBase) for leaf in _nest.flatten(element)):
        return Listed([element])
    return Slices(_nest.map_structure(lambda leaf: leaf[None], element), 1)


def slices_of(tensors: Any) -> Slices:
    """Return the rows of the arrays that `from_tensor_slices` is given."""
    element = to_element(tensors, "`tensors`")
    if any(isinstance(leaf, DatasetBase) for leaf in _nest.flatten(element)):
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


def sizes_of(batch_size: Any) -> list[int]:
    """Return the sizes that `rebatch` is given: one, or several that take turns."""
    sizes = batch_size.numpy() if is_tensor(batch_size) else batch_size
    if np.ndim(sizes) > 1 or np.size(sizes) == 0:
        raise InvalidArgumentError(
            "Invalid `batch_size`. Expected `batch_size` to be a scalar or a vector. Received "
            f"`batch_size` of shape {np.shape(sizes)}."
        )
    listed = sizes if np.ndim(sizes) else [sizes]
    return [as_count("batch_size", each, least=1) for each in listed]


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


def mixed_by_weights(datasets: Any, weights: Any, seed: Any, stops: bool, anew: bool) -> Transform:
    """Return elements of the datasets that `sample_from_datasets` is given, drawn by weights."""
    transforms = _transforms_in(datasets)
    if isinstance(weights, DatasetBase):
        return Directed(Picked(Drawn(Rng(seed), anew), weights._transform), transforms, stops)
    if weights is None:
        weights = np.ones(len(transforms), np.float32)
    elif len(weights) != len(transforms):
        raise ValueError(
            "Invalid `weights`. `weights` should have the same length as `datasets` but got "
            f"`len(weights)={len(weights)}` vs. `len(datasets)={len(transforms)}`."
        )
    given = to_leaf(weights)
    if given.dtype.kind != "f":
        raise TypeError(
            "Invalid `weights`. `weights` type must be either `mr.float32` or `mr.float64` but is "
            f"{given.dtype.name}. Write them with a decimal point."
        )
    chosen = [pair for pair in zip(transforms, given.tolist(), strict=True) if pair[1] > 0]
    if len(chosen) < 2:
        return chosen[0][0] if chosen else Chosen(transforms[0], 0, 0)
    positive = Slices(np.array([[weight for _, weight in chosen]]), 1)
    picked = Picked(Drawn(Rng(seed), anew), Repeated(positive, None))
    return Directed(picked, [transform for transform, _ in chosen], stops)


def mixed_by_choices(datasets: Any, choices: Any, stops: bool) -> Transform:
    """Return elements of the datasets that `choose_from_datasets` is given."""
    transforms = _transforms_in(datasets)
    if not isinstance(choices, DatasetBase):
        raise TypeError(
            "Invalid `choice_dataset`. `choice_dataset` should be a `mr.data.Dataset` but is "
            f"{type(choices)}."
        )
    spec = public_specs(choices._transform.specs())
    if spec != TensorSpec((), int64):
        raise TypeError(
            "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `mr.int64` "
            f"tensors but are {spec}."
        )
    return Directed(choices._transform, transforms, stops)


def _transforms_in(datasets: Any) -> list[Transform]:
    if not datasets:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    for each in datasets:
        if not isinstance(each, DatasetBase):
            raise TypeError(
                f"Invalid `datasets`. They are `mr.data.Dataset` objects. Received: {each!r:.200}."
            )
    return [each._transform for each in datasets]


def parts_of_classes(name: str, given: Any, classes: int | None = None) -> NDArray[Any]:
    """Return the part of each class that `rejection_resample` is given."""
    parts = np.asarray(to_leaf(given), np.float64)
    if parts.ndim != 1 or not len(parts) or classes not in (None, len(parts)):
        wanted = "a number for each class" if classes is None else f"{classes} numbers"
        raise InvalidArgumentError(f"`{name}` is a list of {wanted}. Received: {given!r:.200}.")
    if not (parts >= 0).all() or not parts.any():
        raise InvalidArgumentError(
            f"`{name}` has the part of each class, of which none is negative and not all are 0. "
            f"Received: {given!r:.200}."
        )
    return parts


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


def transforms_of(args: tuple[Any, ...], datasets: Any) -> Any:
    """Return the transforms of the datasets that `zip` is given, in their structure."""
    if args and datasets is not None:
        raise TypeError(
            "Both `*args` and `datasets` cannot be set. Give all datasets in one of them."
        )
    given = args if datasets is None else (datasets,)
    structure = given[0] if len(given) == 1 else given
    if isinstance(structure, list):
        raise TypeError(
            "Invalid input to `zip`. Nested structures do not support Python lists; please use "
            f"a tuple instead. Received: a list of {len(structure)}."
        )
    leaves = _nest.flatten(structure)
    if not leaves:
        raise TypeError("Must pass at least one dataset to `zip`.")
    for leaf in leaves:
        if not isinstance(leaf, DatasetBase):
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


def check_parallel_calls(value: Any, synchronous: Any = None) -> None:
    """Raise where a number of parallel calls is neither None nor AUTOTUNE nor positive."""
    if synchronous and value is not None:
        raise ValueError(
            "`synchronous` is not supported with `num_parallel_calls`, but `num_parallel_calls` "
            f"was set to {value}. Leave out one of them."
        )
    if value is not None and value != AUTOTUNE:
        as_count("num_parallel_calls", value, least=1)
