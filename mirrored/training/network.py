"""What makes a layer a model: layers inside it that are found, run in order, and built together.

It is apart from training, so that each of the two can be read alone.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mirrored import ops
from mirrored._arguments import explained
from mirrored.distribute import (
    Strategy,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from mirrored.layers import InputLayer, Layer, SymbolicTensor
from mirrored.layers.policy import dtype_policy
from mirrored.layers.shapes import Shape, as_shape, check_matches, fitted_rank, without_batch
from mirrored.layers.symbolic import Path, trace
from mirrored.ops import Tensor
from mirrored.variables import Variable

_Size = TypeVar("_Size", int, int | None)


@explained
class Network(Layer):
    """A layer made of layers: a chain of them from an input to an output, or a subclass's `call`.

    `Model` says what the arguments are.
    """

    # Whether inputs, and whether outputs, may be lists, tuples and dicts. Where they may not, data
    # in a list of one are what is in it, and several are refused; see training/inputs.py.
    _takes_structures = False
    _gives_structures = False

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
        begin, end = _single("inputs", inputs), _single("outputs", outputs)
        if isinstance(outputs, dict):  # Keras' `predict` returns a dict then.
            raise ValueError(
                "A model's output is an array, without a name, for now. Received: "
                f"outputs={outputs!r}. Pass the tensor itself."
            )
        chain = [] if begin is None else trace(end, begin)
        if begin is not None:
            _check_names_differ([begin.producer[0], *chain])
        if begin is not None and dtype is None and dtype_policy().variable_dtype != begin.dtype:
            dtype = begin.dtype
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        if begin is not None:  # Its layers cast what they are given.
            self._input_dtype = begin.dtype
        # Training happens there, whichever scope it is called in.
        self._strategy = get_strategy()
        self._begin: SymbolicTensor | None = begin
        self._end: SymbolicTensor | None = None
        self._chain: list[Layer] = chain
        if begin is not None:
            self._input_shape = begin.shape
            self._finish_at(end)
            self.built = True

    def __getstate__(self) -> dict[str, Any]:
        path = None if self._end is None else Path.to(self._end, self._begin)
        return {**vars(self), "_end": path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if state["_end"] is not None:
            self._end = state["_end"].end()

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self._strategy

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Where a functional model, or a Sequential one that is built, begins: a list of one."""
        begin = self._end if self._begin is None else self._begin
        while self._begin is None and begin is not None and begin.producer[1] is not None:
            begin = begin.producer[1]  # Back to where a Sequential one was built from.
        return [] if begin is None else [begin]

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """Where such a model ends: a list of one."""
        return [] if self._end is None else [self._end]

    @property
    def output_dtype(self) -> Any:
        """The dtype of the outputs, and so of the targets that are compared with them."""
        return self._output_dtype

    @property
    def layers(self) -> list[Layer]:
        """The layers, each once, in the order in which they run or were assigned.

        Those of a functional model begin with its input's.
        """
        begin = [] if self._begin is None else [self._begin.producer[0]]
        inputs = [layer for layer in begin if isinstance(layer, InputLayer)]
        return [*inputs, *(layer for layer in self._sublayers if isinstance(layer, Layer))]

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

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has the shape that the model was made for.

        Args:
            input_shape: The shape of the input; None where it is not known.
        """
        if self._begin is not None:
            check_matches(self.name, self._begin.shape, self.fitted_shape(input_shape))

    def fitted_shape(self, input_shape: tuple[_Size, ...]) -> tuple[_Size, ...]:
        """Return the shape that an input gets: a last axis of size 1 is added or left out.

        That is done, as in Keras, where the input has one axis less or more than the model was
        made for; a subclass with its own `call` is given what there is.

        Args:
            input_shape: The shape of the input; None where it is not known.
        """
        expected = self._expected_shape()
        return input_shape if expected is None else fitted_rank(input_shape, expected)

    def _expected_shape(self) -> Shape | None:
        return None if self._begin is None else self._begin.shape

    def _run(self, inputs: Tensor, training: bool | None) -> Any:
        """Run ``call`` on inputs of the expected rank; a variable is its value."""
        shape = self.fitted_shape(inputs.shape)
        if shape != inputs.shape:
            inputs = ops.reshape(inputs, shape)
        output: Any = super()._run(inputs, training)
        return self.one_tensor(output) if isinstance(output, Variable) else output

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Run the layers in order; subclasses define their own.

        Args:
            inputs: The input, in the model's dtype.
            *args: Unused.
            **kwargs: Unused.
        """
        if not self._chain:
            return super().call(inputs, *args, **kwargs)
        for layer in self._chain:
            inputs = layer.one_tensor(layer(inputs))
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape of the output for inputs of this shape.

        Args:
            input_shape: The shape of the input; None where it is not known.
        """
        if not self._chain:
            return super().compute_output_shape(input_shape)
        shape = self.fitted_shape(as_shape(input_shape))
        for layer in self._chain:
            shape = layer.compute_output_shape(shape)
        return shape

    def build(self, input_shape: Shape) -> None:
        """Make the weights, by running the model on one example of zeros.

        Args:
            input_shape: The shape of a batch; every size but the first is known.

        Raises:
            ValueError: Another size is None, or the model does not return one tensor.

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

    def build_for(self, input_shape: Shape) -> None:
        """Make the weights that are not there yet, on every replica; the caller undoes a failure.

        Args:
            input_shape: The shape of a batch; every size but the first is known.

        Raises:
            ValueError: The shape does not fit the model.
        """
        self.check_input_shape(input_shape)
        if not self.built:
            self.build(input_shape)
        if self._output_shape is None:  # A subclass has a `build` of its own.
            with self._build_scope():
                self._run_on_zeros(input_shape)

    @contextmanager
    def _build_scope(self) -> Iterator[None]:
        if has_strategy() and not in_cross_replica_context():
            yield  # A variable that is made in a replica is an error, which tells what to do.
            return
        with self._strategy.scope(), self._strategy.replica_device_scope(0):
            yield

    def check_runs_on(self, input_shape: Shape) -> None:
        """Raise ValueError unless the model, which is built, takes inputs of this shape.

        Args:
            input_shape: The shape of a batch; every size but the first is known.
        """
        self.check_input_shape(input_shape)
        with self._build_scope():
            self._output_on_zeros(input_shape)

    def _run_on_zeros(self, input_shape: Shape) -> None:
        """Let layers without weights make them, and see what comes out."""
        output = self._output_on_zeros(input_shape)
        self._output_shape, self._output_dtype = without_batch(output.shape), output.dtype

    def _output_on_zeros(self, input_shape: Shape) -> Tensor:
        known = [size for size in as_shape(input_shape)[1:] if size is not None]
        if len(known) != len(input_shape) - 1:
            raise ValueError(
                f"Model {self.name!r} cannot be built for inputs of shape {input_shape}: only the "
                "first size, the batch, may be None."
            )
        return super()._output_on_zeros((1, *known))

    def _finish_at(self, end: SymbolicTensor) -> None:
        """Make `end` the output."""
        self._end = end
        self._output_shape, self._output_dtype = end.shape, end.dtype


def _check_names_differ(layers: list[Layer]) -> None:
    unique = {id(layer): layer for layer in layers}
    counts = Counter(layer.name for layer in unique.values())
    for name, count in counts.items():
        if count > 1:
            raise ValueError(
                f'The name "{name}" is used {count} times in the model. All operation names '
                "should be unique. Pass another `name` to one of the layers."
            )


def _single(argument: str, value: Any) -> Any:
    """Return a lone symbolic tensor, taken out of a list of one, or of a dict of one input."""
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list | tuple):
        return items
    if len(items) != 1:
        raise ValueError(
            f"Models have one input and one output for now. Received: {len(items)} in `{argument}`."
        )
    return items[0]
