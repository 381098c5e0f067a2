"""Specs of elements: the shapes and dtypes of their parts, known before there is an element.

Users see `TensorSpec` and `DatasetSpec`, in the structure of an element; so they do in signatures.
"""

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from mirrored import _nest
from mirrored._arguments import explained
from mirrored.ops import TensorSpec, as_dtype
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import is_any_shape
from mirrored.ops.strings import StringSpec


@explained
@dataclass(frozen=True)
class DatasetSpec:
    """The spec of a dataset that is part of an element, as those of `window` are.

    Args:
        element_spec: The structure of its elements, with a `TensorSpec` for each tensor.
        dataset_shape: Of how many datasets it is: of one, which is ().

    Example:
        >>> import mirrored as mr
        >>> mr.data.Dataset.range(3).window(2).element_spec.element_spec.shape
        ()
    """

    element_spec: Any
    dataset_shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LeafSpec:
    """The spec of an array that is part of an element.

    Attributes:
        shape: The size of each axis, None where they differ; None where the rank is not known.
        dtype: The dtype.
    """

    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]

    def accepts(self, shape: tuple[int, ...]) -> bool:
        """Return whether arrays of a shape are such parts."""
        return self.shape is None or (
            len(shape) == len(self.shape)
            and all(want in (None, have) for want, have in zip(self.shape, shape, strict=True))
        )

    def public(self) -> TensorSpec | StringSpec:
        """Return it as users see it."""
        shape: Any = self.shape
        return StringSpec(shape) if self.dtype.kind == "O" else TensorSpec(shape, self.dtype)

    def batched(self, size: int | None) -> "LeafSpec":
        """Return that of such parts joined along a new first axis."""
        return replace(self, shape=None if self.shape is None else (size, *self.shape))

    def row(self) -> "LeafSpec":
        """Return that of a row."""
        return replace(self, shape=None if self.shape is None else self.shape[1:])

    def common(self, other: "LeafSpec | NestedSpec") -> "LeafSpec":
        """Return the spec that fits this and another one; ValueError where dtypes differ."""
        if isinstance(other, NestedSpec):
            raise ValueError(f"{self.dtype.name} is not a dataset.")
        if self.dtype != other.dtype:
            raise ValueError(f"{self.dtype.name} is not {other.dtype.name}.")
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            return LeafSpec(None, self.dtype)
        sizes = zip(self.shape, other.shape, strict=True)
        return LeafSpec(tuple(a if a == b else None for a, b in sizes), self.dtype)


@dataclass(frozen=True, slots=True)
class NestedSpec:
    """The spec of a dataset that is part of an element.

    Attributes:
        specs: The structure of its elements, with a `LeafSpec` for each array.
    """

    specs: Any

    def public(self) -> DatasetSpec:
        """Return it as users see it."""
        return DatasetSpec(public_specs(self.specs))

    def batched(self, size: int | None) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(
            "Datasets cannot be batched. Batch the elements of each dataset, as in "
            "`dataset.flat_map(lambda window: window.batch(size))`."
        )

    def row(self) -> NoReturn:
        """Raise ValueError."""
        raise unsliced()

    def common(self, other: "LeafSpec | NestedSpec") -> "NestedSpec":
        """Return the spec that fits this and another one; ValueError where they differ."""
        if not isinstance(other, NestedSpec):
            raise ValueError(f"A dataset is not {other.dtype.name}.")
        return NestedSpec(_nest.map_structure(_common, self.specs, other.specs, label="dataset"))


def unsliced() -> ValueError:
    """Return the error of a dataset that is to be cut into rows."""
    return ValueError(
        "Slicing dataset elements is not supported for rank 0. Received: a dataset as part of an "
        "element. Use `flat_map`, as in `dataset.flat_map(lambda window: window)`."
    )


def _common(x: LeafSpec | NestedSpec, y: LeafSpec | NestedSpec) -> LeafSpec | NestedSpec:
    return x.common(y)


def common_specs(first: Any, second: Any) -> Any:
    """Return specs with None for sizes that differ; TypeError where more than sizes do."""
    try:
        return _nest.map_structure(_common, first, second, label="dataset")
    except ValueError as error:
        raise TypeError(
            f"Incompatible dataset elements: {public_specs(first)} vs. {public_specs(second)}. "
            f"{error} Use the same structure and dtypes in both, for example with `map` and "
            "mr.cast."
        ) from None


def public_specs(specs: Any) -> Any:
    """Return a structure of specs as users see it."""
    return _nest.map_structure(lambda leaf: leaf.public(), specs)


# ---------------------------------------------------------------------------- signatures


def as_signature(structure: Any) -> Any:
    """Return the argument `output_signature` with a `LeafSpec` for each TensorSpec."""
    if isinstance(structure, dict):
        return {key: as_signature(item) for key, item in structure.items()}
    if hasattr(structure, "shape") and hasattr(structure, "dtype") and not is_tensor(structure):
        shape = None if structure.shape is None else tuple(structure.shape)
        return LeafSpec(shape, as_dtype(structure.dtype))
    if isinstance(structure, list | tuple):
        return tuple(as_signature(item) for item in structure)
    raise TypeError(
        "`output_signature` must contain objects that are subclass of `mr.TensorSpec`, that is "
        f"`TensorSpec(shape, dtype)`. Received: {structure!r}."
    )


def signature_of(types: Any, shapes: Any) -> Any:
    """Return the signature of TensorFlow's older arguments; shapes that are None are not known."""
    if isinstance(types, dict):
        return {k: signature_of(v, None if shapes is None else shapes[k]) for k, v in types.items()}
    if isinstance(types, list | tuple):
        known = [None] * len(types) if shapes is None else shapes
        return tuple(signature_of(t, s) for t, s in zip(types, known, strict=True))
    return LeafSpec(None if is_any_shape(shapes) else tuple(shapes), as_dtype(types))
