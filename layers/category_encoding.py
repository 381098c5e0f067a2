"""Numbers of categories, and bins of numbers, as rows of zeros and ones or of counts."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from mirrored import ops
from mirrored._numbers import as_integer, as_positive
from mirrored._types import DTypeLike, TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.layers.layer import Layer, LayerOptions, shared_config
from mirrored.layers.shapes import Shape, require_rank
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor
from mirrored.ops.spec import INDICES, DType
from mirrored.serialization.constructor_arguments import arguments_of

_MODES = ("count", "one_hot", "multi_hot")
_OUTPUT_MODES = ("int", "one_hot", "multi_hot", "count")


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
        self.__state__.keeps_inputs = True  # Rounded to fewer bits, numbers would be others.
        self.__state__.take_policy(self.dtype_policy)
        self.num_tokens = as_positive("num_tokens", num_tokens)
        self.output_mode = mode
        refuse_sparse(sparse)
        self.sparse = False

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**shared_config(self), **arguments_of(self, without=("sparse",))}

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input."""
        require_rank(self.name, input_shape, 0)

    def call(self, inputs: Tensor, count_weights: TensorLike | None = None) -> Tensor:
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
    ids = inputs if inputs.dtype in INDICES else ops.cast(inputs, ops.int64)
    if ids.ndim == 0:
        ids = ops.reshape(ids, (1,))
    if mode == "one_hot":
        if ids.ndim > 1 and ids.shape[-1] == 1:
            ids = ops.reshape(ids, ids.shape[:-1])
        return ops.one_hot(ids, depth, dtype=dtype)
    weights = None if count_weights is None else ops.cast(count_weights, dtype)
    if ids.ndim <= 2:  # Of all modes, the one that takes no memory for each integer's row.
        binary = mode == "multi_hot"
        counts = ops.bincount(ids, weights, depth, depth, axis=-1, binary_output=binary)
        return ops.cast(counts, dtype)
    rows = ops.one_hot(ids, depth, dtype=dtype)
    if mode == "multi_hot":
        return ops.reduce_max(rows, axis=1)
    return ops.reduce_sum(rows if weights is None else rows * weights[..., None], axis=1)


def refuse_sparse(sparse: Any) -> None:
    """Raise NotImplementedError where a layer is to give sparse tensors."""
    if sparse:
        raise NotImplementedError(
            f"Sparse tensors are not supported. Received: sparse={sparse}. Leave it out: the "
            "outputs are dense."
        )


class Discretization(Layer):
    """Gives the number of the bin that each input falls in.

    Bin 0 is what is below the first boundary, bin 1 what is from there on and below the second, and
    so on; NaN is in the last one.

    Args:
        bin_boundaries: The boundaries, in ascending order; None leaves them to ``adapt``.
        num_bins: How many bins ``adapt`` finds boundaries for, of as many values each as possible.
        epsilon: How finely it looks at the data, as a part of their number: 0.01 keeps a summary
            of a hundred values.
        output_mode: "int" gives the bins' numbers; "one_hot", "multi_hot" and "count" give them as
            ``CategoryEncoding`` does.
        sparse: False; there are no sparse tensors.
        dtype: The dtype of the outputs, unless they are integers.
        name: The layer's name.

    Raises:
        ValueError: There are both, or neither, of ``bin_boundaries`` and ``num_bins``; or
            ``num_bins`` is negative, or there is no such mode.
        NotImplementedError: ``sparse`` is True.

    Example:
        >>> import numpy as np
        >>> Discretization([0.0, 1.0])([[-0.5, 0.0, 3.0]]).numpy().tolist()
        [[0, 1, 2]]
        >>> layer = Discretization(num_bins=2)
        >>> layer.adapt(np.arange(10.0))
        >>> layer.bin_boundaries
        [4.0]
    """

    def __init__(
        self,
        bin_boundaries: Sequence[float] | None = None,
        num_bins: int | None = None,
        epsilon: float = 0.01,
        output_mode: str = "int",
        sparse: bool = False,
        dtype: DTypeLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        if sparse and output_mode == "int":
            raise ValueError(
                "`sparse=True` may only be used if `output_mode` is `'one_hot'`, `'multi_hot'`, or "
                f"`'count'`. Received: sparse={sparse} and output_mode={output_mode}"
            )
        if output_mode not in _OUTPUT_MODES:
            raise ValueError(
                "Unknown value for `output_mode` argument of Discretization. Allowed values are: "
                f"{_OUTPUT_MODES}. Received: output_mode={output_mode}"
            )
        _check_bins(bin_boundaries, num_bins)
        refuse_sparse(sparse)
        self.bin_boundaries = bin_boundaries
        self.num_bins = num_bins
        self.epsilon = epsilon
        self.output_mode = output_mode
        self.sparse = False
        self.summary: Any = None if bin_boundaries else _nothing()

    # What it learns.

    def adapt(self, data: Any, steps: int | None = None) -> None:
        """Replace the boundaries by those of data.

        Steps of a model that were recorded before go by the old ones, until `compile` forgets them.

        Args:
            data: An array, a tensor, a dataset, or an iterable of batches: numbers of any shape.
            steps: How many batches of a dataset or an iterable are looked at; None: all.

        Raises:
            ValueError: The boundaries were given, or the data are no numbers.
        """
        if self.num_bins is None:
            raise ValueError(
                "Cannot adapt a Discretization layer that has been initialized with "
                "`bin_boundaries`, use `num_bins` instead."
            )
        self.reset_state()
        alone = isinstance(data, np.ndarray) or is_tensor(data) or not hasattr(data, "__iter__")
        for batch in [data] if alone else islice(data, steps):
            self.update_state(batch)
        self.finalize_state()

    def update_state(self, data: Any) -> None:
        """Take a batch into what the boundaries will be made of.

        Args:
            data: Numbers of any shape.
        """
        values = np.sort(np.asarray(data).astype(np.float32), axis=None)
        both = np.concatenate([_summary(values, self.epsilon), self.summary], axis=1)
        self.summary = _compressed(both[:, np.argsort(both[0])], self.epsilon)

    def finalize_state(self) -> None:
        """Make the boundaries of the batches so far."""
        if self.num_bins is not None:
            summary = _compressed(self.summary, 1.0 / self.num_bins)
            self.bin_boundaries = summary[0, :-1].tolist()

    def reset_state(self) -> None:
        """Forget the batches so far; the boundaries stay."""
        if self.num_bins is not None:
            self.summary = _nothing()

    # What it computes.

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input."""
        require_rank(self.name, input_shape, 0)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the bins of ``inputs``, numbers of shape (batch, ...)."""
        bounds = self.bin_boundaries
        if bounds is None:
            raise ValueError(
                "You need to either pass the `bin_boundaries` argument at construction time or "
                "call `adapt(dataset)` before you can start using the `Discretization` layer."
            )
        edges = np.asarray(bounds, np.float32)
        if (np.diff(edges) < 0).any():
            raise InvalidArgumentError(
                f"Expected sorted boundaries. Received: bin_boundaries={bounds} [Op:Bucketize]"
            )
        values = ops.reshape(ops.cast(inputs, ops.float32), (inputs.size,))
        indices = ops.searchsorted(ops.constant(edges), values, side="right")
        bins = ops.reshape(indices, inputs.shape)
        if self.output_mode == "int":
            return bins
        return encoded(bins, self.output_mode, len(edges) + 1, self.compute_dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape``, or that of rows of the bins, as ``CategoryEncoding`` has it."""
        if self.output_mode == "int":
            return input_shape
        bounds = self.bin_boundaries
        depth = self.num_bins if bounds is None else len(bounds) + 1
        if self.output_mode == "one_hot":
            drops = len(input_shape) > 1 and input_shape[-1] == 1
            return (*(input_shape[:-1] if drops else input_shape), depth)
        if len(input_shape) < 2:
            return (depth,)
        return (input_shape[0], *input_shape[2:], depth)

    def _announced_dtype(self, first: DType) -> DType:
        return ops.int32 if self.output_mode == "int" else self.compute_dtype

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, and the boundaries that it learned."""
        config = arguments_of(self, without=("name", "dtype"))
        return {**config, "name": self.name, "dtype": self.dtype_policy.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return one that is made with a configuration, adapted as the other one was.

        Args:
            config: What `get_config` returned.
        """
        arguments = dict(config)
        learned = arguments.pop("bin_boundaries", None)
        if arguments.get("num_bins") is None:
            return cls(learned, **arguments)
        layer = cls(**arguments)
        layer.bin_boundaries = learned
        return layer


def _check_bins(boundaries: Any, num_bins: Any) -> None:
    if num_bins is not None and (as_integer(num_bins) is None or num_bins < 0):
        raise ValueError(
            f"`num_bins` must be greater than or equal to 0. Received: `num_bins={num_bins}`"
        )
    if num_bins is not None and boundaries is not None:
        raise ValueError(
            "Both `num_bins` and `bin_boundaries` should not be set. Received: `num_bins="
            f"{num_bins}` and `bin_boundaries={boundaries}`"
        )
    if num_bins is None and boundaries is None:
        raise ValueError("You need to set either `num_bins` or `bin_boundaries`.")


# A summary has two rows: values in ascending order, and how many of the data each stands for.


def _nothing() -> NDArray[np.float32]:
    return np.empty((2, 0), np.float32)


def _summary(values: NDArray[Any], epsilon: float) -> NDArray[Any]:
    """Return every so manieth of values in order, with how many it stands for."""
    step = max(values.size * epsilon, 1)
    chosen = values[int(step - 1) :: int(step)]
    return np.stack([chosen, np.full_like(chosen, step)])


def _compressed(summary: NDArray[Any], epsilon: float) -> NDArray[Any]:
    """Return a summary as one of 1 / epsilon values, found between those there are by weight."""
    if summary.shape[1] * epsilon < 1:
        return summary
    parts = epsilon + np.arange(0.0, 1.0, epsilon)
    total = summary[1].cumsum()
    reached = total / total[-1]
    values = np.interp(parts, reached, summary[0])
    weights = np.diff(np.interp(parts, reached, total), prepend=0.0)
    return np.stack([values, weights]).astype(np.float32)
