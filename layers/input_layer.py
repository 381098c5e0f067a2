"""Where a functional model begins: the shape and dtype of one batch of examples.

``Input`` returns the placeholder; ``InputLayer`` is the layer that stands for it in a summary.
"""

from typing import Any

from mirrored._arguments import explained_only, takes_older
from mirrored._types import DTypeLike
from mirrored.graph import Node, SymbolicTensor
from mirrored.layers.layer import Layer
from mirrored.layers.policy import DTypePolicy
from mirrored.layers.shapes import Shape, as_shape, check_matches
from mirrored.ops import Tensor, as_dtype


@takes_older({"input_shape": "shape", "batch_input_shape": "batch_shape"})
class InputLayer(Layer):
    """Returns what it is called on; its ``output`` begins a functional model.

    Args:
        shape: The shape of one example, without the batch axis.
        batch_size: The size of the batch axis, None for any.
        dtype: The dtype of the values; the default float for None.
        sparse: Not True: tensors here are dense.
        ragged: Not True, likewise.
        batch_shape: In the place of ``shape`` and ``batch_size``, the shape with the batch axis.
        input_tensor: A placeholder to take; its shape and dtype are those of the input.
        optional: Not True: every input is given.
        name: Its name; ``input_layer``, ``input_layer_1``, ... for None.

    Raises:
        ValueError: ``shape`` or ``batch_size`` cannot be one; there is no shape, or one too many;
            or ``input_tensor`` is no placeholder, or of another shape or dtype.

    Example:
        >>> InputLayer(shape=(28, 28)).output.shape
        (None, 28, 28)
    """

    _casts_all = True

    def __init__(
        self,
        shape: object = None,
        batch_size: int | None = None,
        dtype: DTypeLike | DTypePolicy | None = None,
        sparse: bool | None = None,
        ragged: bool | None = None,
        batch_shape: object = None,
        input_tensor: SymbolicTensor | None = None,
        optional: bool = False,
        name: str | None = None,
    ) -> None:
        for kind, value in (("sparse", sparse), ("ragged", ragged), ("optional", optional)):
            if value:
                raise ValueError(
                    "Inputs must be dense tensors, passed in every call. Received: "
                    f"{kind}={value!r}"
                )
        if input_tensor is None:
            whole = _batch_shape(shape, batch_size, batch_shape)
        else:
            _check_same(input_tensor, shape, batch_size, dtype, batch_shape)
            whole, dtype = input_tensor._shape, input_tensor._dtype
        super().__init__(name=name, dtype=_policy_of(dtype))
        self.batch_shape = whole
        self.build(whole)
        self.__state__.output_shape = whole
        self.__state__.built_for = None
        if input_tensor is None:
            input_tensor = SymbolicTensor(whole, self.dtype, name=name)
        Node(self, (), {}, input_tensor)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        kinds = {"sparse": False, "ragged": False, "name": self.name, "optional": False}
        return {"batch_shape": self.batch_shape, "dtype": self.dtype.name, **kinds}

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the input has the shape that was announced."""
        check_matches(self.name, self.batch_shape, input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        """Return ``inputs``."""
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``."""
        return input_shape


def _policy_of(dtype: Any) -> Any:
    """Return a policy, or what describes one; of a dtype one that layers with weights may lack."""
    is_mixed = isinstance(dtype, str) and dtype.startswith("mixed_")
    if dtype is None or is_mixed or isinstance(dtype, dict | DTypePolicy):
        return dtype
    return DTypePolicy.of_values(dtype)


def _batch_shape(shape: object, batch_size: int | None, batch_shape: object) -> Shape:
    for name, value in (("shape", shape), ("batch_size", batch_size)):
        if value is not None and batch_shape is not None:
            raise ValueError(
                f"You cannot pass both `{name}` and `batch_shape` at the same time. Received: "
                f"{name}={value!r}, batch_shape={batch_shape!r}"
            )
    if batch_shape is not None:
        return as_shape(batch_shape)
    if shape is None:
        raise ValueError("You must pass a `shape` argument. For 64 numbers: `Input(shape=(64,))`.")
    return as_shape((batch_size, *as_shape(shape)))


def _check_same(
    tensor: Any, shape: object, batch_size: int | None, dtype: Any, batch_shape: object
) -> None:
    """Raise ValueError unless what is said of a placeholder is so."""
    if not isinstance(tensor, SymbolicTensor):
        raise ValueError(
            "Argument `input_tensor` must be a symbolic tensor. Received invalid type: "
            f"input_tensor={tensor!r} (of type {type(tensor)})"
        )
    said = {
        "batch_size": batch_size is None or tensor._shape[:1] == (batch_size,),
        "shape": shape is None or as_shape(shape) == tensor._shape[1:],
        "batch_shape": batch_shape is None or as_shape(batch_shape) == tensor._shape,
        "dtype": dtype is None or as_dtype(dtype) == tensor._dtype,
    }
    for name, is_so in said.items():
        if not is_so:
            raise ValueError(
                "When providing the `input_tensor` argument, you cannot provide an incompatible "
                f"`{name}` argument. Received: input_tensor={tensor!r}"
            )


@explained_only
def Input(
    shape: object = None,
    batch_size: int | None = None,
    dtype: DTypeLike | DTypePolicy | None = None,
    sparse: bool | None = None,
    ragged: bool | None = None,
    batch_shape: object = None,
    name: str | None = None,
    tensor: SymbolicTensor | None = None,
    optional: bool = False,
) -> SymbolicTensor:
    """Return the placeholder that a functional model begins with.

    Args:
        shape: The shape of one example, without the batch axis, as in ``(64,)``.
        batch_size: The size of the batch axis, None for any.
        dtype: The dtype of the values; the default float for None.
        sparse: Not True: tensors here are dense.
        ragged: Not True, likewise.
        batch_shape: In the place of ``shape`` and ``batch_size``, the shape with the batch axis.
        name: The input's name.
        tensor: A placeholder that is to be the input.
        optional: Not True: every input is given.

    Raises:
        ValueError: ``shape`` is missing, or it or ``batch_size`` cannot be one; ``tensor`` is no
            placeholder, or of another shape or dtype; or a kind of input is asked for that there
            is not.

    Example:
        >>> Input(shape=(64,)).shape
        (None, 64)
    """
    layer = InputLayer(
        shape, batch_size, dtype, sparse, ragged, batch_shape, tensor, optional, name
    )
    output: SymbolicTensor = layer.output
    return output
