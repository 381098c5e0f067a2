"""What one step of a model does, in methods that a subclass may define anew.

`fit`, `evaluate` and `predict` run a subclass's own methods on each replica's shard; of a model
that defines none they compute the same in a shorter way. So what is here says what a step is, and
is what `super().train_step(data)` calls.
"""

import inspect
from typing import Any

from mirrored import _nest, _overrides, ops
from mirrored._arguments import explained
from mirrored._logging import logger
from mirrored.autodiff import GradientTape
from mirrored.ops import Tensor
from mirrored.training.compilation import CompiledNetwork
from mirrored.training.losses.values import as_mean_of_shard, cast, in_one_dtype, loss_dtype
from mirrored.training.utilities import unpack_x_y_sample_weight


@explained
class SteppedNetwork(CompiledNetwork):
    """A network with the steps of its training, evaluation and prediction.

    `Model` says what the arguments are.
    """

    _never_called = _overrides.MODEL
    _for_itself = _overrides.MODEL_ITSELF

    def train_step(self, data: Any) -> dict[str, Any]:
        """Take a step of training on a replica's shard of a batch, and return what logs show.

        A subclass's own is called by `fit` on every replica, with the shard's examples. The loss
        is to be one number: the mean over these examples, or their sum divided by the size of the
        global batch. `optimizer.apply_gradients` then adds up the replicas' gradients, those of
        means by their parts of the examples, before it clips and updates. Returned floats are
        added up in the same way, integers have to be the same on all replicas, and metrics add up.
        Where the step fails, or its loss is not finite, nothing is written.

        A loss that is neither, as one of pairs of examples, and a gradient that was clipped for
        the shard alone raise ValueError on several replicas, before anything changes.
        `mr.debugging.compare_replicas` takes a step on one device and on several replicas.

        Args:
            data: The shard's inputs, or a tuple of inputs, targets and weights of examples, as
                far as there are some.

        Returns:
            Numbers by name.

        Example:
            >>> import mirrored as mr
            >>> class Trained(mr.Model):
            ...     def train_step(self, data):
            ...         x, y = data
            ...         with mr.GradientTape() as tape:
            ...             loss = mr.reduce_mean((self(x, training=True) - y) ** 2)
            ...         gradients = tape.gradient(loss, self.trainable_variables)
            ...         self.optimizer.apply(gradients, self.trainable_variables)
            ...         return {"loss": loss}
            >>> x = mr.layers.Input((1,))
            >>> model = Trained(x, mr.layers.Dense(1, kernel_initializer="zeros")(x))
            >>> model.compile("sgd")
            >>> model.fit([[1.0], [2.0]], [[1.0], [3.0]], verbose=0).history
            {'loss': [5.0]}
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self._loss_of(x, y, y_pred, sample_weight, training=True)
            optimizer = self.required_compilation().optimizer
            scaled = loss if optimizer is None else optimizer.scale_loss(loss)
        self._track(loss, x)
        weights = self.trainable_variables
        if weights:
            gradients = tape.gradient(scaled, weights)
            optimizer = self.required_compilation().required_optimizer()
            optimizer.apply_gradients(zip(gradients, weights, strict=True))
        else:
            logger.warning("The model does not have any trainable weights.")
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Evaluate a replica's shard of a batch; see `train_step`.

        Args:
            data: The shard's inputs, or a tuple of inputs, targets and weights of examples.
        """
        x, y, sample_weight = unpack_x_y_sample_weight(data)
        y_pred = self(x, training=False)
        self._track(self._loss_of(x, y, y_pred, sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Return what is predicted for a replica's shard of a batch: a row an example.

        Args:
            data: The shard's inputs, or a tuple that begins with them.
        """
        x, _, _ = unpack_x_y_sample_weight(data)
        return self(x, training=False)

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Tensor:
        """Return the loss of a shard: that of `compile`, and what layers add.

        A subclass's own is called by `fit` and `evaluate`, and returns one number, as the loss of
        `train_step` is; beside a mean penalties are added whole, on every replica.

        Args:
            x: The inputs.
            y: The targets.
            y_pred: What the model returned for the inputs.
            sample_weight: The weights of examples, or None.
            training: Whether this is a step of training.

        Raises:
            ValueError: There is no loss.
        """
        del x, training
        compilation = self.required_compilation()
        losses: list[Tensor] = []
        if compilation.has_loss:
            self._resolve(y_pred)
            outputs = compilation.required_outputs()
            for output, target, prediction, weights in outputs.parts(y, y_pred, sample_weight):
                if output.loss is None:
                    continue
                loss = output.loss(target, prediction, weights)
                if output.tracker is not None:
                    output.tracker.update_state(loss, sample_weight=_examples(prediction))
                losses.append(loss if output.weight is None else loss * output.weight)
        added = [ops.reduce_sum(cast(loss, loss_dtype(loss.dtype))) for loss in self.losses]
        losses += [as_mean_of_shard(loss, "added loss") for loss in added]
        if not losses:
            raise ValueError(
                "No loss to compute. Provide a `loss` argument in `compile()`. Received: loss=None"
            )
        return losses[0] if len(losses) == 1 else ops.add_n(in_one_dtype(losses))

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        """Update the metrics of `compile`, and return what all metrics say.

        Args:
            x: The inputs.
            y: The targets.
            y_pred: What the model returned for the inputs.
            sample_weight: The weights of examples, or None.
        """
        del x
        compilation = self.required_compilation()
        if compilation.has_metrics:
            self._resolve(y_pred)
            compilation.compiled_metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return what the metrics say, by name, in the order of the names."""
        results: dict[str, Any] = {}
        for metric in self.metrics:
            result = metric.result()
            results.update(result if isinstance(result, dict) else {metric.name: result})
        return dict(sorted(results.items()))

    def reset_metrics(self) -> None:
        """Let all metrics begin anew, as at the beginning of an epoch."""
        for metric in self.metrics:
            metric.reset_state()

    def _loss_of(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any, *, training: bool
    ) -> Tensor:
        """Return `compute_loss`, which a subclass may have defined without `training`."""
        method = self.compute_loss
        if "training" in inspect.signature(method).parameters:
            return method(x, y, y_pred, sample_weight, training=training)
        return method(x, y, y_pred, sample_weight)

    def _track(self, loss: Tensor, x: Any) -> None:
        """Add a shard's loss to the mean over examples that logs show."""
        first = next(leaf for leaf in _nest.flatten(x) if leaf is not None)
        loss = as_mean_of_shard(loss, "tracked")
        tracker = self.required_compilation().loss_tracker
        tracker.update_state(loss, sample_weight=_examples(first))

    def _resolve(self, y_pred: Any) -> None:
        """Know the outputs, where this is the first time that they are seen."""
        compilation = self.required_compilation()
        if compilation.outputs is None:
            shapes = _nest.map_structure(lambda output: (None, *output.shape[1:]), y_pred)
            compilation.resolve(shapes, None)


def _examples(batch: Tensor) -> float:
    return float(batch.shape[0])
