"""`tf.device` of TensorFlow 1, which takes functions too: from an operation to its device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from mirrored._contexts import Within
from mirrored.devices import DeviceSpec, current_device_spec
from mirrored.devices import device as _named_device


class NodeDef(NamedTuple):
    """What a function that is given to `tf.device` looks at.

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
    """Return a context whose operations are for a device.

    Args:
        device_name_or_function: The device's name, None for none, or a function from an operation
            to a name.

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
    return _named_device(device_name_or_function)


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
