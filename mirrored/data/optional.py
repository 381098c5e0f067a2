"""Values that may be missing, as the next element of an iterator at its end.

No exception is needed to find out, also in recorded functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored._arguments import explained
from mirrored.data.elements import DatasetBase
from mirrored.data.leaf_specs import DatasetSpec, public_specs
from mirrored.devices import get_device
from mirrored.errors import InvalidArgumentError, OutOfRangeError
from mirrored.ops import Tensor, TensorSpec, convert_to_tensor, transfer
from mirrored.program import PeekingIterator


@explained
class Optional(ABC):
    """A value, or none. `from_value`, `empty` and iterators' `get_next_as_optional` make them.

    Example:
        >>> import mirrored as mr
        >>> optional = iter(mr.data.Dataset.range(3)).get_next_as_optional()
        >>> bool(optional.has_value()), int(optional.get_value())
        (True, 0)
    """

    @abstractmethod
    def has_value(self, name: str | None = None) -> Tensor:
        """Return whether there is a value, as a bool tensor.

        Args:
            name: Accepted for compatibility.
        """

    @abstractmethod
    def get_value(self, name: str | None = None) -> Any:
        """Return the value.

        Args:
            name: Accepted for compatibility.

        Raises:
            InvalidArgumentError: There is none.
        """

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The structure of the value, with a `TensorSpec` for each tensor."""

    @staticmethod
    def empty(element_spec: Any) -> "Optional":
        """Return an optional without a value.

        Args:
            element_spec: The structure of the value that it could have, with a `TensorSpec` for
                each tensor.

        Example:
            >>> import mirrored as mr
            >>> bool(mr.experimental.Optional.empty(mr.TensorSpec([], mr.int32)).has_value())
            False
        """
        return _Optional(lambda: element_spec)

    @staticmethod
    def from_value(value: Any) -> "Optional":
        """Return an optional that has a value.

        Args:
            value: A tensor, or what becomes one; or a tuple or dict of such. A list is a tensor.

        Example:
            >>> import mirrored as mr
            >>> int(mr.experimental.Optional.from_value(42).get_value())
            42
        """
        return _present(_tensors(value))


class _Optional(Optional):
    def __init__(self, spec: Callable[[], Any], *values: Any) -> None:
        self._spec, self._values = spec, values

    def has_value(self, name: str | None = None) -> Tensor:
        # Known, also where a function is being recorded: each outcome is a recording of its own.
        return transfer(np.array(bool(self._values)), get_device("CPU:0"))

    def get_value(self, name: str | None = None) -> Any:
        if not self._values:
            text = "The given optional does not have a value. Check `has_value()`."
            raise InvalidArgumentError(text)
        return self._values[0]

    @property
    def element_spec(self) -> Any:
        return self._spec()


def _present(value: Any) -> Optional:
    return _Optional(lambda: _nest.map_structure(_spec_of, value), value)


def _tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return _nest.rebuild_dict(value, {key: _tensors(part) for key, part in value.items()})
    if isinstance(value, tuple):
        return _nest.rebuild(value, [_tensors(part) for part in value])
    return value if isinstance(value, DatasetBase) else convert_to_tensor(value)


def _spec_of(leaf: Any) -> Any:
    if isinstance(leaf, DatasetBase):
        return DatasetSpec(public_specs(leaf._transform.specs()))
    # What replicas have is no tensor, and says itself what it is.
    return TensorSpec(leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf


def next_as_optional(iterator: PeekingIterator, spec: Callable[[], Any]) -> Optional:
    """Return the next element of an iterator, if there is one.

    Args:
        iterator: The iterator.
        spec: Returns the structure of its elements.
    """
    try:
        return _present(next(iterator))
    except OutOfRangeError:
        return _Optional(spec)
