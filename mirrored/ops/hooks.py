"""Who is told of an op, and who is asked instead of its kernel: tapes, and recorders of programs.

They stand above the ops and are named here from there, so that the ops know nothing of them. (Who
measures how long an op takes is told by `mirrored.devices.work_timing`.)
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from mirrored._contexts import Context, Within
from mirrored.devices import Device, placed_as, placed_nowhere, refuse_reset_where
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.ops.spec import DType, Shape, TensorSpec, as_shape, is_any_shape
from mirrored.ops.tensor import Operators, Tensor, new_id

if TYPE_CHECKING:
    from mirrored.ops.op import Op


@dataclass(frozen=True, eq=False, slots=True)
class CustomCall:
    """A call of a function that says its own gradient.

    Attributes:
        inputs: Its inputs; None for those that have no gradient.
        outputs: Its results.
        rule: From the gradients of the results to those of the inputs, None where there is none.
    """

    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor]
    rule: Callable[[list[Tensor]], Sequence[Any]]


# Called with the shape of a constant that is to be computed, and the bytes of an element.
ConstantRoom = Callable[[Sequence[int], int], None]

constant_rooms: ContextVar[ConstantRoom | None] = ContextVar("mirrored_constant_room", default=None)


def take_constant_room(shape: Sequence[int], itemsize: int) -> None:
    """Take the room of a constant that is to be computed, where that is bounded.

    Args:
        shape: Its shape.
        itemsize: The bytes of an element.

    Raises:
        ValueError: There is less room.
    """
    take = constant_rooms.get()
    if take is not None:
        take(shape, itemsize)


class Listener(Protocol):
    """Something that follows what is computed."""

    def follows(self, tensor: Tensor) -> bool:
        """Return whether it is to be told of a call for the sake of this input."""

    def on_op(
        self, op: "Op", inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Called after an op ran."""

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Called after a variable was read."""

    def on_custom_call(self, call: CustomCall) -> None:
        """Called after a function that says its own gradient returned."""


_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("mirrored_listeners", default=())


# Returns the listeners of this context, outermost first.
active_listeners: Callable[[], tuple[Listener, ...]] = _listeners.get


def add_listener(listener: Listener) -> None:
    """Tell `listener` of what this context computes from now on."""
    _listeners.set((*_listeners.get(), listener))


def remove_listener(listener: Listener) -> None:
    """Stop telling `listener`; nothing happens where it was not told."""
    _listeners.set(tuple(other for other in _listeners.get() if other is not listener))


def only(*listeners: Listener) -> Within:
    """Within this context tell these listeners and no others; no argument: nobody."""
    return Within(_listeners, listeners)


_in_graph: ContextVar[bool] = ContextVar("mirrored_in_graph", default=False)

# Returns whether Python runs here, op by op, what is a graph in TensorFlow.
in_graph: Callable[[], bool] = _in_graph.get


def graph_scope() -> Within:
    """Within this context run what is a graph in TensorFlow, as a function of a dataset is."""
    return Within(_in_graph, True)


class Recorder(Protocol):
    """Something that notes what would be computed, and computes nothing.

    Attributes:
        shapes_alone: Whether nothing but shapes is wanted, for which no device has to be made.
        has_text: Whether a tensor was made text, or an error was raised for it.
    """

    shapes_alone: bool
    has_text: bool

    def node_name(self, op_name: str) -> str | None:
        """Return what the placement log calls the next node of an op; None: it says nothing."""

    def pull(self, stream: Any) -> Any:
        """Return what stands for the next element of an iterator over a dataset."""

    def record(
        self,
        op: "Op",
        inputs: tuple[Tensor, ...],
        attrs: Mapping[str, Any],
        spec: TensorSpec,
        device: Device,
    ) -> Tensor:
        """Return what stands for the result of an op, whose arguments are checked."""

    def copy(self, tensor: "RecordedTensor", device: Device) -> Tensor:
        """Return what stands for the tensor's copy on another device."""

    def read(self, variable: Any) -> Tensor:
        """Return what stands for the value of one copy of a variable."""

    def write(self, variable: Any, value: Tensor) -> None:
        """Note that one copy of a variable gets a value, which it has from now on.

        Where it is several as one vector, each gets its part.
        """

    def written_variables(self) -> dict[int, Any]:
        """Return the copies of variables that were written, by their ids."""

    def sum_over_devices(self, tensors: Sequence[Tensor], device: Device) -> Tensor:
        """Return what stands for the sum of tensors of several devices, in their order.

        Only for devices of one memory: the sum takes them where they are.
        """

    def all_reduce(
        self, tensors: Sequence[Tensor], connection: Any, *, what: str, timeout: float
    ) -> list[Tensor]:
        """Return what stands for the sum of one tensor a rank, on the device of each.

        Args:
            tensors: The tensors, in the order of the ranks.
            connection: What connects the devices: a `Connection` of their backends.
            what: What errors call it.
            timeout: How long it may take, in seconds.
        """

    def on_failure(self, undo: Callable[[], None]) -> None:
        """Note what takes back something that was made for the function, should it fail."""

    def run_by(self, strategy: Any) -> None:
        """Note that a strategy runs its replicas in the function."""

    def ask_number(self) -> None:
        """Note that the function asks for a replica's number, by which replicas may differ."""

    def meet(self) -> None:
        """Note that the replicas meet here."""

    def require_finite(self, values: tuple[Tensor, ...]) -> None:
        """Note that the first elements of these must be finite, or nothing is written."""


_recorder: ContextVar[Recorder | None] = ContextVar("mirrored_recorder", default=None)


# Returns who records what this context computes; None where it is computed.
active_recorder: Callable[[], Recorder | None] = _recorder.get


refuse_reset_where(lambda: None if _recorder.get() is None else "a function that is being recorded")


def shapes_alone() -> bool:
    """Return whether ops are called for the shapes of what they return, and for nothing else."""
    recorder = _recorder.get()
    return recorder is not None and recorder.shapes_alone


def recorded_by(recorder: Recorder | None, *others: Context) -> Within:
    """Within this context let `recorder` note what is computed; None: compute it."""
    names = None if recorder is None else recorder.node_name
    if recorder is not None and recorder.shapes_alone:
        names = placed_nowhere
    return Within(_recorder, recorder, placed_as(names), *others)


class NoValueError(OperatorNotAllowedInGraphError, AttributeError):
    """What scripts expect that ask for `numpy()`, which TensorFlow's recorded tensors have not."""


class RecordedTensor(Tensor):
    """A tensor of a function that is being recorded: it has a shape and a dtype, and no values.

    Attributes:
        recorder: Who made it.
        value: What it is to its recorder.
    """

    __slots__ = ("recorder", "value")

    def __init__(self, recorder: Recorder, value: Any, device: Device, spec: TensorSpec) -> None:
        self.recorder = recorder
        self.value = value
        self._device = device
        self._spec = spec
        self._id = new_id()
        self._logits = None
        self._keras_mask = None

    def _no_values(self, kind: type[TypeError] = OperatorNotAllowedInGraphError) -> NoReturn:
        active: Any = active_recorder()
        # A branch of a mr.cond has a recorder of its own, which hands on to that of the function.
        while active is not self.recorder and hasattr(active, "outer"):
            active = active.outer
        if active is self.recorder:
            raise kind(
                "A tensor has no value while its function is being recorded, so Python cannot "
                f"branch on it, print it as a number or hand it to NumPy. Received: {self!r}. "
                "Compute with mirrored's ops (mr.where, mr.cond, mr.maximum), return the tensor "
                "and read its value outside, or run without recording: use "
                "compile(run_eagerly=True), or leave mr.function out."
            )
        raise kind(
            "A tensor of a recorded function has no value outside of it. Received: "
            f"{self!r}, kept from a call that was recorded. Return it from the function instead "
            "of storing it."
        )

    # What eager code would compute with: to ask for it is to use the tensor outside its function.
    _array = _storage = property(_no_values)

    def numpy(self) -> Any:
        """Raise OperatorNotAllowedInGraphError, an AttributeError too: there are no values."""
        self._no_values(NoValueError)

    def copy_to(self, device: Device) -> Tensor:
        """Return what stands for this tensor on another device."""
        return self if device is self._device else self.recorder.copy(self, device)

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else repr(self)

    def __repr__(self) -> str:
        self.recorder.has_text = True
        return f"<mr.Tensor: {self._described()}, recorded>"


class UnknownShape(Operators):
    """Stands for a result of a function that runs whenever a recorded one does.

    `set_shape`, `ensure_shape` and `reshape` say which shape it has, each run checks it, and from
    then on it is a tensor. Before that it may be returned; whatever asks for its shape, or computes
    with it, is refused.
    """

    def __init__(
        self,
        dtype: DType,
        shaped: Callable[[TensorSpec, bool], Tensor],
        value: Callable[[], Tensor],
    ) -> None:
        """Note its dtype, what makes a tensor of it, and what returns its value after a run."""
        self._dtype = dtype
        self._shaped = shaped
        self.value = value
        self._tensor: Tensor | None = None

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        return self._dtype

    @property
    def shape(self) -> Any:
        """The shape that was said; until then it is refused."""
        return self._as_tensor().shape

    def set_shape(self, shape: Any) -> None:
        """Say what shape it has; later it is checked, as an `ensure_shape` of it is.

        Args:
            shape: All its sizes.
        """
        if self._tensor is not None:
            self._tensor.set_shape(shape)
        elif not is_any_shape(shape) and None not in tuple(shape):
            self._tensor = self._shaped(TensorSpec(as_shape(shape), self._dtype), False)

    def reshaped(self, shape: Shape) -> Tensor:
        """Return it in a shape, of which a run checks the number of elements.

        Args:
            shape: The sizes, none of which is -1.
        """
        return self._shaped(TensorSpec(shape, self._dtype), True)

    @property
    def is_known(self) -> bool:
        """Whether its shape was said."""
        return self._tensor is not None

    def _as_tensor(self) -> Tensor:
        if self._tensor is None:
            self._refuse()
        return self._tensor

    def numpy(self) -> NoReturn:
        """Raise OperatorNotAllowedInGraphError: it has no value while it is recorded."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OperatorNotAllowedInGraphError(
            "The result of a `py_function` or a `numpy_function` has no shape before it runs, and "
            f"a recorded function needs the shape earlier. Received: {self!r}, in a function that "
            "is being recorded. Set the shape: `y = mr.ensure_shape(y, shape)` or "
            "`y.set_shape(shape)`, with all sizes; each run checks it. Or call it outside, or "
            "run without recording: use compile(run_eagerly=True), or leave mr.function out."
        )

    def __repr__(self) -> str:
        return f"<mr.Tensor: shape=<unknown>, dtype={self._dtype.name}>"


_OF_ALL = 1 << 26  # Bytes.
_OF_A_LETTER = 1 << 14


def within_constant_room(letters: int) -> Within:
    """Within this context the constants of graphs have the room that a configuration has.

    Whoever made the file may have made up sizes, and constants are computed while it is drawn.

    Args:
        letters: The length of the configuration's text.
    """
    left = _OF_ALL + _OF_A_LETTER * letters

    def take(shape: Sequence[int], itemsize: int) -> None:
        nonlocal left
        asked = math.prod(max(int(size), 0) for size in shape) * itemsize
        left -= asked
        if left < 0:
            raise ValueError(
                "A configuration needs larger constants than its text allows. Received: a "
                f"constant of shape {tuple(shape)}, of {asked} bytes. Restore it from another "
                "copy."
            )

    return Within(constant_rooms, take)
