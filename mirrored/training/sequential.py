"""Sequential models: a list of layers, each of which takes what the one before returns.

Weights are made when the shape of the input is known: from an `Input`, or from the first data.
"""

from collections.abc import Iterable
from typing import Any

from mirrored.layers import InputLayer, Layer, SymbolicTensor
from mirrored.layers.shapes import Shape, as_shape
from mirrored.training.model import Model


class Sequential(Model):
    """A model that is a list of layers.

    Args:
        layers: the layers, in order; the first may be what `Input` returned.
        name: its name; None: `sequential`, numbered.

    Raises:
        TypeError: something in the list is no layer.
        ValueError: an input stands anywhere but first, or shapes do not fit.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(4,)), mr.layers.Dense(2)])
        >>> model.output_shape
        (None, 2)
    """

    def __init__(self, layers: Iterable[Any] | None = None, name: str | None = None) -> None:
        """Add the layers one by one."""
        super().__init__(name=name)
        for layer in layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Add a layer at the end.

        Raises:
            TypeError: it is no layer.
            ValueError: it is an input and not the first, or the shape before it does not fit it.
        """
        if isinstance(layer, SymbolicTensor) and isinstance(layer.producer[0], InputLayer):
            layer = layer.producer[0]
        if isinstance(layer, InputLayer):
            if self._chain or self._begin is not None:
                raise ValueError(
                    f"Sequential model '{self.name}' has layers or an input already: an input "
                    f"comes first. Received: {layer!r}"
                )
            self._begin = layer.output
            self._dtype = layer.dtype
            self._input_shape = self._output_shape = layer.output.shape
            self._output_dtype = layer.output.dtype
            return
        if not isinstance(layer, Layer):
            raise TypeError(
                f"Only instances of `mirrored.layers.Layer` can be added to a Sequential model. "
                f"Received: {layer!r} (of type {type(layer)})"
            )
        if any(each is layer for each in self._chain):
            raise ValueError(
                f"The layer {layer.name!r} is in Sequential model '{self.name}' already. Make a "
                "second layer, or use a functional model to share one."
            )
        if self._begin is not None:
            end = layer(self._end())
            self._output_shape, self._output_dtype = end.shape, end.dtype
            self.built = True
        elif self.built:
            layer.build(self.output_shape)
            self._output_shape = layer.compute_output_shape(self.output_shape)
        self._chain = [*self._chain, layer]

    def pop(self) -> Layer:
        """Remove the last layer and return it.

        Raises:
            ValueError: there is none.
        """
        if not self._chain:
            raise ValueError(f"Sequential model '{self.name}' has no layer to remove.")
        layer = self._chain[-1]
        self._chain = self._chain[:-1]
        if self._begin is not None:
            end = self._end()
            self._output_shape, self._output_dtype = end.shape, end.dtype
        elif self.built and self._input_shape is not None:
            self._output_shape = self.compute_output_shape(self._input_shape)
        return layer

    def _end(self) -> SymbolicTensor:
        """Return the placeholder of what the last layer returns."""
        if self._begin is None:
            raise ValueError(f"Sequential model '{self.name}' has no input yet.")
        end = self._begin
        for layer in self._chain:
            end = layer(end)
        return end

    def build(self, input_shape: Shape) -> None:
        """Make the weights for inputs of this shape.

        Raises:
            ValueError: there are no layers, or they do not fit the shape.
        """
        if not self._chain:
            raise ValueError(
                f"Sequential model {self.name} cannot be built because it has no layers. Call "
                "`model.add(layer)`."
            )
        shape = as_shape(input_shape)
        for layer in self._chain:
            layer.build(shape)
            shape = layer.compute_output_shape(shape)
        self._output_shape = shape
        self._output_dtype = self._chain[-1].dtype
