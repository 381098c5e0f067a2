"""What a run is told and tells beside its values: messages that programs make and hand on."""

from typing import Any, ClassVar

from mirrored.compat.v1.messages import Message


class RunOptions(Message):
    """How a run is traced. *Ours*: it is not.

    Attributes:
        trace_level: Accepted for compatibility, like those below: `mirrored.profiler` traces.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE).trace_level
        3
    """

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)
    FIELDS: ClassVar[dict[str, Any]] = {
        "trace_level": 0,
        "output_partition_graphs": False,
        "report_tensor_allocations_upon_oom": False,
    }
    ABSENT = frozenset(("timeout_in_ms", "inter_op_thread_pool", "debug_options", "experimental"))
    __slots__ = tuple(FIELDS)


class RunMetadata(Message):
    """What a run tells of itself. *Ours*: nothing."""

    ABSENT = frozenset(("step_stats", "cost_graph", "partition_graphs", "function_graphs"))
    __slots__ = ()
