"""The ways in which values of several replicas become one.

Kept by itself because the contexts, the collectives and the strategies all name it.
"""

import enum
from typing import Any, Self


class ReduceOp(enum.Enum):
    """Sum or mean.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.ReduceOp.SUM.value
        'SUM'
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return `value`, or the op of that name in any case.

        Raises:
            ValueError: There is none.
        """
        if isinstance(value, cls):
            return value
        try:
            return cls(value.upper() if isinstance(value, str) else value)
        except ValueError:
            raise ValueError(
                f"{value!r} is not a valid ReduceOp. Give one of {[op.name for op in cls]}."
            ) from None
