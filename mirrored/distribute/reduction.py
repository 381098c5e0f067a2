"""What `reduce` and `gather` of a strategy do with each value: take its parts, and join them.

Kept apart from the strategy, which says what is allowed where.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mirrored import _nest, devices, ops
from mirrored.distribute.cross_device_ops.base import checked_axis
from mirrored.distribute.distributed_variables import DistributedVariable
from mirrored.distribute.reduce_op import ReduceOp
from mirrored.distribute.values import DistributedValues, check_part_count
from mirrored.ops.dispatch import adopt
from mirrored.ops.tensor import Tensor

if TYPE_CHECKING:
    from mirrored.distribute.strategy import Strategy


def reduced(strategy: "Strategy", op: ReduceOp, value: Any, axis: Any) -> Tensor:
    """Return the sum or mean of a value's parts; `Strategy.reduce` says what the arguments mean."""
    parts = [adopt(part, None) for part in _parts(strategy, op, value)]
    if axis is None:
        return strategy.reduce_parts(op, parts)
    check_axis(axis, parts)
    sums = []
    for part in parts:
        with devices.device(part._device):
            sums.append(ops.reduce_sum(part, axis=axis))
    total = strategy.reduce_parts(ReduceOp.SUM, sums)
    if op is ReduceOp.SUM:
        return total
    count: int = sum(part.shape[axis] for part in parts)
    with devices.device(total._device):
        return total / count


def gathered(strategy: "Strategy", value: Any, axis: Any) -> Tensor:
    """Return a value's parts joined; `Strategy.gather` says what the arguments mean."""
    # A value that is not per-replica is all that there is, as for a mean.
    parts = [adopt(part, None) for part in _parts(strategy, ReduceOp.MEAN, value)]
    check_axis(axis, parts)
    return strategy.gather_parts(parts, axis)


def _parts(strategy: "Strategy", op: ReduceOp, value: Any) -> list[Any]:
    if isinstance(value, DistributedVariable) and value.strategy is strategy:
        return [copy.read_value() for copy in value.copies]
    if isinstance(value, DistributedValues):
        return list(value.values)
    if strategy.num_replicas_in_sync > 1 and op is ReduceOp.SUM:
        raise ValueError(
            f"A non-DistributedValues value {value} cannot be reduced with the given reduce op "
            f"{op}."
        )
    return [value]


def check_axis(axis: Any, parts: Sequence[Tensor]) -> None:
    """Raise ValueError unless all tensors have an axis.

    Args:
        axis: Its number.
        parts: The tensors.
    """
    for part in parts:
        checked_axis(axis, part.ndim)


def check_parts(strategy: "Strategy", structure: Any) -> None:
    """Raise ValueError unless every per-replica value in a structure has a part for each replica.

    Args:
        strategy: The strategy.
        structure: The values.
    """
    for leaf in _nest.flatten(structure):
        check_part_count(leaf, strategy.num_replicas_in_sync)
