"""How a model's weights are made: by a run on one example of zeros, in the strategy's scope.

What its data look like says what the zeros look like.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mirrored import _nest, ops
from mirrored._overrides import any_parameters
from mirrored.distribute import Strategy, get_strategy, has_strategy, in_cross_replica_context
from mirrored.graph import drawn_anywhere
from mirrored.layers import Layer
from mirrored.layers.added_losses import ignoring_losses
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.shapes import Shape, Shapes, map_shapes, without_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import only
from mirrored.variables.device_variable import Undone


class BuiltOnZeros(Layer):
    """A layer that is built by a run on zeros, for the strategy in whose scope it was made.

    `Model` says what the arguments are.
    """

    def __init__(self, name: str | None, *, dtype: Any, trainable: bool) -> None:
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        # Training happens there, whichever scope it is called in.
        self._strategy = get_strategy()
        # While it is built: what it was called with, and the dtypes that its inputs come in.
        self._called_with: CallArguments | None = None
        self._zeros_as: Any = None

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self._strategy

    @any_parameters
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
        if type(self).build is BuiltOnZeros.build:
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

    def output_shapes_for(self, input_shape: Shapes, input_dtype: Any = None) -> Shapes:
        """Return the output shapes of the model, which is built, for inputs of these shapes.

        Args:
            input_shape: As in `build_for`.
            input_dtype: As there.

        Raises:
            ValueError: The model does not take such inputs.
        """
        self.check_input_shape(input_shape)
        with self._given_dtypes(input_dtype), self._build_scope():
            outputs = self._output_on_zeros(input_shape)
        return _nest.map_structure(lambda output: without_batch(output.shape), outputs)

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
        with self._strategy.scope(), self._strategy.replica_device_scope(0), drawn_anywhere():
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
        # No tape that is open has anything to learn from it, and no state moves on.
        with only(), ignoring_losses(), Undone().in_force():
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
