"""Attention without projections: what queries and keys have in common weighs the values.

`MultiHeadAttention` has weights of its own for each of the three.
"""

from typing import Any, Unpack

from mirrored import ops
from mirrored._numbers import from_0_to_1
from mirrored.layers.layer import Layer, LayerOptions
from mirrored.layers.regularization import generator_of
from mirrored.layers.shapes import Shape, Shapes, is_shape
from mirrored.ops import SeedGenerator, Tensor
from mirrored.serialization.constructor_arguments import serialized
from mirrored.variables import Variable

_FAR = 1e9  # What a score is less where the mask is False.


class Attention(Layer):
    """Gives for each query a mean of values, weighed by the softmax of its scores with their keys.

    Luong et al., Effective Approaches to Attention-based Neural Machine Translation, 2015:
    https://arxiv.org/abs/1508.04025

    Args:
        use_scale: Whether the scores are multiplied by a weight.
        score_mode: "dot" for the product of a query and a key, "concat" for the sum of tanh of
            their sum, times a weight.
        dropout: The part of the weights that is dropped in training.
        seed: An integer for the same dropped weights in every run; None takes one from the global
            stream.
        **options: ``activity_regularizer``, ``name``, ``trainable``, ``dtype`` and
            ``input_shape``, as for every layer.

    Raises:
        ValueError: There is no such mode, or ``dropout`` is not from 0 to 1.

    Example:
        >>> import mirrored as mr
        >>> query, value = mr.constant([[[1.0, 0.0]]]), mr.constant([[[9.0, 0.0], [0.0, 9.0]]])
        >>> Attention()([query, value]).numpy().round(2).tolist()
        [[[9.0, 0.0]]]
    """

    _infers = True  # What it returns depends on arguments.
    _makes_masks = False

    scale: Variable | None
    concat_score_weight: Variable | None

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: int | SeedGenerator | None = None,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                "Invalid value for argument score_mode. Expected one of {'dot', 'concat'}. "
                f"Received: score_mode={score_mode}"
            )
        self.use_scale = bool(use_scale)
        self.score_mode = score_mode
        self.dropout = from_0_to_1("dropout", dropout)
        self.seed = seed
        if self.dropout > 0:
            self.seed_generator: SeedGenerator = generator_of(self.name, seed)

    def build(self, input_shape: Shapes) -> None:
        """Create the weights of the scores, if there are any."""
        self.scale = self._scale_for(input_shape[0]) if self.use_scale else None
        self.concat_score_weight = None
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight")

    def _scale_for(self, query_shape: Shape) -> Variable:
        return self.add_weight((), "ones", name="scale")

    def check_input_shape(self, input_shape: Shapes) -> None:
        """Raise ValueError unless the inputs are a list of two or three."""
        kind = type(self).__name__
        if not isinstance(input_shape, list) or is_shape(input_shape):
            raise ValueError(
                f"{kind} layer must be called on a list of inputs, namely [query, value] or "
                f"[query, value, key]. Received: inputs={input_shape}."
            )
        if not 2 <= len(input_shape) <= 3:
            raise ValueError(
                f"{kind} layer accepts inputs list of length 2 or 3, namely [query, value] or "
                f"[query, value, key]. Received length: {len(input_shape)}."
            )

    def call(
        self,
        inputs: list[Tensor],
        mask: Any = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """Return the means of values.

        Args:
            inputs: The queries, of shape (batch, queries, features), the values, of shape
                (batch, keys, features), and the keys, if these are not the values.
            mask: Which queries count, and which values, of shapes (batch, queries) and
                (batch, keys), in a list; None for either, or in its place: all.
            training: Whether to drop weights.
            return_attention_scores: Whether to return the weights too.
            use_causal_mask: Whether a query may look at nothing behind its own place.

        Returns:
            Shape (batch, queries, features): 0 for queries that do not count; with the weights, of
            shape (batch, queries, keys), where they are asked for.

        Raises:
            ValueError: ``mask`` is no list of two or three.
        """
        masks = self.__checked_masks(mask)
        query, value = inputs[:2]
        scores = self._scores(query, inputs[-1] if len(inputs) > 2 else value)
        seen = _seen(scores, masks[1], use_causal_mask)
        if seen is not None:
            scores = ops.where(seen, scores, scores - _FAR)
        weights = ops.softmax(scores)
        if training and self.dropout > 0:
            drawn = self.seed_generator.uniform(weights.shape, dtype=self.dtype, per_example=True)
            weights = ops.dropped(weights, drawn, self.dropout)
        outputs = ops.matmul(weights, value)
        if masks[0] is not None:
            counts = ops.expand_dims(ops.cast(masks[0], ops.bool_), -1)
            outputs = ops.where(counts, outputs, ops.constant(0, outputs.dtype))
        return (outputs, weights) if return_attention_scores else outputs

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Return the scores, of shape (batch, queries, keys)."""
        if self.score_mode == "dot":
            scores = ops.matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale
        sums = _sums(query, key)
        values = ops.tanh(sums if self.scale is None else self.scale * sums)
        scores = ops.reduce_sum(values, -1)
        return scores if self.concat_score_weight is None else self.concat_score_weight * scores

    def __checked_masks(self, mask: Any) -> list[Any]:
        kind = type(self).__name__
        if mask is None:
            return [None, None]
        if not isinstance(mask, list):
            raise ValueError(
                f"{kind} layer mask must be a list, namely [query_mask, value_mask]. Received: "
                f"mask={mask}."
            )
        if not 2 <= len(mask) <= 3:
            raise ValueError(
                f"{kind} layer accepts mask list of length 2 or 3. Received: mask={mask}."
            )
        return mask

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Return the queries' mask, if there is one.

        Args:
            inputs: The inputs, in a list.
            mask: Their masks, in a list; None: there are none.
        """
        return self.__checked_masks(mask)[0]

    def compute_output_shape(self, input_shape: Shapes) -> Shape:
        """Return the queries' shape with the last axis of the values."""
        return (*input_shape[0][:-1], input_shape[1][-1])


class AdditiveAttention(Attention):
    """Attention whose scores are the sum of tanh of a query and a key, added and weighed.

    Bahdanau et al., Neural Machine Translation by Jointly Learning to Align and Translate, 2014:
    https://arxiv.org/abs/1409.0473

    Args:
        use_scale: Whether each feature has a weight in the sum.
        dropout: As for ``Attention``.
        **options: ``seed``, and what every layer takes.

    Raises:
        ValueError: ``dropout`` is not from 0 to 1.

    Example:
        >>> import mirrored as mr
        >>> layer = AdditiveAttention()
        >>> layer([mr.ones((2, 3, 4)), mr.ones((2, 5, 4))]).shape
        (2, 3, 4)
        >>> layer.scale.shape
        (4,)
    """

    def __init__(self, use_scale: bool = True, dropout: float = 0.0, **options: Any) -> None:
        super().__init__(use_scale=use_scale, dropout=dropout, **options)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        config = super().get_config()
        return {**config, "seed": serialized(self.seed)}

    def build(self, input_shape: Shapes) -> None:
        """Create the features' weights, if there are any."""
        self.scale = self._scale_for(input_shape[0]) if self.use_scale else None

    def _scale_for(self, query_shape: Shape) -> Variable:
        return self.add_weight((query_shape[-1],), "glorot_uniform", name="scale")

    def _scores(self, query: Tensor, key: Tensor) -> Tensor:
        values = ops.tanh(_sums(query, key))
        return ops.reduce_sum(values if self.scale is None else self.scale * values, -1)


def _sums(query: Tensor, key: Tensor) -> Tensor:
    """Return the sum of each query and each key."""
    return ops.expand_dims(query, -2) + ops.expand_dims(key, -3)


def _seen(scores: Tensor, value_mask: Any, causal: bool) -> Tensor | None:
    """Return which keys each query may look at; None: all."""
    seen = None if value_mask is None else ops.expand_dims(ops.cast(value_mask, ops.bool_), -2)
    if not causal:
        return seen
    rows, columns = (ops.range(size) for size in scores.shape[-2:])
    before = ops.greater_equal(ops.reshape(rows, (1, -1, 1)), columns)
    return before if seen is None else ops.logical_and(seen, before)
