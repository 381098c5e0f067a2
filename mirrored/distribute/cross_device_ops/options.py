"""What a caller may ask of one collective: the size of packs, a deadline, an implementation.

Kept by itself because the interface names it, and the algorithms read it.
"""

import enum
import math
from dataclasses import dataclass

from mirrored._numbers import as_integer


class CommunicationImplementation(enum.Enum):
    """Who carries values between devices: a choice left open, a ring, or NCCL.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.experimental.CommunicationImplementation.AUTO.value
        'AUTO'
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@dataclass(frozen=True)
class CommunicationOptions:
    """Hints for one collective; they change how values travel, never which values arrive.

    Args:
        bytes_per_pack: How large packs are, in bytes; 0 leaves it to the collectives. Those that
            do not pack, such as `ReductionToOneDevice`, do not use it.
        timeout_seconds: How long a collective may wait for other devices, in seconds; None or 0:
            as long as it takes. On host memory nothing waits, and it is not used.
        implementation: Who carries the values, as an enum or its name in any case. In one process
            the strategy's `cross_device_ops` decide that, and it is not used, as in TensorFlow.

    Raises:
        ValueError: A negative number, one that is not a number, or an unknown implementation.

    Example:
        >>> import mirrored as mr
        >>> mr.distribute.experimental.CommunicationOptions(bytes_per_pack=1 << 20).bytes_per_pack
        1048576
    """

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation | str = CommunicationImplementation.AUTO

    def __post_init__(self) -> None:
        """Check the hints, and look the implementation up."""
        size, timeout = as_integer(self.bytes_per_pack), self.timeout_seconds
        if size is None:
            raise ValueError(
                "Argument `bytes_per_pack` is a whole number of bytes. Received: "
                f"{self.bytes_per_pack!r}."
            )
        if size < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {size}.")
        if timeout is not None and not _is_duration(timeout):
            raise ValueError(
                f"Argument `timeout_seconds` must be None or a number >=0, Received {timeout!r}."
            )
        object.__setattr__(self, "implementation", _implementation(self.implementation))


def _is_duration(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and not math.isnan(value)


def _implementation(value: object) -> CommunicationImplementation:
    try:
        return CommunicationImplementation(value.upper() if isinstance(value, str) else value)
    except ValueError:
        raise ValueError(
            "Argument `implementation` must be instance of "
            "`mr.distribute.experimental.CommunicationImplementation`. Received: "
            f"{value!r}. Give one of {[each.name for each in CommunicationImplementation]}."
        ) from None
