"""Attention in which several heads of queries share one of keys and values.

There are fewer weights, and fewer keys and values to keep, than of as many heads each.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import explained
from mirrored._numbers import as_positive
from mirrored.layers.attention_heads import AttentionHeads, bare, checked_key_shape
from mirrored.layers.layer import PlainOptions
from mirrored.layers.shapes import Shape
from mirrored.ops import Tensor

_EQUATIONS = ("bquh,bkuh->buqk", "buqk,bkuh->bquh")


@explained
class GroupedQueryAttention(AttentionHeads):
    """Gives for each query a mean of values, in heads of which groups share keys and values.

    Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints, 2023: https://arxiv.org/abs/2305.13245

    Args:
        head_dim: The size of a head's queries, keys and values.
        num_query_heads: How many heads of queries there are.
        num_key_value_heads: How many of keys and values, of which the former is a multiple.
        dropout: The part of the weights that is dropped in training.
        use_bias: Whether the projections have biases.
        sliding_window: How far from its own place a query looks: less than this; None: any way.
        flash_attention: False or None; there is no such implementation here, and results are the
            same without it.
        kernel_initializer: What the projections' kernels start as.
        bias_initializer: What their biases start as.
        kernel_regularizer: The penalty on each kernel, if any.
        bias_regularizer: The penalty on each bias, if any.
        activity_regularizer: The penalty on what each projection and the layer gives, if any.
        kernel_constraint: What optimizers bring each kernel back to after a step, if anything.
        bias_constraint: What they bring each bias back to.
        use_gate: Whether what the heads give is multiplied by a sigmoid of the query, projected.
        seed: An integer for the same dropped weights in every run; None takes one from the global
            stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is no positive integer, the heads are no groups, ``dropout`` is not from
            0 to 1, or a name is unknown.

    Example:
        >>> import mirrored as mr
        >>> layer = mr.layers.GroupQueryAttention(3, num_query_heads=4, num_key_value_heads=2)
        >>> layer(mr.ones((2, 5, 8)), mr.ones((2, 6, 8))).shape
        (2, 5, 8)
        >>> [weight.shape for weight in layer.weights if "kernel" in weight.name]
        [(8, 4, 3), (8, 2, 3), (8, 2, 3), (4, 3, 8)]
    """

    _public_name = "GroupQueryAttention"

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        use_gate: bool = False,
        seed: Any = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        as_positive("head_dim", head_dim)
        as_positive("num_query_heads", num_query_heads)
        as_positive("num_key_value_heads", num_key_value_heads)
        if num_query_heads % num_key_value_heads:
            raise ValueError(
                "`num_query_heads` must be divisible by `num_key_value_heads`. Received: "
                f"num_query_heads={num_query_heads}, num_key_value_heads={num_key_value_heads}"
            )
        super().__init__(
            head_dim,
            dropout,
            use_bias,
            sliding_window,
            flash_attention,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            use_gate,
            seed,
            **options,
        )
        self.head_dim = head_dim
        self.num_query_heads = num_query_heads
        self.num_key_value_heads = num_key_value_heads
        self.num_repeats = num_query_heads // num_key_value_heads
        self.dropout = self._dropout
        self.use_bias = self._use_bias
        self.activity_regularizer = self._activity_regularizer

    def build(self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None) -> None:
        """Create the projections."""
        heads, groups = self.num_query_heads, self.num_key_value_heads
        key_shape = value_shape if key_shape is None else key_shape
        self._query_dense = self._to_heads("query", query_shape, heads)
        self._key_dense = self._to_heads("key", key_shape, groups)
        if self.use_gate:
            self._gate_dense = self._to_heads("gate", query_shape, heads, "sigmoid")
        self._value_dense = self._to_heads("value", value_shape, groups)
        self._build_weighing((-1,))
        features = query_shape[-1]
        between = (*query_shape[:2], heads, self.head_dim)
        self._output_dense = self._projection(
            "attention_output", "bquh,uhm->bqm", (None, features), "m", between
        )

    def _to_heads(self, name: str, shape: Shape, heads: int, activation: str | None = None) -> Any:
        sizes = (None, heads, self.head_dim)
        return self._projection(name, "bqm,muh->bquh", sizes, "uh", shape, activation)

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the query has three axes."""
        self._require_rank(input_shape, 0, exactly=3)

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """Return the means of values, projected.

        Args:
            query: Shape (batch, queries, features).
            value: Shape (batch, keys, features).
            key: The same; None: ``value``.
            query_mask: Which queries count, of shape (batch, queries); None: all.
            value_mask: Which values may be looked at, of shape (batch, keys); None: all.
            key_mask: The same of the keys.
            attention_mask: Which keys each query may look at, of shape (batch, queries, keys);
                None: all.
            return_attention_scores: Whether to return the weights too.
            training: Whether to drop weights.
            use_causal_mask: Whether a query may look at nothing behind its own place.

        Returns:
            Shape (batch, queries, features); with the weights, of shape (batch, heads, queries,
            keys), where they are asked for.
        """
        del training
        lengths = (query.shape[1], value.shape[1])
        mask = self._merged_mask(
            lengths, query_mask, value_mask, key_mask, attention_mask, use_causal_mask
        )
        query, value, key = bare(query, value, value if key is None else key)
        gate = None if self._gate_dense is None else self._gate_dense(query)
        heads = (
            self._query_dense(query),
            self._shared(self._key_dense(key)),
            self._shared(self._value_dense(value)),
        )
        outputs, scores = self._attended(*heads, mask, return_attention_scores, _EQUATIONS, 1)
        outputs = self._output_dense(outputs if gate is None else outputs * gate)
        return (outputs, scores) if return_attention_scores else outputs

    def _shared(self, heads: Tensor) -> Tensor:
        """Return heads of keys or values as often as heads of queries share them."""
        return heads if self.num_repeats == 1 else ops.repeat(heads, self.num_repeats, axis=2)

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> Shape:
        """Return the query's shape."""
        if query_shape[-1] != value_shape[-1]:
            raise ValueError(
                "The last dimension of `query_shape` and `value_shape` must be equal, but are "
                f"{query_shape[-1]}, {value_shape[-1]}. Received: query_shape={query_shape}, "
                f"value_shape={value_shape}"
            )
        checked_key_shape(value_shape, key_shape)
        return query_shape


GroupQueryAttention = GroupedQueryAttention  # Its public name, as in Keras.
