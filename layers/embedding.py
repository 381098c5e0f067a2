"""A vector for each integer: rows of a table, which training changes, and scores by that table.

The gradient of the table is that of the rows which a batch has, each summed over its places.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from mirrored import ops
from mirrored._arguments import takes_older
from mirrored._numbers import as_positive
from mirrored._types import DTypeLike, Identifier, TensorLike
from mirrored.layers import constraints, initializers, regularizers
from mirrored.layers.layer import EmbeddingOptions, Layer, shared_config
from mirrored.layers.shapes import Shape, require_rank
from mirrored.layers.weights import add_configured, not_quantized, overridable
from mirrored.ops import Tensor
from mirrored.ops.spec import INDICES
from mirrored.ops.tensor_views import masked
from mirrored.serialization.constructor_arguments import arguments_of
from mirrored.variables import Variable


@takes_older(ignored={"input_length": "is deprecated. Just remove it."})
class Embedding(Layer):
    """Looks up a vector for each integer of its inputs.

    Args:
        input_dim: How many integers there are: from 0 to ``input_dim`` - 1.
        output_dim: The vectors' size.
        embeddings_initializer: What the table, of shape (input_dim, output_dim), starts as.
        embeddings_regularizer: The penalty on the table, if any.
        embeddings_constraint: What optimizers bring the table back to after a step, if anything.
        mask_zero: Whether 0 only fills up: then the outputs carry a mask, False where there is one.
        weights: The table to begin with, as an array or alone in a list; None leaves it to the
            initializer.
        quantization_config: None, as Keras' configurations say: weights are not quantized.
        **options: ``name``, ``trainable``, ``dtype`` and ``input_shape``, as for every layer.

    Raises:
        ValueError: A size is no positive integer, or a name is unknown.

    Example:
        >>> layer = Embedding(3, 2, embeddings_initializer="ones")
        >>> layer([[0, 2, 2]]).shape
        (1, 3, 2)
    """

    embeddings: Variable = overridable()
    _makes_masks = False  # Each says for itself.

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Identifier = "uniform",
        embeddings_regularizer: Identifier | None = None,
        embeddings_constraint: Identifier | None = None,
        mask_zero: bool = False,
        weights: Sequence[TensorLike] | None = None,
        *,
        quantization_config: None = None,
        **options: Unpack[EmbeddingOptions],
    ) -> None:
        super().__init__(**options)
        self.input_dim = as_positive("input_dim", input_dim)
        self.output_dim = as_positive("output_dim", output_dim)
        self.embeddings_initializer = initializers.get(embeddings_initializer)
        self.embeddings_regularizer = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint = constraints.get(embeddings_constraint)
        self.mask_zero = mask_zero
        self.supports_masking = self._makes_masks = bool(mask_zero)
        self.quantization_config = not_quantized(quantization_config)
        if weights is not None:
            self.build((None,))
            alone = isinstance(weights, list) and len(weights) == 1
            self.set_weights(weights if alone else [weights])

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values."""
        config = arguments_of(self, without=("weights",))
        return {"activity_regularizer": None, **shared_config(self), **config}

    def build(self, input_shape: Shape) -> None:
        """Create the table."""
        add_configured(self, "embeddings", (self.input_dim, self.output_dim))

    def check_input_shape(self, input_shape: Shape) -> None:
        """Raise ValueError unless there is one input."""
        require_rank(self.name, input_shape, 0)

    def call(self, inputs: Tensor) -> Tensor:
        """Return the vectors.

        Args:
            inputs: Integers of any shape, or floats that are cut to such.

        Returns:
            The inputs' shape and ``output_dim``.
        """
        ids = inputs if inputs.dtype in INDICES else ops.cast(inputs, ops.int64)
        return ops.cast(ops.embedding_lookup(self.embeddings, ids), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor | None:
        """Return which of the inputs are not 0, where these only fill up; otherwise None.

        Args:
            inputs: The inputs.
            mask: Their mask, which does not matter.
        """
        return ops.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return ``input_shape`` and ``output_dim``."""
        return (*input_shape, self.output_dim)


class ReversibleEmbedding(Embedding):
    """Looks up vectors for integers and, called with ``reverse=True``, scores integers by vectors.

    Press and Wolf, Using the Output Embedding to Improve Language Models, 2017:
    https://arxiv.org/abs/1608.05859

    Args:
        input_dim: How many integers there are: from 0 to ``input_dim`` - 1.
        output_dim: The vectors' size.
        tie_weights: Whether the scores are products with the table itself, and not with one of
            their own.
        embeddings_initializer: What the tables start as.
        embeddings_regularizer: The penalty on the table, if any.
        embeddings_constraint: What optimizers bring the table back to after a step, if anything.
        mask_zero: As for ``Embedding``.
        reverse_dtype: The dtype that scores are computed in; None: that of the layer.
        logit_soft_cap: What scores are kept below, by tanh; None: they may be any.
        **options: What ``Embedding`` takes further.

    Raises:
        ValueError: A size is no positive integer, or a name is unknown.

    Example:
        >>> import mirrored as mr
        >>> layer = ReversibleEmbedding(10, 4)
        >>> vectors = layer(mr.constant([[1, 2, 3]]))
        >>> vectors.shape, layer(vectors, reverse=True).shape
        ((1, 3, 4), (1, 3, 10))
    """

    _infers = True  # What it returns depends on an argument.
    reverse_embeddings: Variable

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: Identifier = "uniform",
        embeddings_regularizer: Identifier | None = None,
        embeddings_constraint: Identifier | None = None,
        mask_zero: bool = False,
        reverse_dtype: DTypeLike | None = None,
        logit_soft_cap: float | None = None,
        *,
        quantization_config: None = None,
        **options: Unpack[EmbeddingOptions],
    ) -> None:
        super().__init__(
            input_dim,
            output_dim,
            embeddings_initializer,
            embeddings_regularizer,
            embeddings_constraint,
            mask_zero,
            quantization_config=quantization_config,
            **options,
        )
        self.tie_weights = bool(tie_weights)
        self.reverse_dtype = reverse_dtype
        self.logit_soft_cap = logit_soft_cap

    def build(self, input_shape: Shape) -> None:
        """Create the table, and one for the scores where that is another."""
        super().build(input_shape)
        if not self.tie_weights:
            self.reverse_embeddings = self.add_weight(
                shape=(self.output_dim, self.input_dim),
                initializer=self.embeddings_initializer,
                name="reverse_embeddings",
            )

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        """Return vectors for integers, or scores for vectors.

        Args:
            inputs: Integers of any shape; where ``reverse`` is true, vectors in the last axis.
            reverse: Whether to score.

        Returns:
            The inputs' shape and ``output_dim``; or with ``input_dim`` in the last axis.
        """
        if not reverse:
            mask = super().compute_mask(inputs)
            vectors = super().call(inputs)
            return vectors if mask is None else masked(vectors, mask)
        own = self.embeddings if self.tie_weights else self.reverse_embeddings
        values, table = inputs, ops.cast(own, self.compute_dtype)
        if self.reverse_dtype is not None:
            values, table = (ops.cast(value, self.reverse_dtype) for value in (values, table))
        scores = ops.matmul(values, table, transpose_b=self.tie_weights)
        if self.logit_soft_cap is None:
            return scores
        return ops.tanh(scores / self.logit_soft_cap) * self.logit_soft_cap

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """Return None: vectors have their mask from `call`.

        Args:
            inputs: The inputs.
            mask: Their mask, which does not matter.
        """

    def compute_output_shape(self, input_shape: Shape, reverse: bool = False) -> Shape:
        """Return ``input_shape`` and ``output_dim``, or with ``input_dim`` in its last axis.

        Args:
            input_shape: The inputs' shape.
            reverse: Whether these are vectors.
        """
        if reverse:
            return (*input_shape[:-1], self.input_dim)
        return (*input_shape, self.output_dim)
