"""Branches of a recorded function whose condition is known only when it runs.

Both are computed, and one is taken. Of the other nothing may be seen: what it writes stays as it
was, and a gradient of its own that is not finite is nobody's. So the choice is one call to the
tapes, and its gradient is a choice between the branches' gradients. Calls whose effects could be
seen in another way raise an error.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from mirrored import _nest
from mirrored.autodiff import GradientTape
from mirrored.autodiff.tape import UnconnectedGradients
from mirrored.devices import Device
from mirrored.devices import device as device_scope
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import (
    CustomCall,
    RecordedTensor,
    Recorder,
    active_listeners,
    active_recorder,
    only,
    recorded_by,
)
from mirrored.ops.op import OPS, Op
from mirrored.ops.spec import FLOATS, TensorSpec, bool_
from mirrored.ops.tensor import Tensor, new_id

Branch = Callable[[], Any]


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
        self.shapes_alone, self.has_text = recorder.shapes_alone, False
        self.node_name = recorder.node_name
        self.copy = recorder.copy
        self.on_failure = recorder.on_failure
        self.run_by = recorder.run_by
        self.ask_number = recorder.ask_number

    def record(
        self,
        op: Op,
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return the recorded result of an op."""
        if op.random:
            _refuse("draws random numbers", "Draw them before")
        if op.stateful:
            _refuse(f"prints or checks values, by {op.name}", "Do it before")
        if op.may_refuse(input_.spec for input_ in inputs if isinstance(input_, RecordedTensor)):
            _refuse(f"calls {op.name}, which may refuse its arguments", "Call it before")
        return self.outer.record(op, inputs, attrs, spec, device)

    def read(self, variable: Any) -> Tensor:
        """Return the recorded value of a variable in the branch."""
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
        """Note the value that a variable gets if the branch is taken."""
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
        """Raise an error: whether the replicas meet is known only when the function runs."""
        _refuse("has the replicas meet, as a sum over them does", "Let them meet before or after")

    def pull(self, stream: Any) -> NoReturn:
        """Raise an error: a branch cannot do this."""
        _refuse(f"takes an element of {stream!r}", "Take it before")

    def sum_over_devices(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: a branch cannot do this."""
        _refuse("sums over devices", "Sum what it returns after")

    all_reduce = sum_over_devices

    def require_finite(self, values: tuple[Tensor, ...]) -> NoReturn:
        """Raise an error: a branch cannot do this."""
        _refuse("trains", "Train after")


class _Again(BranchRecorder):
    """Records a branch again, with the values that it read; writes are dropped.

    Args:
        recorder: Who records what is around it.
        first: Who recorded the branch before.
    """

    def __init__(self, recorder: Recorder, first: BranchRecorder) -> None:
        super().__init__(recorder)
        self._left = {key: iter(values) for key, (_, values) in first._read.items()}

    def read(self, variable: Any) -> Tensor:
        """Return the recorded value that was read."""
        value = next(self._left.get(id(variable), iter(())), None)
        if value is None:
            _refuse(f"reads {variable.name!r} only if its gradient is computed", "Read it before")
        with only():
            return _same(value)

    def write(self, variable: Any, value: Tensor) -> None:
        """Do nothing."""


def _same(value: Tensor) -> Tensor:
    """Return a new tensor for every read, by which tapes identify the read."""
    return OPS["Identity"](value)


def _refuse(action: str, instead: str) -> NoReturn:
    raise InvalidArgumentError(
        "In a recorded function both functions of a mr.cond run, because its condition is known "
        f"only in each run. Received: a function that {action}. {instead} the mr.cond, make the "
        "condition known (Python's numbers and shapes are), or leave mr.function out."
    )


# ------------------------------------------------------------------------------------ both branches


def select_branch(pred: RecordedTensor, true_fn: Branch, false_fn: Branch) -> Any:
    """Return the result of one of two functions; a recorded boolean selects it in every run.

    Args:
        pred: The boolean.
        true_fn: Called where it is true; like the other it is called now.
        false_fn: Called where it is false.

    Raises:
        TypeError: They return other structures or dtypes.
        ValueError: They return other shapes, or one of them returns None.
        InvalidArgumentError: The condition is no boolean, or a function does what is left undone
            only by not calling it.
    """
    if pred.dtype != bool_:
        raise InvalidArgumentError(
            f"Input 'pred' passed {pred.dtype.name} expected bool. Compare it with something, as "
            "in `x > 0`."
        )
    if pred.size != 1:
        raise InvalidArgumentError(
            f"The second input must be a scalar, but it has shape {list(pred.shape)}. A condition "
            "must be one boolean: use mr.reduce_all or mr.reduce_any, or mr.where for each "
            "element."
        )
    condition = OPS["Reshape"](pred, shape=())
    inside = _Inside(new_id())
    recorders = [BranchRecorder(_recorder()) for _ in range(2)]
    branches = list(zip((true_fn, false_fn), recorders, strict=True))
    results = [_computed(branch, recorder, inside) for branch, recorder in branches]
    with only():
        chosen = _chosen(condition, *results)
        _write_chosen(condition, *recorders)
    _tell(inside, chosen, condition, branches)
    return chosen


def _recorder() -> Recorder:
    recorder = active_recorder()
    if recorder is None:
        raise OperatorNotAllowedInGraphError(
            "A condition of a recorded function has no value outside of it. Return it from the "
            "function instead of storing it."
        )
    return recorder


def _computed(branch: Branch, recorder: BranchRecorder, inside: "_Inside") -> Any:
    """Return a branch's result, with tensors for all leaves but None."""
    with only(inside), recorded_by(recorder):
        results = _nest.map_structure(
            lambda leaf: None if leaf is None else adopt(leaf, None), branch()
        )
    inside.note(_tensors(results))
    return results


def _write_chosen(condition: Tensor, when_true: BranchRecorder, when_false: BranchRecorder) -> None:
    """Write the variables of both branches: the old value if a branch is not taken."""
    outer = _recorder()
    for key, (variable, _) in {**when_true.written, **when_false.written}.items():
        with device_scope(variable.device):
            old = outer.read(variable)
            first, second = (
                side.written[key][1] if key in side.written else old
                for side in (when_true, when_false)
            )
            outer.write(variable, OPS["SelectV2"](condition, first, second))


def _chosen(condition: Tensor, when_true: Any, when_false: Any) -> Any:
    """Return the results' structure, with a selection for every tensor."""

    def choice(first: Tensor | None, second: Tensor | None) -> Tensor | None:
        if first is None and second is None:
            return None
        if first is None or second is None:
            raise ValueError("one of them returns None and the other a tensor")
        if first.dtype != second.dtype:
            raise TypeError(f"they return {first.dtype.name} and {second.dtype.name}")
        if first.shape != second.shape:
            raise ValueError(f"they return the shapes {first.shape} and {second.shape}")
        return OPS["SelectV2"](condition, first, second)

    start = (
        "true_fn and false_fn arguments to mr.cond must have the same number, type, and overall "
        "structure of return values if the condition is known only in each run: "
    )
    try:
        return _nest.map_structure(choice, when_true, when_false, label="function")
    except TypeError as error:
        raise TypeError(f"{start}{error}.") from None
    except ValueError as error:
        kind = TypeError if "structures differ" in str(error) else ValueError
        raise kind(f"{start}{error}.") from None


def _tell(
    inside: "_Inside", chosen: Any, condition: Any, branches: list[tuple[Branch, BranchRecorder]]
) -> None:
    """Notify the tapes of the selection as one call."""
    listeners = active_listeners()
    sources, inputs = [], []
    for source in (*inside.tensors.values(), *inside.variables):
        tensor = adopt(source, None)
        if tensor.dtype in FLOATS and any(hook.follows(tensor) for hook in listeners):
            sources.append(source)
            inputs.append(tensor)
    if not inputs:
        return

    def rule(upstream: list[Tensor]) -> Any:
        def gradients(branch: Branch, recorder: BranchRecorder) -> Any:
            again = _Again(_recorder(), recorder)
            with GradientTape(watch_accessed_variables=False) as tape, recorded_by(again):
                tape.watch(sources)
                outputs = [
                    adopt(leaf, None) for leaf in _nest.flatten(branch()) if leaf is not None
                ]
            pairs = [
                pair for pair in zip(outputs, upstream, strict=True) if pair[0].dtype in FLOATS
            ]
            return tape.gradient(
                [target for target, _ in pairs],
                sources,
                output_gradients=[g for _, g in pairs],
                unconnected_gradients=UnconnectedGradients.ZERO,
            )

        return select_branch(condition, *(partial(gradients, *branch) for branch in branches))

    call = CustomCall(inputs, _tensors(chosen), rule)
    for listener in listeners:
        listener.on_custom_call(call)


def _tensors(structure: Any) -> list[Tensor]:
    return [leaf for leaf in _nest.flatten(structure) if isinstance(leaf, Tensor)]


class _Inside:
    """Notes the tensors and variables that branches use from outside: a listener, like tapes.

    Args:
        first_id: What has a larger one was made in them.

    Attributes:
        tensors: The tensors, by their ids.
        variables: The variables.
    """

    def __init__(self, first_id: int) -> None:
        self._first_id = first_id
        self.tensors: dict[int, Tensor] = {}
        self.variables: list[Any] = []

    def note(self, tensors: Sequence[Tensor | None]) -> None:
        """Note the tensors that come from outside."""
        for tensor in tensors:
            if tensor is not None and tensor._id < self._first_id:
                self.tensors[tensor._id] = tensor

    def follows(self, tensor: Tensor) -> bool:
        """Return True: it is notified of every call."""
        return True

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note the inputs."""
        self.note(inputs)

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note the variable."""
        if not any(known is variable for known in self.variables):
            self.variables.append(variable)

    def on_custom_call(self, call: CustomCall) -> None:
        """Note the inputs."""
        self.note(call.inputs)
