"""When the copies of a variable are brought together, and how their values become one.

Kept by itself because variables, strategies and optimizers all name them.
"""

import enum
from typing import Any


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several replicas are brought together.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableSynchronization.ON_WRITE.name
        'ON_WRITE'
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How values that replicas assign to one variable become one value.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableAggregation.MEAN.name
        'MEAN'
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


def check_modes(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: str | None
) -> bool:
    """Return whether a variable is trainable, after checking what it was asked to be.

    Args:
        synchronization: A `VariableSynchronization`.
        aggregation: A `VariableAggregation`.
        trainable: What was asked for; None: unless it is brought together on reads.
        name: The variable's name, for messages.

    Raises:
        ValueError: One of the two is something else.
    """
    for what, value, kind in (
        ("synchronization", synchronization, VariableSynchronization),
        ("aggregation", aggregation, VariableAggregation),
    ):
        if not isinstance(value, kind):
            raise ValueError(
                f"Invalid variable {what} mode: {value} for variable: {name}. Give one of "
                f"{[str(each) for each in kind]}."
            )
    on_read = synchronization is VariableSynchronization.ON_READ
    return not on_read if trainable is None else bool(trainable)
