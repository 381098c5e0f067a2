"""What all layers share: a name, weights made on first use, and how they are called.

A layer is a forward function plus its variables; a layer that holds others has theirs too.
"""

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest, _overrides, graph, ops
from mirrored._absent import absent_members, missing_attribute
from mirrored._contexts import Within
from mirrored._naming import check_name, path_of, snake_case, unique_name, within_path
from mirrored._symbolic import draw_call
from mirrored._tracebacks import shorten, shortened
from mirrored._types import DTypeLike, Identifier, PartialShapeLike
from mirrored.distribute.context import one_of_several
from mirrored.graph import Node, SymbolicTensor, placeholders
from mirrored.layers import added_losses, construction, regularizers
from mirrored.layers.building import building, undone_on_failure
from mirrored.layers.call_arguments import CallArguments, CallForm, bound, shapes_of
from mirrored.layers.input_conversion import as_argument, as_input, as_tensor, is_structure
from mirrored.layers.layer_state import LayerState
from mirrored.layers.policy import DTypePolicy, as_policy
from mirrored.layers.regularizers import Penalty
from mirrored.layers.shapes import (
    Shape,
    Shapes,
    as_known_shape,
    as_shape,
    as_shapes,
    is_shape,
    map_shapes,
    require_rank,
    without_batch,
)
from mirrored.layers.weights import assign_all, find, in_order, load_into, new_weight, with_states
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import FLOATS
from mirrored.serialization.constructor_arguments import serialized
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization
from mirrored.variables.tracking import Part, Seeds
from mirrored.variables.variable import check_overwrite, mode_of

_Found = TypeVar("_Found")

_HOLDERS = (Tensor, list, tuple, dict)
_OUTSIDE: Any = object()
# Whether the layer whose `call` is running trains, None where nobody said; sublayers that it calls
# follow it.
_training: ContextVar[bool | None] = ContextVar("mirrored_training", default=_OUTSIDE)
_AS_IT_IS = nullcontext()
# The layers whose calls run, innermost last; None: nobody asks, and calls are not noted.
_running: ContextVar[list["Layer"] | None] = ContextVar("mirrored_running_layers", default=None)


def layer_mode() -> bool | None:
    """Return whether the layer whose `call` is running trains; None where nobody said."""
    mode = _training.get()
    return None if mode is _OUTSIDE else mode


class _SharedOptions(TypedDict, total=False):
    name: str | None
    trainable: bool
    dtype: Any
    autocast: bool
    input_shape: object


class PlainOptions(_SharedOptions, total=False):
    """The options of layers that say themselves what is penalised."""

    input_dim: int | None


def noting_layers() -> Within:
    """Within this context `running_layer` knows which layer runs."""
    return Within(_running, [])


def running_layer() -> "Layer | None":
    """Return the innermost layer whose `call` runs, where that is noted."""
    running = _running.get()
    return running[-1] if running else None


class LayerOptions(PlainOptions, total=False):
    """The options that every layer has; see ``Layer``."""

    activity_regularizer: Any


class EmbeddingOptions(_SharedOptions, total=False):
    """The options of layers that have an ``input_dim`` of their own."""

    activity_regularizer: Any


class _NotInitializedError(RuntimeError, AttributeError):
    """A subclass's `__init__` did not call that of `Layer`: its attributes are missing."""


@absent_members("tf.keras.layers.Layer")
class Layer(Part, _overrides.Subclassable):
    """A function of tensors, with the variables that it computes with.

    A subclass defines ``call``, and ``build`` where it has weights. Layers and variables that it
    assigns to attributes, also in lists, tuples and dicts, count as parts of it.

    Args:
        activity_regularizer: The penalty on its outputs, divided by the number of examples: a
            name, a function of a tensor, or None.
        name: Its name; for None the class's name in snake case, numbered.
        trainable: Whether training changes its weights.
        dtype: The dtype of its weights and of what it computes with, or a policy such as
            "mixed_bfloat16", which says both; None takes the global policy, by default floatx.
        autocast: Whether floats that it is called on are cast to the dtype that it computes in,
            and its weights next to them.
        input_shape: The shape of one example, without the batch axis. A ``Sequential`` model whose
            first layer has one begins with an ``Input`` of it; None leaves it to the data.
        input_dim: The size of an example that is a vector, instead of ``input_shape``.

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

    __overrides__ = _overrides.LAYER
    # Whether subclasses that say nothing are made of the arguments that they were called with.
    _automatic: ClassVar[bool] = True
    __state_class__: ClassVar[type[LayerState]] = LayerState
    _built_from_start: ClassVar[bool] = False  # In Keras; where it has no `build` of its own.
    __state__: LayerState
    _casts_all: bool = False  # Integers too, as models that say the dtype of inputs do.
    _infers: ClassVar[bool] = False  # Placeholders are found by a run all the same.
    _keeps_integers: ClassVar[bool] = False  # What it returns for integers is integers, too.
    _supports_masking: bool = False
    _makes_masks: bool = False  # Also where its inputs have none.
    __call_form__: ClassVar[CallForm]

    # With `__new__` here Python would show its parameters as those of classes without `__init__`.
    __signature__ = construction.ConstructorSignature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep what the layer is made with, for others like it."""
        layer = super().__new__(cls)
        vars(layer)["__arguments__"] = construction.Arguments(args, kwargs)
        replica = one_of_several()
        if replica is not None:
            replica.note_made(layer)
        return layer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Look at the form of ``call`` and at masks once; let ``build`` run once a layer."""
        super().__init_subclass__(**kwargs)
        cls.__call_form__ = CallForm.of(cls.call)
        bases = [base for base in cls.__bases__ if issubclass(base, Layer)]
        if all(cls.compute_mask is not base.compute_mask for base in bases):
            cls._supports_masking = True
            cls._makes_masks = vars(cls).get("_makes_masks", True)
        build = cls.build  # A mixin's too, which this class inherits first.
        if build is not Layer.build and not hasattr(build, "_runs_once"):
            type.__setattr__(cls, "build", building(build, _made_whole))

    def __init__(
        self,
        *,
        activity_regularizer: Identifier | None = None,
        name: str | None = None,
        trainable: bool = True,
        dtype: DTypeLike | DTypePolicy | None = None,
        autocast: bool = True,
        input_shape: object = None,
        input_dim: int | None = None,
    ) -> None:
        if input_dim is not None:
            input_shape = (input_dim,)
        example_shape = None if input_shape is None else as_shape(input_shape)
        attributes = vars(self)
        if "__state__" not in attributes:
            arguments = attributes.pop("__arguments__", None)  # A mixin's `__new__` keeps none.
            attributes["__state__"] = self.__state_class__(arguments)
        state = self.__state__
        state.autocast = bool(autocast)
        state.name = check_name(
            unique_name(snake_case(type(self).__name__)) if name is None else name
        )
        state.take_policy(as_policy(dtype))
        state.trainable = bool(trainable)
        state.example_shape = example_shape
        state.output_dtype = state.compute_dtype
        self.__added_weights__: list[Variable] = []
        self._inbound_nodes: deque[Node] = deque()
        self.built = False
        self.activity_regularizer: Any = regularizers.get(activity_regularizer)

    if not TYPE_CHECKING:  # It would tell type checkers that every attribute exists.

        def __getattr__(self, attribute: str) -> Any:
            if "__state__" not in vars(self):
                absent = "" if attribute == "__state__" else f": there is no {attribute!r}"
                raise _NotInitializedError(
                    f"In layer '{type(self).__name__}', you forgot to call `super().__init__()` "
                    f"as the first statement in the `__init__()` method{absent}. Go add it!"
                )
            values = (self.__replica_attributes__ or {}).get(attribute)
            with contextlib.suppress(AttributeError):
                if values is not None:
                    return values.value()
            return missing_attribute(self, attribute)

        def __delattr__(self, name: str) -> None:
            if name in (self.__replica_attributes__ or ()):
                from mirrored.distribute.replica_attributes import delete  # Few programs need it.

                delete(self, name)
            else:
                super().__delattr__(name)

    def __assign_attribute__(self, name: str, value: Any) -> None:
        """Assign an attribute: tensors that a replica of several assigns are its own."""
        if self.__replica_attributes__ or (isinstance(value, _HOLDERS) and one_of_several()):
            from mirrored.distribute.replica_attributes import assign  # Few programs need it.

            if assign(self, name, value):
                return
        super(_overrides.Subclassable, self).__setattr__(name, value)

    # Its name and dtypes.

    @property
    def name(self) -> str:
        """The layer's name."""
        return self.__state__.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the layer's weights."""
        return self.__state__.dtype

    @property
    def variable_dtype(self) -> np.dtype[Any]:
        """The same as ``dtype``."""
        return self.__state__.dtype

    @property
    def compute_dtype(self) -> np.dtype[Any]:
        """The dtype that it computes in: its inputs are cast to it, and beside them its weights."""
        return self.__state__.compute_dtype

    @property
    def dtype_policy(self) -> DTypePolicy:
        """Both dtypes, by their common name. It can be set; weights that exist keep their dtype."""
        return self.__state__.policy

    @dtype_policy.setter
    def dtype_policy(self, value: DTypeLike | DTypePolicy) -> None:
        self.__state__.take_policy(as_policy(value))

    @property
    def autocast(self) -> bool:
        """Whether floats and weights are cast to the dtype that it computes in."""
        return self.__state__.autocast

    @autocast.setter
    def autocast(self, value: bool) -> None:
        self.__state__.autocast = bool(value)
        self.__state__.take_policy(self.__state__.policy)

    @property
    def path(self) -> str | None:
        """The names of the models and layers around it, and its own; None before it is built."""
        return self.__state__.path

    @property
    def trainable(self) -> bool:
        """Whether training changes the layer's weights; setting it sets it in all sublayers."""
        return self.__state__.trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for layer in walk(self):
            layer.__state__.trainable = bool(value)

    def add_weight(
        self,
        shape: PartialShapeLike | None = None,
        initializer: Identifier | None = None,
        dtype: DTypeLike | None = None,
        *,
        name: str | None = None,
        trainable: bool = True,
        regularizer: Identifier | None = None,
        constraint: Identifier | None = None,
        synchronization: VariableSynchronization | str | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | str | None = VariableAggregation.NONE,
        autocast: bool = True,
        overwrite_with_gradient: bool = False,
    ) -> Variable:
        """Create a variable that belongs to the layer; a strategy's scope mirrors it.

        Args:
            shape: Its shape, every size known; () for None.
            initializer: What it starts as: a name or ``initializer(shape, dtype=None)``; for None
                "glorot_uniform", or "zeros" where it is no floating-point variable.
            dtype: Its dtype; the layer's for None.
            name: Its name within the layer; numbered for None.
            trainable: Whether training changes it.
            regularizer: The penalty on it: a name, a function of the variable, or None.
            constraint: What optimizers bring it back to after a step: a name, a function of its
                value, or None.
            synchronization: When its copies on several replicas are brought together; Keras' name
                of it, as in "on_read", will do.
            aggregation: How values that replicas assign become one; so will Keras' "mean".
            autocast: Whether a layer in mixed precision computes with it in the narrow dtype.
            overwrite_with_gradient: False: there is no training in float8.

        Raises:
            ValueError: The shape has an unknown size, a name is unknown, or the initializer
                returns another shape.
        """
        if isinstance(shape, str):
            raise ValueError(
                f"`name` must be passed as a keyword argument. Received: add_weight({shape!r}, "
                f"...). Use: add_weight(shape=..., name={shape!r})."
            )
        path = f"{self.name}/{name or f'variable_{len(self.__added_weights__)}'}"
        check_overwrite(overwrite_with_gradient)
        variable = new_weight(
            path,
            as_known_shape(() if shape is None else shape, path),
            initializer,
            self.__state__.dtype if dtype is None else ops.as_dtype(dtype),
            trainable=trainable,
            regularizer=regularizer,
            constraint=constraint,
            synchronization=mode_of(VariableSynchronization, synchronization),
            aggregation=mode_of(VariableAggregation, aggregation),
        )
        self.__added_weights__.append(variable)
        variable._traits.autocast = bool(autocast)
        inner = path.removeprefix(self.__state__.name + "/")
        variable._traits.path = f"{self.__state__.path or path_of(self.__state__.name)}/{inner}"
        return variable

    @property
    def weights(self) -> list[Variable]:
        """All variables of the layer and its sublayers, each once."""
        return _once(in_order(own) for _, own in walk_with(self, Variable))

    @property
    def variables(self) -> list[Variable]:
        """The layer's weights, then its streams of random numbers, then those of its sublayers.

        A stream's state is a variable of two integers, its seed and the number of its draws.
        """
        kinds = (Variable, SeedGenerator, Seeds)
        parts: Iterator[tuple[Layer, list[Any]]] = walk_with(self, kinds)
        return _once(with_states(layer.__state__.name, own) for layer, own in parts)

    @property
    def trainable_weights(self) -> list[Variable]:
        """Those of ``weights`` that training changes."""
        if not self.__state__.trainable:
            return []
        # Layers inside say it for themselves, as in Keras: setting `trainable` sets theirs too, and
        # one that is thawed afterwards is trained.
        parts = walk_with(self, Variable)
        owned = _once(in_order(own) for layer, own in parts if layer.__state__.trainable)
        return [variable for variable in owned if variable.trainable]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The same as ``trainable_weights``."""
        return self.trainable_weights

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """Those of ``weights`` that training leaves alone."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in trained]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those of ``variables`` that training leaves alone."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def regularized_weights(self) -> list[tuple[Variable, Penalty]]:
        """The trainable weights that have a penalty, each with its penalty."""
        pairs = [(weight, weight.regularizer) for weight in self.trainable_weights]
        return [(weight, penalty) for weight, penalty in pairs if penalty is not None]

    @property
    def losses(self) -> list[Tensor]:
        """What is added to the loss in training: `add_loss`, then the penalties on weights.

        Those that the layer and its sublayers added are there from their calls until the next
        call that none of them is in the midst of; those of a step that `fit` or `evaluate` ran
        are gone with it. A penalty is the present one, a scalar for each regularized weight.
        """
        pairs = self.regularized_weights
        penalties = [ops.convert_to_tensor(penalty(weight)) for weight, penalty in pairs]
        return [*losses_in(self), *penalties]

    def count_params(self) -> int:
        """Return the number of scalars in the weights.

        Raises:
            ValueError: The layer has no weights yet.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer '{self.name}', but the layer isn't "
                "built. You can build it manually via: `layer.build(input_shape)`."
            )
        return sum(weight.size for weight in self.weights)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """Return the values of ``weights``, as arrays on the host."""
        return [np.asarray(weight.numpy()) for weight in self.weights]

    @shortened
    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign the values of all weights; nothing is changed unless all of them fit.

        Args:
            weights: One array a weight, in the order and shapes of ``get_weights``.

        Raises:
            ValueError: There are more or fewer than weights, or a shape differs.
            TypeError: A value is not numbers.
        """
        assign_all(self.__state__.name, self.weights, list(weights))

    def save_own_variables(self, store: MutableMapping[str, Any]) -> None:
        """Put the layer's own variables into a store, under "0", "1" and so on.

        Files in Keras' formats have what it puts there; layers inside are asked for themselves.

        Args:
            store: What the file has of this layer, as a dict; an array is written at once.
        """
        for number, variable in enumerate(own_weights(self)):
            store[str(number)] = variable

    def load_own_variables(self, store: Mapping[str, Any]) -> None:
        """Set the layer's own variables to what `save_own_variables` put into a store.

        Args:
            store: What the file has of this layer, as a dict of arrays.

        Raises:
            ValueError: It has more or fewer variables, or one of another shape. None was set.
        """
        load_into(self, own_weights(self), store)

    # What it is made of.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values.

        A subclass adds its own to those of `super().get_config()`. One of `Layer` or `Model` need
        not where all of its arguments are numbers, strings, lists and the like.

        Raises:
            NotImplementedError: Its arguments are others, and it has no `get_config`.

        Example:
            >>> import mirrored as mr
            >>> mr.layers.RepeatVector(2, name="twice").get_config()["n"]
            2
        """
        return construction.config_of(self, shared_config(self), (Layer, Variable))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.

        Raises:
            TypeError: The class does not take these arguments, or refuses them.
        """
        layer: Self = construction.layer_of_config(cls, config)
        return layer

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shapes that the layer was built for; None where it is not built.

        Example:
            >>> import mirrored as mr
            >>> layer = mr.layers.Dense(2)
            >>> layer.build((None, 3))
            >>> layer.get_build_config()
            {'input_shape': (None, 3)}
        """
        shapes = self.__state__.built_for
        if shapes is None:
            return None
        if len(shapes) == 1:
            return {"input_shape": next(iter(shapes.values()))}
        return {"shapes_dict": dict(shapes)}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Build the layer for shapes that `get_build_config` returned.

        Args:
            config: The shapes.
        """
        if not config:
            return
        if "input_shape" in config:
            self.build(config["input_shape"])
        elif "shapes_dict" in config:
            self.build(**config["shapes_dict"])

    # What a subclass defines.

    @_overrides.any_parameters
    def build(self, input_shape: Shapes) -> None:
        """Create the weights. Called once, before the first ``call``; there are none by default.

        Args:
            input_shape: The shape of the first argument of ``call``, None where a size is not
                known; shapes in a list, tuple or dict where that is one of inputs. A subclass may
                take one for each argument instead, as in ``build(self, query_shape, key_shape)``.
        """
        self.__state__.input_shape = as_shapes(input_shape)
        self.__state__.built_for = {"input_shape": self.__state__.input_shape}
        self.__state__.path = self.__state__.path or path_of(self.__state__.name)
        self.built = True

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs. A parameter ``training``, if there is one, is given the mode.

        Args:
            *args: The inputs: floats in the dtype that the layer computes in.
            **kwargs: Whatever else the subclass takes.

        Raises:
            NotImplementedError: The subclass has no ``call``.
        """
        raise NotImplementedError(
            f"Layer {type(self).__name__} does not have a `call` method implemented. Define "
            "`call(self, inputs)`, or `call(self, inputs, training=False)`."
        )

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError when the layer cannot take ``input_shape``; by default it takes any.

        Args:
            input_shape: The shape of the first argument, or the shapes in a list, tuple or dict;
                None where a size is not known.
        """

    @_overrides.any_parameters
    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape of the output; by default, from a run of which nothing is computed.

        Args:
            input_shape: The shape of the input, or the shapes of several in a list, tuple or dict;
                None where a size is not known.
        """
        shapes = as_shapes(input_shape)
        if not self.built:
            self.build(shapes)
        inputs = map_shapes(
            lambda shape: SymbolicTensor(
                shape, self.__state__.input_dtype or self.__state__.compute_dtype
            ),
            shapes,
        )
        return _shapes_in(self._call_results((inputs,), {}, None))

    # Masks: layers/masks.py says what they are.

    @property
    def supports_masking(self) -> bool:
        """Whether the outputs carry the masks that `compute_mask` returns; it can be set."""
        return self._supports_masking

    @supports_masking.setter
    def supports_masking(self, value: bool) -> None:
        self._supports_masking = value

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Return the masks of the outputs; by default those of the inputs.

        Args:
            inputs: The first argument of `call`.
            previous_mask: Its mask, or the masks in the same structure; None where there is none.
        """
        return previous_mask

    # Losses.

    def add_loss(self, loss: Any) -> None:
        """Add to the loss that training minimises; to be called in `call`.

        It is there, as one of `losses`, until the layer is called again. `fit`, `evaluate` and
        `Model.compute_loss` add it to the loss of `compile`, if there is one. It is the mean over
        the examples of the shard, as `mr.reduce_mean` gives, or their sum divided by the size of
        the global batch.

        Args:
            loss: A tensor, or several in lists, tuples and dicts; of one that is no scalar
                training takes the sum.

        Raises:
            ValueError: It is no tensor, or a placeholder.
            NotImplementedError: This is a functional model.

        Example:
            >>> import mirrored as mr
            >>> class Small(mr.layers.Layer):
            ...     def call(self, inputs):
            ...         self.add_loss(0.5 * mr.reduce_mean(inputs**2))
            ...         return inputs
            >>> layer = Small()
            >>> outputs = layer([[1.0, 3.0]])
            >>> [float(loss) for loss in layer.losses]
            [2.5]
        """
        losses = _nest.flatten(loss)
        for value in losses:
            if not isinstance(value, Tensor | Variable):
                raise ValueError(
                    "`add_loss()` can only be called from inside `build()` or `call()`, on a "
                    f"tensor input. Received invalid value: {value!r:.200} (of type {type(value)})"
                )
        added_losses.hold(self, [ops.convert_to_tensor(value) for value in losses])

    # Calling.

    @overload
    def __call__(
        self, inputs: SymbolicTensor, *args: Any, training: bool | None = None, **kwargs: Any
    ) -> SymbolicTensor: ...

    # Most layers return a tensor for one array; type checkers would make users say so each time.
    @overload
    def __call__(
        self, inputs: Tensor | NDArray[Any], /, *, training: bool | None = None
    ) -> Tensor: ...

    @overload
    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any: ...

    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Run the layer, or, called on placeholders, add it to a functional model.

        Args:
            *args: The inputs, as ``call`` takes them: tensors, arrays or nested lists of numbers,
                also in lists, tuples and dicts; or what ``Input`` returned.
            training: Whether this is a step of training. For None, as the layer in whose
                ``call`` it is called; where that does not say, the default of this ``call``.
            **kwargs: Further arguments of ``call``, which need not be tensors.

        Returns:
            What ``call`` returns; placeholders for placeholders.

        Raises:
            TypeError: ``call`` does not take these arguments, or the inputs are not numbers.
            ValueError: Their shape does not suit the layer, or what is no tensor is passed by
                position.
            RuntimeError: The subclass's ``__init__`` did not call that of ``Layer``.
        """
        try:
            state = self.__state__
            if kwargs or len(args) != 1 or not _takes_one(self, args[0]):
                return self.__call_on(args, kwargs, training)
            tensor = as_input(args[0], state.input_dtype, state.name, casts_all=self._casts_all)
            if self._makes_masks or tensor._keras_mask is not None:
                return self.__call_on((tensor,), {}, training)
            self.__prepare_call(tensor.shape)
            output = run_call(self, (tensor,), {}, training)
            if state.output_shape is None:
                note_outputs(self, output)
            return output
        except Exception as error:
            shorten(error)
            raise

    def __call_on(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None
    ) -> Any:
        """Run the layer on any arguments, or add it to a functional model."""
        parameters = self.__call_form__.signature.parameters
        kwargs = {k: value for k, value in kwargs.items() if value is not None or k in parameters}
        tensors, named = as_call_tensors(self, args, kwargs)
        has_masks = self._makes_masks or self.__call_form__.asks_for_masks or "mask" in named
        for value in _nest.flatten(tensors):
            has_masks = has_masks or getattr(value, "_keras_mask", None) is not None
            if value is not None and not is_tensor(value):
                raise ValueError(
                    "Only input tensors may be passed as positional arguments. The following "
                    "argument value should be passed as a keyword argument: "
                    f"{value!r:.80} (of type {type(value)})"
                )
        for value in _nest.flatten(named) if named and not has_masks else ():
            has_masks = has_masks or getattr(value, "_keras_mask", None) is not None
        if self.__call_form__.takes_training:
            tensors = _without_mode(self, tensors)
        arguments = bound(self.__call_form__.signature, tensors, named)
        self.__prepare_call(arguments.first, arguments)
        masks = None
        if has_masks:
            from mirrored.layers.masks import masks_of_call, with_masks

            masks = masks_of_call(self, arguments, named)
            named = {**named, **masks.implied}
        if placeholders((tensors, named)):
            if added_losses.held and _training.get() is _OUTSIDE:
                added_losses.forget(walk(self))
            return self.__connect(args, kwargs, training, arguments, masks)
        output = run_call(self, tensors, named, training)
        if masks is not None:
            output = with_masks(self, output, masks)
        if self.__state__.output_shape is None:
            note_outputs(self, output)
        return output

    # Running.

    def __prepare_call(self, shape: Shapes, arguments: CallArguments | None = None) -> None:
        """Check the inputs' shapes; build the layer, and keep the shapes, on its first use."""
        self.check_input_shape(shape)
        if self.built:
            return
        state = self.__state__
        before = state.called_with
        state.called_with = before if arguments is None else arguments
        try:
            if arguments is None or type(self).build is Layer.build:
                self.build(shape)
                if self._built_from_start and type(self).build is Layer.build:
                    state.built_for = None  # As in Keras, where it was built before.
            else:
                self.build(**arguments.of(self.build, f"{type(self).__name__!r}"))
        finally:
            state.called_with = before
        state.input_shape = map_shapes(without_batch, shape)

    # Placeholders.

    def __connect(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
        masks: Any,
    ) -> Any:
        """Return the placeholders of the outputs for arguments with placeholders in them."""
        for tensor in placeholders((args, kwargs)):
            if draw_call.dispatch(type(tensor)) is not draw_call.dispatch(SymbolicTensor):
                raise TypeError(
                    f"Layer {self.name!r} is not part of a session's graph. Received: {tensor!r}. "
                    "Use `tf.compat.v1.layers`, or `tf.keras.Input` and `fit` without sessions."
                )
        mode = {} if training is None else {"training": training}
        if type(self).compute_output_spec is Layer.compute_output_spec:
            named = kwargs if masks is None else {**kwargs, **masks.implied}
            results = self._announced_results(args, named, training, arguments)
        else:
            spec = self.compute_output_spec(*args, **kwargs, **mode)
            self.__build_inside(args, kwargs)
            results = _nest.map_structure(_placeholder, spec)
        if masks is not None:  # They are for the shapes alone: each run has its own.
            from mirrored.layers.masks import with_masks

            results = with_masks(self, results, masks)
        if self.__state__.output_shape is None:
            self.__state__.output_shape = _shapes_in(results)
            self.__state__.output_dtype = _nest.map_structure(lambda result: result._dtype, results)
        return Node(self, args, {**kwargs, **mode}, results).structure

    def _announced_results(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        """Return placeholders for what a call returns, by `compute_output_shape` if it has one."""
        says_shapes = type(self).compute_output_shape is not Layer.compute_output_shape
        if self._infers or not says_shapes:
            with undone_on_failure(walk(self)):
                return self._call_results(args, kwargs, training)
        method = self.compute_output_shape
        named = arguments.of(method, f"{type(self).__name__!r}")
        shapes = as_shapes(_one_shape(method(**named)))
        self.__build_inside(args, kwargs)
        dtype = self._announced_dtype(placeholders((args, kwargs))[0]._dtype)
        return map_shapes(lambda shape: SymbolicTensor(shape, dtype), shapes)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return placeholders of the shapes and dtypes that a call returns.

        A subclass may say them here, where `call` should not run to find out.

        Args:
            *args: The arguments of a call, placeholders among them.
            **kwargs: Those by name.

        Example:
            >>> import mirrored as mr
            >>> mr.layers.Dense(3).compute_output_spec(mr.keras.KerasTensor((None, 2))).shape
            (None, 3)
        """
        training = kwargs.pop("training", None)
        tensors, named = as_call_tensors(self, args, kwargs)
        arguments = bound(self.__call_form__.signature, tensors, named)
        self.__prepare_call(arguments.first, arguments)
        return self._announced_results(args, kwargs, training, arguments)

    def _announced_dtype(self, first: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the outputs, by that of the first input."""
        return first if self._keeps_integers and first not in FLOATS else self.compute_dtype

    def _call_results(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None
    ) -> Any:
        """Return placeholders for what a call returns."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return run_call(self, *as_call_tensors(self, args, kwargs), training)

        with self.__state__.weights_scope(), added_losses.ignoring_losses():
            return graph.results_of(call, args, kwargs, repr(self))

    def __build_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let layers inside that have no weights yet make them, as in Keras' symbolic call."""
        if not self.__state__.has_run and unbuilt(self):
            with undone_on_failure(walk(self)):
                self._call_results(args, kwargs, False)

    @property
    def input(self) -> Any:
        """What the layer was first called on in a functional model: placeholders."""
        return _alone(_first_node(self, "input").inputs)

    @property
    def output(self) -> Any:
        """What the layer first returned in a functional model: placeholders."""
        return _alone(_first_node(self, "output").outputs)

    def __getstate__(self) -> dict[str, Any]:
        # The graph around a layer is the model's that it is in.
        return {**vars(self), "_inbound_nodes": deque(), "__state__": self.__state__.copied()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).pop("__arguments__", None)
        vars(self).update(state)

    # Shapes and outputs.

    def as_outputs(self, output: Any) -> Any:
        """Return the layer's outputs as tensors, as models need them.

        Args:
            output: What ``call`` returned: tensors, also in lists, tuples and dicts. A variable is
                its value.

        Raises:
            ValueError: It is something else.
        """
        if not _nest.flatten(output):
            return _as_output(self, output)
        return _nest.map_structure(lambda part: _as_output(self, part), output)

    @property
    def example_shape(self) -> Shape | None:
        """The shape of one example that it was made for, ``input_shape=``; None where not given."""
        return self.__state__.example_shape

    @property
    def input_shape(self) -> Shapes:
        """The shape of the input that the layer was built for, the batch axis None.

        The shapes, in a list, tuple or dict, where there are several inputs.
        """
        return _known_shape(self, "input", self.__state__.input_shape)

    @property
    def output_shape(self) -> Shapes:
        """The shape of the first output, the batch axis None; the shapes where it is several."""
        return _known_shape(self, "output", self.__state__.output_shape)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}, built={self.built}>"


Layer.__call_form__ = CallForm.of(Layer.call)


class SameShape(Layer):
    """A layer of one input, whose outputs have its shape, and its mask."""

    _built_from_start = True
    _supports_masking = True

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input."""
        require_rank(self.name, input_shape, 0)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``."""
        return input_shape


def within_path_of(layer: Layer) -> Within:
    """Return the context in which the paths of what a layer makes begin with its own.

    Args:
        layer: The layer.
    """
    if layer.__state__.path is None:
        layer.__state__.path = path_of(layer.__state__.name)
    return within_path(layer.__state__.path)


def _once(groups: Iterable[list[Variable]]) -> list[Variable]:
    return list({id(variable): variable for group in groups for variable in group}.values())


def sublayers(layer: Layer) -> list[Layer]:
    """Return the layers in a layer's attributes, each once, in order of assignment.

    Args:
        layer: The layer.
    """
    return next(walk_with(layer, Layer))[1]


def walk(layer: Layer) -> Iterator[Layer]:
    """Yield a layer and all inside it, each once, a layer before its sublayers.

    Args:
        layer: The layer.
    """
    return (inner for inner, _ in walk_with(layer, ()))


def walk_with(
    layer: Layer, kind: type[_Found] | tuple[Any, ...]
) -> Iterator[tuple[Layer, list[_Found]]]:
    """Yield the layers of `walk`, each with what its own attributes hold of a kind.

    Args:
        layer: The layer.
        kind: A class, or a tuple of classes.
    """
    seen: set[int] = set()
    waiting = [layer]
    while waiting:
        layer = waiting.pop()
        if id(layer) not in seen:
            seen.add(id(layer))
            _ = layer.__state__  # Raises where `__init__` was not called: not all parts are known.
            # Looked through once for both.
            held: list[Any] = find(vars(layer).values(), (Layer, kind), layer)
            yield layer, [part for part in held if isinstance(part, kind)]
            waiting += [part for part in reversed(held) if isinstance(part, Layer)]


def own_weights(layer: Layer) -> list[Variable]:
    """Return the variables in a layer's own attributes, trainable ones first, as Keras has it.

    Args:
        layer: The layer.
    """
    return in_order(next(walk_with(layer, Variable))[1])


def losses_in(layer: Layer) -> list[Tensor]:
    """Return what a layer and its sublayers added to the loss, without penalties.

    Args:
        layer: The layer.
    """
    if not added_losses.held:
        return []
    # In the order of Keras' `losses`: parts of parts from the last.
    layers, seen, waiting = [layer], {id(layer)}, deque(sublayers(layer))
    while waiting:
        inner = waiting.popleft()
        if id(inner) not in seen:
            seen.add(id(inner))
            layers.append(inner)
            waiting.extendleft(sublayers(inner))
    return added_losses.held_by(layers)


def unbuilt(layer: Layer) -> list[Layer]:
    """Return the layer, or those inside it, whose weights are still to be made.

    Those that a layer did not use when it ran are left out.
    """
    if not layer.built:
        return [layer]
    if layer.__state__.has_run:
        return []
    return [descendant for inner in sublayers(layer) for descendant in unbuilt(inner)]


@contextmanager
def _made_whole(layer: Layer, *, alone: bool) -> Iterator[None]:
    """Within this context a layer makes its weights, all of them or none."""
    scope = nullcontext() if alone else layer.__state__.weights_scope()
    with undone_on_failure(walk(layer)), scope, within_path_of(layer):
        yield


def as_call_tensors(
    layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with arrays as tensors, and floats in the dtype of a layer's inputs.

    Args:
        layer: The layer.
        args: The arguments of a call by position.
        kwargs: Those by name.
    """
    state = layer.__state__
    first = args[:1]
    if state.casts_inside and len(args) == 1 and is_structure(args[0]) and not placeholders(args):
        return _nest.map_structure(as_tensor, args), kwargs

    def leaf(value: Any) -> Any:
        return as_argument(value, state.input_dtype, state.name, casts_all=layer._casts_all)

    if first and not is_structure(first[0]) and isinstance(first[0], list | tuple):
        first = (as_input(first[0], state.input_dtype, state.name),)  # Nested lists of numbers.
    named = {
        name: _nest.map_structure(as_tensor if name in layer.__call_form__.masks else leaf, value)
        for name, value in kwargs.items()
    }
    return _nest.map_structure(leaf, (*first, *args[1:])), named


def run_call(
    layer: Layer, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None
) -> Any:
    """Run a layer's ``call``, its sublayers following the mode it runs in.

    Args:
        layer: The layer.
        args: The arguments by position.
        kwargs: Those by name.
        training: Whether it trains; None: as the layer in whose ``call`` it runs.
    """
    state, outer = layer.__state__, _training.get()
    if outer is _OUTSIDE:
        outer = None
        if added_losses.held:
            added_losses.forget(walk(layer))
    if training is None:
        training = outer
    if training is None:
        training = layer.__call_form__.default_mode
    token = _training.set(None if training is None else bool(training))
    running = _running.get()
    if running is not None:
        running.append(layer)
    try:
        same = state.autocast_dtype is ops.autocast_dtype()
        with (
            _AS_IT_IS if same else ops.autocast(state.autocast_dtype),
            _AS_IT_IS if state.has_run else within_path_of(layer),  # What it builds inside.
        ):
            if layer.__call_form__.takes_training:
                output = layer.call(*args, **kwargs, training=bool(training))
            else:
                output = layer.call(*args, **kwargs)
        if layer.activity_regularizer is not None:
            _regularize(layer, output)
    except Exception as error:
        shapes = [f"{shapes_of(value)}" for value in (*args, *kwargs.values()) if value is not None]
        error.add_note(f"Raised in layer {layer!r}, called on shape {', '.join(shapes)}.")
        raise
    finally:
        _training.reset(token)
        if running is not None:
            running.pop()
    if output is None:
        raise ValueError(
            f'The `call` method of layer "{layer.name}" returned None. Return the outputs.'
        )
    state.has_run = True
    if state.returns_values and not isinstance(output, Tensor):
        return _nest.map_structure(
            lambda leaf: ops.convert_to_tensor(leaf) if isinstance(leaf, Variable) else leaf, output
        )
    return output


def _regularize(layer: Layer, outputs: Any) -> None:
    """Add the penalty on outputs, each divided by the number of examples."""
    for output in _nest.flatten(outputs):
        if isinstance(output, Tensor | Variable):
            loss = ops.convert_to_tensor(layer.activity_regularizer(output))
            if output.ndim:  # 0 for no examples.
                loss = ops.divide_no_nan(loss, ops.cast(output.shape[0], loss.dtype))
            layer.add_loss(loss)


def note_outputs(layer: Layer, output: Any) -> None:
    """Keep the shapes and dtypes of a layer's first outputs, where these are tensors.

    Args:
        layer: The layer.
        output: The outputs.
    """
    if all(isinstance(part, Tensor) for part in _nest.flatten(output)):
        state = layer.__state__
        state.output_shape = _nest.map_structure(lambda part: without_batch(part.shape), output)
        state.output_dtype = _nest.map_structure(lambda part: part.dtype, output)


def shared_config(layer: Layer) -> dict[str, Any]:
    """Return what the configurations of all layers have.

    Args:
        layer: The layer.
    """
    config = {
        "name": layer.name,
        "trainable": layer.trainable,
        "dtype": serialized(layer.dtype_policy),
    }
    if layer.activity_regularizer is not None:
        config["activity_regularizer"] = serialized(layer.activity_regularizer)
    return config


def _takes_one(layer: Layer, inputs: Any) -> bool:
    """Whether an argument is one tensor, which needs no look at the signature of `call`."""
    if layer.__call_form__.takes_more or layer.__state__.takes_several:
        return False
    if isinstance(inputs, Tensor):
        return True
    return not isinstance(inputs, SymbolicTensor) and not is_structure(inputs)


def _without_mode(layer: Layer, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments without a None where the mode stands, which is passed by its name."""
    place = list(layer.__call_form__.signature.parameters).index("training") - 1
    if len(args) > place and args[place] is not None:
        raise ValueError(
            f'Layer "{layer.name}" expects {place} input(s), but it received {len(args)} input '
            "tensors. Pass `training` by its name."
        )
    return args[:place]


def _first_node(layer: Layer, which: str) -> Node:
    if not layer._inbound_nodes:
        raise AttributeError(
            f"The layer {layer.name} has never been called and thus has no defined {which}."
        )
    return layer._inbound_nodes[0]


def _as_output(layer: Layer, output: Any) -> Tensor:
    if isinstance(output, Tensor):
        return output
    if isinstance(output, Variable):  # Its value, as where an operation takes it.
        return ops.convert_to_tensor(output)
    raise ValueError(
        f"All operation outputs must be tensors. Operation {layer!r} returned a non-tensor. "
        f"Non-tensor received: {output!r:.200} (of type {type(output)}). Return tensors from "
        "`call`."
    )


def _known_shape(layer: Layer, which: str, shape: Shapes) -> Shapes:
    if shape is None:
        raise AttributeError(
            f"The layer {layer.name} has never been called and thus has no defined {which} shape."
        )
    return shape


def _placeholder(spec: Any) -> SymbolicTensor:
    """Return a placeholder of its own for what a `compute_output_spec` returned."""
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise TypeError(
            "`compute_output_spec` must return `keras.KerasTensor(shape, dtype)`, or several in a "
            f"list, tuple or dict. Received: {spec!r:.200}"
        )
    return SymbolicTensor(tuple(spec.shape), ops.as_dtype(spec.dtype))


def _shapes_in(results: Any) -> Shapes:
    return _nest.map_structure(lambda result: tuple(result._shape), results)


def _one_shape(shapes: Any) -> Any:
    """Return what a `compute_output_shape` returned with a list of sizes as a tuple."""
    return tuple(shapes) if isinstance(shapes, list) and is_shape(shapes) else shapes


def _alone(tensors: list[SymbolicTensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors
