"""What a session is made with: messages of TensorFlow 1 as plain objects with their fields."""

from collections.abc import Mapping
from inspect import get_annotations
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn

from mirrored.devices.device_registry import checked_fraction
from mirrored.errors import InvalidArgumentError

# By the type of a field what it takes.
_TAKEN: dict[type, type] = {bool: Integral, int: Integral, float: Real, str: str, dict: Mapping}


class Message:
    """An object with the fields of a message, and no others.

    A subclass annotates its fields, which begin with what their types return: 0, False, "".
    """

    FIELDS: ClassVar[dict[str, Any]] = {}
    # TensorFlow's fields that are not provided.
    ABSENT: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        """Note the fields of a subclass, with their types."""
        fields = get_annotations(cls).items()
        cls.FIELDS = {name: getattr(kind, "__origin__", kind) for name, kind in fields}

    def __init__(self, **fields: Any) -> None:
        for name in fields:
            if name not in self.FIELDS:
                raise ValueError(self._unknown(name, "Protocol message {kind} has no {name} field"))
        for name, kind in self.FIELDS.items():
            setattr(self, name, fields.get(name, kind()))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.FIELDS:
            text = "Assignment not allowed (no field {name} in protocol message object)"
            raise AttributeError(self._unknown(name, text))
        kind = self.FIELDS[name]
        if issubclass(kind, Message) and isinstance(value, dict):
            value = kind(**value)
        if not isinstance(value, _TAKEN.get(kind, kind)):
            raise TypeError(
                f"The field `{name}` of {type(self).__name__} takes a {kind.__name__}. Received: "
                f"{value!r}"
            )
        object.__setattr__(self, name, kind(value) if kind in _TAKEN else value)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._unknown(name, "Protocol message {kind} has no {name} field"))

    def _unknown(self, name: str, text: str) -> str:
        said = text.format(kind=type(self).__name__, name=f'"{name}"')
        return (
            f"{said}: it is not provided here. Leave it out." if name in self.ABSENT else f"{said}."
        )

    def __repr__(self) -> str:
        fields = {name: getattr(self, name) for name in self.FIELDS}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in fields.items())})"


class GPUOptions(Message):
    """Options of GPUs. Those of the first session hold for the whole process.

    Attributes:
        allow_growth: Whether a card's memory is taken as it is needed; else all that the process
            may have of it is taken with the first array there.
        per_process_gpu_memory_fraction: The part of each GPU's memory that the process may have, at
            most 1.0; 0: all. Of a simulated GPU without a memory limit it is a part of the host's.
        visible_device_list: Which GPUs are seen and in which order, as in '1,0'; empty: all.
        allocator_type: Accepted for compatibility, like those below.

    Example:
        >>> import mirrored as mr
        >>> import mirrored.compat.v1 as tf
        >>> mr.config.experimental.set_simulated_gpus(2, memory_limit=100)
        >>> options = tf.GPUOptions(per_process_gpu_memory_fraction=0.4, visible_device_list="1")
        >>> tf.Session(config=tf.ConfigProto(gpu_options=options)).close()
        >>> gpu, = mr.config.get_visible_devices("GPU")
        >>> gpu.name, mr.config.experimental.get_memory_fraction(gpu)
        ('/physical_device:GPU:1', 0.4)
    """

    ABSENT = frozenset(("experimental",))
    allow_growth: bool
    per_process_gpu_memory_fraction: float
    visible_device_list: str
    allocator_type: str
    deferred_deletion_bytes: int
    polling_active_delay_usecs: int
    polling_inactive_delay_msecs: int
    force_gpu_compatible: bool


class ConfigProto(Message):
    """The options of a session.

    Attributes:
        log_device_placement: Whether it says where each operation is placed.
        allow_soft_placement: Whether what cannot run where it is to be is placed elsewhere.
        gpu_options: A `GPUOptions`, or a dict of its fields.
        device_count: How many logical devices of a type there are, 'GPU' or 'CPU': the first of
            those that are visible, or parts of the CPU. It holds for the process too.
        intra_op_parallelism_threads: Accepted for compatibility, like those below.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> tf.ConfigProto(allow_soft_placement=True).allow_soft_placement
        True
    """

    ABSENT = frozenset(
        (
            *("session_inter_op_thread_pool", "device_filters", "pluggable_device_options"),
            *("graph_options", "operation_timeout_in_ms", "rpc_options", "cluster_def"),
            "experimental",
        )
    )
    log_device_placement: bool
    allow_soft_placement: bool
    gpu_options: GPUOptions
    device_count: dict[str, int]
    intra_op_parallelism_threads: int
    inter_op_parallelism_threads: int
    use_per_session_threads: bool
    placement_period: int
    isolate_session_state: bool
    share_cluster_devices_in_session: bool


def checked_config(config: Any) -> ConfigProto:
    """Return what a session goes by.

    Raises:
        TypeError: It is no `ConfigProto`, or counts no devices with whole numbers.
        InvalidArgumentError: It asks for what is not provided.
    """
    if config is None:
        return ConfigProto()
    if not isinstance(config, ConfigProto):
        raise TypeError(
            f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"'
        )
    counts: dict[Any, Any] = config.device_count
    if not all(isinstance(count, int) for count in counts.values()):
        raise TypeError(
            f"`device_count` must have whole numbers. Received: device_count={counts!r}"
        )
    if any(count < 0 for count in counts.values()) or counts.get("CPU") == 0:
        raise InvalidArgumentError(
            "`device_count` must have 0 or more GPUs, and a CPU, through which data enters and "
            f"leaves. Received: device_count={counts!r}"
        )
    fraction = config.gpu_options.per_process_gpu_memory_fraction
    checked_fraction(fraction, "per_process_gpu_memory_fraction")
    return config


class RunOptions(Message):
    """The options of a run. *Ours*: runs are not traced.

    Attributes:
        trace_level: Accepted for compatibility, like those below: `mirrored.profiler` traces.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE).trace_level
        3
    """

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)
    ABSENT = frozenset(("timeout_in_ms", "inter_op_thread_pool", "debug_options", "experimental"))
    trace_level: int
    output_partition_graphs: bool
    report_tensor_allocations_upon_oom: bool


class RunMetadata(Message):
    """The metadata of a run. *Ours*: it is empty."""

    ABSENT = frozenset(("step_stats", "cost_graph", "partition_graphs", "function_graphs"))
