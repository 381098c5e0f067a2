"""`tf.device` of TensorFlow 1, which takes functions too: from an operation to its device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from mirrored._contexts import Within
from mirrored.compat.v1.device_spec import DeviceSpec as NamedParts
from mirrored.devices import DeviceSpec, current_device_spec
from mirrored.devices import device as _named_device


class NodeDef(NamedTuple):
    """The argument of functions that are passed to `tf.device`.

    Attributes:
        name: The operation's name.
        op: Its type.
        device: The device that it was drawn for so far.
        input: The names of what it is computed from.
    """

    name: str
    op: str
    device: str
    input: list[str]


class _Function(NamedTuple):
    """A function that is entered, and what was asked for around it."""

    function: Callable[[Any], Any]
    around: DeviceSpec | None


_functions: ContextVar[tuple[_Function, ...]] = ContextVar("mirrored_device_functions", default=())


def device(device_name_or_function: Any) -> Any:
    """Return a context that places operations on a device.

    Args:
        device_name_or_function: The device's name, its `DeviceSpec`, None for none, or a function
            from an operation to a name.

    Raises:
        InvalidArgumentError: It is the name of no device.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> def variables_on_the_cpu(op):
        ...     return "/cpu:0" if op.type == "VariableV2" else "/gpu:0"
        >>> with tf.Graph().as_default(), tf.device(variables_on_the_cpu):
        ...     v = tf.Variable(1.0)
        ...     doubled = v * 2.0
        >>> v.device, doubled.device
        ('/device:CPU:0', '/device:GPU:0')
    """
    if callable(device_name_or_function):
        return _by_function(device_name_or_function)
    if isinstance(device_name_or_function, NamedParts):
        device_name_or_function = device_name_or_function.to_string()
    return _named_device(device_name_or_function)


@contextmanager
def colocate_with(op: Any, ignore_existing: bool = False) -> Iterator[None]:
    """Return a context that places operations on the device of another operation.

    Args:
        op: The operation, or a tensor or variable; None with `ignore_existing`: any device.
        ignore_existing: Accepted for compatibility: the innermost context counts.

    Raises:
        ValueError: There is no operation.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default():
        ...     with tf.device("/cpu:0"):
        ...         v = tf.Variable(1.0)
        ...     with tf.device("/gpu:0"), tf.colocate_with(v):
        ...         tf.square(v).device
        '/device:CPU:0'
    """
    if op is None and not ignore_existing:
        raise ValueError("Trying to colocate with None. Pass an operation, a tensor or a variable.")
    with _named_device(None), _named_device(op.device or None if op is not None else None):
        yield


@contextmanager
def _by_function(function: Callable[[Any], Any]) -> Iterator[None]:
    entered = _Function(function, current_device_spec())
    with Within(_functions, (*_functions.get(), entered)):
        yield


def ask_functions(operation: Any) -> None:
    """Let the functions that are entered say which device an operation is for.

    A scope of a name that was opened within them counts for more.

    Args:
        operation: The operation, which has just been drawn.
    """
    for function, around in reversed(_functions.get()):
        if operation.node.device != around:
            return
        name = function(operation)
        if name:
            operation.node.device = DeviceSpec.from_string(str(name))
            return
