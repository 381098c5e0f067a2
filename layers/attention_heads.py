"""What layers of attention with several heads share: projections, masks, and what is computed.

A query is compared with keys, and what comes out is the mean of values, weighed by how much each
key is like it.
"""

import math
from functools import reduce
from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import from_0_to_1
from mirrored._types import Identifier, TensorLike
from mirrored.layers import regularizers
from mirrored.layers.activation import Softmax
from mirrored.layers.call_arguments import CallArguments
from mirrored.layers.einsum_dense import EinsumDense
from mirrored.layers.layer import Layer, PlainOptions, shared_config
from mirrored.layers.regularization import Dropout
from mirrored.layers.shapes import Shape
from mirrored.layers.starting_values import another
from mirrored.layers.weights import WeightSettings, settings_of
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.contraction import attended
from mirrored.ops.tensor_views import masked
from mirrored.serialization.constructor_arguments import arguments_of, serialized


class AttentionHeads(Layer):
    """A layer that projects queries, keys and values to heads, and puts the heads together again.

    Its subclasses say what the arguments are, and set `_query_dense`, `_key_dense`, `_value_dense`,
    `_gate_dense` and `_output_dense` when they are built.
    """

    _infers = True  # What it returns depends on arguments.
    _supports_masking = True

    _query_dense: EinsumDense
    _key_dense: EinsumDense
    _value_dense: EinsumDense
    _gate_dense: EinsumDense | None = None  # Weights come in the order of assignment.
    _output_dense: EinsumDense
    # What makes scores of queries and keys, and means of scores and values.
    _equations: tuple[str, str]
    _key_axes = 1  # The number of axes that keys have in the scores.
    _softmax: Softmax
    _dropout_layer: Dropout

    def __init__(
        self,
        head_size: int,
        dropout: float,
        use_bias: bool,
        sliding_window: int | None,
        flash_attention: bool | None,
        kernel: WeightSettings,
        bias: WeightSettings,
        activity_regularizer: Identifier | None,
        use_gate: bool,
        seed: int | SeedGenerator | None,
        /,
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(**options)
        self._scale = 1.0 / math.sqrt(float(head_size))
        self._dropout = from_0_to_1("dropout", dropout)
        self._use_bias = bool(use_bias)
        self.use_gate = bool(use_gate)
        self.sliding_window = _as_window(sliding_window)
        self._flash_attention = bool(flash_attention)
        if self._flash_attention and self._dropout > 0:
            raise ValueError(
                "Dropout is not supported when flash attention is enabled. Please set dropout to "
                "0.0 to use flash attention."
            )
        self.kernel_initializer, self.kernel_regularizer, self.kernel_constraint = settings_of(
            kernel
        )
        self.bias_initializer, self.bias_regularizer, self.bias_constraint = settings_of(bias)
        self._activity_regularizer = regularizers.get(activity_regularizer)
        self.seed = seed

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        others = ("activity_regularizer", "flash_attention", "output_shape")
        return {
            **shared_config(self),
            **arguments_of(self, without=others),
            "activity_regularizer": serialized(self._activity_regularizer),
        }

    def _announced_results(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        training: bool | None,
        arguments: CallArguments,
    ) -> Any:
        method = self.compute_output_shape  # It checks shapes that only placeholders may not have.
        method(**arguments.of(method, f"{type(self).__name__!r}"))
        return super()._announced_results(args, kwargs, training, arguments)

    # Building.

    def _projection(
        self,
        name: str,
        equation: str,
        sizes: tuple[int | None, ...],
        bias_axes: str,
        input_shape: Shape,
        activation: str | None = None,
    ) -> EinsumDense:
        """Return a layer that projects, built for inputs of a shape."""
        layer = EinsumDense(
            equation,
            output_shape=sizes,
            activation=activation,
            bias_axes=bias_axes if self._use_bias else None,
            kernel_initializer=another(self.kernel_initializer),
            bias_initializer=another(self.bias_initializer),
            kernel_regularizer=self.kernel_regularizer,
            bias_regularizer=self.bias_regularizer,
            activity_regularizer=self._activity_regularizer,
            kernel_constraint=self.kernel_constraint,
            bias_constraint=self.bias_constraint,
            dtype=self.dtype_policy,
            name=name,
        )
        layer.build(input_shape)
        return layer

    def _build_weighing(self, axes: tuple[int, ...]) -> None:
        """Make the layers between scores and weights, given the axes of the scores' keys."""
        self._softmax = Softmax(axes, dtype=self.dtype_policy)
        self._dropout_layer = Dropout(self._dropout, dtype=self.dtype_policy, seed=self.seed)

    # Masks.

    def __merged_mask(
        self,
        lengths: tuple[int, int],
        query_mask: Any,
        value_mask: Any,
        key_mask: Any,
        attention_mask: Any,
        causal: bool,
    ) -> Tensor | None:
        """Return which keys each query may look at, (batch, queries, keys) or what broadcasts."""
        masks = [] if query_mask is None else [ops.expand_dims(_bools(query_mask), -1)]
        for mask in (value_mask, key_mask):
            if mask is not None:
                masks.append(ops.expand_dims(_bools(mask), -2))
        if causal:
            masks.append(ops.greater_equal(*_places(lengths)))
        if self.sliding_window is not None:
            rows, columns = _places(lengths)
            masks.append(ops.less(ops.abs(rows - columns), self.sliding_window))
        if attention_mask is not None:
            masks.append(_bools(attention_mask))
        return reduce(ops.logical_and, masks) if masks else None

    def _query_mask(self, query: Tensor, mask: Any) -> Any:
        """Return which queries count."""
        return mask

    # Attention.

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """Return the means of values, projected.

        Args:
            query: Shape (batch, queries, features).
            value: Shape (batch, keys, features).
            key: The same; None: ``value``.
            query_mask: Which queries count, of shape (batch, queries); None: all. As in Keras
                `MultiHeadAttention` looks at the mask that ``query`` carries instead.
            value_mask: Which values may be looked at, of shape (batch, keys); None: all.
            key_mask: The same of the keys.
            attention_mask: Which keys each query may look at, of shape (batch, queries, keys);
                None: all.
            return_attention_scores: Whether to return the weights too.
            training: Whether to drop weights.
            use_causal_mask: Whether a query may look at nothing behind its own place.

        Returns:
            Shape (batch, queries, ...); with the weights, of shape (batch, heads, queries, keys),
            where they are asked for.
        """
        lengths = (query.shape[1], value.shape[1])
        query_mask = self._query_mask(query, query_mask)
        mask = self.__merged_mask(
            lengths, query_mask, value_mask, key_mask, attention_mask, use_causal_mask
        )
        query, value, key = bare(query, value, value if key is None else key)
        gate = None if self._gate_dense is None else self._gate_dense(query)
        heads = (
            self._query_dense(query),
            self._shared(self._key_dense(key)),
            self._shared(self._value_dense(value)),
        )
        outputs, scores = self.__attended(*heads, mask, return_attention_scores)
        outputs = self._output_dense(outputs if gate is None else outputs * gate)
        return (outputs, scores) if return_attention_scores else outputs

    def _shared(self, heads: Tensor) -> Tensor:
        """Return heads of keys or values as often as heads of queries share them."""
        return heads

    def __attended(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, wants_scores: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return the means of values, and the weights where they are wanted or dropped from.

        Args:
            query: Heads of the queries.
            key: Those of the keys.
            value: Those of the values.
            mask: Which keys each query may look at; None: all.
            wants_scores: Whether the weights are asked for.
        """
        if self._flash_attention and wants_scores:
            raise ValueError(
                "Returning attention scores is not supported when flash attention is enabled. "
                "Please disable flash attention to access attention scores."
            )
        if mask is not None:
            rank = query.ndim + self._key_axes - 1
            for _ in range(rank - mask.ndim):
                mask = ops.expand_dims(mask, -2 * self._key_axes - 1)
        if self._dropout > 0 or wants_scores or query.ndim != 4:
            return self.__weighed(query, key, value, mask)
        if self._flash_attention:
            raise ValueError(
                "Flash attention is not supported. Leave `flash_attention` out: results are the "
                "same."
            )
        return attended(query, key, value, mask, self._scale), None

    def __weighed(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return means and weights; a query that may look at no key has weights of 0."""
        scores = ops.einsum(self._equations[0], query * self._scale, key)
        weights = self._softmax(scores, mask=mask)
        kept = self._dropout_layer(weights) if self._dropout > 0 else weights
        return ops.einsum(self._equations[1], kept, value), weights


def bare(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors without the masks that they carry, which the projections need not hear of."""
    return tuple(value if value._keras_mask is None else masked(value, None) for value in tensors)


def _as_window(value: Any) -> int | None:
    if value is not None and (not isinstance(value, int) or value <= 0):
        raise ValueError(
            "`sliding_window` must be `None` or a positive integer. Received: "
            f"sliding_window={value!r}"
        )
    return value


def _bools(mask: Any) -> Tensor:
    return ops.cast(mask, ops.bool_)


def _places(lengths: tuple[int, int]) -> tuple[Tensor, Tensor]:
    rows, columns = (ops.range(length) for length in lengths)
    return ops.reshape(rows, (1, -1, 1)), ops.reshape(columns, (1, 1, -1))


def checked_key_shape(value_shape: Shape, key_shape: Shape | None) -> Shape:
    """Return the keys' shape: the values' where it is not given.

    Args:
        value_shape: The values' shape.
        key_shape: The keys', or None.

    Raises:
        ValueError: They differ in more than the batch and the features.
    """
    key_shape = value_shape if key_shape is None else key_shape
    if tuple(value_shape[1:-1]) != tuple(key_shape[1:-1]):
        raise ValueError(
            "All dimensions of `value` and `key`, except the last one, must be equal. Received: "
            f"value_shape={value_shape} and key_shape={key_shape}"
        )
    return key_shape
