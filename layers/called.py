"""What a layer knows of its calls: shapes, dtypes, and the nodes of graphs that it is called in.

It is apart from how layers are called, so that each of the two can be read alone.
"""

import inspect
from collections import deque
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np

from mirrored import _nest, graph, ops
from mirrored._overrides import any_parameters
from mirrored.graph import Node, SymbolicTensor, placeholders
from mirrored.layers import added_losses
from mirrored.layers.building import unbuilt, undone_on_failure
from mirrored.layers.call_arguments import CallArguments, bound
from mirrored.layers.shapes import (
    Shape,
    Shapes,
    as_shapes,
    is_shape,
    map_shapes,
    shapes_in,
    without_batch,
)
from mirrored.layers.weights import WeightOwner
from mirrored.ops import Tensor
from mirrored.ops.spec import FLOATS
from mirrored.variables import Variable


class Called(WeightOwner):
    """An owner of weights that is called, on tensors or on placeholders.

    ``Layer`` says what the arguments are.
    """

    _infers: ClassVar[bool] = False  # Placeholders are found by a run all the same.
    _keeps_integers: ClassVar[bool] = False  # What it returns for integers is integers, too.
    _supports_masking: bool = False
    _makes_masks: bool = False  # Also where its inputs have none.
    # The parameters of `call` that are masks, and whether a user's `call` asks for them: that of
    # several inputs is given a list, be they all None.
    _mask_parameters: ClassVar[frozenset[str]] = frozenset()
    _asks_for_masks: ClassVar[bool] = False

    def __init__(self, name: str | None, trainable: bool, dtype: Any) -> None:
        super().__init__(name, trainable, dtype)
        self.activity_regularizer: Any = None
        self._inbound_nodes: deque[Node] = deque()
        self._example_shape: Shape | None = None
        self._input_shape: Shapes = None
        self._output_shape: Shapes = None
        self._output_dtype: Any = self._compute_dtype
        # The shapes that `build` was given, by the names of its arguments.
        self._built_for: dict[str, Shapes] | None = None

    # What a layer does.

    _call_signature: ClassVar[inspect.Signature]

    def _prepare(self, shape: Shapes, arguments: CallArguments | None = None) -> None:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the layer."""
        raise NotImplementedError

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs."""
        raise NotImplementedError

    @any_parameters
    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape of the output."""
        raise NotImplementedError

    def _says_shapes(self) -> bool:
        """Whether its class has a `compute_output_shape` of its own."""
        raise NotImplementedError

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        raise NotImplementedError

    def _as_tensors(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        raise NotImplementedError

    def _build_scope(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

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
        del inputs
        return previous_mask

    @classmethod
    def _look_at_masks(cls) -> None:
        """See what a class says of masks, once."""
        names = inspect.signature(cls.call).parameters
        cls._mask_parameters = frozenset(each for each in names if f"_{each}".endswith("_mask"))
        own = str(getattr(cls.call, "__module__", None)).startswith("mirrored.")
        cls._asks_for_masks = bool(cls._mask_parameters) and not own
        bases = [each for each in cls.__bases__ if issubclass(each, Called)]
        if all(cls.compute_mask is not each.compute_mask for each in bases):
            cls._supports_masking = True
            cls._makes_masks = vars(cls).get("_makes_masks", True)

    def _run_masked(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        """Run the layer with the masks of its arguments; the outputs carry theirs."""
        from mirrored.layers.masks import masks_of_call, with_masks

        masks = masks_of_call(self, arguments, kwargs)
        return with_masks(self, self._run(args, {**kwargs, **masks.implied}, training), masks)

    # Losses.

    def add_loss(self, loss: Any) -> None:
        """Add to the loss that training minimises; to be called in `call`.

        It is there, as one of `losses`, until the layer is called anew. `fit`, `evaluate` and
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
        for each in losses:
            if not isinstance(each, Tensor | Variable):
                raise ValueError(
                    "`add_loss()` can only be called from inside `build()` or `call()`, on a "
                    f"tensor input. Received invalid value: {each!r:.200} (of type {type(each)})"
                )
        added_losses.hold(self, [ops.convert_to_tensor(each) for each in losses])

    def _regularize(self, outputs: Any) -> None:
        """Add the penalty on outputs, each divided by the number of examples."""
        for output in _nest.flatten(outputs):
            if isinstance(output, Tensor | Variable):
                loss = ops.convert_to_tensor(self.activity_regularizer(output))
                if output.ndim:  # 0 for no examples.
                    loss = ops.divide_no_nan(loss, ops.cast(output.shape[0], loss.dtype))
                self.add_loss(loss)

    # Placeholders.

    def _connect(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
        has_masks: bool,
    ) -> Any:
        """Return the placeholders of the outputs for arguments with placeholders in them."""
        for tensor in placeholders((args, kwargs)):
            if tensor.draws is not SymbolicTensor.draws:
                raise TypeError(
                    f"Layer {self._name!r} is not part of a session's graph. Received: {tensor!r}. "
                    "Use `tf.compat.v1.layers`, or `tf.keras.Input` and `fit` without sessions."
                )
        if has_masks:  # They are for the shapes alone: each run has its own.
            from mirrored.layers.masks import masks_of_call, with_masks

            masks = masks_of_call(self, arguments, kwargs)
            results = self._specified(
                args, kwargs, training, arguments, {**kwargs, **masks.implied}
            )
            results = with_masks(self, results, masks)
        else:
            results = self._specified(args, kwargs, training, arguments, kwargs)
        if self._output_shape is None:
            self._output_shape = _shapes_in(results)
            self._output_dtype = _nest.map_structure(lambda each: each._dtype, results)
        mode = {} if training is None else {"training": training}
        return Node(self, args, {**kwargs, **mode}, results).structure

    def _announced(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        """Return placeholders for what a call returns, by `compute_output_shape` if it has one."""
        if self._infers or not self._says_shapes():
            with undone_on_failure(self._walk()):
                return self._results(args, kwargs, training)
        method = self.compute_output_shape
        given = arguments.of(method, f"{type(self).__name__!r}")
        shapes = as_shapes(_one_shape(method(**given)))
        self._build_inside(args, kwargs)
        dtype = self._announced_dtype(placeholders((args, kwargs))[0]._dtype)
        return map_shapes(lambda shape: SymbolicTensor(shape, dtype), shapes)

    def _specified(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
        with_masks: dict[str, Any],
    ) -> Any:
        """Return placeholders for what a call returns, by a subclass' `compute_output_spec` too."""
        if type(self).compute_output_spec is Called.compute_output_spec:
            return self._announced(args, with_masks, training, arguments)
        mode = {} if training is None else {"training": training}
        spec = self.compute_output_spec(*args, **kwargs, **mode)
        self._build_inside(args, kwargs)
        return _nest.map_structure(_placeholder, spec)

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
        tensors, named = self._as_tensors(args, kwargs)
        arguments = bound(self._call_signature, tensors, named)
        self._prepare(arguments.first, arguments)
        return self._announced(args, kwargs, training, arguments)

    def _announced_dtype(self, first: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the outputs, by that of the first input."""
        return first if self._keeps_integers and first not in FLOATS else self._compute_dtype

    def _results(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool | None) -> Any:
        """Return placeholders for what a call returns."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._run(*self._as_tensors(args, kwargs), training)

        with self._build_scope(), added_losses.ignoring_losses():
            return graph.results_of(call, args, kwargs, repr(self))

    def _build_inside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let layers inside that have no weights yet make them, as in Keras' symbolic call."""
        if not self._has_run and unbuilt(self):
            with undone_on_failure(self._walk()):
                self._results(args, kwargs, False)

    @property
    def input(self) -> Any:
        """What the layer was first called on in a functional model: placeholders."""
        return _alone(self._first_node("input").inputs)

    @property
    def output(self) -> Any:
        """What the layer first returned in a functional model: placeholders."""
        return _alone(self._first_node("output").outputs)

    def _first_node(self, which: str) -> Node:
        if not self._inbound_nodes:
            raise AttributeError(
                f"The layer {self._name} has never been called and thus has no defined {which}."
            )
        return self._inbound_nodes[0]

    def __getstate__(self) -> dict[str, Any]:
        # The graph around a layer is the model's that it is in.
        return {**vars(self), "_inbound_nodes": deque()}

    # Shapes and outputs.

    def _note_outputs(self, output: Any) -> None:
        """Keep the shapes and dtypes of the first outputs, where these are tensors."""
        if all(isinstance(each, Tensor) for each in _nest.flatten(output)):
            self._output_shape = _nest.map_structure(lambda each: without_batch(each.shape), output)
            self._output_dtype = _nest.map_structure(lambda each: each.dtype, output)

    def as_outputs(self, output: Any) -> Any:
        """Return the layer's outputs as tensors, as models need them.

        Args:
            output: What ``call`` returned: tensors, also in lists, tuples and dicts. A variable is
                its value.

        Raises:
            ValueError: It is something else.
        """
        if not _nest.flatten(output):
            return self._as_output(output)
        return _nest.map_structure(self._as_output, output)

    def _as_output(self, output: Any) -> Tensor:
        if isinstance(output, Tensor):
            return output
        if isinstance(output, Variable):  # Its value, as where an operation takes it.
            return ops.convert_to_tensor(output)
        raise ValueError(
            f"All operation outputs must be tensors. Operation {self!r} returned a non-tensor. "
            f"Non-tensor received: {output!r:.200} (of type {type(output)}). Return tensors from "
            "`call`."
        )

    def _require_rank(self, shape: Shapes, least: int, *, exactly: int | None = None) -> None:
        """Raise ValueError unless ``shape`` is that of one input, of so many axes or more.

        Where they are to be so many exactly, ``least`` is what a shape of fewer is told.
        """
        if not is_shape(shape):
            raise ValueError(
                f'Layer "{self._name}" expects 1 input(s), but it received '
                f"{len(list(shapes_in(shape)))} input tensors. Shapes received: {shape}"
            )
        if len(shape) < least:
            raise ValueError(
                f'Input 0 of layer "{self._name}" is incompatible with the layer: expected '
                f"min_ndim={least}, found ndim={len(shape)}. Full shape received: {shape}"
            )
        if exactly is not None and len(shape) != exactly:
            raise ValueError(
                f'Input 0 of layer "{self._name}" is incompatible with the layer: expected '
                f"ndim={exactly}, found ndim={len(shape)}. Full shape received: {shape}"
            )

    @property
    def example_shape(self) -> Shape | None:
        """The shape of one example that it was made for, ``input_shape=``; None where not given."""
        return self._example_shape

    @property
    def input_shape(self) -> Shapes:
        """The shape of the input that the layer was built for, the batch axis None.

        The shapes, in a list, tuple or dict, where there are several inputs.
        """
        return self._known_shape("input", self._input_shape)

    @property
    def output_shape(self) -> Shapes:
        """The shape of the first output, the batch axis None; the shapes where it is several."""
        return self._known_shape("output", self._output_shape)

    def _known_shape(self, which: str, shape: Shapes) -> Shapes:
        if shape is None:
            raise AttributeError(
                f"The layer {self._name} has never been called and thus has no defined {which} "
                "shape."
            )
        return shape


def _placeholder(spec: Any) -> SymbolicTensor:
    """Return a placeholder of its own for what a `compute_output_spec` returned."""
    if not hasattr(spec, "shape") or not hasattr(spec, "dtype"):
        raise TypeError(
            "`compute_output_spec` returns `keras.KerasTensor(shape, dtype)`, or several in a "
            f"list, tuple or dict. Received: {spec!r:.200}"
        )
    return SymbolicTensor(tuple(spec.shape), ops.as_dtype(spec.dtype))


def _shapes_in(results: Any) -> Shapes:
    return _nest.map_structure(lambda each: tuple(each._shape), results)


def _one_shape(shapes: Any) -> Any:
    """Return what a `compute_output_shape` returned with a list of sizes as a tuple."""
    return tuple(shapes) if isinstance(shapes, list) and is_shape(shapes) else shapes


def _alone(tensors: list[SymbolicTensor]) -> Any:
    return tensors[0] if len(tensors) == 1 else tensors
