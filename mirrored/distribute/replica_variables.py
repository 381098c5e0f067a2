"""Variables that are made inside replicas: the first replica makes one for all of them.

The others run the same program, and get what it made under the same name, in the same order.
"""

from collections import Counter, defaultdict
from collections.abc import Callable
from contextvars import ContextVar

from mirrored._contexts import Within
from mirrored.variables import Variable


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
                f"Received: the variable {name!r}, which replica {replica} makes and the first "
                "replica does not. A variable is made by all replicas: make it whatever a "
                "replica's number is."
            )
        return variables[place]


_current: ContextVar[ReplicaVariables] = ContextVar("mirrored_replica_variables")


def shared_by_replicas(variables: ReplicaVariables) -> Within:
    """Within this context let a replica make variables with the others of its run."""
    return Within(_current, variables)


# Returns what the replicas of the run make that goes on in this context.
replica_variables: Callable[[], ReplicaVariables] = _current.get
