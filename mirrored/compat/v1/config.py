"""What a session is made with: messages of TensorFlow 1 as plain objects with their fields."""

from typing import Any, ClassVar

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
    """How GPUs are used.

    Attributes:
        allow_growth: Whether a card's memory is taken as it is needed.
        per_process_gpu_memory_fraction: The part of it that is taken; 0: all. *Ours*: it is refused
            as yet.
        visible_device_list: Which GPUs are seen; empty: all. *Ours*: it is refused as yet.
        allocator_type: Accepted for compatibility.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> config = tf.ConfigProto()
        >>> config.gpu_options.allow_growth = True
        >>> tf.Session(config=config).close()
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "allow_growth": False,
        "per_process_gpu_memory_fraction": 0.0,
        "visible_device_list": "",
        "allocator_type": "",
    }
    __slots__ = tuple(FIELDS)
    per_process_gpu_memory_fraction: float
    visible_device_list: str


class ConfigProto(_Message):
    """How a session runs.

    Attributes:
        log_device_placement: Whether it says where each operation is placed.
        allow_soft_placement: Whether what cannot run where it is to be is placed elsewhere.
        gpu_options: A `GPUOptions`.
        device_count: How many devices of a type there are. *Ours*: it is refused.
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
        TypeError: It is no `ConfigProto`.
        InvalidArgumentError: It asks for what is not provided.
    """
    if config is None:
        return ConfigProto()
    if not isinstance(config, ConfigProto):
        raise TypeError(
            f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"'
        )
    options = config.gpu_options
    if options.per_process_gpu_memory_fraction:
        raise InvalidArgumentError(
            "`per_process_gpu_memory_fraction` is not provided yet. Received: "
            f"{options.per_process_gpu_memory_fraction!r}. Give each card a limit at the start: "
            "`mirrored.config.set_logical_device_configuration`."
        )
    if options.visible_device_list or config.device_count:
        raise InvalidArgumentError(
            "`visible_device_list` and `device_count` are not provided. Received: "
            f"{config!r}. Call `mirrored.config.set_visible_devices` at the start."
        )
    return config
