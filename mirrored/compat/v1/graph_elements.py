"""What graphs of TensorFlow 1's programs are made of: operations with names, and tensors.

Tensors are placeholders of `mirrored.graph`, and operations what its nodes call.
"""

import copyreg
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from mirrored import _nest
from mirrored._types import PartialShapeLike
from mirrored.compat.v1.device_scopes import NodeDef
from mirrored.compat.v1.partial_shapes import TensorShape, check_same, text_of
from mirrored.compat.v1.running import current_run, default_session
from mirrored.errors import OperatorNotAllowedInGraphError
from mirrored.graph import Node, SymbolicTensor, placeholders
from mirrored.graph.entry import reduced
from mirrored.ops.rng_state import drawing_always_from

if TYPE_CHECKING:
    from mirrored.compat.v1.graph import Graph


@dataclass(eq=False, repr=False)
class Operation:
    """A node of a graph under its name.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default():
        ...     tf.add(1.0, 2.0).op
        <tf.Operation 'Add' type=AddV2>

    Attributes:
        graph: Its graph.
        name: Its name in it.
        type: What it computes, by TensorFlow's name.
        control_inputs: The operations that run before it.
        number: How many operations the graph had before.
        graph_seed: The seed that the graph had then.
        asks_run: Whether what it returns is known to a session alone: the value of a variable, or
            one that is fed.
    """

    graph: "Graph"
    name: str
    type: str
    _function: Callable[..., Any]
    control_inputs: list["Operation"]
    asks_run: bool
    # The variable that it is, those whose values it reads, and that it gives new ones.
    keeps: tuple[Any, ...] = ()
    reads: tuple[Any, ...] = ()
    writes: tuple[Any, ...] = ()
    # The variable that its result is the value of, whenever that is taken.
    refers: Any = None
    # By what it differentiates, where it does.
    sources: tuple[Any, ...] = ()
    # The iterator over a dataset whose next element it returns.
    iterator: Any = None

    def __post_init__(self) -> None:
        self.number: int = self.graph.version
        self.graph_seed: int | None = self.graph.seed
        self._inbound_nodes: deque[Node] = deque()

    @property
    def node(self) -> Node:
        """The node that calls it."""
        return self._inbound_nodes[0]

    @property
    def inputs(self) -> tuple["Tensor", ...]:
        """The tensors that it is computed from."""
        _, shown, *args = self.node.args
        tensors: list[Any] = placeholders((args, self.node.kwargs, shown))
        return tuple(tensors)

    @property
    def outputs(self) -> list["Tensor"]:
        """The tensors that it computes; one that is only run has none."""
        return [output for output in self.node.outputs if isinstance(output, Tensor)]

    @property
    def device(self) -> str:
        """The device that it was drawn for; an empty text where that is left to the session."""
        return "" if self.node.device is None else self.node.device.to_string()

    @property
    def node_def(self) -> NodeDef:
        """Its name, type, device and inputs, for functions that are given to `tf.device`."""
        return NodeDef(self.name, self.type, self.device, [input_.name for input_ in self.inputs])

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Run it in a session, by default the default session.

        Raises:
            ValueError: No session was given or entered.
        """
        session_or_default(
            session,
            "Cannot execute operation using `run()`: No default session is registered. Use "
            "`with sess.as_default():` or pass an explicit session to `run(session=sess)`",
        ).run(self, feed_dict)

    def __call__(self, controls: Any, shown: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute it for values."""
        run = current_run()
        if run is None:
            return self._function(*args, **kwargs)
        if run.written and not self.sources:
            drawn = (self.node.args[2:], self.node.kwargs)
            args, kwargs = _nest.map_structure(value_by_now, drawn, (args, kwargs))
        with drawing_always_from(run.kept.stream(self)):
            results = self._function(*args, **kwargs)
        if self.writes:
            run.wrote(self.writes)
        if run.watched:
            run.watch(self.node.outputs, results)
        return results

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"


class Tensor(SymbolicTensor):
    """A result of an operation: a shape and a dtype, whose value a session computes."""

    __hash__ = object.__hash__  # By its identity, as before, and sooner.
    # The sizes; None: not even their number is known.
    _shape: Any

    def __init__(self, shape: Any, dtype: Any, name: str) -> None:
        super().__init__(() if shape is None else shape, dtype, name=name)
        if shape is None:
            self._shape = None

    @property
    def shape(self) -> Any:
        """Its `TensorShape`."""
        return TensorShape(super().shape)

    def get_shape(self) -> Any:
        """Return its `TensorShape`."""
        return self.shape

    def set_shape(self, shape: PartialShapeLike | None) -> None:
        """Refine its static shape.

        Args:
            shape: A shape, with None for sizes that are not known.

        Raises:
            ValueError: It cannot have it.
        """
        expected = TensorShape(shape)
        check_same(self._shape, expected.sizes)
        sizes = self.shape.merge_with(expected).sizes
        if sizes != self._shape:
            self._shape = sizes
            self.known = {}

    @property
    def op(self) -> Operation:
        """The operation that computes it."""
        operation: Operation = self.node.callee  # type: ignore[assignment]
        return operation

    @property
    def graph(self) -> "Graph":
        """The graph that it is in."""
        return self.op.graph

    def variable(self, fed: Container[Any]) -> Any:
        """Return the variable whose value it is, which changes with that; None: it is none's.

        Args:
            fed: The tensors that are fed, and so are what they were given.
        """
        tensor = self
        while tensor not in fed:
            operation = tensor.op
            if operation.refers is not None or operation.type != "Identity":
                return None if operation.refers in fed else operation.refers
            (tensor, *_) = operation.inputs
        return None

    @property
    def fetched(self) -> "list[Tensor]":
        """The tensors whose values a run computes where it is fetched."""
        return [self]

    @property
    def value_index(self) -> int:
        """Which of the operation's results it is."""
        return self.index

    @property
    def device(self) -> str:
        """The device that its operation was drawn for."""
        return self.op.device

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Return its value in a session, by default the default session.

        Raises:
            ValueError: No session was given or entered.
        """
        return session_or_default(
            session,
            "Cannot evaluate tensor using `eval()`: No default session is registered. Use "
            "`with sess.as_default()` or pass an explicit session to `eval(session=sess)`",
        ).run(self, feed_dict)

    def consumers(self) -> list[Operation]:
        """Return the operations that have it as an input."""
        return [op for op in self.graph.get_operations() if self in op.inputs]

    def __len__(self) -> NoReturn:
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({self.name}). Please call `x.shape` "
            "rather than `len(x)` for shape information."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({self.name}) to a numpy array. Run it in a "
            "session, and use the value that it returns."
        )

    def _scalar(self) -> NoReturn:
        raise TypeError(
            f"A symbolic tf.Tensor ({self.name}) is not a number. Run it in a session, and use "
            "the value that it returns."
        )

    def _without_values(self, action: str) -> str:
        return (
            f"A tensor of a graph has a value in a session only. {action} Received: {self!r}. Use "
            "`session.run(tensor)`."
        )

    def __bool__(self) -> NoReturn:
        raise _refused("Using a symbolic `tf.Tensor` as a Python `bool`")

    def __ne__(self, other: object) -> bool:
        return self is not other  # As `==`; `tf.not_equal` compares elements.

    def __iter__(self) -> Iterator[Any]:
        raise _refused("Iterating over a symbolic `tf.Tensor`")

    @property
    def _text(self) -> str:
        return text_of(self._shape)

    @property
    def _dtype_name(self) -> str:
        return "string" if self._dtype.kind == "O" else str(self._dtype.name)

    def __str__(self) -> str:
        shape = "" if self._shape is None else f" shape={self._text},"
        return f'Tensor("{self.name}",{shape} dtype={self._dtype_name})'

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self._text} dtype={self._dtype_name}>"


copyreg.pickle(Tensor, reduced)


class TextTensor(Tensor):
    """A result whose value is texts, as bytes, which the host makes of what a run computes.

    Args:
        shape: Its shape, with None for sizes that are not known.
        fetched: The tensors whose values a run computes where it is fetched.
        made_of: From their values to its value.

    Attributes:
        made_of: The same.
    """

    def __init__(
        self, shape: Any, fetched: Sequence[Tensor], made_of: Callable[[Sequence[Any]], Any]
    ) -> None:
        super().__init__(shape, np.dtype(object), "")
        self._fetched, self.made_of = list(fetched), made_of

    @property
    def fetched(self) -> list[Tensor]:
        """The tensors whose values a run computes where it is fetched."""
        return self._fetched


def session_or_default(session: Any, problem: str) -> Any:
    """Return a session, or the default one; raise ValueError if there is none."""
    session = default_session() if session is None else session
    if session is None:
        raise ValueError(problem)
    return session


def value_by_now(tensor: Any, value: Any) -> Any:
    """Return a value that was computed in a run, and that of a variable as it is by now.

    Args:
        tensor: The tensor whose value it is; something else stays as it is.
        value: The value.
    """
    run: Any = current_run()
    return run.latest(tensor.variable(run.fed), value) if isinstance(tensor, Tensor) else value


def _refused(action: str) -> OperatorNotAllowedInGraphError:
    return OperatorNotAllowedInGraphError(
        f"{action} is not allowed. Run it in a session, and use the value that it returns."
    )
