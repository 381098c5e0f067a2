"""Attention of several heads: each looks at the sequence by a projection of its own.

It is what transformers are made of.
"""

import string
from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import as_positive
from mirrored._types import AxisLike, Identifier, ShapeLike
from mirrored.layers.attention_heads import AttentionHeads, checked_key_shape
from mirrored.layers.einsum_dense import EinsumDense
from mirrored.layers.layer import PlainOptions
from mirrored.layers.masks import mask_of
from mirrored.layers.shapes import Shape, as_shape, require_rank
from mirrored.ops import SeedGenerator, Tensor
from mirrored.serialization.constructor_arguments import serialized


class MultiHeadAttention(AttentionHeads):
    """Gives for each query a mean of values, weighed by how well their keys match it, head by head.

    Vaswani et al., Attention Is All You Need, 2017: https://arxiv.org/abs/1706.03762

    Args:
        num_heads: How many heads there are.
        key_dim: The size of a head's queries and keys.
        value_dim: The size of a head's values; None: ``key_dim``.
        dropout: The part of the weights that is dropped in training.
        use_bias: Whether the projections have biases.
        output_shape: The sizes of an output's last axes; None: the size of the query's last one.
        attention_axes: The axes that are attended over; None: all but those of the batch and the
            features.
        sliding_window: How far from its own place a query looks: less than this; None: any way.
        flash_attention: False or None; there is no such implementation here, and results are the
            same without it.
        kernel_initializer: What the projections' kernels start as.
        bias_initializer: What their biases start as.
        kernel_regularizer: The penalty on each kernel, if any.
        bias_regularizer: The penalty on each bias, if any.
        activity_regularizer: The penalty on what each projection gives, if any.
        kernel_constraint: What optimizers bring each kernel back to after a step, if anything.
        bias_constraint: What they bring each bias back to.
        use_gate: Whether what the heads give is multiplied by a sigmoid of the query, projected.
        seed: An integer for the same dropped weights in every run; None takes one from the global
            stream.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is no positive integer, ``dropout`` is not from 0 to 1, or a name is
            unknown.

    Example:
        >>> import mirrored as mr
        >>> layer = MultiHeadAttention(num_heads=2, key_dim=3)
        >>> target, source = mr.ones((4, 8, 16)), mr.ones((4, 6, 16))
        >>> layer(target, source).shape
        (4, 8, 16)
        >>> outputs, scores = layer(target, source, return_attention_scores=True)
        >>> scores.shape
        (4, 2, 8, 6)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: ShapeLike | None = None,
        attention_axes: AxisLike | None = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        use_gate: bool = False,
        seed: int | SeedGenerator | None = None,
        **options: Unpack[PlainOptions],
    ) -> None:
        _check_size("num_heads", num_heads)
        _check_size("key_dim", key_dim)
        if value_dim is not None:
            _check_size("value_dim", value_dim)
        heads = key_dim, dropout, use_bias, sliding_window, flash_attention
        kernel = kernel_initializer, kernel_regularizer, kernel_constraint
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(*heads, kernel, bias, activity_regularizer, use_gate, seed, **options)
        self._num_heads = num_heads
        self._key_dim = key_dim
        self._value_dim = key_dim if value_dim is None else value_dim
        self._output_sizes = _as_sizes(output_shape)
        self._attention_axes = _as_axes(attention_axes)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        return {**super().get_config(), "output_shape": serialized(self._output_sizes)}

    @property
    def num_heads(self) -> int:
        """How many heads there are."""
        return self._num_heads

    @property
    def key_dim(self) -> int:
        """The size of a head's queries and keys."""
        return self._key_dim

    @property
    def value_dim(self) -> int:
        """The size of a head's values."""
        return self._value_dim

    @property
    def dropout(self) -> float:
        """The part of the weights that is dropped in training."""
        return self._dropout

    @property
    def use_bias(self) -> bool:
        """Whether the projections have biases."""
        return self._use_bias

    @property
    def attention_axes(self) -> tuple[int, ...] | None:
        """The axes that are attended over; None before they are known."""
        return self._attention_axes

    @property
    def query_dense(self) -> EinsumDense:
        """What projects queries to heads."""
        return self._query_dense

    @property
    def key_dense(self) -> EinsumDense:
        """What projects keys to heads."""
        return self._key_dense

    @property
    def value_dense(self) -> EinsumDense:
        """What projects values to heads."""
        return self._value_dense

    @property
    def output_dense(self) -> EinsumDense:
        """What puts the heads together."""
        return self._output_dense

    def build(self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None) -> None:
        """Create the projections."""
        key_shape = checked_key_shape(value_shape, key_shape)
        rank = len(query_shape)
        axes = self.__checked_axes(len(value_shape))
        self._query_dense = self._to_heads("query", query_shape, self._key_dim)
        self._key_dense = self._to_heads("key", key_shape, self._key_dim)
        if self.use_gate:
            self._gate_dense = self._to_heads("gate", query_shape, self._value_dim, "sigmoid")
        self._value_dense = self._to_heads("value", value_shape, self._value_dim)
        self._equations = _attention_equations(len(value_shape) + 1, axes)
        self._attention_axes, self._key_axes = axes, len(axes)
        self._build_weighing(tuple(range(-len(axes), 0)))
        sizes = self._output_sizes or (query_shape[-1],)
        equation, added = _projection_equation(rank - 1, 2, len(sizes))
        between = (*query_shape[:-1], self._num_heads, self._value_dim)
        known = (*[None] * (rank - 2), *sizes)
        self._output_dense = self._projection("attention_output", equation, known, added, between)

    def _to_heads(self, name: str, shape: Shape, size: int, activation: str | None = None) -> Any:
        equation, added = _projection_equation(len(shape) - 1, 1, 2)
        known = (*[None] * (len(shape) - 2), self._num_heads, size)
        return self._projection(name, equation, known, added, shape, activation)

    def __checked_axes(self, rank: int) -> tuple[int, ...]:
        """Return the axes to attend over, of those between the batch's and the features'."""
        attention_axes = self._attention_axes
        if attention_axes is None:
            return tuple(range(1, rank - 1))
        axes = tuple(axis if axis >= 0 else rank + axis for axis in attention_axes)
        if not axes or any(not 0 < axis < rank - 1 for axis in axes):
            raise ValueError(
                "`attention_axes` must be axes between the batch axis and the feature axis. "
                f"Received: attention_axes={attention_axes} for a value of {rank} axes"
            )
        return axes

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless the query has three axes or more."""
        require_rank(self.name, input_shape, 3)

    def _query_mask(self, query: Tensor, mask: Any) -> Any:
        return mask_of(query)

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> Shape:
        """Return the query's shape, its last axis replaced by ``output_shape`` if there is one."""
        checked_key_shape(value_shape, key_shape)
        query = as_shape(query_shape)
        return (*query[:-1], *self._output_sizes) if self._output_sizes else query


def _check_size(name: str, value: Any) -> None:
    if not isinstance(value, int) or value <= 0:
        optional = " or `None`" if name == "value_dim" else ""
        raise ValueError(
            f"Received an invalid value for argument `{name}`, expected a positive integer"
            f"{optional}. Received: {name}={value!r}"
        )


def _as_sizes(output_shape: Any) -> Shape | None:
    if not output_shape:
        return None
    if isinstance(output_shape, int):
        return (output_shape,)
    if not isinstance(output_shape, list | tuple):
        raise ValueError(
            f"Invalid `output_shape`: {output_shape}. When specified, the `output_shape` should "
            "be of type tuple, list, or int."
        )
    return tuple(output_shape)


def _as_axes(axes: Any) -> tuple[int, ...] | None:
    if axes is None or isinstance(axes, int):
        return None if axes is None else (axes,)
    if not isinstance(axes, list | tuple):
        raise ValueError(
            f"`attention_axes` must be an int, list, or tuple. Received: attention_axes={axes}"
        )
    return tuple(axes)


def _projection_equation(free: int, bound: int, added: int) -> tuple[str, str]:
    """Return an equation for the axes that stay, are summed over, and are new; and the last."""
    if free + bound + added > len(string.ascii_lowercase):
        raise ValueError(
            f"A projection must have at most {len(string.ascii_lowercase)} axes. Received: {free} "
            f"that stay, {bound} that are summed over, {added} new ones. Use a "
            "shorter `output_shape`."
        )
    letters = iter(string.ascii_lowercase)
    stay, lost, new = ("".join(next(letters) for _ in range(n)) for n in (free, bound, added))
    return f"{stay}{lost},{lost}{new}->{stay}{new}", new


def _attention_equations(rank: int, axes: tuple[int, ...]) -> tuple[str, str]:
    """Return the equations of scores, and of means by weights, for heads of a rank."""
    query = string.ascii_lowercase[:rank]
    more = iter(string.ascii_lowercase[rank:])
    key = "".join(next(more) if i in axes else letter for i, letter in enumerate(query))
    batch = "".join(query[i] for i in range(rank - 1) if i not in axes)
    scores = batch + "".join(query[i] for i in axes) + "".join(key[i] for i in axes)
    return f"{query},{key}->{scores}", f"{scores},{key}->{query}"


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
    _equations = ("bquh,bkuh->buqk", "buqk,bkuh->bquh")

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: Identifier = "glorot_uniform",
        bias_initializer: Identifier = "zeros",
        kernel_regularizer: Identifier | None = None,
        bias_regularizer: Identifier | None = None,
        activity_regularizer: Identifier | None = None,
        kernel_constraint: Identifier | None = None,
        bias_constraint: Identifier | None = None,
        use_gate: bool = False,
        seed: int | SeedGenerator | None = None,
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
        heads = head_dim, dropout, use_bias, sliding_window, flash_attention
        kernel = kernel_initializer, kernel_regularizer, kernel_constraint
        bias = bias_initializer, bias_regularizer, bias_constraint
        super().__init__(*heads, kernel, bias, activity_regularizer, use_gate, seed, **options)
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
        require_rank(self.name, input_shape, 0, exactly=3)

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
