"""Sums over a fixed number of replicas, whose order does not depend on the number of devices.

The replicas are the leaves of a binary tree, in their order. The left branch of a node has the
largest power of two of the leaves below it, so the tree depends on the number of replicas alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from mirrored import _overrides, devices
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops import buckets
from mirrored.distribute.cross_device_ops.all_reduce import AllReduceCrossDeviceOps
from mirrored.distribute.cross_device_ops.collectives import of_sum, per_replica_copies
from mirrored.distribute.cross_device_ops.options import CommunicationOptions, ReduceOp
from mirrored.distribute.cross_device_ops.reduction_to_one_device import sum_on
from mirrored.ops.tensor import Tensor

_T = TypeVar("_T")


def tree_sum(values: Sequence[_T], add: Callable[[_T, _T], _T]) -> _T:
    """Return the sum of values over the tree.

    Args:
        values: The values, by replica.
        add: Returns the sum of two values.

    Example:
        >>> tree_sum("abcdef", lambda left, right: f"({left}{right})")
        '(((ab)(cd))(ef))'
    """
    known = {range(i, i + 1): value for i, value in enumerate(values)}
    return join_subtrees(range(len(values)), known, add)


def join_subtrees(replicas: range, known: Mapping[range, _T], add: Callable[[_T, _T], _T]) -> _T:
    """Return the sum of a subtree.

    Args:
        replicas: The replicas of the subtree.
        known: The sums of subtrees that all of it is made of, by their replicas.
        add: Returns the sum of two values.
    """
    if replicas in known:
        return known[replicas]
    left, right = _halves(replicas)
    return add(join_subtrees(left, known, add), join_subtrees(right, known, add))


def subtrees(replicas: range, own: range) -> list[range]:
    """Return the largest subtrees that consist of some replicas alone, in order.

    Args:
        replicas: The replicas of the whole tree.
        own: Those replicas.

    Example:
        >>> subtrees(range(8), range(1, 8))
        [range(1, 2), range(2, 4), range(4, 8)]
    """
    if own.start <= replicas.start and replicas.stop <= own.stop:
        return [replicas] if replicas else []
    if own.stop <= replicas.start or replicas.stop <= own.start:
        return []
    return [part for half in _halves(replicas) for part in subtrees(half, own)]


def _halves(replicas: range) -> tuple[range, range]:
    half = 1 << (len(replicas) - 1).bit_length() - 1
    return replicas[:half], replicas[half:]


class TreeReduction(AllReduceCrossDeviceOps):
    """Sums over the tree of replicas; two partial sums meet on the device of the left one.

    So replicas of one device are added there, where the tree has them beside each other, and only
    partial sums are copied between devices. `MirroredStrategy(replicas=)` uses it.
    """

    __overrides__ = _overrides.ALL_REDUCES  # What the class itself defines is no override.
    algorithm = "tree"
    title = "Tree"

    def reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        destination: Device,
        options: CommunicationOptions,
    ) -> Tensor:
        """Compute `reduce`; its arguments are checked."""
        return self._reduced(reduce_op, values).copy_to(destination)

    def all_reduce_implementation(
        self,
        reduce_op: ReduceOp,
        values: Sequence[Tensor],
        options: CommunicationOptions,
        number: int,
        what: str,
    ) -> list[Tensor]:
        """Return the reduction of one tensor a replica, on the device of each."""
        where = [value._device for value in values]
        return per_replica_copies(self._reduced(reduce_op, values), where)

    def _reduced(self, reduce_op: ReduceOp, values: Sequence[Tensor]) -> Tensor:
        if len(values) == 1:
            return values[0]
        total = tree_sum(values, lambda left, right: sum_on([left, right], left._device))
        with devices.device(total._device):
            return of_sum(reduce_op, total, len(values))

    def _buckets(
        self, batch: Sequence[Sequence[Tensor]], options: CommunicationOptions
    ) -> list[list[int]]:
        memories = {value._device.backend.memory for values in batch for value in values}
        # In one memory nothing is copied, which buckets could do side by side.
        return buckets.alike(batch) if len(memories) == 1 else super()._buckets(batch, options)
