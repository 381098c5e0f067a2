"""The graph of a functional model: from its inputs, arranged as a call has them, to its outputs."""

from typing import Any

from mirrored import _nest, graph
from mirrored.graph import SymbolicTensor
from mirrored.layers import InputLayer, Layer
from mirrored.layers.conversion import as_input, is_structure
from mirrored.layers.shapes import Shapes, check_matches, fitted_rank, is_shape
from mirrored.ops import Tensor
from mirrored.training.given_inputs import GivenInputs, boxed_shapes, reshaped


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
        boxed = self.layout.arranged(owner, *boxed_shapes(shapes))
        for index, (tensor, box) in enumerate(zip(tensors, boxed, strict=True)):
            which = f"{index} with name '{names[index]}'" if index else "0"
            check_matches(owner, tensor._shape, fitted_rank(box.shape, tensor._shape), which)

    def placeholders(self, owner: str, shapes: Shapes) -> Any:
        """Return placeholders of other shapes, in the structure of the inputs.

        Args:
            owner: The model's name.
            shapes: The shape of the input, or the shapes of several as a call takes them.
        """
        boxes = self.layout.arranged(owner, *boxed_shapes(shapes))
        tensors = [
            SymbolicTensor(box.shape, tensor._dtype)
            for box, tensor in zip(boxes, self.layout.tensors, strict=True)
        ]
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
