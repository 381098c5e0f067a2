"""Two branches of a recorded function, of which it turns out in each run which one is wanted.

Both are computed, and one is taken. Of the other nothing may be seen: neither what it writes or
draws or refuses, nor a gradient of its own that is not finite. So the choice is one call to the
tapes, and its gradient is a choice between the branches' gradients.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from mirrored import _nest
from mirrored.autodiff import GradientTape
from mirrored.autodiff.tape import UnconnectedGradients
from mirrored.devices import Device
from mirrored.errors import InvalidArgumentError
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


def select_branch(pred: RecordedTensor, true_fn: Branch, false_fn: Branch) -> Any:
    """Return what one of two functions returns, as a recorded boolean says in each run.

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
            "is one boolean: use mr.reduce_all or mr.reduce_any, or mr.where for each element."
        )
    condition = OPS["Reshape"](pred, shape=())
    inside = _Inside(new_id())
    results = [_computed(branch, inside) for branch in (true_fn, false_fn)]
    with only():
        chosen = _chosen(condition, *results)
    _tell(inside, chosen, condition, true_fn, false_fn)
    return chosen


def _computed(branch: Branch, inside: "_Inside") -> Any:
    """Return what a branch returns, with tensors for all leaves but None."""
    recorder = active_recorder()
    guard = None if recorder is None else _BranchRecorder(recorder)
    with only(inside), recorded_by(guard):
        found = _nest.map_structure(
            lambda leaf: None if leaf is None else adopt(leaf, None), branch()
        )
    inside.note(_tensors(found))
    return found


def _chosen(condition: Tensor, when_true: Any, when_false: Any) -> Any:
    """Return the structure of one of the results, with a choice for each tensor."""

    def choice(first: Tensor | None, second: Tensor | None) -> Tensor | None:
        if first is None and second is None:
            return None
        if first is None or second is None:
            raise ValueError("one of them returns None where the other returns a tensor")
        if first.dtype != second.dtype:
            raise TypeError(f"they return {first.dtype.name} and {second.dtype.name}")
        if first.shape != second.shape:
            raise ValueError(f"they return the shapes {first.shape} and {second.shape}")
        return OPS["SelectV2"](condition, first, second)

    start = (
        "true_fn and false_fn arguments to mr.cond must have the same number, type, and overall "
        "structure of return values, where the condition is known in each run only: "
    )
    try:
        return _nest.map_structure(choice, when_true, when_false, each="function")
    except TypeError as error:
        raise TypeError(f"{start}{error}.") from None
    except ValueError as error:
        kind = TypeError if "structures differ" in str(error) else ValueError
        raise kind(f"{start}{error}.") from None


def _tell(
    inside: "_Inside", chosen: Any, condition: Tensor, true_fn: Branch, false_fn: Branch
) -> None:
    """Tell the tapes of the choice as of one call."""
    listeners = active_listeners()
    sources, inputs = [], []
    for source in (*inside.tensors.values(), *inside.variables):
        tensor = adopt(source, None)
        if tensor.dtype in FLOATS and any(each.follows(tensor) for each in listeners):
            sources.append(source)
            inputs.append(tensor)
    if not inputs:
        return

    def rule(upstream: list[Tensor]) -> Sequence[Any]:
        def back(branch: Branch) -> Branch:
            def gradients() -> Any:
                with GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(sources)
                    found = [
                        adopt(each, None) for each in _nest.flatten(branch()) if each is not None
                    ]
                pairs = [
                    pair for pair in zip(found, upstream, strict=True) if pair[0].dtype in FLOATS
                ]
                return tape.gradient(
                    [target for target, _ in pairs],
                    sources,
                    output_gradients=[g for _, g in pairs],
                    unconnected_gradients=UnconnectedGradients.ZERO,
                )

            return gradients

        pred: Any = condition
        gradients: list[Any] = select_branch(pred, back(true_fn), back(false_fn))
        return gradients

    call = CustomCall(inputs, _tensors(chosen), rule)
    for listener in listeners:
        listener.on_custom_call(call)


def _tensors(structure: Any) -> list[Tensor]:
    return [each for each in _nest.flatten(structure) if isinstance(each, Tensor)]


class _Inside:
    """Knows what branches take from outside: a listener, as tapes are.

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
        """Note those of some tensors that come from outside."""
        for each in tensors:
            if each is not None and each._id < self._first_id:
                self.tensors[each._id] = each

    def follows(self, tensor: Tensor) -> bool:
        """Return whether to be told of a call with this input: yes."""
        return True

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note the inputs."""
        self.note(inputs)

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note the variable."""
        if not any(each is variable for each in self.variables):
            self.variables.append(variable)

    def on_custom_call(self, call: CustomCall) -> None:
        """Note the inputs."""
        self.note(call.inputs)


class _BranchRecorder:
    """Records a branch, and refuses what would be seen of it though the other one is taken.

    Args:
        recorder: Who records the function.

    Attributes:
        outer: The same.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.outer = recorder
        self.node_name = recorder.node_name
        self.copy = recorder.copy
        self.read = recorder.read
        self.on_failure = recorder.on_failure
        self.run_by = recorder.run_by

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
            self._refuse("draws random numbers", "Draw them before")
        if op.stateful:
            self._refuse(f"prints or checks values, by {op.name}", "Do it before")
        if op.may_refuse(each.spec for each in inputs if isinstance(each, RecordedTensor)):
            self._refuse(f"calls {op.name}, which may refuse what it is given", "Call it before")
        return self.outer.record(op, inputs, attrs, spec, device)

    def write(self, variable: Any, value: Tensor) -> NoReturn:
        """Refuse it."""
        name = f"the variable {variable.name!r}" if hasattr(variable, "name") else "variables"
        self._refuse(f"writes {name}", "Return the new value, and assign it after")

    def pull(self, stream: Any) -> NoReturn:
        """Refuse it."""
        self._refuse(f"takes an element of {stream!r}", "Take it before")

    def sum_over_devices(self, *_: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("sums over replicas", "Sum what it returns after")

    def all_reduce(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("sums over replicas", "Sum what it returns after")

    def require_finite(self, values: tuple[Tensor, ...]) -> NoReturn:
        """Refuse it."""
        self._refuse("trains", "Train after")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise InvalidArgumentError(
            "In a recorded function both functions of a mr.cond are computed, since its condition "
            f"is known in each run only. Received: a function that {what}. {instead} the "
            "mr.cond, make the condition known (Python's numbers and shapes are), or leave "
            "mr.function away."
        )
