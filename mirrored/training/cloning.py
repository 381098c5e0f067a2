"""Copies of models with layers and weights of their own, drawn as the models were.

A layer is created again from its configuration, or by a function of the user. A model is compiled
like its original, with an optimizer in its initial state.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mirrored import _nest
from mirrored._arguments import explained_only
from mirrored.graph import SymbolicTensor
from mirrored.layers import Input, InputLayer, Layer
from mirrored.layers.construction import made_again
from mirrored.serialization.configs import kept_in_memory
from mirrored.training.model import Model
from mirrored.training.sequential import Sequential


@explained_only
def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Any], Any] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
    **kwargs: Any,
) -> Model:
    """Return a model of new layers with the same configuration, whose weights are drawn again.

    Where the model is compiled, so is the other one, alike, but for an optimizer, losses and
    new metrics in their initial state. In a strategy's scope its weights are mirrored there.

    Args:
        model: A model: functional, `Sequential`, or of a subclass, which is made with the same
            arguments.
        input_tensors: Placeholders to build on, in the structure of `model.input`; None makes
            some like those.
        clone_function: What makes a layer of a layer; None makes one with the same arguments, but
            for those that were made with layers or variables.
        call_function: Given a new layer and the arguments of a call, what makes the call, and may
            make others before and after it; for functional models.
        recursive: Whether models inside are cloned in the same way, layer by layer.
        **kwargs: None.

    Raises:
        ValueError: The model is none, arguments are not for its kind, or placeholders have
            another structure.
        NotImplementedError: A layer cannot be made again.

    Warns:
        UserWarning: A subclass overrides `compile`, and not `compile_from_config`: it is not
            compiled.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input((3,))
        >>> model = mr.Model(x, mr.layers.Dense(2)(x))
        >>> copy = mr.keras.models.clone_model(model)
        >>> copy.get_weights()[0].shape, copy.layers[1] is model.layers[1]
        ((3, 2), False)
    """
    cache = kwargs.pop("cache", None)
    if kwargs:
        raise ValueError(f"Unexpected keyword argument(s): {tuple(kwargs)}")
    if not isinstance(model, Model):
        raise ValueError(f"`model` must be a model. Received: model={model!r}")
    if not isinstance(model, Sequential) and model.__state__.graph is None:
        if clone_function or input_tensors is not None or call_function:
            raise ValueError(
                "Arguments `clone_function`, `call_function` and `input_tensors` are only "
                "supported for Sequential models or Functional models. Received model of type "
                f"'{type(model).__name__}'."
            )
        clone: Model = made_again(model)
        shapes = model.get_build_config()
        if shapes is not None and not clone.built:
            clone.build_from_config(shapes)
        return _compiled_as(model, clone)
    function = made_again if clone_function is None else clone_function
    again = _Again(function, call_function, recursive, {} if cache is None else cache)
    if not isinstance(model, Sequential):
        return _compiled_as(model, _functional(model, input_tensors, call_function, again))
    if call_function is not None:
        raise ValueError(
            "`call_function` argument is not supported with Sequential models. In a Sequential "
            "model, layers aren't called at model-construction time (they're merely listed). Use "
            f"`call_function` with Functional models only. Received model {model!r}."
        )
    return _compiled_as(model, _sequential(model, input_tensors, again))


def _compiled_as(model: Model, clone: Model) -> Model:
    """Return a model, compiled as another one is."""
    if model.compiled:
        with kept_in_memory():
            clone.compile_from_config(model.get_compile_config())
    return clone


@dataclass
class _Again:
    """Makes each layer of a model again, once."""

    function: Callable[[Any], Any]
    call_function: Callable[..., Any] | None
    recursive: bool
    cache: dict[int, Any]

    def __call__(self, layer: Any) -> Any:
        """Return the layer that takes another's place."""
        if not isinstance(layer, Layer):
            return layer.function  # An operation, of which there is one a call.
        if id(layer) not in self.cache:
            self.cache[id(layer)] = self._clone(layer)
        return self.cache[id(layer)]

    def _clone(self, layer: Layer) -> Any:
        if self.recursive and isinstance(layer, Model):
            is_chain = isinstance(layer, Sequential)
            if is_chain or layer.__state__.graph is not None:
                return clone_model(
                    layer,
                    clone_function=self.function,
                    call_function=None if is_chain else self.call_function,
                    recursive=True,
                    cache=self.cache,
                )
        return self.function(layer)


def _functional(
    model: Model, tensors: Any, call_function: Callable[..., Any] | None, again: _Again
) -> Model:
    if tensors is None:
        tensors = _nest.map_structure(
            lambda tensor: Input(batch_shape=tensor._shape, dtype=tensor._dtype, name=tensor.name),
            model.input,
        )
    elif _form(tensors) != _form(model.input):
        raise ValueError(
            "`input_tensors` must have the same structure as model.input\\nReference structure: "
            f"{model.input}\\nReceived structure: {tensors}"
        )
    graph: Any = model.__state__.graph

    def call(callee: Any, *args: Any, **kwargs: Any) -> Any:
        twin = again(callee)
        if call_function is None:
            return twin(*args, **kwargs)
        return call_function(twin, *args, **kwargs)

    outputs = graph.part.map(_nest.flatten(tensors), call)
    clone = Model(tensors, _nest.pack_like(model.output, outputs), name=model.name)
    clone.trainable = clone.trainable and model.trainable
    return clone


def _form(structure: Any) -> Any:
    """Return what two structures of placeholders have in common."""
    return _nest.map_structure(lambda leaf: isinstance(leaf, SymbolicTensor), structure)


def _sequential(model: Sequential, tensors: Any, again: _Again) -> Sequential:
    layers = [again(layer) for layer in model.layers]
    if tensors is not None:
        leaves = _nest.flatten(tensors)
        if len(leaves) != 1 or not isinstance(leaves[0], SymbolicTensor):
            raise ValueError(
                "Argument `input_tensors` must be one symbolic tensor. Received invalid value: "
                f"input_tensors={tensors}"
            )
        layers = [InputLayer(input_tensor=leaves[0]), *layers]
    elif model.__state__.begin is not None:
        begin = model.__state__.begin.node.callee
        layers = [Input(batch_shape=begin.batch_shape, dtype=begin.dtype, name=begin.name), *layers]
    return Sequential(layers, name=model.name, trainable=model.trainable)
