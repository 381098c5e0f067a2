"""Records the ops and reads that depend on the tensors and variables that a tape watches.

It is the part of a tape that the ops, variables and functions with gradients of their own tell.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Self

from mirrored import _nest
from mirrored._logging import logger
from mirrored.autodiff.backpropagation import Node, Read
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import CustomCall, active_listeners, add_listener, only, remove_listener
from mirrored.ops.op import Op, OpCall
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Tensor

# How often each remark is made, here and in TensorFlow: loops would fill the log with it.
_MOST_TOLD = 5
_warnings: Counter[str] = Counter()


class Recording:
    """The ops that one tape follows; `GradientTape` explains the arguments."""

    def __init__(self, persistent: bool, watch_accessed_variables: bool) -> None:
        self._persistent = persistent
        self._watch_variables = watch_accessed_variables
        self._nodes: list[Node] = []
        self._tracked: set[int] = set()
        self._variables: dict[int, Any] = {}
        self._entered = False
        self._started = False
        self._used = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A GradientTape cannot be pickled or copied: it follows the operations of this "
            "process. Compute its gradients, and pickle them."
        )

    def __enter__(self) -> Self:
        """Follow the ops of this context."""
        if self._entered:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an already-active "
                "tape. Leave its `with` block first."
            )
        if self._used:
            self._forget()
        self._entered = self._started = True
        add_listener(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop following."""
        remove_listener(self)
        self._entered = False

    def watch(self, tensor: Any) -> None:
        """Follow the ops that depend on a tensor, a variable, or a structure of them.

        What has no floating-point dtype has no gradient: a line of the log says so, as
        TensorFlow's does.

        Raises:
            ValueError: One of them is neither.
        """
        for leaf in _nest.flatten(tensor):
            if not hasattr(leaf, "_id"):
                raise ValueError(
                    f"Passed in object {leaf!r:.100} of type {type(leaf).__name__!r}, not "
                    "mr.Tensor or mr.Variable. Convert it with mr.constant first."
                )
        for leaf in _nest.flatten(tensor):
            if not is_floating(leaf, "watched tensor"):
                continue
            self._tracked.add(leaf._id)
            if not isinstance(leaf, Tensor):
                self._variables[leaf._id] = leaf

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that the tape follows, in order of their first read."""
        return tuple(self._variables.values())

    def stop_recording(self) -> AbstractContextManager[None]:
        """Return a context within which this tape follows nothing.

        Raises:
            InvalidArgumentError: The tape follows nothing now; it is a ValueError and RuntimeError.

        Example:
            >>> import mirrored as mr
            >>> x = mr.constant(3.0)
            >>> with mr.GradientTape() as tape:
            ...     tape.watch(x)
            ...     with tape.stop_recording():
            ...         y = x * x
            >>> tape.gradient(y, x) is None
            True
        """
        self._check_recording()
        if self._used:
            raise InvalidArgumentError(
                "Trying to stop recording a tape which is not recording. Received: a tape whose "
                "gradient was taken. Create it with persistent=True to continue."
            )
        return only(*(listener for listener in active_listeners() if listener is not self))

    def reset(self) -> None:
        """Forget everything that was followed and watched, and follow from now on.

        Raises:
            ValueError: The tape follows nothing now.

        Example:
            >>> import mirrored as mr
            >>> x = mr.constant(3.0)
            >>> with mr.GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            ...     tape.reset()
            ...     tape.watch(x)
            ...     z = x * y
            >>> float(tape.gradient(z, x))
            9.0
        """
        self._check_recording()
        if self._used:
            raise ValueError("Tape is not recording. Received: a tape whose gradient was taken.")
        self._forget()

    def _check_recording(self) -> None:
        if self not in active_listeners():
            raise InvalidArgumentError(
                "Tape is not recording. Call it in the tape's `with` block, and outside of its "
                "`stop_recording`."
            )

    def _forget(self) -> None:
        """Reset the recording; results that were taken from it are kept."""
        self._nodes, self._tracked, self._variables, self._used = [], set(), {}, False

    def follows(self, tensor: Tensor) -> bool:
        """Return whether gradients flow to a tensor."""
        return not self._used and tensor._id in self._tracked

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note an op whose inputs are followed; ops call this."""
        if op.gradient is None or self._used or output.dtype not in FLOATS:
            return
        needed = tuple([tensor._id in self._tracked for tensor in inputs])
        if True in needed:
            self._tracked.add(output._id)
            self._nodes.append(OpCall(op, inputs, attrs, output, needed))

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note that a variable was read; variables call this."""
        if self._used:
            return
        key = variable._id
        if key not in self._tracked:
            if not (self._watch_variables and variable.trainable):
                return
            self._variables.setdefault(key, variable)
            if value.dtype not in FLOATS:  # As in TensorFlow, it is watched for nothing.
                return
            self._tracked.add(key)
        self._tracked.add(value._id)
        self._nodes.append(Read(variable, value))

    def on_custom_call(self, call: CustomCall) -> None:
        """Note a function with a custom gradient, which calls this after it has returned."""
        if self._used:
            return
        if any(input_ is not None and input_._id in self._tracked for input_ in call.inputs):
            self._tracked.update(output._id for output in call.outputs if output.dtype in FLOATS)
            self._nodes.append(call)


def is_floating(value: Any, role: str, when: str = "") -> bool:
    """Return whether a value has gradients; if it has none, log a warning as TensorFlow does.

    Args:
        value: A tensor or variable.
        role: What the log calls it.
        when: What it says behind that.
    """
    if value.dtype in FLOATS:
        return True
    _warnings[role] += 1
    if _warnings[role] <= _MOST_TOLD:
        logger.warning(
            "The dtype of the %s must be floating (e.g. mr.float32)%s, got %s",
            role,
            when,
            value.dtype.name,
        )
    return False
