"""Sequential models: a list of layers, each of which takes what the one before returns.

Weights are made when the shape of the input is known: from an `Input`, or from the first data.
"""

from collections.abc import Iterable
from typing import Any

from mirrored._arguments import explained
from mirrored.layers import InputLayer, Layer, SymbolicTensor
from mirrored.layers.shapes import Shape, as_shape
from mirrored.training.model import Model


@explained
class Sequential(Model):
    """A model that is a list of layers.

    Args:
        layers: The layers, in order. The first may be what `Input` returned, or have an
            `input_shape`.
        trainable: Whether training changes the weights.
        name: The name; None gives `sequential`, numbered.

    Raises:
        TypeError: Something in the list is no layer.
        ValueError: An input stands anywhere but first, or shapes do not fit.

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
        self._input_dtype = self._dtype  # Its layers cast what they are given.
        for layer in [] if layers is None else layers:
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Add a layer at the end.

        Args:
            layer: The layer.

        Raises:
            TypeError: It is no layer.
            ValueError: It is an input and not the first, or the shape before it does not fit it.
        """
        if isinstance(layer, SymbolicTensor) and isinstance(layer.producer[0], InputLayer):
            layer = layer.producer[0]
        if isinstance(layer, InputLayer):
            self._begin_at(layer)
            return
        if not isinstance(layer, Layer):
            raise TypeError(
                "Only instances of `mirrored.layers.Layer` can be added to a Sequential model. "
                f"Received: {layer!r} (of type {type(layer)})"
            )
        if any(each is layer for each in self._chain):
            raise ValueError(
                f"The layer {layer.name!r} is in Sequential model '{self.name}' already. Make a "
                "second layer, or use a functional model to share one."
            )
        self._check_name_is_new(layer)
        first = not self._chain and self._begin is None
        begin = _input_of(layer) if first else None
        before = self._end if begin is None else begin.output
        if before is not None:
            end = layer(before)
            if begin is not None:
                self._begin_at(begin)
            self._finish_at(end)
            self.built = True
        self._chain = [*self._chain, layer]

    def _check_name_is_new(self, layer: Layer) -> None:
        begin = [] if self._begin is None else [self._begin.producer[0]]
        if layer.name in [each.name for each in (*begin, *self._chain)]:
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
        if not self._chain:
            raise ValueError(f"Sequential model '{self.name}' has no layer to remove.")
        *self._chain, last = self._chain
        before = None if self._end is None else self._end.producer[1]
        if before is not None:
            self._finish_at(before)
        if not self._chain:
            self.built = False
            self._end = self._begin
        return last

    def build(self, input_shape: Shape) -> None:
        """Make the weights for inputs of this shape.

        Args:
            input_shape: The shape of a batch; None where a size is not known.

        Raises:
            ValueError: There are no layers, or they do not fit the shape.
        """
        if not self._chain:
            raise ValueError(
                f"Sequential model {self.name} cannot be built because it has no layers. Call "
                "`model.add(layer)`."
            )
        # Shapes pass through the layers as in a model that begins with an `Input`.
        begin = InputLayer(as_shape(input_shape)[1:], dtype=self.dtype, name=f"{self.name}_input")
        end = begin.output
        for layer in self._chain:
            end = layer(end)
        self._finish_at(end)

    def _expected_shape(self) -> Shape | None:
        """Return the shape of inputs; that of the first ones where there is no `Input`."""
        return super()._expected_shape() or (self._input_shape if self.built else None)

    @property
    def layers(self) -> list[Layer]:
        """The layers in order, without the input's, as in Keras."""
        return [layer for layer in super().layers if not isinstance(layer, InputLayer)]

    def _begin_at(self, layer: InputLayer) -> None:
        if self._chain or self._begin is not None:
            raise ValueError(
                f"Sequential model '{self.name}' has layers or an input already: an input comes "
                f"first. Received: {layer!r}"
            )
        self._begin = layer.output
        self._dtype = self._input_dtype = layer.dtype
        self._input_shape = layer.output.shape
        self._finish_at(layer.output)


def _input_of(layer: Layer) -> InputLayer | None:
    """Return the input of a first layer that knows its shape: its `input_shape`, or a model's."""
    if layer.example_shape is not None:
        return InputLayer(layer.example_shape, dtype=layer.dtype)
    begins = layer.inputs if isinstance(layer, Model) and layer.built else []
    if not begins:
        return None
    batch_size, *shape = begins[0].shape
    return InputLayer(shape, batch_size, begins[0].dtype)
