"""What a step of training, evaluation or prediction computes for one global batch, on all replicas.

The gradient is that of the global batch: each replica divides by the number of all examples, in
one place, and the replicas' gradients are summed. The same code is run eagerly and recorded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest, ops
from mirrored._logging import logger
from mirrored.autodiff import GradientTape
from mirrored.distribute import DistributedValues, PerReplica, Strategy, get_replica_context
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.distribute.distributed_variables import copies_of
from mirrored.distribute.global_batch import GlobalBatch, Scales
from mirrored.layers.added_losses import forget
from mirrored.layers.layer import losses_in, walk
from mirrored.ops import Tensor, TensorSpec
from mirrored.ops.hooks import active_recorder, only
from mirrored.training.compiled_outputs import OutputPart, metrics_of
from mirrored.training.losses.values import cast, in_one_dtype, loss_dtype, weighted_by_shard
from mirrored.training.run_plan import RunPlan
from mirrored.training.utilities import pack_x_y_sample_weight
from mirrored.variables import Variable

# The inputs, targets and weights of a global batch, cut into a part for each replica and brought to
# the replicas' devices: a `PerReplica`, a list, tuple or dict of these as the user has it, or None.
Shards = tuple[Any, Any, Any]


class Totals(NamedTuple):
    """What a step leaves on the devices.

    Attributes:
        statistics: The sum over the replicas of the loss, and of each metric's total and count.
        penalty: The weights' penalty; None where there is none.
        losses: Each replica's part of the loss.
        gradient_middles: What `middles_of` returned on each replica, where gradients are checked.
        gradients: The names of the variables of these gradients.
        names: What a step of the model's own returned, behind its losses in the statistics; None
            where they are those of `fit`.
        specs: The shapes and dtypes of what has these names.
    """

    statistics: Tensor
    penalty: Tensor | None
    losses: tuple[Tensor, ...]
    gradient_middles: tuple[Tensor, ...] = ()
    gradients: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    specs: tuple[TensorSpec, ...] = ()


class Step:
    """The steps of one model: what does not change between them is looked up once.

    Args:
        plan: The plan of the run, of a model that is built and, but for prediction, compiled with
            a loss.
        refuses: Whether what shards do not add up to is an error.
    """

    def __init__(self, plan: RunPlan, *, refuses: bool = True) -> None:
        self._model = plan.model
        self._refuses = refuses
        self._strategy: Strategy = plan.strategy
        self._warned = False
        self._checked_names: tuple[str, ...] = ()
        self._findings: dict[Any, Scales] = {}
        self._look_up()

    def _look_up(self) -> None:
        """Look up the weights, and the layers that may still make some: used in training alone."""
        self._variables: list[Variable] = self._model.trainable_variables
        trained = set(map(id, self._variables))
        # What only layers write, in their calls.
        self._states = [weight for weight in self._model.weights if id(weight) not in trained]
        self._regularized = self._model.regularized_weights
        self._unbuilt = [layer for layer in walk(self._model) if not layer.built]

    # ------------------------------------------------------------------ the three kinds of step

    def train(
        self, shards: Shards, sizes: Sequence[int], check: Callable[[Totals], None]
    ) -> Totals:
        """Take one step of training.

        All new values are computed, on every replica, before the first one is written.

        Args:
            shards: The global batch.
            sizes: How many of its examples each replica has.
            check: Called before anything is written; it raises where the loss is not finite.

        Raises:
            ValueError: The loss does not depend on any weight.
            ResourceExhaustedError: A device has not enough memory; nothing was changed.
        """
        with undone_on_failure(self._states):
            return self._train(shards, sizes, check)

    def _train(
        self, shards: Shards, sizes: Sequence[int], check: Callable[[Totals], None]
    ) -> Totals:
        scales = self._scales("train", shards)
        optimizer = self._model.required_compilation().required_optimizer()
        known = optimizer.slots.snapshot()
        optimizer.slots.build_from_values(self._variables)
        with GlobalBatch(sizes, scales=scales).in_force():
            arguments = (*shards, sum(sizes))
            outcome = self._with_zeros(self._run(self._train_replica, arguments))
        # The loss is among the statistics.
        gradients, statistics = self._strategy.sum_step(
            self._variables, outcome["gradients"], outcome["statistics"]
        )
        statistics = _first(statistics)
        penalty = None
        if self._regularized:
            # Once for the global batch, after the sum: a penalty is no replica's.
            gradients, penalty = self._strategy.run(self._add_penalties, (gradients,))
        losses = self._strategy.experimental_local_results(outcome["loss"])
        totals = Totals(statistics, _first(penalty), losses, *self._checked(outcome))
        if not optimizer.skips_non_finite:
            check(totals)
        used = sorted(_first(gradients))
        self._check_used(used)
        kept = {*known, *(id(self._variables[i]) for i in used)}
        slots = optimizer.slots.snapshot()
        if not slots.keys() <= kept:  # Others have no gradient, and so no slots.
            optimizer.slots.restore({key: slots[key] for key in slots if key in kept})
        parts = self._strategy.experimental_local_results(gradients)
        optimizer.prepare(
            [self._variables[i] for i in used],
            PerReplica([part.renumbered(dict(enumerate(used))) for part in parts]),
            self._variables,
        ).commit()
        return totals

    def test(self, shards: Shards, sizes: Sequence[int]) -> Totals:
        """Return what the model makes of one global batch, without training.

        Args:
            shards: The global batch.
            sizes: How many of its examples each replica has.
        """
        with GlobalBatch(sizes, scales=self._scales("test", shards)).in_force():
            arguments = (*shards, sum(sizes))
            outcome = self._with_zeros(self._run(self._test_replica, arguments, _uncounted))
        statistics = self._strategy.reduce("sum", outcome["statistics"])
        return Totals(statistics, _first(outcome["penalty"]), ())

    def predict(self, shards: Shards, sizes: Sequence[int]) -> tuple[Any, ...]:
        """Return each replica's outputs: a structure, of None where it has no examples.

        Args:
            shards: The global batch; only its inputs are used.
            sizes: How many of its examples each replica has.
        """
        with GlobalBatch(sizes, scales=self._scales("predict", shards)).in_force():
            # The outputs of no examples stay as they are: they have no rows.
            outputs = self._run(self._outputs, (shards[0],), lambda outputs: outputs)
        return self._strategy.experimental_local_results(outputs)

    def _outputs(self, x: Any) -> Any:
        """Return what is predicted for a replica's inputs."""
        return self._model.predict_step(pack_x_y_sample_weight(x))

    # ------------------------------------------------------------------ what shards add up to

    def _scales(self, kind: str, shards: Shards) -> Scales | None:
        """Return how what replicas compute adds up, as `GlobalBatch` takes it.

        Logs what depends on the number of replicas.

        Raises:
            NotAdditive: A loss or gradient of shards does not add up to that of the batch.
        """
        if self._strategy.num_replicas_in_sync == 1:
            return None
        key = kind, repr(_nest.map_structure(_described, shards))
        if key not in self._findings:
            from mirrored.training.shard_analysis.step_analysis import scales_of  # For several.

            arguments = (shards[0],) if kind == "predict" else shards
            step = partial(self._analysed, kind)
            self._findings[key] = scales_of(
                self._model, step, arguments, rows=kind == "predict", refuses=self._refuses
            )
        return self._findings[key]

    def _analysed(self, kind: str, batch: GlobalBatch) -> Callable[..., Any]:
        """Return what a replica computes in a step of a kind, to be analysed."""
        if kind == "predict":
            return self._outputs

        def losses(x: Any, y: Any, sample_weight: Any) -> Any:
            training = kind == "train"
            return self._forward(x, y, sample_weight, batch.examples, training=training)[0]

        return losses

    # ------------------------------------------------------------------ on one replica

    def _train_replica(self, x: Any, y: Any, sample_weight: Any, examples: int) -> dict[str, Any]:
        optimizer = self._model.required_compilation().required_optimizer()
        with GradientTape() as tape:
            losses, parts = self._forward(x, y, sample_weight, examples, training=True)
            scaled = optimizer.scale_loss(losses[0])
        gradients = optimizer.unscaled(tape.gradient(scaled, self._variables))
        outcome: dict[str, Any] = {"gradients": gradients, "loss": losses[0]}
        if self._model.required_compilation().check_gradients and not optimizer.skips_non_finite:
            outcome["middles"] = middles_of([g for g in gradients if g is not None])
            losses = [with_check(losses[0], outcome["middles"]), *losses[1:]]
            pairs = zip(self._variables, gradients, strict=True)
            self._checked_names = tuple([v.name for v, g in pairs if g is not None])
        return {**outcome, "statistics": _statistics(losses, parts)}

    def _checked(self, outcome: dict[str, Any]) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
        """Return what `middles_of` did on each replica, where it checks, and variables' names."""
        if "middles" not in outcome:
            return (), ()
        return self._strategy.experimental_local_results(outcome["middles"]), self._checked_names

    def _test_replica(self, x: Any, y: Any, sample_weight: Any, examples: int) -> dict[str, Any]:
        forward = self._forward(x, y, sample_weight, examples, training=False)
        return {"statistics": _statistics(*forward), "penalty": self._penalty()}

    def _forward(
        self, x: Any, y: Any, sample_weight: Any, examples: int, *, training: bool
    ) -> tuple[list[Tensor], list[OutputPart]]:
        """Return this replica's part of the global batch's loss, and its outputs' parts.

        Behind the loss come those of the outputs, where several have one.
        """
        outputs = self._model(x, training=training)
        if any(layer.built for layer in self._unbuilt):
            self._look_up()
        compiled = self._model.required_compilation().required_outputs()
        parts = compiled.parts(y, outputs, sample_weight)
        losses: list[Tensor] = []
        terms: list[Tensor] = []
        for output, target, prediction, weights in parts:
            if output.loss is not None:
                loss = output.loss.shard(target, prediction, weights, examples)
                losses.append(loss)
                terms.append(loss if output.weight is None else loss * output.weight)
        total = _sum(terms, losses_in(self._model))
        return [total, *losses] if len(losses) > 1 else [total], parts

    def _penalty(self) -> Tensor | None:
        penalties = [
            ops.convert_to_tensor(penalty(weight)) for weight, penalty in self._regularized
        ]
        return ops.add_n(in_one_dtype(penalties)) if penalties else None

    def _add_penalties(self, gradients: Buckets) -> tuple[Buckets, Tensor | None]:
        """Add the penalties' gradients to those of the global batch; return the penalty too."""
        optimizer = self._model.required_compilation().required_optimizer()
        with GradientTape() as tape:
            penalty: Any = self._penalty()
            scaled = optimizer.scale_loss(penalty)
        added = enumerate(optimizer.unscaled(tape.gradient(scaled, self._variables)))
        sums = {i: gradients[i] + g if i in gradients else g for i, g in added if g is not None}
        return gradients.updated(sums), penalty

    # ------------------------------------------------------------------ around the replicas

    def _run(
        self,
        function: Callable[..., Any],
        shards: tuple[Any, ...],
        uncounted: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Call a function on every replica that has examples; the others give None.

        Where the function meets other replicas on its way, those without examples run it too, on
        zero rows, because the others would wait for them. What they compute is left out all the
        same: a mean over no examples is NaN, and would spoil the sum over the replicas.
        So do the replicas of a worker none of which has any, of whose results `uncounted` makes
        what they add: zeros, by default.
        """
        complete: list[Any] = []

        def part(x: Any, *rest: Any) -> Any:
            examples = _rows(x)
            # Replicas run one at a time, the first one first, and larger shards come first. So if
            # it is complete before this one begins, there is no meeting.
            if examples or not complete:
                result = function(x, *rest)
                if examples:
                    complete.append(result)
                    return result
                if not complete:
                    return (uncounted or _zeros_like)(result)
            return _nest.map_structure(lambda _: None, complete[0])

        try:
            return self._strategy.run(part, shards)
        finally:
            forget(walk(self._model), of_all=True)  # A recording's would keep all of it.

    def _with_zeros(self, outcome: Any) -> Any:
        """Put zeros where a replica without examples gave None."""

        def filled(leaf: Any) -> Any:
            if not isinstance(leaf, PerReplica) or all(value is not None for value in leaf.values):
                return leaf
            first = leaf.values[0]
            parts = []
            for replica, value in enumerate(leaf.values):
                with self._strategy.replica_scope(replica):
                    parts.append(ops.zeros(first.shape, first.dtype) if value is None else value)
            return PerReplica(parts, leaf.first_examples, leaf.examples)

        return _nest.map_structure(filled, outcome)

    def _check_used(self, used: list[int]) -> None:
        """Raise where no weight would be trained, and warn once where some would not."""
        if not used and self._variables:
            raise ValueError(
                "No gradients provided for any variable. Received: a loss that does not depend "
                f"on any of {[v.name for v in self._variables]}. Compute it from the model's "
                "outputs with mirrored's ops; the result of .numpy() has no gradient."
            )
        if len(used) < len(self._variables) and not self._warned:
            self._warned = True
            unused = [v.name for i, v in enumerate(self._variables) if i not in set(used)]
            logger.warning(
                "Gradients do not exist for variables %s when minimizing the loss; these "
                "variables keep their values. Use them in the model's `call`, or set "
                "trainable=False on their layer.",
                unused,
            )


@contextmanager
def undone_on_failure(variables: Sequence[Variable]) -> Iterator[None]:
    """Return a context that takes back what was written in it, where it fails.

    Args:
        variables: What may be written.
    """
    if not variables or active_recorder() is not None:
        yield  # A recorded step writes at its end, once nothing can fail any more.
        return
    before = [(copy, copy.read_value()) for variable in variables for copy in copies_of(variable)]
    try:
        yield
    except BaseException:
        for copy, value in before:
            copy.assign(value)
        raise


def _described(leaf: Any) -> Any:
    """Return the shape of an example and the dtype of a column, which steps are analysed for."""
    first = leaf.values[0] if isinstance(leaf, PerReplica) else leaf
    return None if first is None else (first.shape[1:], first.dtype.name)


def _zeros_like(results: Any) -> Any:
    """Return zeros in the place of what a replica computed, which are to add nothing."""
    return _nest.map_structure(
        lambda result: result if result is None else ops.zeros(result.shape, result.dtype), results
    )


def _uncounted(results: dict[str, Any]) -> dict[str, Any]:
    """Return what a replica computed of no examples: the penalty does not depend on them."""
    return {**results, "statistics": _zeros_like(results["statistics"])}


def _sum(terms: list[Tensor], added: list[Tensor]) -> Tensor:
    """Return the sum of parts of a loss, and of losses that layers added, as these count."""
    count = len(terms)
    sums = [ops.reduce_sum(cast(loss, loss_dtype(loss.dtype))) for loss in added]
    terms = in_one_dtype([*terms, *sums])
    terms[count:] = [weighted_by_shard(term, "added loss") for term in terms[count:]]
    return terms[0] if len(terms) == 1 else ops.add_n(terms)


def _rows(x: Any) -> int:
    """Return how many examples inputs have."""
    first = next(leaf for leaf in _nest.flatten(x) if leaf is not None)
    return int(first.shape[0])


def middles_of(gradients: Sequence[Tensor]) -> Tensor:
    """Return half of the least and the greatest element of each gradient, added.

    It is finite where all of the gradient is, and only there: a sum may overflow.

    Args:
        gradients: The gradients.
    """
    halves = []
    with only():
        for gradient in gradients:
            ends = [ops.reduce_min(gradient), ops.reduce_max(gradient)] if gradient.size else []
            halves.append(ops.add_n([0.5 * ops.cast(end, ops.float64) for end in ends] or [0.0]))
        return ops.stack(halves or [0.0])


def with_check(loss: Tensor, middles: Tensor) -> Tensor:
    """Return a loss, or NaN where a gradient is not finite: the sum over replicas tells it to all.

    Args:
        loss: The loss.
        middles: What `middles_of` returned.
    """
    with only():
        return loss + ops.cast(ops.reduce_sum(0.0 * middles), loss.dtype)


def _statistics(losses: list[Tensor], parts: list[OutputPart]) -> Tensor:
    """Return the losses, and every metric's total and count, as one vector."""
    context, calls = get_replica_context(), list(metrics_of(parts))
    if calls and context is not None and context.num_replicas_in_sync > 1:
        from mirrored.training.metrics.gathered_batch import statistics_of  # For several replicas.

        statistics = statistics_of(calls)
    else:
        statistics = [metric.statistics(*arguments) for metric, arguments in calls]
    scalars = [*losses, *(number for pair in statistics for number in pair)]
    return ops.concat([ops.reshape(scalar, (1,)) for scalar in in_one_dtype(scalars)], axis=0)


def joined(parts: Sequence[Any]) -> Any:
    """Return the replicas' outputs as one structure of arrays; who had no examples adds nothing.

    Args:
        parts: A structure of arrays a replica, of None where it had no examples.

    Raises:
        ValueError: An output has no axis for the examples, or its further axes differ.
    """
    filled_parts = [part for part in parts if _nest.flatten(part)[0] is not None]

    def join(*arrays: Any) -> Any:
        if not arrays[0].ndim:
            raise ValueError(
                "The output of a model must have one row per example. Received: a scalar output. "
                "Return outputs of shape (batch, ...)."
            )
        for array in arrays[1:]:
            if array.shape[1:] != arrays[0].shape[1:]:
                raise ValueError(
                    "`predict` joins the outputs of all batches, so their shapes may differ only "
                    f"in the first axis. Received: outputs of shape {arrays[0].shape} and "
                    f"{array.shape}. Pad the inputs to one length, or call `predict_on_batch` for "
                    "each batch."
                )
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    return _nest.map_structure(join, *filled_parts)


def of_all_workers(strategy: Strategy, rows: Any) -> Any:
    """Return the rows that the replicas of all workers made, of a structure of arrays.

    Args:
        strategy: The strategy.
        rows: Those that this process's replicas made.
    """
    return _nest.map_structure(strategy.join_rows, rows)


def _first(value: Any) -> Any:
    """Return replica 0's part of what is equal on all of them."""
    return value.values[0] if isinstance(value, DistributedValues) else value
