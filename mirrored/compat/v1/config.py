"""What a session is made with: messages of TensorFlow 1 as plain objects with their fields."""

from typing import Any, ClassVar

from mirrored.devices.registry import checked_fraction
from mirrored.errors import InvalidArgumentError


class _Message:
    """An object with the fields of a message, and no others."""

    __slots__ = ()
    FIELDS: ClassVar[dict[str, Any]] = {}

    def __init__(self, **fields: Any) -> None:
        for name in fields:
            if name not in self.FIELDS:
                kind = type(self).__name__
                raise ValueError(f'Protocol message {kind} has no "{name}" field.')
        for name, default in self.FIELDS.items():
            made = default() if isinstance(default, type) else default
            setattr(self, name, fields.get(name, made))

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in self.FIELDS}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


class GPUOptions(_Message):
    """How GPUs are used: what the first session of a process says holds for all of it.

    Attributes:
        allow_growth: Whether a card's memory is taken as it is needed; else all that the process
            may have of it is taken with the first array there.
        per_process_gpu_memory_fraction: The part of each GPU's memory that the process may have, at
            most 1.0; 0: all. Of a simulated GPU without a memory limit it is a part of the host's.
        visible_device_list: Which GPUs are seen and in which order, as in '1,0'; empty: all.
        allocator_type: Accepted for compatibility.

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

    FIELDS: ClassVar[dict[str, Any]] = {
        "allow_growth": False,
        "per_process_gpu_memory_fraction": 0.0,
        "visible_device_list": "",
        "allocator_type": "",
    }
    __slots__ = tuple(FIELDS)
    allow_growth: bool
    per_process_gpu_memory_fraction: float
    visible_device_list: str


class ConfigProto(_Message):
    """How a session runs.

    Attributes:
        log_device_placement: Whether it says where each operation is placed.
        allow_soft_placement: Whether what cannot run where it is to be is placed elsewhere.
        gpu_options: A `GPUOptions`.
        device_count: How many logical devices of a type there are, 'GPU' or 'CPU': the first of
            those that are visible, or parts of the CPU. It holds for the process too.
        intra_op_parallelism_threads: Accepted for compatibility, like the one below.
        inter_op_parallelism_threads: Accepted for compatibility.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> tf.ConfigProto(allow_soft_placement=True).allow_soft_placement
        True
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "log_device_placement": False,
        "allow_soft_placement": False,
        "gpu_options": GPUOptions,
        "device_count": dict,
        "intra_op_parallelism_threads": 0,
        "inter_op_parallelism_threads": 0,
    }
    __slots__ = tuple(FIELDS)
    log_device_placement: bool
    allow_soft_placement: bool
    gpu_options: GPUOptions
    device_count: dict[str, int]


def checked_config(config: Any) -> ConfigProto:
    """Return what a session goes by.

    Raises:
        TypeError: It is no `ConfigProto`, or a field of it has another type than it must have.
        InvalidArgumentError: It asks for what is not provided.
    """
    if config is None:
        return ConfigProto()
    if not isinstance(config, ConfigProto):
        raise TypeError(
            f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"'
        )
    options: Any = config.gpu_options
    counts: Any = config.device_count
    if not isinstance(options, GPUOptions):
        raise TypeError(f"`gpu_options` must be a tf.GPUOptions. Received: {options!r}")
    listed: Any = options.visible_device_list
    if not isinstance(listed, str):
        raise TypeError(f"`visible_device_list` must be a text such as '0,1'. Received: {listed!r}")
    if not isinstance(counts, dict) or not all(type(each) is int for each in counts.values()):
        raise TypeError(
            "`device_count` must be a dict of numbers by types of device. Received: "
            f"device_count={counts!r}"
        )
    checked_fraction(options.per_process_gpu_memory_fraction, "per_process_gpu_memory_fraction")
    if any(each < 0 for each in counts.values()) or counts.get("CPU") == 0:
        raise InvalidArgumentError(
            "`device_count` must have 0 or more GPUs, and a CPU, through which data enters and "
            f"leaves. Received: device_count={counts!r}"
        )
    return config
