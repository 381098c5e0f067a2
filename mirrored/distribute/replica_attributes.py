"""Variables and attributes that replicas create: one for all of them, or one for each replica."""

from collections import Counter, defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from mirrored import _nest
from mirrored._contexts import Within
from mirrored.distribute.context import one_of_several
from mirrored.distribute.per_replica import PerReplica
from mirrored.ops.tensor import Tensor
from mirrored.variables import Variable
from mirrored.variables.tracking import Part

_MISSING: Any = object()


class ReplicaAttribute:
    """The values of one attribute.

    Args:
        replicas: The number of replicas.
        before: The value that the attribute had before a replica assigned it.
    """

    __slots__ = ("before", "by_replica")

    def __init__(self, replicas: int, before: Any) -> None:
        self.before = before
        self.by_replica = [before] * replicas

    def value(self) -> Any:
        """Return the value of the running replica; outside of replicas a `PerReplica`.

        Raises:
            AttributeError: This replica has none.
        """
        context = one_of_several()
        if context is None:
            return PerReplica(None if value is _MISSING else value for value in self.by_replica)
        value = self.before
        if context._strategy.local_replicas == len(self.by_replica):
            value = self.by_replica[context._number]
        if value is _MISSING:
            raise AttributeError
        return value


def assign(owner: Any, name: str, value: Any) -> bool:
    """Return whether an attribute is one of the running replica alone, and then assign it.

    Args:
        owner: A layer or model.
        name: The attribute.
        value: Its value.
    """
    known = owner.__replica_attributes__ or {}
    context = one_of_several()
    # What a layer is set up with, as where a replica makes it, it has for all of them.
    kept_apart = name in known or (vars(owner).get("built") and _holds_tensors(value))
    if context is None or not kept_apart or hasattr(type(owner), name):
        known.pop(name, None)
        return False
    known = vars(owner).setdefault("__replica_attributes__", {})
    count = context._strategy.local_replicas
    values = known.get(name)
    before = vars(owner).pop(name, _MISSING) if values is None else values.before
    if values is None or len(values.by_replica) != count:
        known[name] = ReplicaAttribute(count, before)
    known[name].by_replica[context._number] = value
    return True


def delete(owner: Any, name: str) -> None:
    """Delete an attribute that replicas assigned: that of the running one, or of all of them.

    Args:
        owner: A layer or model.
        name: The attribute.
    """
    context = one_of_several()
    if context is None:
        del owner.__replica_attributes__[name]
    else:
        owner.__replica_attributes__[name].by_replica[context._number] = _MISSING


def _holds_tensors(value: Any) -> bool:
    """Return whether a value is of one replica: tensors, or a list or dict that may get some."""
    if isinstance(value, list | dict) and not value:
        return True
    leaves = _nest.flatten(value)
    has_tensor = any(isinstance(leaf, Tensor) for leaf in leaves)
    return has_tensor and not any(isinstance(leaf, Part) for leaf in leaves)


class ReplicaVariables:
    """What the replicas of one run make."""

    def __init__(self) -> None:
        self._made: defaultdict[str, list[Variable]] = defaultdict(list)
        self._taken: Counter[tuple[int, str]] = Counter()

    def made_by(self, replica: int, name: str, make: Callable[[], Variable]) -> Variable:
        """Return the variable that a replica makes.

        Args:
            replica: The replica's number.
            name: The variable's name.
            make: Makes it, for all replicas.

        Raises:
            RuntimeError: The first replica made none of that name, or fewer.
        """
        variables = self._made[name]
        if replica == 0:
            variables.append(make())
        place = self._taken[replica, name]
        self._taken[replica, name] += 1
        if place >= len(variables):
            raise RuntimeError(
                f"Tried to create variable {name} with mismatching name on device {replica}. "
                f"Received: the variable {name!r}, which replica {replica} creates and the first "
                "replica does not. All replicas must create the same variables."
            )
        return variables[place]


_current: ContextVar[ReplicaVariables] = ContextVar("mirrored_replica_variables")


def shared_by_replicas(variables: ReplicaVariables) -> Within:
    """Within this context let a replica make variables with the others of its run."""
    return Within(_current, variables)


# Returns what the replicas of the run make that goes on in this context.
replica_variables: Callable[[], ReplicaVariables] = _current.get
