"""The replica that computed each tensor of a run, and the error where another replica uses it.

Replicas run the same Python objects one after the other, so that a list, a closure or a global may
hold what another replica put there.
"""

import gc
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mirrored import _nest
from mirrored.distribute.context import ALL_GATHER, ALL_REDUCE
from mirrored.ops.hooks import CustomCall
from mirrored.ops.op import Op
from mirrored.ops.tensor import Tensor
from mirrored.variables import VariableSynchronization
from mirrored.variables.tracking import Part

_SHARED = (ALL_REDUCE, ALL_GATHER)  # Of results that are the same on all replicas.


class ReplicaTensors:
    """The replica of each tensor that depends on a replica's part of the batch.

    Args:
        arguments: The arguments of each replica.
    """

    def __init__(self, arguments: Sequence[Any]) -> None:
        own = [
            {leaf._id for leaf in _nest.flatten(argument) if isinstance(leaf, Tensor)}
            for argument in arguments
        ]
        count = Counter(number for ids in own for number in ids)
        self._replicas = {
            number: replica
            for replica, ids in enumerate(own)
            for number in ids
            if count[number] == 1
        }
        self._sizes: set[int] = set()

    def listener(self, replica: int) -> "ReplicaListener":
        """Return what follows the ops of a replica.

        Args:
            replica: The replica's number.
        """
        return ReplicaListener(self, replica)

    def note(self, tensor: Tensor, replica: int, *, is_size: bool = False) -> None:
        """Note that a replica computed a tensor.

        Args:
            tensor: The tensor.
            replica: The replica's number.
            is_size: Whether it depends on the size of the shard.
        """
        self._replicas[tensor._id] = replica
        if is_size:
            self._sizes.add(tensor._id)

    def dependence(self, value: Any) -> str:
        """Return "size" or "examples", if a value depends on those of a shard.

        Args:
            value: A tensor, or another value.
        """
        number = value._id if isinstance(value, Tensor) else None
        return "size" if number in self._sizes else "examples" if number in self._replicas else ""

    def is_size(self, tensor: Tensor) -> bool:
        """Return whether a tensor depends on the size of a shard.

        Args:
            tensor: The tensor.
        """
        return tensor._id in self._sizes

    def replica_of(self, tensor: Tensor) -> int | None:
        """Return the replica that computed a tensor; None: it is the same on all of them.

        Args:
            tensor: The tensor.
        """
        return self._replicas.get(tensor._id)

    def check(self, structure: Any, replica: int) -> bool:
        """Return whether a structure has tensors of a replica.

        Args:
            structure: Tensors and other values, in lists, tuples and dicts.
            replica: The replica's number.

        Raises:
            RuntimeError: It has one of another replica.
        """
        tensors = (tensor for tensor in _nest.flatten(structure) if isinstance(tensor, Tensor))
        owners = {self.replica_of(tensor): tensor for tensor in tensors}
        for owner, tensor in owners.items():
            if owner is not None and owner != replica:
                raise RuntimeError(
                    "A replica can use only its own tensors, because other replicas have other "
                    f"examples. Received: in replica {replica}, a tensor of shape {tensor.shape} "
                    f"that replica {owner} computed and that is kept in {_holder(tensor)}. Assign "
                    "it, or a new list or dict of it, to an attribute of a layer or model that "
                    "its class does not define, as in `self.hidden = hidden` inside `call`: each "
                    "replica then reads its own. Or return it from the function that computes it."
                )
        return replica in owners


# They compute what a variable has next, which belongs to no replica.
_UPDATES = ("AssignAddVariableOp", "AssignSubVariableOp")


class ReplicaListener:
    """Follows what one replica computes.

    Args:
        tensors: The tensors of all replicas.
        replica: The replica's number.
    """

    def __init__(self, tensors: ReplicaTensors, replica: int) -> None:
        self._tensors = tensors
        self._replica = replica

    def follows(self, tensor: Tensor) -> bool:
        """Return whether gradients are wanted: never."""
        return False

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Check the inputs of an op, and note its output."""
        depends = False
        if op.name in _UPDATES:  # The first input is what a variable has, whoever computed it.
            inputs = inputs[1:]
        for tensor in inputs:  # A generator would take longer, in each op.
            owner = self._tensors._replicas.get(tensor._id)
            if owner is not None:
                depends = True
                if owner != self._replica:
                    self._tensors.check(tensor, self._replica)
        if op.name in _UPDATES:
            return
        if (depends and op not in _SHARED) or op.random:
            is_size = op.shape_only or any(map(self._tensors.is_size, inputs))
            self._tensors.note(output, self._replica, is_size=is_size)

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note the value of a variable whose copies differ."""
        if variable.synchronization is VariableSynchronization.ON_READ:
            self._tensors.note(value, self._replica)

    def on_custom_call(self, call: CustomCall) -> None:
        """Check the inputs of a function with a gradient of its own, and note its outputs."""
        if self._tensors.check(call.inputs, self._replica):
            for tensor in call.outputs:
                self._tensors.note(tensor, self._replica)


def _holder(tensor: Tensor) -> str:
    """Return what errors call the place where a tensor is kept."""
    kinds = [Part]
    for kind in kinds:
        kinds += kind.__subclasses__()
    # An object refers to its class. (A list of all objects breaks threads that build a tuple.)
    for owner in gc.get_referrers(*kinds):
        if isinstance(owner, Part) and hasattr(owner, "__dict__"):
            for name, value in vars(owner).items():
                if any(leaf is tensor for leaf in _nest.flatten(value)):
                    return f"the attribute {name!r} of {owner!r}"
    return "a list, a dict, a closure or a global"
