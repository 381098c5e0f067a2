"""What makes a layer a model: layers inside it that are found, run in order, and built together.

It is apart from training, so that each of the two can be read alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored._naming import unique_name
from mirrored.distribute import (
    Strategy,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from mirrored.graph import Drawing, Part, SymbolicTensor, map_leaves, placeholders
from mirrored.layers import InputLayer, Layer
from mirrored.layers.building import undone_on_failure
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.conversion import as_input, as_tensor, is_structure
from mirrored.layers.layer import layer_mode
from mirrored.layers.policy import dtype_policy
from mirrored.layers.shapes import (
    Shape,
    Shapes,
    as_shapes,
    check_matches,
    fitted_rank,
    map_shapes,
)
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import only
from mirrored.ops.spec import FLOATS
from mirrored.training.given_inputs import GivenInputs, boxed_shapes
from mirrored.variables import Variable


@explained
class Network(Layer):
    """A layer made of layers: the graph from its inputs to its outputs, or a subclass's `call`.

    `Model` says what the arguments are.
    """

    # Whether outputs may be lists, tuples and dicts. Where they may not, targets in a list of one
    # are what is in it, and several are refused; see training/inputs.py.
    _gives_structures = False
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
        given, part = None, None
        if functional:
            inputs, outputs = _begun_at_inputs(inputs, outputs)
            given = GivenInputs(inputs)
            part = Part(given.tensors, outputs)
            first = given.tensors[0]._dtype
            if dtype is None and first in FLOATS and dtype_policy().variable_dtype != first:
                dtype = first
            if name is None and vars(type(self)).get("_functional_name"):
                name = unique_name(vars(type(self))["_functional_name"])
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        # Training happens there, whichever scope it is called in.
        self._strategy = get_strategy()
        self._given: GivenInputs | None = given
        self._part: Part | None = part
        # Where a functional model, or a Sequential one that is built, begins and ends.
        self._begin: Any = inputs
        self._end: Any = None
        self._chain: list[Layer] = []
        # While it is built: what it was called with, and the dtypes that its inputs come in.
        self._called_with: CallArguments | None = None
        self._zeros_as: Any = None
        if given is not None and part is not None:
            callees = part.order.callees
            self._chain = [
                each
                for each in callees
                if isinstance(each, Layer) and not isinstance(each, InputLayer)
            ]
            self._input_dtype = given.tensors[0]._dtype  # Its layers cast what they are given.
            self._casts_all = True
            self._finish_at(outputs)
            self.built = True

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        begin, end = _nest.flatten(self._begin), _nest.flatten(self._end)
        if self._end is None:
            return state
        drawing = Drawing(begin if self._begin is not None else [], end)
        return {
            **state,
            "_given": None,
            "_part": None,
            "_begin": (drawing, self._form()),
            "_end": 0,
        }

    def _form(self) -> tuple[Any, Any, bool]:
        """Return the structures of the inputs and outputs, and whether it runs as a graph."""
        forms = [_nest.map_structure(lambda _: 0, each) for each in (self._begin, self._end)]
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
            self._part = Part(begin, self._end)

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self._strategy

    @property
    def _takes_structures(self) -> bool:
        """Whether inputs may be lists, tuples and dicts; else data in a list of one are the one."""
        return self._given is None or not self._given.is_single

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Where a functional model, or a Sequential one that is built, begins."""
        return [] if self._begin is None else _nest.flatten(self._begin)

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """Where such a model ends."""
        return [] if self._end is None else _nest.flatten(self._end)

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
        return super().input_shape if self._given is None else _listed_shapes(self.inputs)

    @property
    def output_shape(self) -> Shapes:
        """The shape of the output; a list of shapes where a functional model has several."""
        return super().output_shape if self._part is None else _listed_shapes(self.outputs)

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
        return [each.node.callee.name for each in self.outputs]

    @property
    def operations(self) -> list[Any]:
        """All that a functional model calls: layers, and operations on placeholders."""
        return [] if self._part is None else list(self._part.order.callees)

    @property
    def layers(self) -> list[Layer]:
        """The layers, each once, as they are needed in a functional model or were assigned."""
        if self._part is not None:
            return [each for each in self.operations if isinstance(each, Layer)]
        return [each for each in self._sublayers if isinstance(each, Layer)]

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

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the layers in order; subclasses define their own.

        Args:
            inputs: The inputs of a functional model, in the structure in which it was given them,
                or by their names in a dict.
            *args: Unused.
            **kwargs: Unused.
        """
        if self._part is None:
            return super().call(inputs, *args, **kwargs)
        outputs = self._part.run(self._standardized(inputs), training=layer_mode())
        return self.as_outputs(_out_of_one(_nest.pack_like(self._end, outputs)))

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """Run ``call``; a variable among its outputs is its value."""
        output = super()._run(args, kwargs, training)
        if isinstance(output, Tensor):
            return output
        return map_leaves(
            lambda leaf: ops.convert_to_tensor(leaf) if isinstance(leaf, Variable) else leaf, output
        )

    def _standardized(self, inputs: Any) -> list[Tensor]:
        """Return the inputs in order, each in its dtype, and with its number of axes."""
        given = self._given
        if given is None:
            return [inputs]
        tensors = []
        arranged = given.arranged(self.name, inputs, is_structure)
        for placeholder, value in zip(given.tensors, arranged, strict=True):
            tensor = as_input(value, placeholder._dtype, self.name, casts_all=True)
            shape = fitted_rank(tensor.shape, placeholder._shape)
            tensors.append(tensor if shape == tensor.shape else ops.reshape(tensor, shape))
        return tensors

    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shapes of the outputs, as a call returns them, for inputs of these shapes.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.
        """
        if self._given is None:
            return super().compute_output_shape(input_shape)
        boxes = self._given.arranged(self.name, *boxed_shapes(as_shapes(input_shape)))
        given = [
            SymbolicTensor(box.shape, each._dtype)
            for box, each in zip(boxes, self._given.tensors, strict=True)
        ]
        packed = _nest.pack_like(self._begin, given)
        results = self._results((packed,), {}, None)
        return _nest.map_structure(lambda each: tuple(each._shape), results)

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
        with undone_on_failure(self):
            return self._results(args, kwargs, training)

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
        return map_leaves(as_tensor, args), kwargs

    def build(self, input_shape: Shapes) -> None:
        """Make the weights, by running the model on one example of zeros.

        Args:
            input_shape: The shape of a batch, or the shapes of several in a list, tuple or dict as
                `call` takes them; every size but the first is known.

        Raises:
            ValueError: Another size is None, or the model does not return tensors.

        Example:
            >>> import mirrored as mr
            >>> class Twice(mr.Model):
            ...     def __init__(self):
            ...         super().__init__()
            ...         self.dense = mr.layers.Dense(2)
            ...
            ...     def call(self, inputs):
            ...         return self.dense(inputs) * 2.0
            >>> model = Twice()
            >>> model.build((None, 3))
            >>> [weight.shape for weight in model.weights], model.output_shape
            ([(3, 2), (2,)], (None, 2))
        """
        super().build(input_shape)
        # A subclass's own `build` may call this one before it has made its layers.
        if type(self).build is Network.build:
            self._run_on_zeros(input_shape)

    def build_for(self, input_shape: Shapes, input_dtype: Any = None) -> None:
        """Make the weights that are not there yet, on every replica; the caller undoes a failure.

        Args:
            input_shape: The shape of a batch, or the shapes of several as a call takes them; every
                size but the first is known.
            input_dtype: The dtypes that they come in, in the same structure; None: the model's.

        Raises:
            ValueError: The shapes do not fit the model.
        """
        self.check_input_shape(input_shape)
        with self._given_dtypes(input_dtype):
            if not self.built:
                self.build(input_shape)
            if self._output_shape is None:  # A subclass has a `build` of its own.
                with self._build_scope():
                    self._run_on_zeros(input_shape)

    def check_runs_on(self, input_shape: Shapes, input_dtype: Any = None) -> None:
        """Raise ValueError unless the model, which is built, takes inputs of these shapes.

        Args:
            input_shape: As in `build_for`.
            input_dtype: As there.
        """
        self.check_input_shape(input_shape)
        with self._given_dtypes(input_dtype), self._build_scope():
            self._output_on_zeros(input_shape)

    @contextmanager
    def _given_dtypes(self, dtypes: Any) -> Iterator[None]:
        """Within this context zeros have these dtypes."""
        self._zeros_as, before = dtypes, self._zeros_as
        try:
            yield
        finally:
            self._zeros_as = before

    @contextmanager
    def _build_scope(self) -> Iterator[None]:
        if has_strategy() and not in_cross_replica_context():
            yield  # A variable that is made in a replica is an error, which tells what to do.
            return
        with self._strategy.scope(), self._strategy.replica_device_scope(0):
            yield

    def _prepare(self, shape: Shapes, arguments: CallArguments | None = None) -> None:
        """Check the inputs' shapes; build the model on its first use, for all its arguments."""
        if self.built or arguments is None:
            super()._prepare(shape, arguments)
            return
        self._called_with, before = arguments, self._called_with
        try:
            super()._prepare(shape, arguments)
        finally:
            self._called_with = before

    def _run_on_zeros(self, input_shape: Shapes) -> None:
        """Let layers without weights make them, and see what comes out."""
        self._note_outputs(self._output_on_zeros(input_shape))

    def _output_on_zeros(self, input_shape: Shapes) -> Any:
        """Return the outputs for one example of zeros."""
        arguments = self._called_with
        with only():  # No tape that is open has anything to learn from it.
            if arguments is not None:
                args, kwargs = arguments.mapped(self._zeros_like)
                return self.as_outputs(self._run(args, kwargs, training=False))
            dtypes = self._zeros_as
            if dtypes is None:
                dtypes = map_shapes(lambda _: self._input_dtype, input_shape)
            zeros = map_shapes(self._zeros, input_shape, dtypes)
            args, kwargs = self._as_tensors((zeros,), {})
            return self.as_outputs(self._run(args, kwargs, training=False))

    def _zeros_like(self, leaf: Any) -> Any:
        if not is_tensor(leaf):
            return leaf
        return self._zeros((None, *leaf.shape[1:]) if leaf.shape else (), leaf.dtype)

    def _zeros(self, shape: Shape, dtype: Any) -> Tensor:
        known = [size for size in shape[1:] if size is not None]
        if len(known) != len(shape[1:]):
            raise ValueError(
                f"Model {self.name!r} cannot be built for inputs of shape {shape}: only the "
                "first size, the batch, may be None."
            )
        return ops.zeros((1, *known) if shape else (), dtype)

    def _finish_at(self, end: Any) -> None:
        """Make `end` the outputs."""
        self._end = end
        returned = _out_of_one(end)
        self._output_shape = _nest.map_structure(lambda each: tuple(each._shape), returned)
        self._output_dtype = _nest.map_structure(lambda each: each._dtype, returned)


def _out_of_one(outputs: Any) -> Any:
    """Return an output out of a list of one, as a call of a functional model does."""
    return outputs[0] if isinstance(outputs, list | tuple) and len(outputs) == 1 else outputs


def _listed_shapes(tensors: list[SymbolicTensor]) -> Shapes:
    shapes = [tuple(each._shape) for each in tensors]
    return shapes[0] if len(shapes) == 1 else shapes


def _begun_at_inputs(inputs: Any, outputs: Any) -> tuple[Any, Any]:
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
    given = _nest.flatten(inputs)
    if all(each.node.is_input for each in given):
        return inputs, outputs
    begun = [
        each
        if each.node.is_input
        else InputLayer(batch_shape=each._shape, dtype=each._dtype, name=f"{each.name}CLONE").output
        for each in given
    ]
    ends = Drawing(given, _nest.flatten(outputs)).drawn(begun, suffix="_clone")[1]
    return _nest.pack_like(inputs, begun), _nest.pack_like(outputs, ends)
