"""Turns numbers of categories into rows of zeros and ones, or of how often each category comes.

`Discretization` gives its bins in the same ways.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_positive
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.policy import DTypePolicy
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES, DType
from mirrored.serialization.constructor_arguments import arguments_of

_MODES = ("count", "one_hot", "multi_hot")


@explained
class CategoryEncoding(Layer):
    """Encodes integers below ``num_tokens``; larger ones are in no category.

    Args:
        num_tokens: How many categories there are: from 0 to ``num_tokens`` - 1.
        output_mode: "one_hot" gives a row of zeros and a one for each integer; "multi_hot" one row
            for all integers of an example, with a one for each that comes; "count" one with how
            often each comes. "binary" is "multi_hot".
        sparse: False; there are no sparse tensors.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer. Outputs are of its variables' dtype.

    Raises:
        ValueError: ``num_tokens`` is no positive integer, or there is no such mode.
        NotImplementedError: ``sparse`` is True.

    Example:
        >>> CategoryEncoding(3, "one_hot")([0, 2]).numpy().tolist()
        [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
        >>> CategoryEncoding(3)([[0, 1], [2, 2]]).numpy().tolist()
        [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    _infers = True  # What it computes in is not what it gives.

    def __init__(
        self,
        num_tokens: int | None = None,
        output_mode: str = "multi_hot",
        sparse: bool = False,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        mode = "multi_hot" if output_mode == "binary" else output_mode
        if mode not in _MODES:
            raise ValueError(f"Unknown arg for output_mode: {output_mode}")
        if num_tokens is None:
            raise ValueError(
                "num_tokens must be set to use this layer. It is the number of categories, or more."
            )
        self.num_tokens = as_positive("num_tokens", num_tokens)
        self.output_mode = mode
        refuse_sparse(sparse)
        self.sparse = False

    def _take_policy(self, policy: DTypePolicy) -> None:
        super()._take_policy(policy)
        self._input_dtype = self._dtype  # Rounded to fewer bits, numbers would be others.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**self._shared_config(), **arguments_of(self, without=("sparse",))}

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input."""
        self._require_rank(input_shape, 0)

    def call(self, inputs: Tensor, count_weights: Any = None) -> Tensor:
        """Return the rows.

        Args:
            inputs: Integers of shape (batch, ...), or floats that are cut to such. One axis alone
                is one example where the mode is not "one_hot".
            count_weights: What each of them counts, of their shape, where the mode is "count".

        Returns:
            Shape (batch, ..., num_tokens): behind the axes of ``inputs``, of which a last one of
            size 1 is left out, with "one_hot"; else in the place of the last of two, or of axis 1.

        Raises:
            ValueError: There are weights, and the mode is another one.
            InvalidArgumentError: The weights are of another shape; or an integer is negative, where
                there are two axes or fewer and the mode is not "one_hot".
        """
        if count_weights is not None and self.output_mode != "count":
            raise ValueError(
                "`count_weights` is not used when `output_mode` is not `'count'`. Received "
                f"`count_weights={count_weights}`."
            )
        return encoded(inputs, self.output_mode, self.num_tokens, self.dtype, count_weights)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``, its last axis of size ``num_tokens`` or with that behind it."""
        if self.output_mode == "one_hot" and (len(input_shape) == 1 or input_shape[-1:] != (1,)):
            return (*input_shape, self.num_tokens)
        return (*input_shape[:-1], self.num_tokens)


def encoded(
    inputs: Tensor, mode: str, depth: int, dtype: DType, count_weights: Any = None
) -> Tensor:
    """Return integers as rows.

    Args:
        inputs: The integers, or floats that are cut to such.
        mode: "one_hot", "multi_hot" or "count", as `CategoryEncoding` has them.
        depth: The rows' length.
        dtype: Their dtype.
        count_weights: What each counts; None: 1.
    """
    ids = ops.reshape(inputs, (1,)) if inputs.ndim == 0 else inputs
    if mode == "one_hot":
        if ids.ndim > 1 and ids.shape[-1] == 1:
            ids = ops.reshape(ids, ids.shape[:-1])
        return _rows(ids, depth, dtype)
    weights = None if count_weights is None else ops.cast(count_weights, dtype)
    if ids.ndim <= 2:  # Of all modes, the one that takes no memory for each integer's row.
        whole = ids if ids.dtype in INDICES else ops.cast(ids, ops.int64)
        binary = mode == "multi_hot"
        counts = ops.bincount(whole, weights, depth, depth, axis=-1, binary_output=binary)
        return ops.cast(counts, dtype)
    rows = _rows(ids, depth, dtype)
    if mode == "multi_hot":
        return ops.reduce_max(rows, axis=1)
    return ops.reduce_sum(rows if weights is None else rows * weights[..., None], axis=1)


def _rows(ids: Tensor, depth: int, dtype: DType) -> Tensor:
    whole = ids if ids.dtype in INDICES else ops.cast(ids, ops.int64)
    return ops.one_hot(whole, depth, dtype=dtype)


def refuse_sparse(sparse: Any) -> None:
    """Raise NotImplementedError where a layer is to give sparse tensors."""
    if sparse:
        raise NotImplementedError(
            f"There are no sparse tensors here. Received: sparse={sparse}. Leave it out: the "
            "outputs are dense."
        )
