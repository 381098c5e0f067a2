"""Finds what a step on several replicas makes of the shards of a batch, before it is run.

The step is recorded on one replica, for shards of other sizes; nothing is computed or written.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mirrored import _nest, ops
from mirrored._logging import logger
from mirrored.distribute import PerReplica
from mirrored.distribute.context import ReplicaContext, enter
from mirrored.distribute.distributed_variables import MirroredVariable
from mirrored.distribute.global_batch import GlobalBatch, assuming_replicas
from mirrored.distribute.replica_attributes import ReplicaVariables, shared_by_replicas
from mirrored.layers.added_losses import forget
from mirrored.layers.layer import Layer, walk
from mirrored.layers.weights import find
from mirrored.ops import Tensor, TensorSpec
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import only
from mirrored.ops.op import OPS
from mirrored.ops.random import mark_streams
from mirrored.ops.rng_state import ShardPosition, shard_position
from mirrored.optim import Optimizer
from mirrored.program.variable_access import ruled_by
from mirrored.training.losses.loss import Loss
from mirrored.training.shard_analysis.rules import DRAWS, RULES
from mirrored.training.shard_analysis.shard_recorder import NotAnalysed, ShardRecorder, recordings
from mirrored.training.shard_analysis.shard_values import (
    SAME,
    UNIT,
    Kind,
    Operation,
    Scale,
    ShardValue,
)
from mirrored.variables import Variable, VariableAggregation
from mirrored.variables.device_variable import Undone

Function = Callable[["AnalysedBatch"], Callable[..., Any]]

_MEAN = Scale(-1, 0)


class NotAdditive(ValueError):
    """A loss or a gradient of shards cannot be put together to that of the batch."""


class AnalysedBatch(GlobalBatch):
    """The batch of a step that is analysed: values are looked at where others ask for weights.

    Args:
        recorder: Who records the step.
        refuses: Whether a loss or gradient that does not add up is an error; else it counts as a
            mean over a shard.

    Attributes:
        scales: What `GlobalBatch` takes.
        mixing: The operations by which rows of other examples of a shard got into a row.
        uneven_logs: By the name of a returned number that is neither a mean nor a sum, the
            operations that made it so.
        uneven_variables: By the name of a variable whose aggregation is not that of the values
            that replicas assign, its aggregation.
    """

    def __init__(self, recorder: ShardRecorder, *, refuses: bool) -> None:
        super().__init__([recorder.sizes.examples] * recorder.sizes.replicas, of_means=True)
        self._recorder = recorder
        self._refuses = refuses
        self.scales: dict[Any, Scale] = {}
        self.mixing: dict[Operation, None] = {}
        self.uneven_logs: dict[str, tuple[Operation, ...]] = {}
        self.uneven_variables = recorder.uneven_variables
        self._draws = 0

    @property
    def examples(self) -> int:
        """One: what `fit` divides by it has the scale that it had."""
        return 1

    @property
    def is_analysed(self) -> bool:
        """True: that is what is found out."""
        return True

    def note_draw(self, *, is_by_example: bool) -> None:
        """Note whether the next random numbers are those of examples; see `GlobalBatch`.

        Args:
            is_by_example: Whether they are.
        """
        self._draws += 1
        if not is_by_example:
            self.scales["draw", (self._draws,)] = UNIT

    def look_at(self, results: Any, *, rows: bool) -> None:
        """Note which operations mixed the rows of results, or summed what should be rows."""
        for tensor in _nest.flatten(results):
            if isinstance(tensor, Tensor):
                value = self._recorder.value_known(tensor)
                operations = value.mixing
                if rows:
                    operations |= value.sources | value.reordered
                    if value.kind is Kind.ROWS and (value.axis or value.blocks not in (1, None)):
                        operations |= self._recorder.maker(tensor)
                self.mixing.update(dict.fromkeys(sorted(operations)))

    def weights(
        self, use: str, replica: int, values: Sequence[Any], names: Sequence[str] = ()
    ) -> list[float]:
        """Note the scales of a replica's values; see `GlobalBatch`.

        Raises:
            NotAdditive: One of them is neither a mean nor a sum, and no number to be logged.
        """
        for key, tensor in zip(self._keys(use, replica, values, names), values, strict=True):
            value = self._recorder.result_known(tensor)
            self.mixing.update(dict.fromkeys(sorted(value.mixing)))
            scale = _scale_of_sum(value)
            adding = {operation.owner for operation in value.sources}
            own = frozenset(
                operation
                for operation in value.mixing
                if _computes_across(operation, adding if use == "added loss" else set())
            )
            if use in _LOSSES and own:  # As the squared differences from the shard's mean do.
                scale, value = None, ShardValue(Kind.OTHER, sources=own)
            if scale is not None:
                self.scales[use, key] = scale
            elif use in ("logs", "tracked"):
                name = "loss" if use == "tracked" else str(key)
                self.uneven_logs[name] = tuple(sorted(value.sources))
            elif self._refuses and self._recorder.is_certain:
                raise NotAdditive(_refusal(use, value))
        return [1.0] * len(values)

    def note_means(self, values: Iterable[Tensor]) -> None:
        """Take values as means over a shard, whatever they were computed from."""
        for tensor in values:
            mixing = self._recorder.value_known(tensor).mixing
            self._recorder.declare(tensor, ShardValue(Kind.SUM, scale=_MEAN, mixing=mixing))

    def note_gradients(self, gradients: Any) -> None:
        """Note the gradients of the losses that were noted last, and sums as these are."""
        last = "differentiated loss", self._uses["differentiated loss", 0]
        scales = {scale for (use, key), scale in self.scales.items() if (use, key[0]) == last}
        if len(scales) > 1 and self._recorder.is_certain:
            raise NotAdditive(_refusal("loss", ShardValue(Kind.OTHER)))
        value = ShardValue(Kind.SUM, scale=next(iter(scales), _MEAN))
        for tensor in gradients:
            if isinstance(tensor, Tensor):
                self._recorder.declare(tensor, value)

    def note_totals(self, values: Any) -> None:
        """Remember what is that of all replicas on each of them, as results of metrics are."""
        values = list(values)
        super().note_totals(values)
        for tensor in values:
            if isinstance(tensor, Tensor):
                self._recorder.declare(tensor, SAME)

    def check_no_gradients(self, values: Any) -> None:
        """Leave the check to the step itself."""


def _scale_of_sum(value: ShardValue) -> Scale | None:
    """Return the scale with which the replicas' values add up to the whole; None: they do not."""
    if value.kind is Kind.SUM:
        scale = value.scale
    elif value.kind is Kind.SAME:
        scale = None if value.scale is None else value.scale.times(_MEAN)
    else:
        return None
    return scale if scale is not None and scale.examples in (0, -1) else None


# Of sums over a shard with a scale, what brings them together to the sum or mean over the batch.
_AGGREGATED = {(VariableAggregation.SUM, UNIT), (VariableAggregation.MEAN, _MEAN)}
_LOSSES = ("loss", "added loss", "differentiated loss")
# Operations that bring examples to other rows, as mixing up a batch does, and compute nothing.
_MOVES = ("ConcatV2", "GatherV2", "StatelessShuffle", "StridedSlice")
_WHAT = {
    "added loss": "A loss passed to `add_loss`",
    "gradients": "A gradient passed to `apply_gradients`",
}


def _computes_across(operation: Operation, adding: set[str]) -> bool:
    """Return whether a loss computes with several examples, beside what layers do.

    Args:
        operation: An operation that it was computed by.
        adding: The names of the layers that added the loss.
    """
    op = OPS.get(operation.name)
    by_loss = operation.kind in ("loss", "step") or operation.owner in adding
    is_known = operation.name in RULES or (op is not None and op.elementwise)
    return by_loss and is_known and operation.name not in _MOVES


def _refusal(use: str, value: ShardValue) -> str:
    origins = ", ".join(map(str, sorted(value.sources))) or "a sum of parts that count differently"
    advice = (
        "clip with the optimizer's `clipnorm`, `clipvalue` or `global_clipnorm`, which act on the "
        "gradient of the whole batch"
        if use == "gradients"
        else "return one value per example, their mean, or their sum divided by the global batch "
        "size; add penalties to a sum with `mr.nn.scale_regularization_loss`; use the whole batch "
        "by `mr.distribute.get_replica_context().all_reduce` or `all_gather`"
    )
    return (
        f"{_WHAT.get(use, 'The loss')} is neither a mean nor a sum over a shard's examples, so "
        "adding the replicas' values does not give the value of the batch. Received: a value "
        f"computed by {origins}. On several replicas {advice}; or train on one device."
    )


class _Unknown(dict[Any, Scale]):
    """The scales of a step that was not analysed; says so when the first one is asked for.

    Args:
        model: The model.
        reason: Why it was not.
    """

    def __init__(self, model: Any, reason: str) -> None:
        super().__init__()
        self._model, self._reason = model, reason

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the default."""
        _once(
            self._model,
            f"A step of {self._model.name!r} could not be recorded for shards of other sizes, so "
            f"it is not known how the replicas' values add up. Received: {self._reason} A loss "
            "that is one number per shard counts as the mean over its examples: return one value "
            "per example.",
        )
        return default


def scales_of(
    model: Any, function: Function, arguments: Sequence[Any], *, rows: bool, refuses: bool
) -> dict[Any, Scale]:
    """Return what `GlobalBatch` takes of a step, and log what depends on the number of replicas.

    Args:
        model: The model.
        function: As for `analysed`.
        arguments: As for `analysed`.
        rows: As for `analysed`.
        refuses: As for `analysed`.

    Raises:
        ValueError: A loss or a gradient of shards cannot be put together to that of the batch.
    """
    try:
        batch = analysed(model, function, arguments, rows=rows, refuses=refuses)
    except NotAdditive as error:
        raise ValueError(str(error)) from None
    except NotAnalysed as error:
        return _Unknown(model, str(error))
    if refuses:
        report(model, batch)
    return batch.scales


def analysed(
    model: Layer, function: Function, arguments: Sequence[Any], *, rows: bool, refuses: bool = True
) -> AnalysedBatch:
    """Return the batch of a step, with what the step makes of its shards.

    Args:
        model: The model, which is built.
        function: From the batch to what one replica calls on its shard.
        arguments: The step's arguments, of which the replicas' tensors are looked at for their
            shapes and dtypes.
        rows: Whether what it returns is to have a row per example, as predictions have.
        refuses: Whether a loss or gradient that does not add up is an error.

    Raises:
        NotAdditive: A loss or a gradient of shards cannot be put together to that of the batch.
        NotAnalysed: The step cannot be recorded for other sizes.
    """
    leaves = [leaf for leaf in _nest.flatten(list(arguments)) if leaf is not None]
    shapes = [_spec_of(leaf).shape for leaf in leaves]
    shapes += [variable.shape for variable in find([model, *walk(model)], Variable)]
    for recorder in recordings([size for shape in shapes for size in shape]):
        batch = AnalysedBatch(recorder, refuses=refuses)
        try:
            with _as_one_replica(model, recorder, batch):
                results = function(batch)(*(_shards(argument, recorder) for argument in arguments))
                batch.look_at(results, rows=rows)
        except (NotAdditive, NotAnalysed):
            raise
        except Exception as error:
            raise NotAnalysed(f"{type(error).__name__}: {error}") from error
    return batch


def _shards(argument: Any, recorder: ShardRecorder) -> Any:
    """Return a structure of what stands for shards of the recorder's size."""
    return _nest.map_structure(
        lambda leaf: None if leaf is None else recorder.shard(_spec_of(leaf)), argument
    )


def _spec_of(leaf: Any) -> TensorSpec:
    tensor = leaf.values[0] if isinstance(leaf, PerReplica) else leaf
    return TensorSpec(tensor.shape[1:], tensor.dtype)


@contextmanager
def _as_one_replica(model: Any, recorder: ShardRecorder, batch: AnalysedBatch) -> Iterator[None]:
    """Run as the first replica of several that never meet, and leave no trace."""
    strategy, sizes = model.distribute_strategy, recorder.sizes
    layers = list(walk(model))
    back = mark_streams()
    context = ReplicaContext(strategy, 0, _Alone(strategy, recorder).merge)
    position = _NotingPosition(
        object(), 0, sizes.examples, sizes.examples, sizes.examples * sizes.replicas, sizes.replicas
    )
    position.noted_by = batch
    try:
        with (
            only(recorder),
            recorder.recording(),
            ruled_by(lambda name: None),
            shared_by_replicas(ReplicaVariables()),
            Undone().in_force(),
            batch.in_force(),
            assuming_replicas(sizes.replicas),
            enter(strategy, context),
            strategy.replica_device_scope(0),
            shard_position(position),
            _named_calls([*layers, *_losses_of(model)], recorder.owners),
        ):
            yield
    finally:
        forget(layers, of_all=True)
        back()


class _NotingPosition(ShardPosition):
    """A position that notes which random numbers are those of examples."""

    noted_by: AnalysedBatch

    def leads(self, shape: Sequence[int]) -> bool:
        """Return whether the first axis of what is drawn is taken for the batch."""
        is_led = super().leads(tuple(shape))
        self.noted_by.note_draw(is_by_example=is_led)
        return is_led


class _Alone:
    """Answers for the other replicas, of which a recording for sizes alone needs no values."""

    def __init__(self, strategy: Any, recorder: ShardRecorder) -> None:
        self._strategy = strategy
        self._recorder = recorder

    def merge(self, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Return what a replica receives where all of them meet."""
        name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
        if name == "_batch_all_reduce":
            return [self._of_all(value) for value in args[1]]
        if name == "_batch_all_gather":
            axis, values = args
            count = self._recorder.sizes.replicas
            return [self._of_all(ops.repeat(v, count, axis)) for v in values], [0] * len(values)
        if isinstance(owner, MirroredVariable):
            self._check_assigned(owner, args)
        if isinstance(owner, Optimizer | Variable):
            return None
        if not str(getattr(function, "__module__", "")).startswith("mirrored."):
            raise NotAnalysed("The step calls `merge_call`.")
        with enter(self._strategy, None):  # A layer is built in its first call.
            return function(self._strategy, *args, **kwargs)

    def _check_assigned(self, variable: MirroredVariable, args: Any) -> None:
        """Raise ValueError where replicas would assign alike a part of what one device assigns.

        Note where the variable's aggregation makes something else of what they assign.
        """
        method, value = args
        known = self._recorder.result_known(adopt(value, variable.dtype))
        if variable.aggregation is not VariableAggregation.NONE:
            scale = None if known.kind is Kind.SAME else _scale_of_sum(known)
            if known.kind is Kind.SAME and known.scale == UNIT:
                is_whole = variable.aggregation is not VariableAggregation.SUM or known.is_zero
            else:
                is_whole = (variable.aggregation, scale) in _AGGREGATED
            if not is_whole and self._recorder.is_certain:
                self._recorder.uneven_variables[variable.name] = variable.aggregation.name
            return
        is_part = known.scale != UNIT if known.kind is Kind.SAME else known.kind is Kind.SUM
        if is_part and known.scale != _MEAN and self._recorder.is_certain:
            received = "a value that depends on the number of examples of a shard"
            raise NotAdditive(variable.differing(method, received))

    def _of_all(self, value: Any) -> Tensor:
        result = ops.identity(value)
        self._recorder.declare(result, SAME)
        return result


@contextmanager
def _named_calls(layers: Sequence[Any], owners: list[tuple[str, str]]) -> Iterator[None]:
    """Note whose call is running while operations are recorded."""

    def named(layer: Any) -> Callable[..., Any]:
        kind = "model" if layer is layers[0] else "layer" if isinstance(layer, Layer) else "loss"
        call, owner = layer.call, (layer.name, kind)

        def run(*args: Any, **kwargs: Any) -> Any:
            owners.append(owner)
            try:
                return call(*args, **kwargs)
            finally:
                owners.pop()

        return run

    kinds = (Layer, Loss)
    noted = [layer for layer in layers if isinstance(layer, kinds) and "call" not in vars(layer)]
    for layer in noted:
        vars(layer)["call"] = named(layer)
    try:
        yield
    finally:
        for layer in noted:
            vars(layer).pop("call", None)


def _losses_of(model: Any) -> list[Loss]:
    compilation = model.__state__.compilation
    outputs = None if compilation is None else compilation.outputs
    return [] if outputs is None else find([output.loss for output in outputs.outputs], Loss)


def report(model: Any, batch: AnalysedBatch) -> None:
    """Log what depends on the number of replicas, each of it once per model.

    Args:
        model: The model.
        batch: The batch of one of its steps, which was analysed.
    """
    for operation in batch.mixing:
        _once(
            model,
            f"The result of {model.name!r} depends on the number of replicas: {operation} combines "
            f"the examples of one replica's shard. {advice_for(model, operation)}",
        )
    for name, origins in batch.uneven_logs.items():
        _once(
            model,
            f"The number {name!r} that a step of {model.name!r} returns depends on the number of "
            "replicas: it is neither a mean nor a sum over the examples of a shard, since it is "
            f"computed by {', '.join(map(str, origins))}. The value shown is the shards' mean. "
            "Return the result of a metric, or reduce it with "
            "`mr.distribute.get_replica_context().all_reduce`.",
        )

    for name, aggregation in batch.uneven_variables.items():
        _once(
            model,
            f"The variable {name!r} of {model.name!r} depends on the number of replicas: "
            f"VariableAggregation.{aggregation} of the values that replicas assign does not give "
            "the value that one device assigns. Assign sums over examples with `assign_add` and "
            "SUM, means with MEAN, or the result of "
            "`mr.distribute.get_replica_context().all_reduce`.",
        )


def _once(model: Any, text: str) -> None:
    said: set[str] = vars(model).setdefault("_said_of_shards", set())
    if text not in said:
        said.add(text)
        logger.warning("%s", text)


def advice_for(model: Any, operation: Operation) -> str:
    """Return what to do about an operation that combines the examples of a shard.

    Args:
        model: The model.
        operation: The operation.
    """
    for layer in walk(model):
        if layer.name == operation.owner and hasattr(layer, "synchronized"):
            return "Give the layer `synchronized=True`: it then uses the whole batch."
    if operation.name in DRAWS:
        return (
            "Draw with `mr.random` or a generator, and with a shape whose first axis is the "
            "batch: each replica then draws its part."
        )
    return (
        "Sum over all replicas with `mr.distribute.get_replica_context().all_reduce`, or join "
        "their rows with its `all_gather`, before this operation."
    )
