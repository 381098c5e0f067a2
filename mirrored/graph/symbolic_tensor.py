"""Placeholders for tensors, and the nodes that connect them.

A graph has no object of its own: each placeholder knows its node, and each node what it is given.
"""

from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol

import numpy as np

from mirrored import _nest
from mirrored._contexts import Within
from mirrored._naming import unique_name
from mirrored._symbolic import Symbolic, symbolic_in
from mirrored.devices import DeviceSpec, current_device_spec
from mirrored.ops.spec import as_dtype
from mirrored.ops.tensor import Operators
from mirrored.ops.tensor_shape import TensorShape

Shape = tuple[int | None, ...]
DType = np.dtype[Any]


class Callee(Protocol):
    """The callee of a node: a layer or an operation.

    Attributes:
        _inbound_nodes: Its calls on placeholders, in their order: no list, in which layers would
            look for layers.
    """

    _inbound_nodes: "deque[Node]"

    @property
    def name(self) -> str:
        """The name in the graph."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""


class SymbolicTensor(Symbolic, Operators):
    """A tensor without values: a shape, a dtype and the node that creates it.

    Layers, ops and Python's operators that are given one return others, and so draw a graph.

    Args:
        shape: The size of each axis; None where it is not known.
        dtype: The dtype.
        sparse: False: tensors here are dense.
        ragged: False, likewise.
        record_history: Accepted for compatibility.
        name: Its name; None: "keras_tensor", numbered.

    Attributes:
        name: What it is called.
        node: The call that makes it.
        index: Which of the call's results it is.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(64,), name="pixels")
        >>> x
        <SymbolicTensor shape=(None, 64), dtype=float32, name=pixels>
        >>> mr.layers.Dense(10)(x).shape
        (None, 10)
    """

    __slots__ = ("__weakref__", "_dtype", "_keras_mask", "_shape", "index", "known", "name", "node")
    # NumPy arrays on the left leave an operator to this class.
    __array_ufunc__: ClassVar[None] = None
    node: "Node"
    index: int

    def __init__(
        self,
        shape: Shape,
        dtype: Any = "float32",
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
    ) -> None:
        if sparse or ragged:
            raise ValueError(
                f"Tensors here are dense. Received: sparse={sparse!r}, ragged={ragged!r}"
            )
        self._shape: Shape = TensorShape(shape)
        self._dtype: DType = as_dtype(dtype) if isinstance(dtype, str) else dtype
        self._keras_mask = None  # A placeholder too, which layers ask for the shapes of.
        self.name = unique_name("keras_tensor") if name is None else name
        # By the size in the place of unknown ones: its value where that follows from shapes, or its
        # shape where that is another than such a size would give.
        self.known: dict[int, Any] = {}
        Symbolic.exist = True

    @property
    def shape(self) -> Any:
        """The size of each axis; None where it is not known yet, as for the batch."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._dtype

    @property
    def size(self) -> NoReturn:
        """Raise AttributeError: `mr.size(x)` is a placeholder for the number of elements."""
        raise AttributeError(self._without_values("It has no `size`: use `mr.size(x)`."))

    def _as_tensor(self) -> Any:
        return self

    def numpy(self) -> NoReturn:
        """Raise AttributeError: there are no values."""
        raise AttributeError(self._without_values("It has no `numpy()`."))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise ValueError(self._without_values("You cannot convert it to a NumPy array."))

    def __bool__(self) -> NoReturn:
        raise TypeError(self._without_values("It cannot be used as a boolean."))

    def _scalar(self) -> NoReturn:
        raise ValueError(self._without_values("You cannot convert it to a number."))

    def __len__(self) -> NoReturn:
        raise TypeError(self._without_values("It has no `len()`: use `.shape`."))

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(self._without_values("Iterating over it is not supported."))

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if not placeholders([_span(item) for item in items]):
            return super().__getitem__(index)
        return get_item(self, *(_span(item) for item in items))

    def _without_values(self, action: str) -> str:
        return (
            f"A symbolic tensor is a placeholder for a shape and a dtype, without values. {action} "
            f"Received: {self!r}. Compute with layers and mirrored's ops, or put the code into the "
            "`call` of a Layer."
        )

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<SymbolicTensor shape={self._shape}, dtype={self._dtype}, name={self.name}>"


class Span(NamedTuple):
    """A slice as a structure, so that placeholders in it are visited."""

    start: Any
    stop: Any
    step: Any


def _span(item: Any) -> Any:
    return Span(item.start, item.stop, item.step) if isinstance(item, slice) else item


def get_item(x: Any, *index: Any) -> Any:
    """Return a part of a tensor.

    Args:
        x: The tensor.
        *index: What would stand between brackets, with a `Span` for a slice.
    """
    symbolic = symbolic_in((x, *index))
    if symbolic is not None:
        return symbolic.drawn(get_item, (x, *index), {})
    return x[tuple(slice(*part) if isinstance(part, Span) else part for part in index)]


# What the device scope asks for in which weights are made: nobody wants calls drawn there to stay.
_for_weights: ContextVar[DeviceSpec | None] = ContextVar("mirrored_weights_device", default=None)


def drawn_anywhere() -> Within:
    """Within this context nodes do not keep the current device."""
    return Within(_for_weights, current_device_spec())


class Node:
    """One call of a layer or of an operation on placeholders.

    Attributes:
        callee: What was called.
        args: The arguments by position, with placeholders in them.
        kwargs: Those by name.
        inputs: The placeholders among them, in order.
        structure: What the call returns: placeholders, in nested lists, tuples and dicts.
        outputs: These placeholders, in order.
        device: What the device scope in which it was called asks for, if there was one.
    """

    __slots__ = ("args", "callee", "device", "inputs", "kwargs", "outputs", "structure")

    def __init__(
        self, callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any], structure: Any
    ) -> None:
        self.callee = callee
        # Lists of users' own may change.
        self.args: tuple[Any, ...] = _nest.map_structure(_itself, args)
        self.kwargs: dict[str, Any] = _nest.map_structure(_itself, kwargs)
        self.inputs = placeholders((args, kwargs))
        self.structure = structure
        self.outputs: list[SymbolicTensor] = _nest.flatten(structure)
        asked = current_device_spec()
        self.device: DeviceSpec | None = None if asked == _for_weights.get() else asked
        for index, tensor in enumerate(self.outputs):
            tensor.node, tensor.index = self, index
        callee._inbound_nodes.append(self)

    @property
    def is_input(self) -> bool:
        """Whether it is an input, which is not computed."""
        return not self.inputs

    def __repr__(self) -> str:
        return f"<Node of {self.callee.name}>"


def _itself(leaf: Any) -> Any:
    return leaf


def placeholders(structure: Any) -> list[SymbolicTensor]:
    """Return the placeholders in nested lists, tuples and dicts, in order."""
    return [leaf for leaf in _nest.flatten(structure) if isinstance(leaf, SymbolicTensor)]
