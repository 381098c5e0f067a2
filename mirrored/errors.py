"""The exceptions that the library raises beyond Python's own.

Each is also a builtin's subclass: code that catches ``ValueError`` or ``MemoryError`` works.
"""

from __future__ import annotations

from collections.abc import Sequence as _Sequence

from mirrored._absent import public_module as _public_module


class _WithMessage:
    """What TensorFlow's errors have beside Python's."""

    args: tuple[object, ...]

    @property
    def message(self) -> str:
        """The text."""
        return str(self.args[0]) if self.args else ""


class InvalidArgumentError(_WithMessage, ValueError, RuntimeError):
    """An operation or a public call was given something that it cannot work with."""


class DataLossError(_WithMessage, ValueError):
    """A file of records is damaged, or ends in the middle of one."""


class FailedPreconditionError(_WithMessage, RuntimeError):
    """What an operation needs is not there yet, such as the value of a variable."""


class ResourceExhaustedError(_WithMessage, MemoryError, RuntimeError):
    """A device has not enough memory left for what was asked of it."""


class DeviceUnavailableError(RuntimeError):
    """A device is there, and what it takes to use it is not; the text says what mends that."""


class DeviceLostError(RuntimeError):
    """A device failed in a way that only a new process can mend; the host still works."""


class DevicesResetError(RuntimeError):
    """An object was used after `reset_devices` had ended its devices."""


class CollectiveError(RuntimeError):
    """Devices that sum values together failed to; they were disconnected from each other.

    Args:
        *args: What any exception takes: the text.
        devices: What the attribute of this name is; so are the others.

    Attributes:
        devices: The names of the devices, in the order of their ranks.
        what: What they were to sum, or "connecting" or "closing".
        step: In which run of its recorded step it was, from 1 on, None outside of recorded steps.
            A new recording, for example for batches of another shape, counts from 1 again.
        elapsed: The seconds that it had, None where it was not begun.
        timeout: The seconds that it was given at most, None where that is not what went wrong.
        completed: The last collectives of these devices that were done, oldest first.
        aborted: Whether all that was asked of the devices has ended, so that what is on them can be
            saved. None: there was nothing to end.
    """

    def __init__(
        self,
        *args: object,
        devices: _Sequence[str] = (),
        what: str = "",
        step: int | None = None,
        elapsed: float | None = None,
        timeout: float | None = None,
        completed: _Sequence[str] = (),
        aborted: bool | None = None,
    ) -> None:
        super().__init__(*args)
        self.devices = tuple(devices)
        self.what = what
        self.step = step
        self.elapsed = elapsed
        self.timeout = timeout
        self.completed = tuple(completed)
        self.aborted = aborted


class CollectiveTimeoutError(CollectiveError, TimeoutError):
    """A collective was not done by its deadline; the devices were disconnected from each other."""


class WorkerError(RuntimeError):
    """Processes that train together cannot go on: one failed, ended, or does something else.

    Args:
        *args: What any exception takes: the text.
        worker: What the attribute of this name is; so are the others.

    Attributes:
        worker: The number of the worker that it is about, None where that is nobody.
        host: The host that it runs on.
        step: In which step it failed, as it said; None: in none.
        what: What this worker was in, or did.
        reason: What happened to the other, in its own words.
        missing: The numbers of the workers that did not come by the deadline.
    """

    def __init__(
        self,
        *args: object,
        worker: int | None = None,
        host: str = "",
        step: str | None = None,
        what: str = "",
        reason: str = "",
        missing: _Sequence[int] = (),
    ) -> None:
        super().__init__(*args)
        self.worker = worker
        self.host = host
        self.step = step
        self.what = what
        self.reason = reason
        self.missing = tuple(missing)


class WorkersChangedError(WorkerError):
    """Workers have died in a step, which was taken by nobody: the others can take it again."""


class WorkerTimeoutError(WorkerError, TimeoutError):
    """Other workers did not come by the deadline; its attribute `missing` says which."""


class NonFiniteLossError(FloatingPointError):
    """The training loss became NaN or infinite; the weights are those of the step before."""


class NonFiniteGradientError(NonFiniteLossError):
    """A gradient became NaN or infinite though the loss is finite; the weights are those before.

    Args:
        *args: What any exception takes: the text.
        variable: What the attribute of this name is; so are the others.

    Attributes:
        variable: The name of the first variable whose gradient is not finite.
        replicas: The numbers of the replicas where it is not, on the worker that raises.
    """

    def __init__(self, *args: object, variable: str = "", replicas: _Sequence[int] = ()) -> None:
        super().__init__(*args)
        self.variable = variable
        self.replicas = tuple(replicas)


class ReplicasDifferError(RuntimeError):
    """Copies of a mirrored variable, which are equal on all replicas, are not.

    Args:
        *args: What any exception takes: the text.
        variable: What the attribute of this name is; so are the others.

    Attributes:
        variable: The name of the first variable that differs.
        replicas: The replicas that have another value than most; where as many have each of two,
            than the first replica.
        devices: The names of the devices of these replicas, one per replica.
        workers: The numbers of their workers; 0 where there is one.
        step: The step after which the copies were compared, None where that is not known.
    """

    def __init__(
        self,
        *args: object,
        variable: str = "",
        replicas: _Sequence[int] = (),
        devices: _Sequence[str] = (),
        workers: _Sequence[int] = (),
        step: int | None = None,
    ) -> None:
        super().__init__(*args)
        self.variable = variable
        self.replicas = tuple(replicas)
        self.devices = tuple(devices)
        self.workers = tuple(workers)
        self.step = step


class StepDiffersError(RuntimeError):
    """A step of training wrote other bits when it was repeated: a device computes wrong.

    Args:
        *args: What any exception takes: the text.
        variable: What the attribute of this name is; so are the others.

    Attributes:
        variable: The name of the first variable that differs.
        step: The number of the step in its `fit`, from 1.
        devices: The names of two devices that computed other bits of it: in the step, and in its
            repetition. They are the same where one device repeated its own work.
        wrong_device: That one of them with which a third one does not agree; None where that is
            not known.
    """

    def __init__(
        self,
        *args: object,
        variable: str = "",
        step: int | None = None,
        devices: _Sequence[str] = (),
        wrong_device: str | None = None,
    ) -> None:
        super().__init__(*args)
        self.variable = variable
        self.step = step
        self.devices = tuple(devices)
        self.wrong_device = wrong_device


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked for the value of a tensor while its function was being recorded."""


class WeightsFileError(ValueError):
    """A weights file or checkpoint is truncated, corrupt, of another model or of another format."""


class OutOfRangeError(_WithMessage, StopIteration):
    """An iterator over a dataset has no more elements; a `for` loop ends with it."""


_public_module("tf.errors", __name__)
