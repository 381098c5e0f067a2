"""What all layers share: a name, weights that are created on first use, and how they are called.

A layer is a forward function plus its variables; a layer that holds others has theirs too.
"""

import inspect
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, ClassVar, TypedDict, overload

import numpy as np

from mirrored import _overrides, ops
from mirrored._absent import absent_members, refused_members
from mirrored._arguments import explained
from mirrored.layers.building import building, unbuilt, undone_on_failure
from mirrored.layers.conversion import as_input
from mirrored.layers.shapes import Shape, as_shape, without_batch
from mirrored.layers.symbolic import SymbolicTensor
from mirrored.layers.weights import WeightOwner
from mirrored.ops import Tensor
from mirrored.ops.hooks import only
from mirrored.variables import Variable

# Whether the layer whose `call` is running trains; sublayers that it calls follow it.
_training: ContextVar[bool | None] = ContextVar("mirrored_training", default=None)
_AS_IT_IS = nullcontext()


class LayerOptions(TypedDict, total=False):
    """The options that every layer has; see ``Layer``."""

    name: str | None
    trainable: bool
    dtype: Any
    input_shape: object


@explained
@absent_members("tf.keras.layers.Layer")
@refused_members("tf.keras.layers.Layer", "from_config")
class Layer(WeightOwner):
    """A function of one tensor, with the variables that it computes with.

    A subclass defines ``call``, and ``build`` where it has weights. Layers and variables that it
    assigns to attributes, also in lists, tuples and dicts, count as parts of it.

    Args:
        name: Its name; for None the class's name in snake case, numbered.
        trainable: Whether training changes its weights.
        dtype: The dtype of its weights and of what it computes with, or a policy such as
            "mixed_bfloat16", which says both; None takes the global policy, by default floatx.
        input_shape: The shape of one example, without the batch axis. A ``Sequential`` model whose
            first layer has one begins with an ``Input`` of it; None leaves it to the data.

    Raises:
        ValueError: ``name`` is not a string or contains a slash; ``input_shape`` is no shape;
            ``dtype`` is a policy that there is not.
        TypeError: ``dtype`` is none that tensors have.
        ImportError: It takes bfloat16, and the package that defines that is missing.

    Example:
        >>> import mirrored as mr
        >>> class Scale(mr.layers.Layer):
        ...     def build(self, input_shape):
        ...         shape = input_shape[-1:]
        ...         self.factor = self.add_weight(shape=shape, initializer="ones", name="factor")
        ...
        ...     def call(self, inputs):
        ...         return inputs * self.factor
        >>> layer = Scale()
        >>> layer([[2.0, 3.0]]).numpy().tolist()
        [[2.0, 3.0]]
        >>> [weight.name for weight in layer.weights]
        ['scale/factor:0']
    """

    _never_called = _overrides.LAYER
    _for_itself = _overrides.LAYER_ITSELF
    _takes_training: ClassVar[bool] = False
    _training_default: ClassVar[bool | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Look at the signature of ``call`` once, and let ``build`` run once a layer."""
        super().__init_subclass__(**kwargs)
        parameter = inspect.signature(cls.call).parameters.get("training")
        cls._takes_training = parameter is not None
        default = None if parameter is None else parameter.default
        cls._training_default = default if isinstance(default, bool) else None
        build = cls.build  # A mixin's too, which this class inherits first.
        if build is not Layer.build and not hasattr(build, "_runs_once"):
            type.__setattr__(cls, "build", building(build))

    def __init__(
        self,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
        input_shape: object = None,
    ) -> None:
        example_shape = None if input_shape is None else as_shape(input_shape)
        super().__init__(name, trainable, dtype)
        self._example_shape = example_shape
        self._input_shape: Shape | None = None
        self._output_shape: Shape | None = None
        self._output_dtype: np.dtype[Any] = self._compute_dtype
        self._input_dtype = self._compute_dtype
        mixed = self._compute_dtype != self._dtype
        self._autocast_dtype = self._compute_dtype if mixed else None

    # What a subclass defines.

    def build(self, input_shape: Shape) -> None:
        """Create the weights. Called once, before the first ``call``; there are none by default.

        Args:
            input_shape: The shape of the first input; None where it is not known.
        """
        self._input_shape = as_shape(input_shape)
        self.built = True

    def call(self, inputs: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return the outputs. A parameter ``training``, if there is one, is given the mode.

        Args:
            inputs: The input, in the dtype that the layer computes in.
            *args: Unused; a subclass need not have it.
            **kwargs: Unused; a subclass need not have it.

        Raises:
            NotImplementedError: The subclass has no ``call``.
        """
        raise NotImplementedError(
            f"Layer {type(self).__name__} does not have a `call` method implemented. Define "
            "`call(self, inputs)`, or `call(self, inputs, training=False)`."
        )

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError when the layer cannot take ``input_shape``; by default it takes any.

        Args:
            input_shape: The shape of the input; None where it is not known.
        """

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return the shape of the output; by default, by running the layer on zeros.

        Args:
            input_shape: The shape of the input; only the batch axis may be None.

        Raises:
            ValueError: Another axis is None.
        """
        if None in input_shape[1:]:
            raise ValueError(
                f'The output shape of layer "{self.name}" for inputs of shape {input_shape} '
                "cannot be found by running it. Define `compute_output_shape(self, "
                "input_shape)`, or give `Input` every size."
            )
        if not self.built:
            self.build(input_shape)
        shape = self._output_on_zeros(input_shape).shape
        return without_batch(shape) if input_shape[:1] == (None,) else shape

    # Calling.

    @overload
    def __call__(
        self, inputs: SymbolicTensor, *, training: bool | None = None
    ) -> SymbolicTensor: ...

    @overload
    def __call__(self, inputs: Any, *, training: bool | None = None) -> Tensor: ...

    def __call__(
        self, inputs: Any, *args: Any, training: bool | None = None, **options: Any
    ) -> Any:
        """Run the layer, or, called on a placeholder, add it to a functional model.

        Args:
            inputs: A tensor, an array or nested lists of numbers; or what ``Input`` returned.
            *args: Nothing: `training` is passed by its name, as in Keras.
            training: Whether this is a step of training. For None, as the layer in whose
                ``call`` it is called; where that does not say, the default of this ``call``.
            **options: Nothing but None, as in ``mask=None``.

        Returns:
            The output tensor; a placeholder for a placeholder.

        Raises:
            TypeError: The inputs are not numbers, or there are options.
            ValueError: Their shape does not suit the layer, or more is passed by position.
            RuntimeError: The subclass's ``__init__`` did not call that of ``Layer``.
        """
        if "_name" not in vars(self):
            raise RuntimeError(
                f"In layer '{type(self).__name__}', you forgot to call `super().__init__()` as "
                "the first statement in the `__init__()` method. Go add it!"
            )
        for value in args:
            if value is not None:
                raise self._positional(value)
        for name, value in options.items():
            if value is not None:
                raise TypeError(
                    f'Layer "{self._name}" takes one input and `training`. Received: '
                    f"{name}={value!r:.80}. Make what else it needs an argument of `__init__`."
                )
        if isinstance(inputs, SymbolicTensor):
            return self._connect(inputs, training)
        tensor = as_input(inputs, self._input_dtype, self._name)
        self._prepare(tensor.shape, without_batch(tensor.shape))
        output = self._run(tensor, training)
        if self._output_shape is None and isinstance(output, Tensor):
            self._output_shape, self._output_dtype = without_batch(output.shape), output.dtype
        return output

    def _positional(self, value: Any) -> ValueError:
        if isinstance(value, Tensor | SymbolicTensor | np.ndarray):
            return ValueError(
                f'Layer "{self._name}" expects 1 input, but it received more. Join them into one '
                "array first."
            )
        return ValueError(
            "Only input tensors may be passed as positional arguments. The following argument "
            f"value should be passed as a keyword argument: {value!r:.80} (of type {type(value)})"
        )

    def _build_scope(self) -> AbstractContextManager[Any]:
        """Return the context in which weights are made; models make theirs in their strategy's."""
        return nullcontext()

    def _connect(self, inputs: SymbolicTensor, training: bool | None) -> SymbolicTensor:
        """Return the placeholder of the output for the placeholder ``inputs``."""
        if training is not None:
            raise ValueError(
                f'Layer "{self._name}" was called on a placeholder with training={training}. '
                "A functional model passes on the mode that it is called in; leave it out here."
            )
        self._prepare(inputs.shape, inputs.shape)
        output_shape = as_shape(self.compute_output_shape(inputs.shape))
        self._build_inside(inputs.shape)
        self._output_shape = self._output_shape or output_shape
        return SymbolicTensor(output_shape, self._output_dtype, self._name, (self, inputs))

    def _build_inside(self, input_shape: Shape) -> None:
        """Let layers inside that have no weights yet make them, as in Keras' symbolic call.

        Where a size is not known they cannot be run, and make them with the first data.
        """
        if not self._has_run and None not in input_shape[1:] and unbuilt(self):
            with undone_on_failure(self):
                self._output_on_zeros(input_shape)

    def _output_on_zeros(self, input_shape: Shape) -> Tensor:
        """Return what comes out for zeros of a shape of which the batch alone may be None."""
        # Two examples: a batch of one could be broadcast and hide which axis is the batch.
        sizes = tuple(2 if size is None else size for size in input_shape)
        with only():  # No tape that is open has anything to learn from it.
            return self.one_tensor(self._run(ops.zeros(sizes, self._input_dtype), training=False))

    def one_tensor(self, output: Any) -> Tensor:
        """Return the layer's output where it is one tensor, as models need it.

        Args:
            output: What ``call`` returned.

        Raises:
            ValueError: It is something else.
        """
        if isinstance(output, Tensor):
            return output
        if isinstance(output, Variable):  # Its value, as where an operation takes it.
            return ops.convert_to_tensor(output)
        raise ValueError(
            "All operation outputs must be tensors, and models have one output for now. Operation "
            f"{self!r} returned a non-tensor. Non-tensor received: {output!r:.200} (of type "
            f"{type(output)}). Return one tensor from `call`."
        )

    def _prepare(self, shape: Shape, recorded: Shape) -> None:
        """Check the input's shape; build the layer, and keep the shape, on its first use."""
        self.check_input_shape(shape)
        if not self.built:
            self.build(shape)
            self._input_shape = recorded

    def _run(self, inputs: Tensor, training: bool | None) -> Tensor:
        """Run ``call``, its sublayers following the mode it runs in."""
        if training is None:
            training = _training.get()
        if training is None:
            training = self._training_default
        token = _training.set(None if training is None else bool(training))
        try:
            same = self._autocast_dtype is ops.autocast_dtype()
            with _AS_IT_IS if same else ops.autocast(self._autocast_dtype):
                if self._takes_training:
                    output = self.call(inputs, training=bool(training))
                else:
                    output = self.call(inputs)
        except Exception as error:
            error.add_note(f"Raised in layer {self!r}, called on shape {inputs.shape}.")
            raise
        finally:
            _training.reset(token)
        if output is None:
            raise ValueError(
                f'The `call` method of layer "{self._name}" returned None. Return the outputs.'
            )
        if not self._has_run:
            self._has_run = True
        return output

    def _require_rank(self, shape: Shape, least: int) -> None:
        """Raise ValueError when ``shape`` has fewer than ``least`` axes."""
        if len(shape) < least:
            raise ValueError(
                f'Input 0 of layer "{self._name}" is incompatible with the layer: expected '
                f"min_ndim={least}, found ndim={len(shape)}. Full shape received: {shape}"
            )

    @property
    def example_shape(self) -> Shape | None:
        """The shape of one example that it was made for, ``input_shape=``; None where not given."""
        return self._example_shape

    @property
    def input_shape(self) -> Shape:
        """The shape of the input that the layer was built for, the batch axis None."""
        return self._known_shape("input", self._input_shape)

    @property
    def output_shape(self) -> Shape:
        """The shape of the first output, the batch axis None."""
        return self._known_shape("output", self._output_shape)

    def _known_shape(self, which: str, shape: Shape | None) -> Shape:
        if shape is None:
            raise AttributeError(
                f"The layer {self._name} has never been called and thus has no defined {which} "
                "shape."
            )
        return shape

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self._name}, built={self.built}>"
