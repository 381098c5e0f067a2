"""The examples of all replicas at once, on the host, for metrics that need the whole batch.

The maxima or ratios of shards do not add up to those of the batch. So such a metric is called once
per batch, outside replicas, with what one device would give it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mirrored import devices
from mirrored.distribute import get_replica_context
from mirrored.distribute.context import outside_scopes
from mirrored.distribute.global_batch import GlobalBatch, assumed_replicas, global_batch
from mirrored.distribute.on_read_variables import writing_once
from mirrored.distribute.per_replica import select
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.ops import Tensor
from mirrored.ops.activations import remember
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import only
from mirrored.ops.tensor_views import masked
from mirrored.training.metrics.quotient import share_of_batch

# A target, a prediction, and the weights, or None.
Arguments = tuple[Any, Any, Any]
# A metric with its arguments.
MetricCall = tuple[Any, Arguments]


def parted(calls: Iterable[MetricCall]) -> tuple[dict[int, MetricCall], dict[int, MetricCall]]:
    """Return the calls that need the whole batch, and those that a shard is enough for.

    Args:
        calls: The metrics of this replica, each with its arguments.

    Returns:
        The calls by their numbers. None needs more than a shard where that is the batch, or in a
        loop that `fit` or `evaluate` does not run.
    """
    is_part = _has_part_of_batch()
    groups: tuple[dict[int, MetricCall], dict[int, MetricCall]] = ({}, {})
    for number, (metric, arguments) in enumerate(calls):
        of_shard = not is_part or not (metric._is_custom or metric._mixes_examples(*arguments[:2]))
        groups[of_shard][number] = metric, arguments
    return groups


def _has_part_of_batch() -> bool:
    """Whether this is one of several replicas of a step that `fit` or `evaluate` runs.

    Of a step that is only analysed it is not.
    """
    context = get_replica_context()
    is_alone = context is None or context.num_replicas_in_sync == 1
    return not is_alone and global_batch() is not None and assumed_replicas() is None


def call_once(calls: Iterable[MetricCall], function: Callable[..., Any]) -> list[Any]:
    """Call a function once per metric, on the host, with the arguments that all replicas have.

    The replicas meet here. What the function writes to variables is written once for all of them.

    Args:
        calls: The metrics of this replica that need the whole batch, each with its arguments.
        function: Called as `function(metric, y_true, y_pred, sample_weight)`.

    Returns:
        What it returned for each metric, the same on all replicas.
    """
    context: Any = get_replica_context()
    batch: Any = global_batch()
    columns = _Columns()
    taken = [(metric, [columns.take(argument) for argument in values]) for metric, values in calls]

    def merged(strategy: StrategyBase, parts: Sequence[Any]) -> list[Any]:
        with only(), devices.device("CPU:0"):
            whole = [_joined(strategy, part) for part in parts]
            with GlobalBatch([batch.examples]).in_force(), outside_scopes(), writing_once():
                return [function(m, *[_with_notes(whole, i) for i in items]) for m, items in taken]

    results: list[Any] = context.merge_call(merged, (columns.tensors,))
    return results


def statistics_of(calls: Sequence[MetricCall]) -> list[tuple[Tensor, Tensor]]:
    """Return totals and counts that add up, over the replicas, to those of the batch.

    Args:
        calls: The metrics of this replica, each with its arguments.

    Returns:
        The total and the count of each metric, in the order of the calls.
    """
    of_batch, of_shard = parted(calls)
    statistics = {i: metric.statistics(*values) for i, (metric, values) in of_shard.items()}
    if of_batch:
        share = share_of_batch()
        whole = call_once(of_batch.values(), lambda metric, *values: metric.statistics(*values))
        for number, (total, count) in zip(of_batch, whole, strict=True):
            statistics[number] = total * share, count * share
    return [statistics[number] for number in range(len(calls))]


class _Columns:
    """Tensors whose rows are gathered, each once, however many metrics take it.

    Attributes:
        tensors: The tensors.
    """

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self._numbers: dict[int, int] = {}

    def take(self, value: Any) -> Any:
        """Return the number of a tensor, with those of its mask and logits; None for None."""
        if value is None:
            return None
        tensor = adopt(value, None)
        made_by, logits = tensor._logits or ("", None)
        mask = tensor._keras_mask
        return self._number(tensor), self._number(mask), made_by, self._number(logits)

    def _number(self, tensor: Any) -> int | None:
        if tensor is None:
            return None
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self.tensors)
            self.tensors.append(tensor)
        return self._numbers[id(tensor)]


def _joined(strategy: StrategyBase, value: Any) -> Tensor:
    """Return the rows of all replicas on the host, also those of a lone replica of this process."""
    host = devices.get_device("CPU:0")
    parts = [adopt(select(i, value), None).copy_to(host) for i in range(len(strategy.devices))]
    return strategy.gather_parts(parts, 0)[0] if parts[0].shape else parts[0]


def _with_notes(whole: Sequence[Tensor], numbers: Any) -> Any:
    """Return a tensor of all replicas with its mask and the logits that it was made from."""
    if numbers is None:
        return None
    tensor, mask, made_by, logits = numbers
    result = whole[tensor]
    if mask is not None:
        result = masked(result, whole[mask])
    return result if logits is None else remember(result, made_by, whole[logits])
