"""Brings together what an optimizer updates, so that a recorded step does it in one pass.

Variables of one device and dtype become one vector, and so do their slots and gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mirrored import ops
from mirrored.flat import FlatVariable, pack
from mirrored.ops import Tensor
from mirrored.ops.hooks import recorded_by
from mirrored.variables import DeviceVariable, Variable

_LINE = 16  # Elements: the floats of a cache line.

Target = DeviceVariable | FlatVariable


class Unit(NamedTuple):
    """What one call of the rule updates.

    Attributes:
        gradient: The gradient.
        copies: One replica's variable and its slots.
    """

    gradient: Tensor
    copies: Sequence[Target]


def packing_order(variables: Sequence[Variable]) -> list[int]:
    """Return the places of variables in the order in which they are packed.

    The last ones come first, as their gradients do; but those that fill whole cache lines come
    before the others, so that the matrices among them begin where a line does.

    Args:
        variables: The variables.
    """
    last_first = range(len(variables) - 1, -1, -1)
    return sorted(last_first, key=lambda i: variables[i].size % _LINE != 0)


def summed(
    variables: Sequence[Variable],
    gradients: Sequence[Any],
    batch_sum: Callable[[list[Any]], list[Any]],
) -> list[Any]:
    """Return the sums of gradients over replicas, one for each variable.

    They are summed in the order in which the variables are packed: so an update finds them joined,
    and of several buckets that of the last layers, whose gradients are there first, begins first.

    Args:
        variables: The variables.
        gradients: For each its gradient.
        batch_sum: From gradients, in a list, to their sums.
    """
    order = packing_order(variables)
    sums = batch_sum([gradients[i] for i in order])
    return [each for _, each in sorted(zip(order, sums, strict=True), key=lambda pair: pair[0])]


def packed(units: Sequence[Unit]) -> list[Unit]:
    """Return units with one for all variables of a device and dtype, as vectors.

    Args:
        units: One for each variable of one replica.

    Raises:
        ResourceExhaustedError: A device has no room for variables beside where they are now.
    """
    unit_of = {id(unit.copies[0]): unit for unit in units}
    packed = []
    for variables in alike([unit.copies[0] for unit in units]):
        members = [unit_of[id(variable)] for variable in variables]
        flat = [ops.reshape(unit.gradient, (unit.gradient.size,)) for unit in members]
        with recorded_by(None):
            copies = [
                pack(column) for column in zip(*(each.copies for each in members), strict=True)
            ]
        packed.append(Unit(ops.concat(flat, axis=0), copies))
    return packed


def alike(variables: Sequence[Any]) -> list[list[DeviceVariable]]:
    """Return variables by device and dtype, in the order in which they are packed.

    Args:
        variables: Variables of one replica.
    """
    groups: dict[Any, list[DeviceVariable]] = {}
    for i in packing_order(variables):
        groups.setdefault((variables[i].device, variables[i].dtype), []).append(variables[i])
    return list(groups.values())
