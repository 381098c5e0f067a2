"""What a functional model is given, in the order of its inputs: by their names, or by their places.

Values and shapes are arranged in the same way; what does not fit is refused in Keras' words.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import _nest, graph, ops
from mirrored.graph import SymbolicTensor
from mirrored.layers import InputLayer, Layer
from mirrored.layers.shapes import Shapes, fitted_rank, map_shapes
from mirrored.ops import Tensor


class GivenInputs:
    """The inputs of a functional model.

    Args:
        structure: The placeholders, in nested lists, tuples and dicts.

    Attributes:
        tensors: The placeholders in order.
        names: What each is called in a dict.
    """

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        self.tensors: list[SymbolicTensor] = _nest.flatten(structure)
        self.names: list[str] = [each.node.callee.name for each in self.tensors]
        self._by_name = isinstance(structure, dict) and not any(
            isinstance(each, dict | list | tuple) for each in structure.values()
        )
        if self._by_name:
            self.names = _nest.sorted_keys(structure)
        self._flat = self._by_name or (
            isinstance(structure, list | tuple)
            and all(isinstance(each, SymbolicTensor) for each in structure)
        )

    @property
    def is_single(self) -> bool:
        """Whether it is one input, without a list around it."""
        return isinstance(self.structure, SymbolicTensor)

    def arranged(self, owner: str, given: Any, nested: Callable[[Any], bool]) -> list[Any]:
        """Return what is given for each input, in their order.

        Args:
            owner: The model's name.
            given: Values or shapes, as a call of the model takes them.
            nested: Whether something is a structure of these.

        Raises:
            ValueError: It has another structure, or an input is missing.
        """
        if isinstance(given, dict) and (self.is_single or self._flat):
            return self._filled(self._named(given))
        if len(self.tensors) == 1 and not nested(given):
            return [given]
        if self.is_single:
            if isinstance(given, list | tuple) and len(given) == 1:
                return [given[0]]
            raise self._wrong_count(owner, given)
        in_order = self._by_name and list(self.structure) == _nest.sorted_keys(self.structure)
        expected = list(self.structure.values()) if in_order else self.structure
        if self._flat and (not isinstance(given, list | tuple) or len(given) != len(self.tensors)):
            raise self._wrong_count(owner, given)
        found: list[Any] = []
        if not _collect(expected, given, nested, found):
            raise ValueError(
                "The structure of `inputs` doesn't match the expected structure.\nExpected: "
                f"{_nest.map_structure(lambda each: each.name, self.structure)}\nReceived: "
                f"inputs={_nest.map_structure(_described, given)}"
            )
        return self._filled(found)

    def fitted(self, owner: str, shapes: Shapes) -> Shapes:
        """Return shapes, as they were given, with a last axis of 1 added or left out.

        Args:
            owner: The model's name.
            shapes: The shapes that are given.

        Raises:
            ValueError: They have another structure than the inputs, or one is missing.
        """
        boxes, nested = boxed_shapes(shapes)
        for tensor, box in zip(self.tensors, self.arranged(owner, boxes, nested), strict=True):
            box.shape = fitted_rank(box.shape, tensor._shape)
        return _nest.map_structure(lambda box: box and box.shape, boxes)

    def _filled(self, found: list[Any]) -> list[Any]:
        for name, value in zip(self.names, found, strict=True):
            if value is None:
                raise ValueError(
                    f"The input '{name}' is not optional, but None was passed. Please provide a "
                    "valid tensor."
                )
        return found

    def fed(self, owner: str, dtypes: Any) -> Any:
        """Return the dtypes in which data of some dtypes are fed, in their structure.

        Args:
            owner: The model's name.
            dtypes: The dtypes of the data.

        Raises:
            ValueError: They have another structure than the inputs, or one is missing.
        """
        boxes = _nest.map_structure(lambda each: each and _Box(each), dtypes)
        arranged = self.arranged(owner, boxes, _is_container)
        wanted = {
            id(box): fed_as(box.shape, tensor._dtype)
            for tensor, box in zip(self.tensors, arranged, strict=True)
        }
        return _nest.map_structure(lambda box: wanted.get(id(box)), boxes)

    def _named(self, given: dict[str, Any]) -> list[Any]:
        for name in self.names:
            if name not in given:
                raise ValueError(
                    f'Missing data for input "{name}". You passed a data dictionary with keys '
                    f"{list(given)}. Expected the following keys: {self.names}"
                )
        return [given[name] for name in self.names]

    def _wrong_count(self, owner: str, given: Any) -> ValueError:
        shown = ", ".join(f"'{name}': ..." for name in self.names)
        return ValueError(
            f'Layer "{owner}" expects {len(self.names)} named input(s) with keys {self.names}, but '
            f"it received {len(_nest.flatten(given))} input tensors. Pass inputs as a dict, e.g. "
            f"`layer({{{shown}}})`."
        )


class _Box:
    """Holds a shape, which as a tuple would be looked into, or a dtype, to tell it from others."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


def _collect(expected: Any, given: Any, nested: Callable[[Any], bool], found: list[Any]) -> bool:
    """Put what is given for each placeholder in a list; return whether the structures agree."""
    if isinstance(expected, dict):
        return (
            isinstance(given, dict)
            and given.keys() == expected.keys()
            and all(
                _collect(expected[k], given[k], nested, found) for k in _nest.sorted_keys(expected)
            )
        )
    if isinstance(expected, list | tuple):
        return (
            isinstance(given, list | tuple)
            and len(given) == len(expected)
            and all(_collect(*pair, nested, found) for pair in zip(expected, given, strict=True))
        )
    while isinstance(given, list | tuple) and len(given) == 1 and nested(given):
        given = given[0]  # As in Keras, a list of one is what is in it.
    found.append(given)
    return not nested(given)


def _described(leaf: Any) -> str:
    return "None" if leaf is None else f"Tensor(shape={getattr(leaf, 'shape', '?')})"


def boxed_shapes(shapes: Shapes) -> tuple[Any, Callable[[Any], bool]]:
    """Return shapes in boxes, and what tells a structure of boxes from one."""
    boxes = map_shapes(_Box, shapes)
    return boxes, _is_container


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def fed_as(own: Any, wanted: Any) -> Any:
    """Return the dtype in which data are brought to a device; None: in their own.

    Args:
        own: Their dtype. Bytes are cast there: they are the smaller ones on the way.
        wanted: What the model casts them to.
    """
    return None if own is None or own == np.uint8 else wanted


def begun_at_inputs(inputs: Any, outputs: Any) -> tuple[Any, Any]:
    """Return inputs and outputs of which the inputs are those of layers: others are drawn again.

    Raises:
        ValueError: One of them is no placeholder, or there is none.
    """
    for argument, value in (("inputs", inputs), ("outputs", outputs)):
        leaves = _nest.flatten(value)
        if not leaves:
            raise ValueError(
                f"`{argument}` argument cannot be empty. Received:\ninputs={inputs}\n"
                f"outputs={outputs}"
            )
        for leaf in leaves:
            if not isinstance(leaf, SymbolicTensor):
                raise ValueError(
                    f"All `{argument}` values must be symbolic tensors: what `Input`, or a layer "
                    f"called on one, returned. Received: {argument}={value} including invalid "
                    f"value {leaf} of type {type(leaf)}"
                )
    # Lists of users' own may change.
    inputs, outputs = (_nest.map_structure(lambda leaf: leaf, each) for each in (inputs, outputs))
    given = _nest.flatten(inputs)
    if all(each.node.is_input for each in given):
        return inputs, outputs
    begun = [
        each
        if each.node.is_input
        else InputLayer(batch_shape=each._shape, dtype=each._dtype, name=f"{each.name}CLONE").output
        for each in given
    ]
    ends = graph.Drawing(given, _nest.flatten(outputs)).drawn(begun, suffix="_clone")[1]
    return _nest.pack_like(inputs, begun), _nest.pack_like(outputs, ends)


def reshaped(x: Tensor, shape: Any) -> Tensor:
    """Return a model's input in another shape, with the mask that it carries.

    Args:
        x: The input.
        shape: The shape.
    """
    from mirrored.ops.masks import masked

    return masked(ops.reshape(x, shape), x._keras_mask)


def refuse_more(model: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError where a model without a `call` of its own is given more than inputs.

    Args:
        model: The model.
        args: The further arguments by position.
        kwargs: Those by name.
    """
    if args or kwargs:
        raise TypeError(
            f'Model "{model.name}" takes its inputs and `training`. Received also: {len(args)} '
            f"arguments by position, and by name {list(kwargs)}. Pass several inputs in one list."
        )


def shapes_listed(tensors: list[SymbolicTensor]) -> Shapes:
    """Return the shapes of placeholders in a list, that of a single one alone.

    Args:
        tensors: The placeholders.
    """
    shapes = [tuple(each._shape) for each in tensors]
    return shapes[0] if len(shapes) == 1 else shapes
