"""Models: layers put together, with the methods that train, evaluate and predict.

A functional model is a graph of calls from inputs to outputs; a subclass has its own `call`.
Modules that write or show a model are imported by the methods that need them: few programs do.
"""

import inspect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np

from mirrored import _nest, _overrides, graph, ops
from mirrored._absent import absent_members
from mirrored._logging import logger, warn_caller
from mirrored._naming import unique_name
from mirrored._overrides import any_parameters
from mirrored._types import PathLike
from mirrored.autodiff import GradientTape
from mirrored.data.arguments import DataArguments
from mirrored.distribute import Strategy, get_strategy, has_strategy
from mirrored.errors import InvalidArgumentError
from mirrored.graph import SymbolicTensor
from mirrored.layers import Layer
from mirrored.layers.added_losses import ignoring_losses
from mirrored.layers.building import undone_on_failure
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.layer import (
    as_call_tensors,
    layer_mode,
    note_outputs,
    run_call,
    sublayers,
    walk,
    walk_with,
)
from mirrored.layers.policy import dtype_policy
from mirrored.layers.shapes import Shape, Shapes, as_shapes, map_shapes, without_batch
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.hooks import only
from mirrored.ops.spec import WIDE_FLOATS
from mirrored.optim import Optimizer
from mirrored.optim import get as get_optimizer
from mirrored.program import TraceCache
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.training import runs
from mirrored.training.callbacks import Callback, History
from mirrored.training.compilation import (
    COMPILED,
    Compilation,
    check_alterations,
    check_scopes,
    check_steps_per_execution,
    check_variables,
    what_runs,
)
from mirrored.training.compiled_outputs import check_names
from mirrored.training.functional_graph import (
    FunctionalGraph,
    begun_at_inputs,
    fed_as,
    refuse_more,
    shapes_listed,
    without_list_of_one,
)
from mirrored.training.losses.values import as_mean_of_shard, cast, in_one_dtype, loss_dtype
from mirrored.training.metrics import Mean, Metric
from mirrored.training.model_state import ModelState
from mirrored.training.utilities import unpack_x_y_sample_weight
from mirrored.variables.device_variable import Undone

_GRAPH_KEYS = ("name", "layers", "input_layers", "output_layers")


@absent_members("tf.keras.Model")
class Model(Layer):
    """Layers that are trained together.

    Args:
        inputs: Where a functional model begins, as `Input` returned it, or several in nested lists,
            tuples and dicts; left out by subclasses, which define `call(self, inputs)` or
            `call(self, inputs, training=False)`.
        outputs: Where it ends, as layers and operations returned it, likewise.
        name: The name; None gives the class's name in snake case, numbered.
        dtype: The dtype of the inputs; None is that of `inputs`, or the default float.
        trainable: Whether training changes the weights.

    Attributes:
        history: The `History` of the last `fit`, one that was interrupted included; None before.
        stop_training: Set by callbacks to end `fit` after the batch that is running.
        stop_evaluating: Set by callbacks to end an evaluation so, that of `fit` included; each
            begins with False.
        stop_predicting: The same of `predict`.

    Raises:
        ValueError: Only one of `inputs` and `outputs` is given, one is no placeholder, or the
            outputs are computed from more than the inputs.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(2,))
        >>> model = mr.Model(x, mr.layers.Dense(1)(x))
        >>> model.compile(optimizer="sgd", loss="mse")
        >>> history = model.fit([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], epochs=3, verbose=0)
        >>> len(history.history["loss"])
        3
    """

    __overrides__ = _overrides.MODEL
    # What a functional model of this very class is called, numbered; None: as its class.
    _functional_name: ClassVar[str | None] = "functional"
    _automatic = True
    __state_class__ = ModelState
    __state__: ModelState

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
                "A functional model needs both `inputs` and `outputs`. Received: "
                f"inputs={inputs!r}, outputs={outputs!r}."
            )
        functional = inputs is not None
        if functional:
            inputs, outputs = begun_at_inputs(inputs, outputs)
            first = _nest.flatten(inputs)[0]._dtype
            if dtype is None and first in WIDE_FLOATS and dtype_policy().variable_dtype != first:
                dtype = first
            if name is None and vars(type(self)).get("_functional_name"):
                name = unique_name(vars(type(self))["_functional_name"])
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        state = self.__state__
        state.strategy = get_strategy()
        state.traces = TraceCache(f"A step of the model {state.name!r}")
        state.begin = inputs
        self._uncompiled_optimizer: Any = None
        self.history: History | None = None
        self.stop_training = self.stop_evaluating = self.stop_predicting = False
        self._layer_chain: list[Layer] = []
        if functional:
            state.graph = FunctionalGraph(inputs, outputs)
            state.takes_several = len(state.graph.layout.tensors) > 1
            state.casts_inside = state.takes_structures = not state.graph.layout.is_single
            self._layer_chain = state.graph.layers
            state.input_dtype = first  # Its layers cast what they are given.
            self._casts_all = True
            finish_at(self, outputs)
            self.built = True

    def __getstate__(self) -> dict[str, Any]:
        method = what_runs(self)
        if method is not None:
            raise RuntimeError(
                f"A model cannot be pickled or copied while `{method}` runs, because its state is "
                f"changing. Received: the model {self.name!r}. Take `get_weights()` or "
                "`save_weights(...)` in a callback, or copy the model afterwards."
            )
        attributes, state = super().__getstate__(), self.__state__
        if state.end is None:
            return attributes
        begin, end = _nest.flatten(state.begin), _nest.flatten(state.end)
        drawing = graph.Drawing(begin if state.begin is not None else [], end)
        # The structures of the inputs and outputs, and whether it runs as a graph.
        forms = [_nest.map_structure(lambda _: 0, side) for side in (state.begin, state.end)]
        form = None if state.begin is None else forms[0], forms[1], state.graph is not None
        drawn = state.copied(graph=None, begin=(drawing, form), end=0)
        return {**attributes, "__state__": drawn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self.history is not None and self.history.model is None:  # It travelled without.
            self.history.model = self
        own = self.__state__
        if own.end is None:
            return
        drawing, (inputs, outputs, runs) = own.begin
        begin, end = drawing.drawn()
        own.begin = None if inputs is None else _nest.pack_like(inputs, begin)
        own.end = _nest.pack_like(outputs, end)
        if runs:
            own.graph = FunctionalGraph(own.begin, own.end)

    # ------------------------------------------------------------------ its layers, and its ends

    @property
    def distribute_strategy(self) -> Strategy:
        """The strategy in whose scope the model was made."""
        return self.__state__.strategy

    @property
    def has_call(self) -> bool:
        """Whether it computes something when it is called."""
        return type(self).call is not Model.call or bool(self._layer_chain)

    @property
    def inputs(self) -> list[SymbolicTensor]:
        """Where a functional model, or a Sequential one that is built, begins; others have none."""
        return self.__defined("inputs", self.__state__.inputs)

    @property
    def outputs(self) -> list[SymbolicTensor]:
        """Where such a model ends."""
        return self.__defined("outputs", self.__state__.outputs)

    def __defined(self, which: str, tensors: list[SymbolicTensor]) -> list[SymbolicTensor]:
        if not tensors:
            raise AttributeError(
                f"{type(self).__name__} model '{self.name}' has no defined {which} yet. Only "
                "functional models and built Sequential models have it."
            )
        return tensors

    @property
    def input(self) -> Any:
        """The inputs of such a model, in the structure in which they were given."""
        return super().input if self.__state__.begin is None else self.__state__.begin

    @property
    def output(self) -> Any:
        """Its outputs, in the structure in which they were given."""
        return super().output if self.__state__.end is None else self.__state__.end

    @property
    def input_shape(self) -> Shapes:
        """The shape of the input; a list of shapes where a functional model has several."""
        state = self.__state__
        return super().input_shape if state.graph is None else shapes_listed(state.inputs)

    @property
    def output_shape(self) -> Shapes:
        """The shape of the output; a list of shapes where a functional model has several."""
        state = self.__state__
        return super().output_shape if state.graph is None else shapes_listed(state.outputs)

    @property
    def output_shapes(self) -> Shapes:
        """The shapes of the outputs, in the structure in which a call returns them."""
        return super().output_shape

    @property
    def output_dtypes(self) -> Any:
        """The dtypes of the outputs, in the structure in which a call returns them."""
        return self.__state__.output_dtype

    @property
    def output_dtype(self) -> Any:
        """The dtype of the first output, and so of the targets that are compared with it."""
        return _nest.flatten(self.__state__.output_dtype)[0]

    @property
    def output_names(self) -> list[str]:
        """The names of the layers and operations that make a functional model's outputs."""
        return [tensor.node.callee.name for tensor in self.__state__.outputs]

    @property
    def operations(self) -> list[Any]:
        """All that a functional model calls: layers, and operations on placeholders."""
        return [] if self.__state__.graph is None else list(self.__state__.graph.part.order.callees)

    @property
    def layers(self) -> list[Layer]:
        """The layers, each once, as they are needed in a functional model or were assigned."""
        if self.__state__.graph is None:
            return sublayers(self)
        return [operation for operation in self.operations if isinstance(operation, Layer)]

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

    # ------------------------------------------------------------------ building

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
        if type(self).build is Model.build:
            run_on_zeros(self, input_shape)

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
        with self.__given_dtypes(input_dtype):
            if not self.built:
                self.build(input_shape)
            if self.__state__.output_shape is None:  # A subclass has a `build` of its own.
                with self.__state__.weights_scope():
                    run_on_zeros(self, input_shape)

    def output_shapes_for(self, input_shape: Shapes, input_dtype: Any = None) -> Shapes:
        """Return the output shapes of the model, which is built, for inputs of these shapes.

        Args:
            input_shape: As in `build_for`.
            input_dtype: As there.

        Raises:
            ValueError: The model does not take such inputs.
        """
        self.check_input_shape(input_shape)
        with self.__given_dtypes(input_dtype), self.__state__.weights_scope():
            outputs = _output_on_zeros(self, input_shape)
        return _nest.map_structure(lambda output: without_batch(output.shape), outputs)

    @contextmanager
    def __given_dtypes(self, dtypes: Any) -> Iterator[None]:
        """Within this context zeros have these dtypes."""
        self.__state__.zeros_as, before = dtypes, self.__state__.zeros_as
        try:
            yield
        finally:
            self.__state__.zeros_as = before

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless the inputs have the shapes that the model was made for.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.
        """
        if self.__state__.graph is not None:
            self.__state__.graph.check_shapes(self.name, input_shape)

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
        if self.__state__.graph is None:
            return input_shape
        return self.__state__.graph.layout.fitted(self.name, input_shape)

    def fed_dtypes(self, dtypes: Any) -> Any:
        """Return the dtypes in which data are brought to the devices; None: in their own.

        Args:
            dtypes: The dtypes of the data, in the structure in which a call takes them.

        Raises:
            ValueError: An input is missing, or they are in another structure.
        """
        state = self.__state__
        if self._casts_all:
            if isinstance(dtypes, np.dtype) or state.graph is None:
                return _nest.map_structure(lambda own: fed_as(own, state.input_dtype), dtypes)
            return state.graph.layout.fed(self.name, dtypes)
        # As in Keras, a model with a `call` of its own is given integers as they are.
        return _nest.map_structure(
            lambda own: state.dtype if own is not None and own.kind == "f" else None, dtypes
        )

    # ------------------------------------------------------------------ calling

    def add_loss(self, loss: Any) -> None:
        """Add to the loss that training minimises, as `Layer.add_loss` says; in a `call`."""
        if self.__state__.graph is not None:
            raise NotImplementedError(
                "A functional model has no custom `call` in which a loss could be added. "
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
        if self.__state__.graph is None:
            return super().call(inputs, *args, **kwargs)
        refuse_more(self, args, kwargs)
        outputs = self.__state__.graph.run(self.name, inputs, mask, training=layer_mode())
        return outputs if isinstance(outputs, Tensor) else self.as_outputs(outputs)

    @any_parameters
    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shapes of the outputs, as a call returns them, for inputs of these shapes.

        Args:
            input_shape: The shape of the input, or the shapes of several as a call takes them;
                None where a size is not known.
        """
        if self.__state__.graph is None:
            return super().compute_output_shape(input_shape)
        packed = self.__state__.graph.placeholders(self.name, as_shapes(input_shape))
        results = self._call_results((packed,), {}, None)
        return _nest.map_structure(lambda tensor: tuple(tensor._shape), results)

    def _announced_results(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        """Return placeholders for what a call returns."""
        if type(self).compute_output_shape is not Model.compute_output_shape:
            return super()._announced_results(args, kwargs, training, arguments)
        with undone_on_failure(walk(self)):
            return self._call_results(args, kwargs, training)

    # ------------------------------------------------------------------ what `compile` says

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int | str = "auto",
        jit_compile: bool | str | None = "auto",
        auto_scale_loss: bool = True,
        *,
        check_gradients: bool = False,
    ) -> None:
        """Say how the model is trained. All names are checked here.

        Where a later call gives no loss, that of the call before stays, with its weights; where it
        gives neither metrics nor weighted ones, they stay.

        Args:
            optimizer: An optimizer or its name, as in "sgd"; None: none, as where the steps of the
                model's own have others.
            loss: A loss, its name, or a function of targets and outputs that returns a value an
                example, or one number: the mean over the examples that it is given. For several
                outputs a list with one each, or None; a dict by their names; or one for all.
            loss_weights: What each output's loss counts by in the sum that is minimised: numbers
                in a list or a dict like the losses'. Logs show the losses as they are.
            metrics: Metrics or their names, as in ["accuracy"]; they ignore sample weights. For
                several outputs a list with one, or a list of them, for each; or a dict by names.
            weighted_metrics: Metrics that are weighted by sample weights.
            run_eagerly: Whether Python runs for every op of every step, so that layers and losses
                can be looked into while they run. Otherwise a step is recorded once for each
                shape of its inputs and replayed: what Python does in it beside calling ops
                happens when it is recorded, and not again.
            steps_per_execution: How many steps run between two calls of callbacks' batch hooks;
                "auto": one where a callback has such hooks, else as many as the progress shown
                allows.
            jit_compile: Accepted for compatibility: steps are recorded, or with `run_eagerly` not.
            auto_scale_loss: Accepted for compatibility: it is for float16, which is not provided.
            check_gradients: Whether a step raises `NonFiniteGradientError`, and changes nothing,
                where a gradient is NaN or infinite although the loss is finite. Each gradient is
                read once more for it. A `LossScaleOptimizer` skips such steps instead.

        Raises:
            ValueError: A name is unknown, or model, optimizer and metrics were made in different
                strategies' scopes.
        """
        if not isinstance(jit_compile, bool | None) and jit_compile != "auto":
            raise ValueError(
                '`jit_compile` must be True, False or "auto". Received: '
                f"jit_compile={jit_compile!r}."
            )
        check_steps_per_execution(steps_per_execution)
        strategy = get_strategy() if has_strategy() else self.distribute_strategy
        check_variables(self, strategy)
        arguments = (loss, loss_weights, metrics, weighted_metrics)
        if self.__state__.compilation is not None:
            arguments = self.__state__.compilation.kept_by(arguments)
        all_metrics = _nest.flatten(arguments[2:])
        check_scopes(strategy, optimizer, all_metrics)
        check_alterations([*walk(self), optimizer, *_nest.flatten(arguments[0]), *all_metrics])
        with strategy.scope():
            instance = get_optimizer(optimizer)
            options = bool(run_eagerly), steps_per_execution, jit_compile, bool(check_gradients)
            compilation = Compilation(instance, arguments, Mean(name="loss"), *options)
            if self.built:
                compilation.resolve(self.output_shapes, self.output_names or None)
            else:
                check_names(*arguments)
        self.__state__.compilation = compilation
        self.__forget_steps()

    @property
    def optimizer(self) -> Optimizer | Any:
        """The optimizer of `compile`. Another one may be set, also by a model that does without."""
        compilation = self.__state__.compilation
        return self._uncompiled_optimizer if compilation is None else compilation.optimizer

    @optimizer.setter
    def optimizer(self, value: Any) -> None:
        if self.__state__.compilation is None:
            self._uncompiled_optimizer = value
            return
        strategy = self.distribute_strategy
        check_scopes(strategy, value, [])
        with strategy.scope():
            self.__state__.compilation.optimizer = get_optimizer(value)
        self.__forget_steps()

    @property
    def loss(self) -> Any:
        """The loss, as it was given to `compile`."""
        return None if self.__state__.compilation is None else self.__state__.compilation.given[0]

    @property
    def metrics(self) -> list[Metric]:
        """What a step updates: the mean of the loss, `compile`'s metrics, and the model's own.

        Those of `compile` are one, named "compile_metrics", whose result is a dict. Then come the
        means of the outputs' losses, where several have one, and the metrics in attributes of the
        model and of its layers.
        """
        own = [metric for _, held in walk_with(self, Metric) for metric in held]
        if self.__state__.compilation is None:
            return own
        return [*self.__state__.compilation.updated_metrics(), *own]

    @property
    def metrics_names(self) -> list[str]:
        """The names of `metrics`."""
        return [metric.name for metric in self.metrics]

    @property
    def compiled(self) -> bool:
        """Whether `compile` was called."""
        return self.__state__.compilation is not None

    @property
    def run_eagerly(self) -> bool:
        """Whether Python runs for every op of every step. It may be set; `compile` resets it."""
        own, compilation = self.__state__.uncompiled_eagerly, self.__state__.compilation
        return own if compilation is None else compilation.run_eagerly

    @run_eagerly.setter
    def run_eagerly(self, value: bool) -> None:
        if self.__state__.compilation is None:
            self.__state__.uncompiled_eagerly = bool(value)
        else:
            self.__state__.compilation.run_eagerly = bool(value)

    @property
    def steps_per_execution(self) -> int | str:
        """How many steps run between two calls of batch hooks; it may be set once compiled."""
        compilation = self.__state__.compilation
        return "auto" if compilation is None else compilation.steps_per_execution

    @steps_per_execution.setter
    def steps_per_execution(self, value: int | str) -> None:
        compilation = self.required_compilation()
        check_steps_per_execution(value)
        compilation.steps_per_execution = value

    def required_compilation(self) -> Compilation:
        """Return what `compile` made.

        Raises:
            InvalidArgumentError: It was not called.
        """
        if self.__state__.compilation is None:
            raise InvalidArgumentError("You must call `compile()` before using the model.")
        return self.__state__.compilation

    def __forget_steps(self) -> None:
        """Let steps be recorded again: what they were recorded with has changed."""
        self.__state__.traces.clear()
        self.__state__.step_functions.clear()

    # ------------------------------------------------------------------ steps that can be defined

    def train_step(self, data: Any) -> dict[str, Any]:
        """Take a step of training on a replica's shard of a batch, and return what logs show.

        A subclass's own is called by `fit` on every replica, with the shard's examples. The loss
        is to be one number: the mean over these examples, or their sum divided by the size of the
        global batch. `optimizer.apply_gradients` then adds up the replicas' gradients, those of
        means by their parts of the examples, before it clips and updates. Returned floats are
        added up in the same way, integers have to be the same on all replicas, and metrics add up.
        Where the step fails, or its loss is not finite, nothing is written.

        A loss that is neither, as one of pairs of examples, and a gradient that was clipped for
        the shard alone raise ValueError on several replicas, before anything changes.
        `mr.debugging.compare_replicas` takes a step on one device and on several replicas.

        Args:
            data: The shard's inputs, or a tuple of inputs, targets and weights of examples, as
                far as there are some.

        Returns:
            Numbers by name.

        Example:
            >>> import mirrored as mr
            >>> class Trained(mr.Model):
            ...     def train_step(self, data):
            ...         x, y = data
            ...         with mr.GradientTape() as tape:
            ...             loss = mr.reduce_mean((self(x, training=True) - y) ** 2)
            ...         gradients = tape.gradient(loss, self.trainable_variables)
            ...         self.optimizer.apply(gradients, self.trainable_variables)
            ...         return {"loss": loss}
            >>> x = mr.layers.Input((1,))
            >>> model = Trained(x, mr.layers.Dense(1, kernel_initializer="zeros")(x))
            >>> model.compile("sgd")
            >>> model.fit([[1.0], [2.0]], [[1.0], [3.0]], verbose=0).history
            {'loss': [5.0]}
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.__loss_of(x, y, y_pred, sample_weight, training=True)
            optimizer = self.required_compilation().optimizer
            scaled = loss if optimizer is None else optimizer.scale_loss(loss)
        self.__track(loss, x)
        weights = self.trainable_variables
        if weights:
            gradients = tape.gradient(scaled, weights)
            optimizer = self.required_compilation().required_optimizer()
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
        else:
            logger.warning("The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Evaluate a replica's shard of a batch; see `train_step`.

        Args:
            data: The shard's inputs, or a tuple of inputs, targets and weights of examples.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self.__track(self.__loss_of(x, y, y_pred, sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Return what is predicted for a replica's shard of a batch: a row an example.

        Args:
            data: The shard's inputs, or a tuple that begins with them.
        """
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Return the loss of a shard: that of `compile`, and what layers add.

        A subclass's own is called by `fit` and `evaluate`, and returns one number, as the loss of
        `train_step` is; beside a mean penalties are added whole, on every replica.

        Args:
            x: The inputs.
            y: The targets.
            y_pred: What the model returned for the inputs.
            sample_weight: The weights of examples, or None.
            training: Whether this is a step of training.

        Raises:
            ValueError: There is no loss.
        """
        del x, training
        compilation = self.required_compilation()
        losses: list[Tensor] = []
        if compilation.has_loss:
            self.__resolve(y_pred)
            outputs = compilation.required_outputs()
            for output, target, prediction, weights in outputs.parts(y, y_pred, sample_weight):
                if output.loss is None:
                    continue
                loss = output.loss(target, prediction, weights)
                if output.tracker is not None:
                    output.tracker.update_state(loss, sample_weight=float(prediction.shape[0]))
                losses.append(loss if output.weight is None else loss * output.weight)
        added = [ops.reduce_sum(cast(loss, loss_dtype(loss.dtype))) for loss in self.losses]
        losses += [as_mean_of_shard(loss, "added loss") for loss in added]
        if not losses:
            raise ValueError(
                "No loss to compute. Provide a `loss` argument in `compile()`. Received: loss=None"
            )
        return losses[0] if len(losses) == 1 else ops.add_n(in_one_dtype(losses))

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Update the metrics of `compile`, and return what all metrics say.

        Args:
            x: The inputs.
            y: The targets.
            y_pred: What the model returned for the inputs.
            sample_weight: The weights of examples, or None.
        """
        del x
        compilation = self.required_compilation()
        if compilation.has_metrics:
            self.__resolve(y_pred)
            compilation.compiled_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return what the metrics say, by name, in the order of the names."""
        results: dict[str, Any] = {}
        for metric in self.metrics:
            result = metric.result()
            results.update(result if isinstance(result, dict) else {metric.name: result})
        return dict(sorted(results.items()))

    def reset_metrics(self) -> None:
        """Reset all metrics, as at the beginning of an epoch."""
        for metric in self.metrics:
            metric.reset_state()

    def __loss_of(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, *, training: bool
    ) -> Tensor:
        """Return `compute_loss`, which a subclass may have defined without `training`."""
        method = self.compute_loss
        if "training" in inspect.signature(method).parameters:
            return method(x, y, y_pred, sample_weight, training=training)
        return method(x, y, y_pred, sample_weight)

    def __track(self, loss: Tensor, x: Any) -> None:
        """Add a shard's loss to the mean over examples that logs show."""
        first = next(leaf for leaf in _nest.flatten(x) if leaf is not None)
        loss = as_mean_of_shard(loss, "tracked")
        tracker = self.required_compilation().loss_tracker
        tracker.update_state(loss, sample_weight=float(first.shape[0]))

    def __resolve(self, y_pred: Any) -> None:
        """Know the outputs, where this is the first time that they are seen."""
        compilation = self.required_compilation()
        if compilation.outputs is None:
            shapes = _nest.map_structure(lambda output: (None, *output.shape[1:]), y_pred)
            compilation.resolve(shapes, None)

    # ------------------------------------------------------------------ runs

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int | str = "auto",
        callbacks: Sequence[Callback] | Callback | None = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: int | Sequence[int] = 1,
        *,
        validate_data: bool = False,
    ) -> History:
        """Train on data. However many replicas there are, the weights come out the same.

        Data are arrays, or a `mr.data.Dataset`, a `PyDataset`, a generator or another iterable of
        global batches (x, y) or (x, y, sample_weight). Arrays are NumPy's and others', tensors,
        lists of numbers, frames of pandas or polars, and arrays in files (`np.memmap`, h5py, zarr),
        of which those larger than 64 MiB are read and shuffled block by block. Each of x, y and
        sample_weight is one array, or a list, tuple or dict of arrays, where the model takes such.

        A generator is gone through once. A dataset is iterated over again for each epoch; with
        `steps_per_epoch` an epoch goes on where the one before ended, and one that ends with the
        dataset is followed by another pass. Where data end in the middle of an epoch, that is a
        shorter one, and the last one of a generator; a warning says so. A batch that does not fit
        is an error that gives its number, and the weights are those of the step before.

        Ctrl-C ends training after the step that is running: the model is consistent, and the
        epochs so far are in `model.history`.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches.
            y: Targets of shape (examples, ...); for arrays only.
            batch_size: Examples a step, over all replicas together; for None 32, or as many as
                make `steps_per_epoch` of all. For arrays only: a dataset's batches are global
                batches already.
            epochs: The epoch to end before, counted from 0; each is one pass over the data.
            verbose: 0 shows nothing; 1 a progress bar on a terminal or in a notebook, a widget
                where the extra `notebook` is installed, and a line an epoch elsewhere; 2 lines;
                "auto" is 1.
            callbacks: Callbacks whose hooks are called, in order.
            validation_split: The part of the arrays, taken from their end, to validate on instead.
            validation_data: (x, y) or (x, y, sample_weight) to evaluate on after epochs, or a
                dataset or generator of batches.
            shuffle: Whether to take the examples of arrays in another random order each epoch.
            class_weight: A weight for each integer label.
            sample_weight: A weight for each example, of shape (examples,), or weights that
                broadcast to the losses; for arrays only.
            initial_epoch: The epoch to begin with, counted from 0.
            steps_per_epoch: How many batches make an epoch; the next epoch goes on where it ended.
                None takes all; a dataset without end needs it.
            validation_steps: How many batches to validate on; None takes all.
            validation_batch_size: As `batch_size`, for validation; None is `batch_size`.
            validation_freq: Validate after every N-th epoch, or after those in a list,
                counted from 1.
            validate_data: Whether to look for NaN and infinity first, in arrays before training,
                in batches when they come. Keras has no such argument.

        Returns:
            The `History`, whose `history` has the values of each epoch by name.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: An argument is out of range, or data do not fit the model or each other.
            NonFiniteLossError: The loss became NaN or infinite; the weights are those before.
            ResourceExhaustedError: A device has not enough memory; the weights are those before.
        """
        return runs.fit(
            self,
            DataArguments(
                use="fit",
                x=x,
                y=y,
                sample_weight=sample_weight,
                batch_size=batch_size,
                steps=steps_per_epoch,
                class_weight=class_weight,
                shuffle=shuffle,
                validate=bool(validate_data),
            ),
            DataArguments(
                use="validation",
                x=validation_data,
                batch_size=validation_batch_size,
                default_size=batch_size,
                steps=validation_steps,
            ),
            validation_split=validation_split,
            validation_freq=validation_freq,
            initial_epoch=initial_epoch,
            epochs=epochs,
            callbacks=callbacks,
            verbose=verbose,
        )

    @overload
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        *,
        return_dict: Literal[True],
    ) -> dict[str, float]: ...

    # A number or a list of them, as the metrics are: a union would refuse `loss, accuracy = ...`.
    @overload
    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        return_dict: bool = False,
    ) -> Any: ...

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Return the loss on data, and the metrics if there are any.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches, as for `fit`.
            y: Targets of shape (examples, ...); for arrays only.
            batch_size: Examples a step, over all replicas together; 32 by default. For arrays
                only.
            verbose: As for `fit`.
            sample_weight: A weight for each example, of shape (examples,), or weights that
                broadcast to the losses; for arrays only.
            steps: How many batches to evaluate; None takes all.
            callbacks: Callbacks whose hooks are called, in order.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: An argument is out of range, or data do not fit the model or each other.
        """
        data = DataArguments(
            use="evaluate",
            x=x,
            y=y,
            sample_weight=sample_weight,
            batch_size=batch_size,
            steps=steps,
        )
        return runs.evaluate(self, data, return_dict, callbacks=callbacks, verbose=verbose)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: int | str = "auto",
        steps: int | None = None,
        callbacks: Sequence[Callback] | Callback | None = None,
    ) -> Any:
        """Return the outputs for data, joined along the first axis.

        Args:
            x: Inputs of shape (examples, ...), or a dataset or generator of batches: inputs, or
                tuples that begin with them.
            batch_size: Examples a step, over all replicas together; 32 by default. For arrays
                only.
            verbose: As for `fit`.
            steps: How many batches to predict; None takes all.
            callbacks: Callbacks whose hooks are called, in order.

        Raises:
            ValueError: An argument is out of range, or the data do not fit the model.
        """
        data = DataArguments(use="predict", x=x, batch_size=batch_size, steps=steps)
        return runs.predict(self, data, callbacks=callbacks, verbose=verbose)

    # ------------------------------------------------------------------ single steps

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: dict[int, float] | None = None,
        return_dict: bool = False,
    ) -> Any:
        """Take one step of training on one global batch.

        Args:
            x: Inputs of shape (examples, ...).
            y: Targets of shape (examples, ...).
            sample_weight: A weight for each example.
            class_weight: A weight for each integer label.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them, of this batch.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: Data do not fit the model or each other.
            NonFiniteLossError: The loss is NaN or infinite; the weights are those before.
        """
        batch = runs.one_batch("fit", x, y, sample_weight, class_weight)
        return runs.take_step(self, "train", batch, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> Any:
        """Evaluate one global batch.

        Args:
            x: Inputs of shape (examples, ...).
            y: Targets of shape (examples, ...).
            sample_weight: A weight for each example.
            return_dict: Whether to return the values by name.

        Returns:
            The loss, or a list of the loss and the metrics, or a dict of them.

        Raises:
            InvalidArgumentError: The model is not compiled.
            ValueError: Data do not fit the model or each other.
        """
        batch = runs.one_batch("evaluate", x, y, sample_weight)
        return runs.take_step(self, "test", batch, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs for one global batch, as arrays.

        Args:
            x: Inputs of shape (examples, ...).

        Raises:
            ValueError: The data do not fit the model.
        """
        batch = runs.one_batch("predict", x)
        return runs.predict(self, batch, "predict_on_batch", callbacks=None, verbose=0)

    def make_train_function(self, force: bool = False) -> Any:
        """Return the function of an iterator that takes a step of training on its next batch.

        It is `train_function` from then on, until `compile` is called again. It returns what logs
        show; metrics go on until `reset_metrics`.

        Args:
            force: Whether steps are recorded again, so that they see the current attributes.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Input((1,)), mr.layers.Dense(1)])
            >>> model.compile("sgd", "mse")
            >>> batches = mr.data.Dataset.from_tensor_slices(([[1.0]] * 4, [[2.0]] * 4)).batch(2)
            >>> step = model.make_train_function()
            >>> sorted(step(iter(batches)))
            ['loss']
        """
        return self.__made_function("train", force)

    def make_test_function(self, force: bool = False) -> Any:
        """Return the function of an iterator that evaluates its next batch, `test_function`.

        Args:
            force: As for `make_train_function`.
        """
        return self.__made_function("test", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """Return the function of a list of batches that predicts each, `predict_function`.

        Args:
            force: As for `make_train_function`.
        """
        return self.__made_function("predict", force)

    def __made_function(self, kind: str, force: bool) -> Any:
        if force:
            setattr(self, f"{kind}_function", None)
        return self.__state__.step_functions.setdefault(kind, runs.StepFunction(self, kind))

    train_function = runs.step_function("train")
    test_function = runs.step_function("test")
    predict_function = runs.step_function("predict")

    # ------------------------------------------------------------------ configurations

    @property
    def __named_as__(self) -> Mapping[str, Any] | None:
        """What configurations call the class of a functional model, as Keras does; else None."""
        if self.__state__.graph is None or vars(type(self)).get("_functional_name") is None:
            return None
        names = dict.fromkeys(("class_name", "registered_name"), "Functional")
        return {"module": "keras.src.models.functional", **names}

    def get_config(self) -> dict[str, Any]:
        """Return what makes a model like it: its layers and their calls, or its arguments.

        A subclass with a constructor of its own is made of its arguments, as `Layer.get_config`
        says.

        Raises:
            NotImplementedError: A layer, or the subclass, does not say what it is made of; or an
                operation between layers is none of `keras.ops`.

        Example:
            >>> import mirrored as mr
            >>> x = mr.layers.Input((4,), name="x")
            >>> model = mr.Model(x, mr.layers.Dense(2, name="y")(x))
            >>> model.get_config()["output_layers"]
            ['y', 0, 0]
        """
        if self.__state__.graph is None or not _takes_inputs(type(self)):
            return super().get_config()
        from mirrored.training.graph_configurations import configuration_of  # Few need it.

        return configuration_of(self)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a model that is made of a configuration.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.

        Raises:
            TypeError: The class does not take these arguments.
            ValueError: The calls of a functional model lead in circles, or to nothing.
        """
        if not (all(key in config for key in _GRAPH_KEYS) and _takes_inputs(cls)):
            return super().from_config(config)
        from mirrored.training.graph_configurations import arguments_of_graph  # Few need it.

        return cls(**arguments_of_graph(config, custom_objects))

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shapes that the model was built for; None where it is not built."""
        return super().get_build_config() if self.__state__.graph is None else {"input_shape": None}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Build the model for shapes that `get_build_config` returned.

        Args:
            config: The shapes.
        """
        try:
            super().build_from_config(config)
        except Exception as error:
            warn_caller(
                f"Model '{self.name}' had a build config, but the model cannot be built "
                "automatically in `build_from_config(config)`. You should implement `def "
                "build_from_config(self, config)`, and you might also want to implement the method "
                "that generates the config at saving time, `def get_build_config(self)`. It "
                f"failed with: {error}"
            )

    def get_compile_config(self) -> dict[str, Any]:
        """Return what the model is compiled with, by name; an empty dict where it is not.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Dense(2)])
            >>> model.compile("sgd", "mse")
            >>> model.get_compile_config()["loss"]
            'mse'
        """
        from mirrored.serialization.configs import in_memory  # Few programs need it.

        compilation = self.__state__.compilation
        if compilation is None:
            return {}
        steps, jit = compilation.steps_per_execution, compilation.jit_compile
        if not in_memory():  # What "auto" stands for in Keras, the second without GPUs.
            steps, jit = (1 if steps == "auto" else steps), (False if jit == "auto" else jit)
        config: dict[str, Any] = serialized(
            {
                "optimizer": compilation.optimizer,
                **dict(zip(COMPILED, compilation.given, strict=True)),
                "run_eagerly": compilation.run_eagerly,
                "steps_per_execution": steps,
                "jit_compile": jit,
                **({"check_gradients": True} if compilation.check_gradients else {}),
            }
        )
        return config

    def compile_from_config(self, config: Mapping[str, Any]) -> None:
        """Compile the model, and make the optimizer's slots where the model is built.

        Args:
            config: What `get_compile_config` returned.
        """
        from mirrored.serialization.class_names import name_of_class  # Few programs need it.

        owner = next(base for base in type(self).__mro__ if "compile" in vars(base))
        if name_of_class(owner) != ("keras", "Model"):
            warn_caller(
                "`compile()` was not called as part of model loading because the model's "
                "`compile()` method is custom. All subclassed Models that have `compile()` "
                "overridden should also override `get_compile_config()` and "
                "`compile_from_config(config)`. Alternatively, you can call `compile()` manually "
                "after loading."
            )
            return
        self.compile(**deserialized(dict(config), None))
        if self.optimizer is not None and self.built:
            self.optimizer.build(self.trainable_variables)

    def to_json(self, **kwargs: Any) -> str:
        """Return the model's configuration as JSON, which `models.model_from_json` reads.

        Args:
            **kwargs: Those of `json.dumps`.

        Raises:
            NotImplementedError: As for `get_config`.

        Example:
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Dense(2)], name="small")
            >>> mr.keras.models.model_from_json(model.to_json()).name
            'small'
        """
        return json.dumps(serialized(self), **kwargs)

    # ------------------------------------------------------------------ files

    def save(
        self, filepath: PathLike, overwrite: bool = True, zipped: bool | None = None, **kwargs: Any
    ) -> None:
        """Write the model to a file that `keras.models.load_model` and Keras itself read.

        Args:
            filepath: The file, whose name ends in ".keras"; see `keras.models.save_model`.
            overwrite: Whether an existing file is replaced.
            zipped: Whether it is one file, as for None, or a folder.
            **kwargs: Those of `keras.models.save_model`.

        Raises:
            TypeError: As for `keras.models.save_model`, and so the others.
            ValueError: The name ends in another way, or an argument is unknown.
            NotImplementedError: A subclass does not say what it is made of.
            FileExistsError: The file exists, and `overwrite` is False.
            ImportError: h5py is not installed.
            OSError: The file cannot be written.
        """
        from mirrored.training.files import model_files  # Few programs need it.

        model_files.save_model(self, filepath, overwrite, zipped, **kwargs)

    def save_weights(
        self, filepath: PathLike, overwrite: bool = True, max_shard_size: float | None = None
    ) -> None:
        """Write all weights to one file, wholly or not at all.

        One that ends in ".weights.h5" is Keras', with the state of the optimizer too, if the model
        is compiled: Keras' own models of the same layers read it. Any other is a safetensors file.

        Args:
            filepath: The file, whose name does not end as another format's, such as `.h5` alone.
            overwrite: Whether an existing file is replaced.
            max_shard_size: None: there is one file.

        Raises:
            TypeError: `filepath` is no path.
            ValueError: The model has no weights yet, or the name is that of another format.
            FileExistsError: The file exists, and `overwrite` is False.
            ImportError: It is Keras', and h5py is not installed.
            OSError: The file cannot be written, or what is there is no file, such as a device.

        Example:
            >>> import os, tempfile
            >>> import mirrored as mr
            >>> model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(2)])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model.save_weights(os.path.join(folder, "digits.safetensors"))
            ...     model.load_weights(os.path.join(folder, "digits.safetensors"))
        """
        from mirrored.training.files import weights_files  # Few programs need it.

        weights_files.save_weights(self, filepath, overwrite, max_shard_size)

    def load_weights(
        self,
        filepath: PathLike,
        skip_mismatch: bool = False,
        *,
        objects_to_skip: Collection[Any] | None = None,
        by_name: bool | None = None,
    ) -> None:
        """Set all weights from a file that `save_weights`, `save` or Keras wrote, on every replica.

        Args:
            filepath: The file, from a model of the same layers on any number of replicas.
            skip_mismatch: Whether layers that do not fit a file in Keras' formats stay as they
                are, with a warning.
            objects_to_skip: Layers that such a file does not change.
            by_name: None: layers are found by their places.

        Raises:
            TypeError: `filepath` is no path.
            ValueError: The model has no weights yet, the name is that of another format, or
                `by_name` is given.
            FileNotFoundError: There is no such file.
            ImportError: The file is Keras', and h5py is not installed.
            WeightsFileError: It is truncated, corrupt, of another model or format. No weight
                was changed.
        """
        from mirrored.training.files import weights_files  # As above.

        weights_files.load_weights(
            self, filepath, skip_mismatch, objects_to_skip=objects_to_skip, by_name=by_name
        )

    def export(
        self,
        filepath: PathLike,
        format: str | None = None,
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Write what the model computes, without training, as a file of ONNX for other programs.

        Args:
            filepath: The file, wholly written or not at all.
            format: "onnx", which None is where the name ends in `.onnx`.
            verbose: Whether a line says that it is written; None does.
            input_signature: A list of the inputs' `TensorSpec`, in the structure of the arguments
                of a call; None: those of `input`, or of the first call.
            **kwargs: `opset_version`, which is 18.

        Raises:
            ImportError: The package onnx is not installed: the extra `onnx`.
            ValueError: The model has no weights yet, or this is no format.
            NotImplementedError: The format is another of Keras', or something in the model has no
                mapping to ONNX (docs/howto/export.md). No file is written.
            OSError: The file cannot be written.
        """
        from mirrored.training.exporting import export_model  # Needed here only.

        export_model(self, filepath, format, verbose, input_signature, kwargs)

    # ------------------------------------------------------------------ looking

    def summary(
        self,
        line_length: int | None = None,
        positions: Sequence[float] | None = None,
        print_fn: Callable[[str], Any] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
        layer_range: Sequence[str] | None = None,
    ) -> None:
        """Print a table of the layers, their output shapes and their numbers of parameters.

        In a notebook it is shown as one.

        Args:
            line_length: The characters of a line; None: as many as it needs.
            positions: Where each column ends, as parts of a line.
            print_fn: What is called with the whole text; None prints it.
            expand_nested: Whether layers of models among the layers have rows of their own.
            show_trainable: Whether a column says which layers are trained.
            layer_range: The names of the first and of the last layer that are shown, or patterns
                of them; None shows all.

        Raises:
            ValueError: The range fits no layers, or the lines have no room for the columns.
        """
        from mirrored.training.model_summary import show, summarize  # Needed here only.

        table = summarize(self, expand_nested, show_trainable, layer_range)
        show(table, table.text(line_length, positions), print_fn)

    def _repr_html_(self) -> str:
        from mirrored.training.model_summary import summarize

        return summarize(self).html()


def _takes_inputs(cls: type) -> bool:
    """Whether a class's constructor takes the inputs and outputs of a graph."""
    parameters = list(inspect.signature(cls).parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    if {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds:
        return True
    by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [parameter.name for parameter in parameters if parameter.kind is by_place]
    return names == ["inputs", "outputs", "name"]


def finish_at(model: Model, end: Any) -> None:
    """Let a model end at placeholders, which are its outputs.

    Args:
        model: The model.
        end: The placeholders, in nested lists, tuples and dicts.
    """
    state, returned = model.__state__, without_list_of_one(end)
    state.end = end
    state.output_shape = _nest.map_structure(lambda tensor: tuple(tensor._shape), returned)
    state.output_dtype = _nest.map_structure(lambda tensor: tensor._dtype, returned)


def run_on_zeros(model: Model, input_shape: Shapes) -> None:
    """Let layers without weights make them, and keep what comes out.

    Args:
        model: The model.
        input_shape: The shape of a batch, or the shapes of several as a call takes them.
    """
    note_outputs(model, _output_on_zeros(model, input_shape))


def _output_on_zeros(model: Model, input_shape: Shapes) -> Any:
    """Return the outputs for one example of zeros."""
    state = model.__state__
    # No tape that is open has anything to learn from it, and no state moves on.
    with only(), ignoring_losses(), Undone().in_force():
        if state.called_with is not None:
            args, kwargs = state.called_with.mapped(partial(_zeros_like, model.name))
            return model.as_outputs(run_call(model, args, kwargs, training=False))
        dtypes = state.zeros_as
        if dtypes is None:
            dtypes = map_shapes(lambda _: state.input_dtype, input_shape)
        zeros = map_shapes(partial(_zeros, model.name), input_shape, dtypes)
        args, kwargs = as_call_tensors(model, (zeros,), {})
        return model.as_outputs(run_call(model, args, kwargs, training=False))


def _zeros_like(owner: str, leaf: Any) -> Any:
    if not is_tensor(leaf):
        return leaf
    return _zeros(owner, (None, *leaf.shape[1:]) if leaf.shape else (), leaf.dtype)


def _zeros(owner: str, shape: Shape, dtype: Any) -> Tensor:
    known = [size for size in shape[1:] if size is not None]
    if len(known) != len(shape[1:]):
        raise ValueError(
            f"Model {owner!r} cannot be built for inputs of shape {shape}: only the first size, "
            "the batch, may be None."
        )
    return ops.zeros((1, *known) if shape else (), dtype)
