"""What makes a layer a model: layers inside it that are found, run in order, and built together.

It is apart from training, so that each of the two can be read alone.
"""

from typing import Any, ClassVar

import numpy as np

from mirrored import _nest, graph, ops
from mirrored._arguments import explained
from mirrored._naming import unique_name
from mirrored._overrides import any_parameters
from mirrored.graph import SymbolicTensor, placeholders
from mirrored.layers import InputLayer, Layer
from mirrored.layers.building import undone_on_failure
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.conversion import as_input, as_tensor, is_structure
from mirrored.layers.layer import layer_mode, sublayers, walk
from mirrored.layers.policy import DTypePolicy, dtype_policy
from mirrored.layers.shapes import (
    Shapes,
    as_shapes,
    check_matches,
    fitted_rank,
    is_shape,
)
from mirrored.ops import Tensor
from mirrored.ops.spec import WIDE_FLOATS
from mirrored.training.building import BuiltOnZeros
from mirrored.training.given_inputs import (
    GivenInputs,
    begun_at_inputs,
    boxed_shapes,
    fed_as,
    refuse_more,
    reshaped,
    shapes_listed,
)
from mirrored.variables import Variable


@explained
class Network(BuiltOnZeros):
    """A layer made of layers: the graph from its inputs to its outputs, or a subclass's `call`.

    `Model` says what the arguments are.
    """

    # What a functional model of this very class is called, numbered; None: as its class.
    _functional_name: ClassVar[str | None] = None

    def __init__(
        self,
        inputs: Any = None,
        outputs: Any = None,
        name: str | None = None,
        *,
        dtype: Any = None,
        trainable: bool = True,
    ) -> None:
        if (inputs is None) != (outputs is None):
            raise ValueError(
                "A functional model has both `inputs` and `outputs`. Received: "
                f"inputs={inputs!r}, outputs={outputs!r}."
            )
        functional = inputs is not None
        layout, part = None, None
        if functional:
            inputs, outputs = begun_at_inputs(inputs, outputs)
            layout = GivenInputs(inputs)
            part = graph.Part(layout.tensors, outputs)
            first = layout.tensors[0]._dtype
            if dtype is None and first in WIDE_FLOATS and dtype_policy().variable_dtype != first:
                dtype = first
            if name is None and vars(type(self)).get("_functional_name"):
                name = unique_name(vars(type(self))["_functional_name"])
        super().__init__(name, dtype=dtype, trainable=trainable)
        self._given: GivenInputs | None = layout
        self._part: graph.Part | None = part
        # Where a functional model, or a Sequential one that is built, begins and ends.
        self._begin: Any = inputs
        self._end: Any = None
        self._chain: list[Layer] = []
        if layout is not None and part is not None:
            callees = part.order.callees
            self._chain = [
                callee
                for callee in callees
                if isinstance(callee, Layer) and not isinstance(callee, InputLayer)
            ]
            self._input_dtype = layout.tensors[0]._dtype  # Its layers cast what they are given.
            self._casts_all = True
            self._finish_at(outputs)
            self.built = True

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        begin, end = _nest.flatten(self._begin), _nest.flatten(self._end)
        if self._end is None:
            return state
        drawing = graph.Drawing(begin if self._begin is not None else [], end)
        return {
            **state,
            "_given": None,
            "_part": None,
            "_begin": (drawing, self._form()),
            "_end": 0,
        }

    def _form(self) -> tuple[Any, Any, bool]:
        """Return the structures of the inputs and outputs, and whether it runs as a graph."""
        forms = [_nest.map_structure(lambda _: 0, side) for side in (self._begin, self._end)]
        return None if self._begin is None else forms[0], forms[1], self._part is not None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._end is None:
            return
        drawing, (inputs, outputs, runs) = self._begin
        begin, end = drawing.drawn()
        self._begin = None if inputs is None else _nest.pack_like(inputs, begin)
        self._end = _nest.pack_like(outputs, end)
        if runs:
            self._given = GivenInputs(self._begin)
            self._part = graph.Part(begin, self._end)

    @property
    def _takes_structures(self) -> bool:
        """Whether inputs may be lists, tuples and dicts; else data in a list of one are the one."""
        return self._given is None or not self._given.is_single

    @property
    def has_call(self) -> bool:
        """Whether it computes something when it is called."""
        return type(self).call is not Network.call or bool(self._chain)

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Where a functional model, or a Sequential one that is built, begins; others have none."""
        return self._defined("inputs", self._begins)

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """Where such a model ends."""
        return self._defined("outputs", self._ends)

    @property
    def _begins(self) -> list[SymbolicTensor]:
        """What `inputs` are; of other models none."""
        return [] if self._begin is None else _nest.flatten(self._begin)

    @property
    def _ends(self) -> list[SymbolicTensor]:
        """What `outputs` are; of other models none."""
        return [] if self._end is None else _nest.flatten(self._end)

    def _defined(self, which: str, tensors: list[SymbolicTensor]) -> list[SymbolicTensor]:
        if not tensors:
            raise AttributeError(
                f"{type(self).__name__} model '{self.name}' has no defined {which} yet. A "
                "functional model has them, and a Sequential one that is built."
            )
        return tensors

    @property
    def input(self) -> Any:
        """The inputs of such a model, in the structure in which they were given."""
        return super().input if self._begin is None else self._begin

    @property
    def output(self) -> Any:
        """Its outputs, in the structure in which they were given."""
        return super().output if self._end is None else self._end

    @property
    def input_shape(self) -> Shapes:
        """The shape of the input; a list of shapes where a functional model has several."""
        return super().input_shape if self._given is None else shapes_listed(self._begins)

    @property
    def output_shape(self) -> Shapes:
        """The shape of the output; a list of shapes where a functional model has several."""
        return super().output_shape if self._part is None else shapes_listed(self._ends)

    @property
    def output_shapes(self) -> Shapes:
        """The shapes of the outputs, in the structure in which a call returns them."""
        return super().output_shape

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the outputs, in the structure in which a call returns them."""
        return self._output_dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of the first output, and so of the targets that are compared with it."""
        return _nest.flatten(self._output_dtype)[0]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers and operations that make a functional model's outputs."""
        return [tensor.node.callee.name for tensor in self._ends]

    @property
    def operations(self) -> list[Any]:
        """All that a functional model calls: layers, and operations on placeholders."""
        return [] if self._part is None else list(self._part.order.callees)

    @property
    def layers(self) -> list[Layer]:
        """The layers, each once, as they are needed in a functional model or were assigned."""
        if self._part is not None:
            return [operation for operation in self.operations if isinstance(operation, Layer)]
        return sublayers(self)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """Return a layer by its name or its place in `layers`.

        Args:
            name: The layer's name.
            index: Its place; negative ones count from the end.

        Raises:
            ValueError: There is none, or not exactly one of the arguments is given.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Dense(2, name="first")])
            >>> model.get_layer("first") is model.get_layer(index=0)
            True
        """
        if (name is None) == (index is None):
            raise ValueError(
                f"Provide either a layer name or a layer index. Received: {name=}, {index=}"
            )
        layers = self.layers
        if index is not None:
            if -len(layers) <= index < len(layers):
                return layers[index]
            raise ValueError(
                f"Was asked to retrieve layer at index {index} but model only has {len(layers)} "
                "layers."
            )
        for layer in layers:
            if layer.name == name:
                return layer
        names = [layer.name for layer in layers]
        raise ValueError(f"No such layer: {name}. Existing layers are: {names}.")

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless the inputs have the shapes that the model was made for.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.
        """
        if self._given is None:
            return
        if len(self._given.tensors) == 1 and is_shape(input_shape):
            expected = self._given.tensors[0]._shape
            check_matches(self.name, expected, fitted_rank(input_shape, expected))
            return
        boxed = self._given.arranged(self.name, *boxed_shapes(input_shape))
        for index, (tensor, box) in enumerate(zip(self._given.tensors, boxed, strict=True)):
            which = f"{index} with name '{self._given.names[index]}'" if index else "0"
            fitted = fitted_rank(box.shape, tensor._shape)
            check_matches(self.name, tensor._shape, fitted, which)

    def fitted_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shapes that inputs get: a last axis of size 1 is added or left out.

        That is done, as in Keras, where an input has one axis less or more than the model was
        made for; a subclass with its own `call` is given what there is.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.

        Raises:
            ValueError: An input is missing, or they are in another structure.
        """
        return input_shape if self._given is None else self._given.fitted(self.name, input_shape)

    def fed_dtypes(self, dtypes: Any) -> Any:
        """Return the dtypes in which data are brought to the devices; None: in their own.

        Args:
            dtypes: The dtypes of the data, in the structure in which a call takes them.

        Raises:
            ValueError: An input is missing, or they are in another structure.
        """
        if self._casts_all:
            if isinstance(dtypes, np.dtype) or self._given is None:
                return _nest.map_structure(lambda own: fed_as(own, self._input_dtype), dtypes)
            return self._given.fed(self.name, dtypes)
        # As in Keras, a model with a `call` of its own is given integers as they are.
        return _nest.map_structure(
            lambda own: self._dtype if own is not None and own.kind == "f" else None, dtypes
        )

    def add_loss(self, loss: Any) -> None:
        """Add to the loss that training minimises, as `Layer.add_loss` says; in a `call`."""
        if self._part is not None:
            raise NotImplementedError(
                "A functional model has no `call` of its own in which a loss could be added. "
                f"Received: `add_loss` of the model {self.name!r}. Call the `add_loss` of a layer "
                "in its `call`, or override `compute_loss`."
            )
        super().add_loss(loss)

    @any_parameters
    def call(self, inputs: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
        """Run the layers in order; subclasses define their own.

        Args:
            inputs: The inputs of a functional model, in the structure in which it was given them,
                or by their names in a dict.
            *args: Unused.
            mask: The masks of the inputs, in their structure; None: those that they carry.
            **kwargs: Unused.
        """
        if self._part is None:
            return super().call(inputs, *args, **kwargs)
        refuse_more(self, args, kwargs)
        values = self._standardized(inputs)
        if mask is not None:
            from mirrored.layers.masks import carrying

            values = carrying(values, mask)
        outputs = self._part.run(values, training=layer_mode())
        if len(outputs) == 1 and isinstance(self._end, SymbolicTensor):
            (packed,) = outputs
        else:
            packed = _out_of_one(_nest.pack_like(self._end, outputs))
        return packed if isinstance(packed, Tensor) else self.as_outputs(packed)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """Run ``call``; a variable among its outputs is its value."""
        output = super()._run(args, kwargs, training)
        if isinstance(output, Tensor):
            return output
        return _nest.map_structure(
            lambda leaf: ops.convert_to_tensor(leaf) if isinstance(leaf, Variable) else leaf, output
        )

    def _standardized(self, inputs: Any) -> list[Tensor]:
        """Return the inputs in order, each in its dtype, and with its number of axes."""
        layout = self._given
        if layout is None:
            return [inputs]
        tensors = []
        plain = isinstance(inputs, Tensor) and len(layout.tensors) == 1
        arranged = [inputs] if plain else layout.arranged(self.name, inputs, is_structure)
        for placeholder, value in zip(layout.tensors, arranged, strict=True):
            tensor = as_input(value, placeholder._dtype, self.name, casts_all=True)
            shape = fitted_rank(tensor.shape, placeholder._shape)
            tensors.append(tensor if shape == tensor.shape else reshaped(tensor, shape))
        return tensors

    @any_parameters
    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shapes of the outputs, as a call returns them, for inputs of these shapes.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.
        """
        if self._given is None:
            return super().compute_output_shape(input_shape)
        boxes = self._given.arranged(self.name, *boxed_shapes(as_shapes(input_shape)))
        tensors = [
            SymbolicTensor(box.shape, tensor._dtype)
            for box, tensor in zip(boxes, self._given.tensors, strict=True)
        ]
        packed = _nest.pack_like(self._begin, tensors)
        results = self._results((packed,), {}, None)
        return _nest.map_structure(lambda tensor: tuple(tensor._shape), results)

    def _announced(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        """Return placeholders for what a call returns."""
        if type(self).compute_output_shape is not Network.compute_output_shape:
            return super()._announced(args, kwargs, training, arguments)
        with undone_on_failure(walk(self)):
            return self._results(args, kwargs, training)

    def _take_policy(self, policy: DTypePolicy) -> None:
        before = vars(self).get("_input_dtype")
        super()._take_policy(policy)
        if before is not None:
            self._input_dtype = before  # Its layers cast what they are given.

    def _takes_one(self, inputs: Any) -> bool:
        """Whether an argument is one tensor, for a model that takes one."""
        single = self._given is None or len(self._given.tensors) == 1
        return single and super()._takes_one(inputs)

    def _as_tensors(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments with arrays as tensors: in the dtypes of a functional model's inputs."""
        if self._given is None or len(args) != 1 or placeholders(args):
            return super()._as_tensors(args, kwargs)
        if self._given.is_single or not is_structure(args[0]):
            return super()._as_tensors(args, kwargs)
        return _nest.map_structure(as_tensor, args), kwargs

    def _finish_at(self, end: Any) -> None:
        """Make `end` the outputs."""
        self._end = end
        returned = _out_of_one(end)
        self._output_shape = _nest.map_structure(lambda tensor: tuple(tensor._shape), returned)
        self._output_dtype = _nest.map_structure(lambda tensor: tensor._dtype, returned)


def _out_of_one(outputs: Any) -> Any:
    """Return an output out of a list of one, as a call of a functional model does."""
    return outputs[0] if isinstance(outputs, list | tuple) and len(outputs) == 1 else outputs
