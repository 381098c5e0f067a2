"""`tf.DeviceSpec` of TensorFlow 1: the name of a device in parts, which can be changed."""

from dataclasses import dataclass
from typing import Any, Self

from mirrored.devices import DeviceSpec as FixedSpec


@dataclass(repr=False, unsafe_hash=True)
class DeviceSpec:
    """The name of a device in parts, each of which may be None.

    Args:
        job: The name of the job.
        replica: The index of the replica.
        task: The index of the task.
        device_type: 'CPU' or 'GPU'.
        device_index: The index among the devices of its type.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> spec = tf.DeviceSpec(device_type="GPU", device_index=1)
        >>> spec.to_string()
        '/device:GPU:1'
        >>> with tf.Graph().as_default(), tf.device(spec):
        ...     tf.constant(1.0).device
        '/device:GPU:1'
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    def __post_init__(self) -> None:
        self.device_type = self.device_type and self.device_type.upper()

    @classmethod
    def from_string(cls, spec: str) -> Self:
        """Return the parts of a device's name.

        Raises:
            ValueError: It is the name of no device.
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> Self:
        """Replace all parts by those of a device's name.

        Raises:
            ValueError: It is the name of no device.
        """
        fixed = FixedSpec.from_string(spec)
        for name in vars(self):
            setattr(self, name, getattr(fixed, name))
        return self

    def merge_from(self, dev: "DeviceSpec") -> None:
        """Overwrite the parts that another specification has."""
        vars(self).update({name: part for name, part in vars(dev).items() if part is not None})

    def make_merged_spec(self, dev: "DeviceSpec") -> Self:
        """Return a copy with the parts that another specification has."""
        copy = self.replace()
        copy.merge_from(dev)
        return copy

    def replace(self, **parts: Any) -> Self:
        """Return a copy with other parts.

        Args:
            **parts: The parts by their names.
        """
        return type(self)(**{**vars(self), **parts})

    def to_string(self) -> str:
        """Return the name, without the parts that are None."""
        return FixedSpec(**vars(self)).to_string()

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={part}" for name, part in vars(self).items())
        return f"<DeviceSpec({parts})>"
