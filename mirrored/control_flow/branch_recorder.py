"""Records a branch of a recorded function that is not selected in every run.

What it writes is kept aside, and what could be seen of it in another way is refused.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from mirrored.devices import Device
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import RecordedTensor, Recorder, only
from mirrored.ops.op import OPS, Op
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor


class BranchRecorder:
    """Records one branch.

    Args:
        recorder: Who records what is around it.

    Attributes:
        outer: The same.
        written: By the id of a variable the variable and the value that the branch gives it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.outer = recorder
        self.written: dict[int, tuple[Any, Tensor]] = {}
        # What was read of each variable, in order: a gradient is of these values.
        self._read: dict[int, tuple[Any, list[Tensor]]] = {}
        self.shapes_alone = recorder.shapes_alone
        self.node_name = recorder.node_name
        self.copy = recorder.copy
        self.on_failure = recorder.on_failure
        self.run_by = recorder.run_by
        self.ask_number = recorder.ask_number

    def again(self, recorder: Recorder) -> "BranchRecorder":
        """Return what records the branch once more, where a gradient of it is taken.

        Args:
            recorder: Who records what is around it then.
        """
        return _Again(recorder, self._read)

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return what stands for the result of an op that only computes."""
        if op.random:
            _refuse("draws random numbers", "Draw them before")
        if op.stateful:
            _refuse(f"prints or checks values, by {op.name}", "Do it before")
        if op.may_refuse(input_.spec for input_ in inputs if isinstance(input_, RecordedTensor)):
            _refuse(f"calls {op.name}, which may refuse what it is given", "Call it before")
        return self.outer.record(op, inputs, attrs, spec, device)

    def read(self, variable: Any) -> Tensor:
        """Return what stands for the value that a variable has in the branch."""
        value = self._value(variable)
        self._read.setdefault(id(variable), (variable, []))[1].append(value)
        return value

    def _value(self, variable: Any) -> Tensor:
        members = getattr(variable, "members", ())
        with only():
            if id(variable) in self.written:
                return _same(self.written[id(variable)][1])
            if any(id(member) in self.written for member in members):
                parts = [OPS["Reshape"](self._value(part), shape=(part.size,)) for part in members]
                return OPS["ConcatV2"](*parts, axis=0)
        return self.outer.read(variable)

    def write(self, variable: Any, value: Tensor) -> None:
        """Note what a variable gets where the branch is taken."""
        members = getattr(variable, "members", None)
        if members is None:
            self.written[id(variable)] = variable, value
            return
        start = 0
        with only():
            for member in members:
                part = value[start : start + member.size]
                self.written[id(member)] = member, OPS["Reshape"](part, shape=member.shape)
                start += member.size

    def written_variables(self) -> dict[int, Any]:
        """Return the copies of variables that the branch has written, by their ids."""
        return {key: variable for key, (variable, _) in self.written.items()}

    def meet(self) -> None:
        """Refuse it: whether the replicas meet is known in each run only."""
        _refuse("has the replicas meet, as a sum over them does", "Let them meet before or after")

    def pull(self, stream: Any) -> NoReturn:
        """Refuse it."""
        _refuse(f"takes an element of {stream!r}", "Take it before")

    def sum_over_devices(self, *_: Any) -> NoReturn:
        """Refuse it."""
        _refuse("sums over devices", "Sum what it returns after")

    def all_reduce(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse it."""
        _refuse("sums over devices", "Sum what it returns after")

    def require_finite(self, values: tuple[Tensor, ...]) -> NoReturn:
        """Refuse it."""
        _refuse("trains", "Train after")


class _Again(BranchRecorder):
    """Records a branch once more, with what it read then: what it writes was written.

    Args:
        recorder: Who records what is around it.
        read: What was read of each variable, in order.
    """

    def __init__(self, recorder: Recorder, read: dict[int, tuple[Any, list[Tensor]]]) -> None:
        super().__init__(recorder)
        self._left = {key: iter(values) for key, (_, values) in read.items()}

    def read(self, variable: Any) -> Tensor:
        """Return what stands for the value that was read."""
        value = next(self._left.get(id(variable), iter(())), None)
        if value is None:
            _refuse(f"reads {variable.name!r} only where its gradient is taken", "Read it before")
        with only():
            return _same(value)

    def write(self, variable: Any, value: Tensor) -> None:
        """Do nothing."""


def _same(value: Tensor) -> Tensor:
    """Return a tensor of its own for each read: tapes tell by it when the variable was read."""
    return OPS["Identity"](value)


def _refuse(action: str, instead: str) -> NoReturn:
    raise InvalidArgumentError(
        "In a recorded function both functions of a mr.cond are computed, since its condition is "
        f"known in each run only. Received: a function that {action}. {instead} the mr.cond, make "
        "the condition known (Python's numbers and shapes are), or leave mr.function away."
    )
