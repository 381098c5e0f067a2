"""Sequential models: a list of layers, each of which takes what the one before returns.

Weights are made when the shape of the input is known: from an `Input`, or from the first data.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from mirrored._overrides import any_parameters
from mirrored.graph import SymbolicTensor
from mirrored.layers import InputLayer, Layer
from mirrored.layers.layer import shared_config, within_path_of
from mirrored.layers.shapes import Shapes, as_shape, as_shapes, check_matches, fitted_rank, is_shape
from mirrored.ops import Tensor
from mirrored.serialization.constructor_arguments import deserialized, serialized
from mirrored.training.functional_graph import refuse_more, reshaped
from mirrored.training.model import Model, finish_at, run_on_zeros


class Sequential(Model):
    """A model that is a list of layers.

    Args:
        layers: The layers, in order. The first may be what `Input` returned, or have an
            `input_shape`.
        trainable: Whether training changes the weights.
        name: The name; None gives `sequential`, numbered.

    Raises:
        ValueError: Something in the list is no layer, an input stands anywhere but first, or shapes
            do not fit.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(2)])
        >>> model.output_shape
        (None, 2)
    """

    def __init__(
        self, layers: Iterable[Any] | None = None, trainable: bool = True, name: str | None = None
    ) -> None:
        super().__init__(name=name, trainable=trainable)
        state = self.__state__
        state.input_dtype = state.dtype  # Its layers cast what they are given.
        state.takes_structures = False
        self._casts_all = True
        for layer in [] if layers is None else layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Add a layer at the end.

        Args:
            layer: The layer.

        Raises:
            ValueError: It is no layer, an input and not the first, or the shape before it does not
                fit it.
        """
        if isinstance(layer, SymbolicTensor) and isinstance(layer.node.callee, InputLayer):
            layer = layer.node.callee
        if isinstance(layer, InputLayer):
            self.__begin_at(layer)
            return
        if not isinstance(layer, Layer):
            raise ValueError(
                "Only instances of `mirrored.layers.Layer` can be added to a Sequential model. "
                f"Received: {layer!r} (of type {type(layer)})"
            )
        self.__check_name_is_new(layer)
        first = not self._layer_chain and self.__state__.begin is None
        begin = _input_of(layer) if first else None
        before = self.__state__.end if begin is None else begin.output
        if before is not None:
            with within_path_of(self):
                end = layer(before)
            if not isinstance(end, SymbolicTensor):
                raise ValueError(
                    "All layers in a Sequential model should have a single output tensor. For "
                    "multi-output layers, use the functional API. Received: the layer "
                    f"{layer.name!r}, which returns {end}"
                )
            if begin is not None:
                self.__begin_at(begin)
            finish_at(self, end)
            self.built = True
        self._layer_chain.append(layer)
        self.__state__.names.add(layer.name)

    def __check_name_is_new(self, layer: Layer) -> None:
        begin = None if self.__state__.begin is None else self.__state__.begin.node.callee.name
        taken = layer.name in self.__state__.names and all(
            other is not layer for other in self._layer_chain
        )
        if layer.name == begin or taken:
            raise ValueError(
                "All layers added to a Sequential model should have unique names. Name "
                f"{layer.name!r} is already the name of a layer in this model. Update the `name` "
                "argument to pass a unique name."
            )

    def pop(self) -> Layer:
        """Remove the last layer and return it.

        Raises:
            ValueError: There is none.
        """
        if not self._layer_chain:
            raise ValueError(f"Sequential model '{self.name}' has no layer to remove.")
        last = self._layer_chain.pop()
        if all(layer is not last for layer in self._layer_chain):
            self.__state__.names.discard(last.name)
        if self.__state__.end is not None:
            finish_at(self, self.__state__.end.node.inputs[0])
        if not self._layer_chain:
            self.built = False
            self.__state__.end = self.__state__.begin
        return last

    def build(self, input_shape: Shapes) -> None:
        """Make the weights for inputs of this shape.

        Args:
            input_shape: The shape of a batch; None where a size is not known.

        Raises:
            ValueError: There are no layers, or they do not fit the shape.
        """
        if not self._layer_chain:
            raise ValueError(
                f"Sequential model {self.name} cannot be built because it has no layers. Call "
                "`model.add(layer)`."
            )
        if not is_shape(input_shape):  # Its first layer takes several tensors.
            run_on_zeros(self, input_shape)
            return
        # Shapes pass through the layers as in a model that begins with an `Input`.
        begin = InputLayer(as_shape(input_shape)[1:], dtype=self._layer_chain[0].compute_dtype)
        end = begin.output
        for layer in self._layer_chain:
            end = layer(end)
        finish_at(self, end)

    def get_config(self) -> dict[str, Any]:
        """Return what makes a model like it: the configurations of its layers.

        Raises:
            NotImplementedError: A layer does not say what it is made of.
        """
        begin = [tensor.node.callee for tensor in self.__state__.inputs]
        layers = [*(layer for layer in begin if isinstance(layer, InputLayer)), *self._layer_chain]
        config = {**shared_config(self), "layers": [serialized(layer) for layer in layers]}
        if self.__state__.inputs:
            config["build_input_shape"] = tuple(self.__state__.inputs[0]._shape)
        return config

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Return a model of the layers that a configuration describes.

        Args:
            config: What `get_config` returned.
            custom_objects: Classes and functions that it may name, by these names.

        Raises:
            TypeError: It names a class that there is not.
            ValueError: It has no name or no layers, or these do not fit each other.
        """
        if not {"name", "layers"} <= config.keys():
            raise ValueError(
                "A Sequential model configuration must be a dictionary containing the 'name' and "
                f"'layers' keys. Received: config={config!r:.200}"
            )
        model = cls(name=config["name"])
        for layer_config in config["layers"]:
            model.add(deserialized(layer_config, None, custom_objects))
        shape = config.get("build_input_shape")
        if not model.built and isinstance(shape, list | tuple) and shape:
            model.build(shape)
        model.__state__.trainable = bool(config.get("trainable", True))
        return model

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shape that the model was built for; None where it is not built."""
        inputs = self.__state__.inputs
        return {"input_shape": tuple(inputs[0]._shape)} if inputs else None

    @property
    def input(self) -> Any:
        """Where it begins, once it is built."""
        return self.__state__.inputs[0] if self.__state__.inputs else super().input

    @any_parameters
    def call(self, inputs: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
        """Run the layers in order.

        Args:
            inputs: What the first layer takes.
            *args: Unused.
            mask: The mask of the inputs, or their masks in their structure; None: those that they
                carry.
            **kwargs: Unused.
        """
        if not self._layer_chain:
            return super().call(inputs, *args, **kwargs)
        refuse_more(self, args, kwargs)
        outputs = inputs
        if mask is not None:
            from mirrored.layers.masks import carrying

            outputs = carrying(inputs, mask)
        if isinstance(outputs, Tensor):
            shape = self.fitted_shape(outputs.shape)
            outputs = outputs if shape == outputs.shape else reshaped(outputs, shape)
        for layer in self._layer_chain:
            outputs = layer(outputs)
            if not isinstance(outputs, Tensor):
                outputs = layer.as_outputs(outputs)
        return outputs

    def compute_output_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape of the output for inputs of this shape.

        Args:
            input_shape: The shape of the input; None where a size is not known.
        """
        shape = self.fitted_shape(as_shapes(input_shape))
        for layer in self._layer_chain:
            shape = layer.compute_output_shape(shape)
        return shape

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless the input has the shape that the model was made for.

        Args:
            input_shape: The shape of the input; None where a size is not known.
        """
        if self.__state__.begin is not None:
            check_matches(self.name, self.__state__.begin._shape, self.fitted_shape(input_shape))

    def fitted_shape(self, input_shape: Shapes) -> Shapes:
        """Return the shape that an input gets: a last axis of size 1 is added or left out.

        Args:
            input_shape: The shape of the input; None where a size is not known.
        """
        state = self.__state__
        # That of the first ones where there is no `Input`.
        expected = state.input_shape if state.begin is None else state.begin._shape
        if expected is None or not (self.built and is_shape(input_shape) and is_shape(expected)):
            return input_shape
        return fitted_rank(input_shape, expected)

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, without the input's, as in Keras."""
        return list(self._layer_chain)

    def __begin_at(self, layer: InputLayer) -> None:
        if self._layer_chain or self.__state__.begin is not None:
            raise ValueError(
                f"Sequential model '{self.name}' already has layers or an input. An input must be "
                f"the first. Received: {layer!r}"
            )
        self.__state__.begin = layer.output
        self.__state__.dtype = self.__state__.input_dtype = layer.dtype
        self.__state__.input_shape = layer.batch_shape
        finish_at(self, layer.output)


def _input_of(layer: Layer) -> InputLayer | None:
    """Return the input of a first layer that knows its shape: its `input_shape`, or a model's."""
    if layer.example_shape is not None:
        return InputLayer(layer.example_shape, dtype=layer.dtype)
    begins = layer.__state__.inputs if isinstance(layer, Model) and layer.built else []
    if len(begins) != 1:
        return None
    return InputLayer(batch_shape=begins[0]._shape, dtype=begins[0]._dtype)
