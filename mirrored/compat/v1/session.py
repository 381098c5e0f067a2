"""Sessions: they run parts of a graph, as recorded functions, on variables of their own."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np

from mirrored import _nest, ops
from mirrored.compat.v1.config import checked_config
from mirrored.compat.v1.elements import Operation, Tensor
from mirrored.compat.v1.graph import Graph, enter_graph, get_default_graph, leave_graph
from mirrored.compat.v1.placing import Placement
from mirrored.compat.v1.running import Run, entered_sessions, running
from mirrored.compat.v1.session_devices import set_up
from mirrored.compat.v1.variables import Variable
from mirrored.devices import device
from mirrored.errors import FailedPreconditionError, InvalidArgumentError
from mirrored.graph import Part
from mirrored.graph.order import nodes_between
from mirrored.program import function
from mirrored.variables import Variable as Storage


class Session:
    """Runs parts of a graph. The variables have values of their own in each.

    Args:
        target: Where it runs; only this process is there.
        graph: The graph; None: the default one.
        config: A `ConfigProto`: whether placements are logged, and are soft.

    Raises:
        InvalidArgumentError: The target is another process.
            It asks for what is not provided.
        TypeError: The graph or the configuration is none.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     a, b = tf.constant(2.0), tf.constant(3.0)
        ...     outcome = session.run({"sum": a + b, "product": a * b})
        >>> {name: float(value) for name, value in outcome.items()}
        {'sum': 5.0, 'product': 6.0}
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if target:
            raise InvalidArgumentError(
                f"A session runs in this process. Received: target={target!r}. Leave it out."
            )
        if not isinstance(graph, Graph | None):
            raise TypeError(
                f'Argument `graph` must be a tf.Graph, but got "{type(graph).__name__}"'
            )
        self._graph = get_default_graph() if graph is None else graph
        self._config = checked_config(config)
        set_up(self._config)
        self._placement = Placement(
            self._graph,
            soft=self._config.allow_soft_placement,
            logs=self._config.log_device_placement,
        )
        self._closed = False
        self._storages: dict[Variable, Any] = {}
        self._initialized: set[Variable] = set()
        self._programs: dict[Any, _Program] = {}
        self._scopes: list[Any] = []

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Run what some values need, and return these.

        Args:
            fetches: Tensors, operations, variables or their names, in nested structures.
            feed_dict: Values by the tensors whose place they take, or by their names.
            options: Accepted for compatibility.
            run_metadata: Accepted for compatibility.

        Returns:
            Arrays and numbers in the structure of the fetches; None for operations.

        Raises:
            RuntimeError: The session is closed, or the graph is empty.
            TypeError: A fetch or a key of `feed_dict` is nothing that can be one.
            ValueError: A fetch is not in the graph, or a value has the wrong shape.
            FailedPreconditionError: A variable has no value yet.
            InvalidArgumentError: A placeholder that is needed is not fed.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if not self._graph.get_operations():
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )
        leaves: list[Any] = []
        structure = _fetched(fetches, self._graph, leaves)
        self._placement.place()
        fed = self._fed(feed_dict)
        key = (tuple(map(id, leaves)), tuple(map(id, fed)))
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = _Program(leaves, list(fed), self._storage)
        missing = program.needs - self._initialized
        if missing:
            first = min(missing, key=lambda each: each.op.number)
            raise FailedPreconditionError(
                f"Attempting to use uninitialized value {first.op.name}\n\t "
                f"[[{{{{node {first.read_op.name}}}}}]]"
            )
        results = program(list(fed.values()))
        self._initialized.update(program.gives)
        return structure(iter(results))

    def partial_run(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError: a run is whole."""
        raise NotImplementedError(
            "`partial_run` is not provided: a run is recorded as a whole. Fetch what is needed in "
            "one `run`, or feed what an earlier one returned."
        )

    partial_run_setup = partial_run

    def _fed(self, feed_dict: Any) -> dict[Tensor, Any]:
        if feed_dict is None:
            return {}
        if not isinstance(feed_dict, dict):
            raise TypeError(
                "`feed_dict` must be a dictionary or collection.Mapping type object, instead of "
                f"{type(feed_dict).__name__!r}."
            )
        fed: dict[Tensor, Any] = {}
        for key, value in feed_dict.items():
            try:
                tensor: Any = self._graph.as_graph_element(key, operations=False)
            except (KeyError, TypeError, ValueError) as error:
                raise TypeError(
                    f"Cannot interpret feed_dict key as Tensor: {error.args[0]}"
                ) from None
            fed[tensor] = _as_fed(tensor, value)
        return fed

    def _storage(self, variable: Variable) -> Any:
        """Return what holds a variable's value, zeros until its initializer runs."""
        if variable not in self._storages:
            with device(self._placement.device_of(variable.op)):
                self._storages[variable] = Storage(
                    lambda: ops.zeros(variable._shape, variable._dtype),
                    name=variable.op.name,
                    trainable=False,
                )
        return self._storages[variable]

    def set_values(self, values: Mapping[Variable, Any]) -> None:
        """Give variables values that fit them, without running anything of the graph.

        Args:
            values: Arrays of the variables' shapes and dtypes.

        Raises:
            RuntimeError: The session is closed.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        self._placement.place()
        for variable, value in values.items():
            self._storage(variable).assign(value)
            self._initialized.add(variable)

    def close(self) -> None:
        """Let go of the variables' values; the session runs no more."""
        self._closed = True
        self._storages.clear()
        self._programs.clear()

    def as_default(self) -> Any:
        """Return a context within which `eval()` and `run()` use this session."""
        return _Entered(self)

    def __enter__(self) -> Self:
        """Let `eval()` and `run()` use this session, and operations be drawn into its graph."""
        self._scopes.append((entered_sessions.get(), enter_graph(self._graph)))
        entered_sessions.set((*entered_sessions.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        sessions, _token = self._scopes.pop()
        entered_sessions.set(sessions)
        leave_graph(self._graph)
        self.close()


class _Entered:
    """A session as the default one, without being closed at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> Session:
        self._before = entered_sessions.get()
        entered_sessions.set((*self._before, self._session))
        enter_graph(self._session.graph)
        return self._session

    def __exit__(self, *_: object) -> None:
        entered_sessions.set(self._before)
        leave_graph(self._session.graph)


class InteractiveSession(Session):
    """A session that is the default one from when it is made until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        entered_sessions.set((*entered_sessions.get(), self))
        if graph is not None:
            enter_graph(graph)
        self._entered_graph = graph

    def close(self) -> None:
        """Close it, and let the session before it be the default one."""
        super().close()
        entered_sessions.set(tuple(each for each in entered_sessions.get() if each is not self))
        if self._entered_graph is not None:
            leave_graph(self._entered_graph)


def _fetched(fetches: Any, graph: Graph, leaves: list[Any]) -> Callable[[Any], Any]:
    """Add the tensors and operations among fetches to a list, and return what puts values there."""
    if fetches is None:
        raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
    if isinstance(fetches, list | tuple):
        parts = [_fetched(each, graph, leaves) for each in fetches]
        return lambda values: _nest.rebuild(fetches, [part(values) for part in parts])
    if isinstance(fetches, dict):
        named = {key: _fetched(each, graph, leaves) for key, each in fetches.items()}
        return lambda values: _nest.rebuild_dict(
            fetches, {key: part(values) for key, part in named.items()}
        )
    try:
        leaves.append(graph.as_graph_element(fetches))
    except TypeError as error:
        raise TypeError(
            f'Argument `fetch` = {fetches} has invalid type "{type(fetches).__name__}" must be a '
            f"string or Tensor. ({error})"
        ) from None
    except (KeyError, ValueError) as error:
        raise ValueError(
            f"Argument `fetch` = {fetches} cannot be interpreted as a Tensor. ({error})"
        ) from None
    return next


def _as_fed(tensor: Tensor, value: Any) -> Any:
    """Return a fed value as an array of the tensor's dtype and of a shape that it can have."""
    if isinstance(value, Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the "
            f"tensor object was {value} which was passed to the argument `feed_dict` with key "
            f"{tensor}."
        )
    dtype = tensor._dtype
    given = np.asarray(value)
    lossy = False
    try:
        array = np.asarray(value, dtype=dtype)
    except OverflowError:
        lossy = True
    if lossy or (dtype.kind in "iu" and given.dtype != dtype and (array != given).any()):
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            f"type {dtype.name}. Try explicitly setting the type of the feed tensor to a larger "
            "type (e.g. int64), or convert the value."
        )
    sizes = tensor._shape
    fits = len(sizes) == array.ndim and all(
        size in (None, found) for size, found in zip(sizes, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(
            f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has shape "
            f"{tensor._text}"
        )
    return array


class _Program:
    """What computes some fetches from some feeds, recorded for each of their shapes.

    Args:
        leaves: The tensors and operations that are fetched.
        fed: The tensors that are fed.
        storage: From a variable to what holds its value.

    Attributes:
        needs: The variables that must have values.
        gives: Those that have one after it.

    Raises:
        InvalidArgumentError: A placeholder that is needed is not fed.
    """

    def __init__(
        self, leaves: Sequence[Any], fed: Sequence[Tensor], storage: Callable[[Any], Any]
    ) -> None:
        targets = [each if isinstance(each, Tensor) else each.node.outputs[0] for each in leaves]
        self._part = part_between(fed, targets)
        self.needs: set[Variable] = set()
        self.gives: set[Variable] = set()
        # What a run keeps, so that graph and session may go while a recording stays.
        self._wanted = [isinstance(each, Tensor) for each in leaves]
        operations = [operation_of(node) for node in self._part.calls]
        for operation in operations:
            if operation.type == "Placeholder":
                raise _not_fed(operation)
            self.needs.update(set(operation.reads) - self.gives)
            self.gives.update(operation.writes)
        for variable in self.needs | self.gives:
            storage(variable)
        self._storage = storage
        taken = [each for each in operations if each.type == "Gradients"]
        self._watched = [each for operation in taken for each in operation.sources]
        self._once = len(taken) == 1
        self._fed = list(fed)
        self._function: Any = function(self._compute)

    def _compute(self, *values: Any) -> list[Any]:
        run = Run(self._storage, self._watched, self._once)
        with running(run):
            if self._watched:
                with run.tape:
                    run.watch(self._fed, list(values))
                    results = self._part.run(values)
            else:
                results = self._part.run(values)
        return [value for value, wanted in zip(results, self._wanted, strict=True) if wanted]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of the fetches, with None for operations."""
        results = self._function(*values)
        if any(each is None for each in results):
            raise InvalidArgumentError(
                "A gradient that is fetched has no way back: a tensor between what is "
                "differentiated and what it is differentiated by is fed. Feed what it is computed "
                "from."
            )
        found = iter(results)
        return [next(found).numpy() if wanted else None for wanted in self._wanted]


def part_between(fed: Sequence[Tensor], targets: Sequence[Any]) -> Part:
    """Return what leads from tensors to others, in the order in which it was drawn."""
    nodes, _ = nodes_between(fed, targets)
    drawn = sorted(nodes, key=lambda node: operation_of(node).number)
    return Part(fed, list(targets), drawn)


def operation_of(node: Any) -> Operation:
    """Return the operation that a node calls."""
    operation: Operation = node.callee
    return operation


def _not_fed(operation: Operation) -> InvalidArgumentError:
    (tensor,) = operation.outputs
    dtype = {"float32": "float", "float64": "double"}.get(tensor._dtype.name, tensor._dtype.name)
    sizes = ",".join("?" if size is None else str(size) for size in tensor._shape)
    return InvalidArgumentError(
        f"You must feed a value for placeholder tensor '{operation.name}' with dtype {dtype} and "
        f"shape [{sizes}]\n\t [[{{{{node {operation.name}}}}}]]"
    )


def get_default_session() -> Session | None:
    """Return the session that was entered last; None: none is."""
    sessions = entered_sessions.get()
    return sessions[-1] if sessions else None
