"""The graph of a functional model: from its inputs, arranged as a call has them, to its outputs.

Values and shapes are arranged in the same way: by the inputs' names, or by their places.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import _nest, graph, ops
from mirrored.graph import SymbolicTensor
from mirrored.layers import InputLayer, Layer
from mirrored.layers.input_conversion import as_input, is_structure
from mirrored.layers.shapes import Shapes, check_matches, fitted_rank, is_shape, map_shapes
from mirrored.ops import Tensor


class FunctionalGraph:
    """The graph of a functional model.

    Args:
        inputs: The placeholders where it begins, in nested lists, tuples and dicts.
        outputs: Those where it ends, likewise.

    Attributes:
        layout: The inputs in order, and how a call passes them.
        part: What is computed between them.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self._inputs, self._outputs = inputs, outputs
        self.layout = GivenInputs(inputs)
        self.part = graph.Part(self.layout.tensors, outputs)

    @property
    def layers(self) -> list[Layer]:
        """The layers in the order in which they run, without those of inputs."""
        layers = (callee for callee in self.part.order.callees if isinstance(callee, Layer))
        return [layer for layer in layers if not isinstance(layer, InputLayer)]

    def check_shapes(self, owner: str, shapes: Shapes) -> None:
        """Raise ValueError unless inputs have the shapes that the graph was drawn for.

        Args:
            owner: The model's name.
            shapes: The shape of the input, or the shapes of several as a call takes them.
        """
        tensors, names = self.layout.tensors, self.layout.names
        if len(tensors) == 1 and is_shape(shapes):
            expected = tensors[0]._shape
            check_matches(owner, expected, fitted_rank(shapes, expected))
            return
        pairs = self.layout.with_boxes(owner, map_shapes(_Box, shapes))
        for index, (tensor, box) in enumerate(pairs):
            which = f"{index} with name '{names[index]}'" if index else "0"
            check_matches(owner, tensor._shape, fitted_rank(box.shape, tensor._shape), which)

    def placeholders(self, owner: str, shapes: Shapes) -> Any:
        """Return placeholders of other shapes, in the structure of the inputs.

        Args:
            owner: The model's name.
            shapes: The shape of the input, or the shapes of several as a call takes them.
        """
        pairs = self.layout.with_boxes(owner, map_shapes(_Box, shapes))
        tensors = [SymbolicTensor(box.shape, tensor._dtype) for tensor, box in pairs]
        return _nest.pack_like(self._inputs, tensors)

    def run(self, owner: str, inputs: Any, mask: Any, *, training: bool | None) -> Any:
        """Return the outputs for inputs, in their structure.

        Args:
            owner: The model's name.
            inputs: The inputs, as a call takes them.
            mask: Their masks, in their structure; None: those that they carry.
            training: Whether this is a step of training.
        """
        values = self._standardized(owner, inputs)
        if mask is not None:
            from mirrored.layers.masks import carrying

            values = carrying(values, mask)
        outputs = self.part.run(values, training=training)
        if len(outputs) == 1 and isinstance(self._outputs, SymbolicTensor):
            return outputs[0]
        return without_list_of_one(_nest.pack_like(self._outputs, outputs))

    def _standardized(self, owner: str, inputs: Any) -> list[Tensor]:
        """Return the inputs in order, each in its dtype, and with its number of axes."""
        layout = self.layout
        tensors = []
        is_plain = isinstance(inputs, Tensor) and len(layout.tensors) == 1
        arranged = [inputs] if is_plain else layout.arranged(owner, inputs, is_structure)
        for placeholder, value in zip(layout.tensors, arranged, strict=True):
            tensor = as_input(value, placeholder._dtype, owner, casts_all=True)
            shape = fitted_rank(tensor.shape, placeholder._shape)
            tensors.append(tensor if shape == tensor.shape else reshaped(tensor, shape))
        return tensors


def without_list_of_one(outputs: Any) -> Any:
    """Return an output out of a list of one, as a call of a functional model does.

    Args:
        outputs: The outputs.
    """
    return outputs[0] if isinstance(outputs, list | tuple) and len(outputs) == 1 else outputs


class GivenInputs:
    """The inputs of a functional model, in their order.

    Args:
        structure: The placeholders, in nested lists, tuples and dicts.

    Attributes:
        tensors: The placeholders in order.
        names: What each is called in a dict.
    """

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        self.tensors: list[SymbolicTensor] = _nest.flatten(structure)
        self.names: list[str] = [tensor.node.callee.name for tensor in self.tensors]
        self._by_name = isinstance(structure, dict) and not any(
            isinstance(part, dict | list | tuple) for part in structure.values()
        )
        if self._by_name:
            self.names = _nest.sorted_keys(structure)
        self._flat = self._by_name or (
            isinstance(structure, list | tuple)
            and all(isinstance(part, SymbolicTensor) for part in structure)
        )

    @property
    def is_single(self) -> bool:
        """Whether it is one input, without a list around it."""
        return isinstance(self.structure, SymbolicTensor)

    def arranged(self, owner: str, value: Any, nested: Callable[[Any], bool]) -> list[Any]:
        """Return what is given for each input, in their order.

        Args:
            owner: The model's name.
            value: Values or shapes, as a call of the model takes them.
            nested: Whether something is a structure of these.

        Raises:
            ValueError: It has another structure, or an input is missing.
        """
        if isinstance(value, dict) and (self.is_single or self._flat):
            return self._filled(self._named(value))
        if len(self.tensors) == 1 and not nested(value):
            return [value]
        if self.is_single:
            if isinstance(value, list | tuple) and len(value) == 1:
                return [value[0]]
            raise self._wrong_count(owner, value)
        in_order = self._by_name and list(self.structure) == _nest.sorted_keys(self.structure)
        expected = list(self.structure.values()) if in_order else self.structure
        if self._flat and (not isinstance(value, list | tuple) or len(value) != len(self.tensors)):
            raise self._wrong_count(owner, value)
        leaves: list[Any] = []
        if not _collect(expected, value, nested, leaves):
            raise ValueError(
                "The structure of `inputs` doesn't match the expected structure.\nExpected: "
                f"{_nest.map_structure(lambda tensor: tensor.name, self.structure)}\nReceived: "
                f"inputs={_nest.map_structure(_described, value)}"
            )
        return self._filled(leaves)

    def with_boxes(self, owner: str, boxes: Any) -> list[tuple[SymbolicTensor, "_Box"]]:
        """Return the placeholders, each with the box that is given for it; see `arranged`.

        Args:
            owner: The model's name.
            boxes: Boxes, as a call of the model takes their contents.
        """
        return list(zip(self.tensors, self.arranged(owner, boxes, _is_container), strict=True))

    def fitted(self, owner: str, shapes: Shapes) -> Shapes:
        """Return shapes, as they were given, with a last axis of 1 added or left out.

        Args:
            owner: The model's name.
            shapes: The shapes that are given.

        Raises:
            ValueError: They have another structure than the inputs, or one is missing.
        """
        boxes = map_shapes(_Box, shapes)
        for tensor, box in self.with_boxes(owner, boxes):
            box.shape = fitted_rank(box.shape, tensor._shape)
        return _nest.map_structure(lambda box: box and box.shape, boxes)

    def _filled(self, leaves: list[Any]) -> list[Any]:
        for name, value in zip(self.names, leaves, strict=True):
            if value is None:
                raise ValueError(
                    f"The input '{name}' is not optional, but None was passed. Please provide a "
                    "valid tensor."
                )
        return leaves

    def fed(self, owner: str, dtypes: Any) -> Any:
        """Return the dtypes in which data of some dtypes are fed, in their structure.

        Args:
            owner: The model's name.
            dtypes: The dtypes of the data.

        Raises:
            ValueError: They have another structure than the inputs, or one is missing.
        """
        boxes = _nest.map_structure(lambda dtype: dtype and _Box(dtype), dtypes)
        pairs = self.with_boxes(owner, boxes)
        wanted = {id(box): fed_as(box.shape, tensor._dtype) for tensor, box in pairs}
        return _nest.map_structure(lambda box: wanted.get(id(box)), boxes)

    def _named(self, value: dict[str, Any]) -> list[Any]:
        for name in self.names:
            if name not in value:
                raise ValueError(
                    f'Missing data for input "{name}". You passed a data dictionary with keys '
                    f"{list(value)}. Expected the following keys: {self.names}"
                )
        return [value[name] for name in self.names]

    def _wrong_count(self, owner: str, value: Any) -> ValueError:
        shown = ", ".join(f"'{name}': ..." for name in self.names)
        return ValueError(
            f'Layer "{owner}" expects {len(self.names)} named input(s) with keys {self.names}, but '
            f"it received {len(_nest.flatten(value))} input tensors. Pass inputs as a dict, e.g. "
            f"`layer({{{shown}}})`."
        )


class _Box:
    """Holds a shape, which as a tuple would be looked into, or a dtype, to tell it from others."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


def _collect(expected: Any, value: Any, nested: Callable[[Any], bool], leaves: list[Any]) -> bool:
    """Put what is given for each placeholder in a list; return whether the structures agree."""
    if isinstance(expected, dict):
        return (
            isinstance(value, dict)
            and value.keys() == expected.keys()
            and all(
                _collect(expected[k], value[k], nested, leaves) for k in _nest.sorted_keys(expected)
            )
        )
    if isinstance(expected, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(expected)
            and all(_collect(*pair, nested, leaves) for pair in zip(expected, value, strict=True))
        )
    while isinstance(value, list | tuple) and len(value) == 1 and nested(value):
        value = value[0]  # As in Keras, a list of one is what is in it.
    leaves.append(value)
    return not nested(value)


def _described(leaf: Any) -> str:
    return "None" if leaf is None else f"Tensor(shape={getattr(leaf, 'shape', '?')})"


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
                    f"All `{argument}` values must be symbolic tensors, returned by `Input` or by "
                    f"layers called on them. Received: {argument}={value} including invalid value "
                    f"{leaf} of type {type(leaf)}"
                )
    # Lists of users' own may change.
    inputs, outputs = (_nest.map_structure(lambda leaf: leaf, side) for side in (inputs, outputs))
    tensors = _nest.flatten(inputs)
    if all(item.node.is_input for item in tensors):
        return inputs, outputs
    begun = [
        item
        if item.node.is_input
        else InputLayer(batch_shape=item._shape, dtype=item._dtype, name=f"{item.name}CLONE").output
        for item in tensors
    ]
    ends = graph.Drawing(tensors, _nest.flatten(outputs)).drawn(begun, suffix="_clone")[1]
    return _nest.pack_like(inputs, begun), _nest.pack_like(outputs, ends)


def reshaped(x: Tensor, shape: Any) -> Tensor:
    """Return a model's input in another shape, with the mask that it carries.

    Args:
        x: The input.
        shape: The shape.
    """
    from mirrored.ops.tensor_views import masked

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
            f'Model "{model.name}" takes only its inputs and `training`. Received also: '
            f"{len(args)} positional arguments, and the keywords {list(kwargs)}. Pass several "
            "inputs in one list."
        )


def shapes_listed(tensors: list[SymbolicTensor]) -> Shapes:
    """Return the shapes of placeholders in a list, that of a single one alone.

    Args:
        tensors: The placeholders.
    """
    shapes = [tuple(tensor._shape) for tensor in tensors]
    return shapes[0] if len(shapes) == 1 else shapes
