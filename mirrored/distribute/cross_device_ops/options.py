"""What a caller asks of a collective: a sum or a mean, the size of buckets, a deadline.

Kept by itself because the interface names it, and the algorithms read it.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any, Self

from mirrored._arguments import explained
from mirrored._numbers import as_integer

# As long as PyTorch lets NCCL's collectives take (`torch.distributed.init_process_group`).
DEFAULT_TIMEOUT = 600.0


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
                f"{value!r} is not a valid ReduceOp. Use one of {[op.name for op in cls]}."
            ) from None


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


@explained
@dataclass(frozen=True)
class CommunicationOptions:
    """Hints for one collective; they change how values travel, never which values arrive.

    Args:
        bytes_per_pack: How many bytes close a bucket of tensors that are reduced together; 0
            leaves it to the collectives. `ReductionToOneDevice` does not use it.
        timeout_seconds: How long a collective between GPUs may take, in seconds, before it raises
            CollectiveTimeoutError, and how long workers wait for another one before they raise
            WorkerTimeoutError. None: 10 minutes; 0 or infinity: no limit. Devices of one process
            in host memory do not wait for each other.
        implementation: Who carries the values, as an enum or its name in any case. For several
            workers RING lets them sum on the host, and not by NCCL, which they otherwise do where
            all replicas are on cards. In one process the strategy's `cross_device_ops` decide
            that, and it is not used, as in TensorFlow.

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
                "Argument `bytes_per_pack` must be a whole number of bytes. Received: "
                f"{self.bytes_per_pack!r}."
            )
        if size < 0:
            raise ValueError(f"Argument `bytes_per_pack` must be >=0, Received {size}.")
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if timeout is not None and not (is_number and timeout >= 0):  # NaN is not either.
            raise ValueError(
                f"Argument `timeout_seconds` must be None or a number >=0, Received {timeout!r}."
            )
        object.__setattr__(self, "implementation", _implementation(self.implementation))

    @property
    def timeout(self) -> float:
        """How long a collective between GPUs may take, in seconds; it may be infinite.

        Example:
            >>> import mirrored as mr
            >>> Options = mr.distribute.experimental.CommunicationOptions
            >>> [Options(timeout_seconds=each).timeout for each in (None, 0, 30)]
            [600.0, inf, 30.0]
        """
        if self.timeout_seconds is None:
            return DEFAULT_TIMEOUT
        return float(self.timeout_seconds) or math.inf


def _implementation(value: object) -> CommunicationImplementation:
    try:
        return CommunicationImplementation(value.upper() if isinstance(value, str) else value)
    except ValueError:
        raise ValueError(
            "Argument `implementation` must be instance of "
            f"`mr.distribute.experimental.CommunicationImplementation`. Received: {value!r}. Use "
            f"one of {[kind.name for kind in CommunicationImplementation]}."
        ) from None
