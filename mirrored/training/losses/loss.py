"""What all losses share: from what `call` returns to the number that training minimises.

Losses are kept by example for as long as possible: so that the mean can be that of the global
batch, however many replicas share it.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from mirrored import _overrides, ops
from mirrored._absent import absent_members
from mirrored._naming import snake_case
from mirrored._symbolic import Symbolic, symbolic_in
from mirrored._tracebacks import shorten
from mirrored._types import DTypeLike, TensorLike
from mirrored.distribute import get_replica_context, has_strategy
from mirrored.distribute.global_batch import global_batch
from mirrored.layers.added_losses import are_ignored
from mirrored.ops import Tensor
from mirrored.ops.hooks import only, shapes_alone
from mirrored.ops.spec import DType, default_float
from mirrored.serialization.constructor_arguments import Configured, arguments_of
from mirrored.training.losses import targets
from mirrored.training.losses.targets import OutputShape
from mirrored.training.losses.values import (
    aligned,
    as_mean_of_shard,
    as_predictions,
    cast,
    cast_values,
    check_one_weight,
    column,
    computed_in,
    fitted_shape,
    known_as_mean,
    loss_dtype,
    of_examples,
    refusal,
    sum_of_replicas,
    weighted,
    weighted_by_shard,
)


class Reduction:
    """The names of the reductions.

    Attributes:
        SUM_OVER_BATCH_SIZE: The sum divided by the number of examples.
        SUM: The sum over the examples.
        NONE: A value for each example.
    """

    SUM_OVER_BATCH_SIZE = "sum_over_batch_size"
    SUM = "sum"
    NONE = "none"


BY_WEIGHTS = "mean_with_sample_weight"
_REDUCTIONS = (
    Reduction.SUM_OVER_BATCH_SIZE,
    "mean",
    BY_WEIGHTS,
    Reduction.SUM,
    Reduction.NONE,
)


@absent_members("tf.keras.losses.Loss")
class Loss(_overrides.Subclassable, Configured):
    """Base of the losses; a subclass gives the loss of each example in `call`.

    Args:
        name: The name that errors show; None takes that of the class.
        reduction: "sum_over_batch_size" or "mean" (the sum divided by the number of examples,
            whatever their weights), "mean_with_sample_weight" (divided by the sum of the weights,
            where there are some; 0 where they add up to 0), "sum", or "none" for a value an
            example.
        dtype: The dtype that it is computed in, float32 or float64, whatever that of the
            predictions is; None: floatx, or float32 where that is bfloat16.

    Attributes:
        targets_are_labels: Whether targets are indices of classes, not numbers to be cast to the
            dtype of the predictions.

    Raises:
        ValueError: `reduction` is something else, or `dtype` no such dtype.

    Example:
        >>> import mirrored as mr
        >>> class AbsoluteError(mr.losses.Loss):
        ...     def call(self, y_true, y_pred):
        ...         return mr.abs(y_true - y_pred)
        >>> float(AbsoluteError()([[1.0], [2.0]], [[3.0], [2.0]]))
        1.0
    """

    __overrides__ = _overrides.LOSS
    targets_are_labels: ClassVar[bool] = False

    def __init__(
        self,
        name: str | None = None,
        reduction: str | None = Reduction.SUM_OVER_BATCH_SIZE,
        dtype: DTypeLike | None = None,
    ) -> None:
        reduction = Reduction.NONE if reduction is None else reduction
        if reduction not in _REDUCTIONS:
            raise ValueError(
                "Invalid value for argument `reduction`. "
                f"Expected one of {', '.join(_REDUCTIONS)}. Received: reduction={reduction}"
            )
        self.name = name or snake_case(type(self).__name__)
        self.reduction = reduction
        self._dtype = None if dtype is None else computed_in(dtype)

    @property
    def dtype(self) -> DType:
        """The dtype that it is computed in: that of the constructor, or floatx."""
        return default_float() if self._dtype is None else self._dtype

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a loss like it, by name, as plain values.

        A subclass adds its own to those of `super().get_config()`.
        """
        own = arguments_of(self, without=("name", "reduction", "dtype"))
        dtype = {} if self._dtype is None else {"dtype": self._dtype.name}  # Keras leaves it out.
        return {"name": self.name, "reduction": self.reduction, **dtype, **own}

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """Return the loss of each example, or of each of its elements, to be averaged.

        One number for the whole batch is accepted too. In `fit` the batch is a replica's shard,
        and the number of replicas changes nothing where it is the mean over the examples, or their
        sum divided by the global batch size. On several replicas another number, such as the root
        of a mean, raises ValueError before anything changes.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
        """
        raise NotImplementedError(
            f"The loss {type(self).__name__} has no `call`. Define `call(self, y_true, y_pred)` "
            "that returns one value per example."
        )

    def per_example(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the weighted loss of each example.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: Weights of shape (batch,) or (batch, 1), one for all, weights that
                broadcast to what `call` returns, or None.

        Returns:
            A tensor of shape (batch,) in the loss's dtype. Where `call` returned one number for the
            batch, that is the loss of each.

        Raises:
            ValueError: The shapes do not fit, or `call` did not return a value an example where
                there are weights of examples.

        Example:
            >>> import mirrored as mr
            >>> mr.losses.MeanSquaredError().per_example([[1.0], [2.0]], [[3.0], [2.0]]).numpy()
            array([4., 0.], dtype=float32)
        """
        y_pred = ops.convert_to_tensor(y_pred)
        return of_examples(self._loss_values(y_true, y_pred, sample_weight), y_pred, sample_weight)

    def shard(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any, examples: int) -> Tensor:
        """Return a shard's part of the loss of its global batch: the parts add up to the loss.

        Where `call` returns one number for a shard, a mean counts by the shard's part of the
        examples, and a sum, or a number with the reduction "sum", as it is.

        Args:
            y_true: The shard's targets.
            y_pred: The shard's predictions.
            sample_weight: The shard's weights, or None.
            examples: How many examples the global batch has.

        Raises:
            ValueError: The shapes do not fit, or `call` did not return a value an example.
        """
        if type(self).__call__ is not Loss.__call__:
            return weighted_by_shard(self.__called(y_true, y_pred, sample_weight))
        values = self._loss_values(y_true, y_pred, sample_weight)
        mask = self._mask_of_values(values, y_pred)
        number, is_whole = self.__number(values, mask, sample_weight)
        if number is None:
            return ops.reduce_sum(of_examples(values, y_pred, sample_weight)) * (1.0 / examples)
        return weighted_by_shard(number) if is_whole else number

    def __number(
        self, values: Tensor, mask: Tensor | None, sample_weight: Any
    ) -> tuple[Tensor | None, bool]:
        """Return the number that a shard's losses are reduced to; None: the mean of its examples.

        Also whether it is one of the whole shard. Otherwise it is the shard's part of a sum.
        """
        if self.reduction == Reduction.SUM:
            return sum_of_values(self, values, mask, sample_weight), not values.shape
        by_weights = self.reduction == BY_WEIGHTS and sample_weight is not None
        if mask is not None or by_weights:  # Else the mean is over examples.
            return self.__divided(values, mask, sample_weight)
        return (None, False) if values.shape else (_weighed(values, None, sample_weight), True)

    def __called(self, y_true: Tensor, y_pred: Tensor, sample_weight: Any) -> Tensor:
        """Return what a `__call__` of the subclass does, which is one number for the batch."""
        loss = ops.convert_to_tensor(self(y_true, y_pred, sample_weight))
        if loss.shape:
            raise ValueError(
                f"`__call__` of the loss {self.name!r} must return one number for the batch. "
                f"Received: a tensor of shape {loss.shape}. Define `call(self, y_true, y_pred)` "
                "for a value per example."
            )
        return loss

    def _mask_of_values(self, values: Tensor, y_pred: Tensor) -> Tensor | None:
        """Return the mask of predictions and of what `call` returned; None: all counts."""
        own: Tensor | None = values._keras_mask
        carried: Tensor | None = y_pred._keras_mask
        if own is None or carried is None:
            return carried if own is None else own
        return ops.logical_and(own, carried)

    def __divided(
        self, values: Tensor, mask: Tensor | None, sample_weight: Any
    ) -> tuple[Tensor, bool]:
        """Return the sum of the weighted losses, divided by what counts on all replicas.

        Also whether it is the shard's own mean: `call` returned one number. Otherwise it is the
        shard's part of the mean over the batch.
        """
        if mask is not None:
            from mirrored.training.losses.masked_means import masked_mean

            by_weights = self.reduction == BY_WEIGHTS
            return masked_mean(values, mask, sample_weight, by_weights=by_weights)
        weights = cast(ops.convert_to_tensor(sample_weight), values.dtype)
        total = ops.reduce_sum(weighted(values, weights))
        if not values.shape:
            return total, True
        if weights.shape[:1] not in ((), values.shape[:1]):  # A shard's number of them would count.
            raise ValueError(refusal(weights.shape, values.shape))
        with only():  # Weights are given: no tape has to do with what they add up to.
            divisor = ops.reduce_sum(weights)
            divisor = sum_of_replicas(divisor) if weights.shape else divisor
        return ops.divide_no_nan(total, divisor), False

    def _loss_values(self, y_true: Any, y_pred: Tensor, sample_weight: Any) -> Tensor:
        """Return what `call` does: a tensor of shape (batch, ...), or one number for the batch."""
        y_pred = as_predictions(y_pred, self._dtype or loss_dtype(default_float()))
        y_true = ops.convert_to_tensor(y_true)
        if not y_pred.shape:
            raise ValueError(
                f"The loss {self.name!r} needs predictions of shape (batch, ...). "
                f"Received: the scalar y_pred={y_pred}."
            )
        if not self.targets_are_labels:
            y_true = aligned(cast(y_true, y_pred.dtype), y_pred)
        values = ops.convert_to_tensor(self.call(y_true, y_pred))
        if values.shape and values.shape[:1] != y_pred.shape[:1]:
            examples = y_pred.shape[0]
            raise ValueError(
                f"The loss {self.name!r} must return one value per example, shape ({examples},) or "
                f"({examples}, ...), or one number for the batch. Received: a tensor of shape "
                f"{values.shape}. Average over the other axes only: the mean over the batch is "
                "taken later, over all replicas."
            )
        if not values.shape and sample_weight is not None:
            check_one_weight(f"loss {self.name!r}", sample_weight)
        return cast_values(values, y_pred.dtype)

    def __call__(
        self, y_true: TensorLike, y_pred: TensorLike, sample_weight: TensorLike | None = None
    ) -> Tensor:
        """Return the loss of a batch, reduced as `reduction` says.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: Weights of shape (batch,) or (batch, 1), one for all, weights that
                broadcast to what `call` returns, or None.

        Returns:
            A scalar, or with the reduction "none" the weighted values that `call` returned. In a
            step that `fit` runs it is the one whose mean over replicas, each counted by its
            examples, is that of the batch. Of placeholders it is a placeholder.

        Raises:
            ValueError: Shapes do not fit; or the mean over a batch was asked for in a strategy's
                scope, where a replica does not see the whole batch.
        """
        try:
            if Symbolic.exist:
                args = y_true, y_pred, sample_weight
                symbolic = symbolic_in(args)
                if symbolic is not None:
                    drawn: Tensor = symbolic.drawn(self, args, {})
                    return drawn
            return self._reduced_loss(y_true, y_pred, sample_weight)
        except Exception as error:
            shorten(error)
            raise

    def _reduced_loss(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Tensor:
        share = share_of_batch(self)
        y_pred = ops.convert_to_tensor(y_pred)
        values = self._loss_values(y_true, y_pred, sample_weight)
        mask = self._mask_of_values(values, y_pred)
        if self.reduction == Reduction.NONE:
            return _weighed(values, mask, sample_weight)
        number, is_whole = self.__number(values, mask, sample_weight)
        if number is not None:
            if is_whole:
                return as_mean_of_shard(number)
            # Counted by the replica's share of the batch, it is the replica's part of it.
            return number if share in (None, 1.0) else known_as_mean(number * (1.0 / share))
        values = of_examples(values, y_pred, sample_weight)
        # 0 for no examples.
        return known_as_mean(ops.reduce_sum(values) / float(max(values.size, 1)))

    def check_weights(self, weights: np.ndarray, output_shape: OutputShape) -> None:
        """Raise ValueError where sample weights do not fit what `call` returns; on the host.

        Of a loss of the user's own nobody knows what it returns until it runs.

        Args:
            weights: Weights of shape (examples, ...).
            output_shape: The model's output shape, (None, ...).
        """

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape that the loss wants, after checking them on the host.

        Args:
            y: Targets of shape (examples, ...).
            output_shape: The model's output shape, (None, ...).

        Raises:
            ValueError: Shape or values do not fit the loss and the model's output.

        Example:
            >>> import numpy as np
            >>> import mirrored as mr
            >>> mr.losses.MeanSquaredError().check_targets(np.zeros(3), (None, 1)).shape
            (3, 1)
        """
        return targets.align_last_axis(y, output_shape)


def share_of_batch(loss: Loss) -> float | None:
    """Return what part of the batch is here in a step that `fit` runs; None in other loops.

    Args:
        loss: The loss.

    Raises:
        ValueError: In other loops a replica does not see the batch whose mean is asked for.
    """
    batch, context = global_batch(), get_replica_context()
    if batch is not None and context is not None:
        return batch.share(context.replica_id_in_sync_group) or 1.0
    if are_ignored() or shapes_alone():
        return None  # A model is built, or a call on placeholders is tried: for its shapes.
    if loss.reduction not in (Reduction.SUM, Reduction.NONE) and has_strategy():
        raise ValueError(
            "Please use `mr.losses.Reduction.SUM` or `mr.losses.Reduction.NONE` for loss "
            "reduction when losses are used with a strategy outside of the built-in training "
            f"loops. Received: {loss.name!r} with reduction={loss.reduction!r}. Divide the "
            "sum by the global batch size."
        )
    return None


def sum_of_values(loss: Loss, values: Tensor, mask: Tensor | None, sample_weight: Any) -> Tensor:
    """Return the sum of what `call` returned.

    Args:
        loss: The loss.
        values: What `call` returned.
        mask: Which of the values count; None: all.
        sample_weight: The weights, or None.

    Raises:
        ValueError: A mask is for values that are one number.
    """
    if mask is not None and not values.shape:
        raise ValueError(
            f"The loss {loss.name!r} returned one number for the batch, which a mask cannot "
            "reduce to a sum. Return one value per example, or use a reduction other than 'sum'."
        )
    return ops.reduce_sum(_weighed(values, mask, sample_weight))


def _weighed(values: Tensor, mask: Tensor | None, sample_weight: Any) -> Tensor:
    """Return the values that `call` returned, times what is left of their weights."""
    if mask is None:
        return weighted(values, sample_weight)
    from mirrored.training.losses.masked_means import mask_weights, weighed

    return weighed(values, mask_weights(sample_weight, mask, values.dtype))


class LossByLastAxis(Loss):
    """What the losses that there are share: one axis of the predictions makes one value.

    Attributes:
        axis: That axis, the last one where a loss says nothing else.
    """

    axis: int = -1
    _by_element: ClassVar[bool] = False  # Whether it is the mean or sum of a value per element.
    # What the error says of targets of another shape than the outputs'.
    _hint: ClassVar[str] = targets.RESHAPE

    def per_example(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the weighted loss of each example, of vectors of each element; see `Loss`.

        Args:
            y_true: Targets of shape (batch, ...).
            y_pred: Predictions of shape (batch, ...).
            sample_weight: As in `Loss`.
        """
        y_pred = ops.convert_to_tensor(y_pred)
        is_vector = y_pred.ndim == 1 and self._by_element
        return super().per_example(y_true, column(y_pred) if is_vector else y_pred, sample_weight)

    def _loss_values(self, y_true: Any, y_pred: Tensor, sample_weight: Any) -> Tensor:
        """Return what `call` does, which makes one number of two vectors, as in Keras.

        Where weights or a mask tell the examples of vectors apart, each of them has a value, if
        that does not depend on the others.
        """
        y_true = ops.convert_to_tensor(y_true)
        if y_pred.ndim == 1 and not self.targets_are_labels:
            weights = () if sample_weight is None else ops.convert_to_tensor(sample_weight).shape
            apart = self._by_element and (weights or y_pred._keras_mask is not None)
            if apart or y_true.shape == (*y_pred.shape, 1):
                y_pred = column(y_pred)
        return super()._loss_values(y_true, y_pred, sample_weight)

    def check_weights(self, weights: np.ndarray, output_shape: OutputShape) -> None:
        """Raise ValueError unless weights broadcast to the outputs without that axis."""
        losses = output_shape
        if len(losses) > 1:
            axis = range(len(losses))[self.axis]
            losses = (*losses[:axis], *losses[axis + 1 :])
        fitted_shape(weights.shape, (len(weights), *losses[1:]))

    def check_targets(self, y: np.ndarray, output_shape: OutputShape) -> np.ndarray:
        """Return targets in the shape of the model's output, or one label for each prediction."""
        if self.targets_are_labels:
            return targets.check_labels(self.name, y, output_shape)
        return targets.match_output(self.name, y, output_shape, hint=self._hint)


class FunctionLoss(Loss):
    """A user's function of targets and predictions."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__(getattr(function, "__name__", None) or type(function).__name__)
        self._function = function
        self._stands_for = function  # In configurations.

    def call(self, y_true: Tensor, y_pred: Tensor) -> Any:
        """Return what the function returns."""
        return self._function(y_true, y_pred)
