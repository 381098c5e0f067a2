"""The exceptions that the library raises beyond Python's own.

Each is also a builtin's subclass: code that catches ``ValueError`` or ``MemoryError`` works.
"""

from mirrored._absent import absent_names as _absent_names


class InvalidArgumentError(ValueError, RuntimeError):
    """An operation or a public call was given something that it cannot work with."""


class ResourceExhaustedError(MemoryError, RuntimeError):
    """A device has not enough memory left for what was asked of it."""


class DeviceUnavailableError(RuntimeError):
    """A device is there, and what it takes to use it is not; the text says what mends that."""


class DeviceLostError(RuntimeError):
    """A device failed in a way that only a new process can mend; the host still works."""


class NonFiniteLossError(FloatingPointError):
    """The training loss became NaN or infinite; the weights are those of the step before."""


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked for the value of a tensor while its function was being recorded."""


class WeightsFileError(ValueError):
    """A weights file or checkpoint is truncated, corrupt, of another model or of another format."""


class OutOfRangeError(StopIteration):
    """An iterator over a dataset has no more elements; a `for` loop ends with it."""


globals()["__getattr__"] = _absent_names("tf.errors")
