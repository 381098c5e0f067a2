"""The placeholders that a functional model is drawn with: a shape and a dtype, no values.

Calling a layer on one gives another that remembers the layer, so the model can be read back.
"""

from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from mirrored.layers.shapes import Shape
from mirrored.ops.tensor_shape import TensorShape

_Layer = Any  # That of `layers.layer`, which stands on this module.


class SymbolicTensor:
    """What a layer will be given or will return once the model runs.

    Attributes:
        shape: The size of each axis; None where it is not known yet, as for the batch.
        dtype: The dtype of the values.
        name: The name of the layer that makes it.
        producer: The layer that makes it, and what that layer was called on: None for the
            layer of an ``Input``.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(64,), name="pixels")
        >>> x
        <SymbolicTensor shape=(None, 64), dtype=float32, name=pixels>
        >>> mr.layers.Dense(10)(x).shape
        (None, 10)
    """

    __slots__ = ("dtype", "name", "producer", "shape")
    # NumPy arrays on the left leave the operation, and its error, to this class.
    __array_ufunc__: ClassVar[None] = None

    def __init__(
        self,
        shape: Shape,
        dtype: np.dtype[Any],
        name: str,
        producer: "tuple[_Layer, SymbolicTensor | None]",
    ) -> None:
        self.shape: Shape = TensorShape(shape)
        self.dtype = dtype
        self.name = name
        self.producer = producer

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<SymbolicTensor shape={self.shape}, dtype={self.dtype}, name={self.name}>"

    def _no_values(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{self!r} is a placeholder without values: layers can be called on it, and nothing "
            "else. To use operators or ops in a functional model, put them in the `call` of a "
            "Layer subclass."
        )

    __array__ = __bool__ = __float__ = __int__ = __len__ = __iter__ = __getitem__ = _no_values
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _no_values
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _no_values
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _no_values


class Path(NamedTuple):
    """Placeholders each of which is made from the one before, in one list.

    As they are, each holds the one before: a deep model would take more calls to copy or to pickle
    than Python has.

    Attributes:
        begin: The first one.
        steps: For each of the others the layer, the shape, the dtype and the name.
    """

    begin: SymbolicTensor
    steps: list[tuple[_Layer, Shape, np.dtype[Any], str]]

    @classmethod
    def to(cls, end: SymbolicTensor, begin: SymbolicTensor | None) -> "Path":
        """Return the path to a placeholder, from ``begin`` or from where there is none before."""
        steps = []
        layer, source = end.producer
        while end is not begin and source is not None:
            steps.append((layer, end.shape, end.dtype, end.name))
            end = source
            layer, source = end.producer
        return cls(end, steps[::-1])

    def end(self) -> SymbolicTensor:
        """Return the last placeholder, made anew with all between."""
        tensor = self.begin
        for layer, shape, dtype, name in self.steps:
            tensor = SymbolicTensor(shape, dtype, name, (layer, tensor))
        return tensor


def trace(outputs: SymbolicTensor, inputs: SymbolicTensor) -> list[_Layer]:
    """Return the layers that lead from ``inputs`` to ``outputs``, in the order they are called.

    Args:
        outputs: Where the model ends.
        inputs: Where it begins, usually what ``Input`` returned.

    Returns:
        The layers, the one of ``inputs`` left out; a layer that is called twice is there twice.

    Raises:
        ValueError: One of the two is no SymbolicTensor, or no layers lead from one to the other.

    Example:
        >>> import mirrored as mr
        >>> x = mr.layers.Input(shape=(8, 8))
        >>> y = mr.layers.Dense(10)(mr.layers.Flatten()(x))
        >>> [type(layer).__name__ for layer in trace(y, x)]
        ['Flatten', 'Dense']
    """
    for argument, value in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(value, SymbolicTensor):
            raise ValueError(
                f"`{argument}` must be one symbolic tensor: what `Input`, or a layer called on "
                f"one, returned. Received: {argument}={value!r}"
            )
    layers: list[_Layer] = []
    tensor = outputs
    while tensor is not inputs:
        layer, source = tensor.producer
        if source is None:
            raise ValueError(
                f"The output of layer '{outputs.name}' is not connected to `inputs`, "
                f"'{inputs.name}': it is computed from '{tensor.name}'. Pass "
                f"`inputs={tensor.name}`, or build the outputs from '{inputs.name}'."
            )
        layers.append(layer)
        tensor = source
    return layers[::-1]
