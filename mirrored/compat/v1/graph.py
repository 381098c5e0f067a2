"""Graphs as TensorFlow 1's programs draw them: operations that have names, in their order.

Tensors are placeholders of `mirrored.graph` and operations what its nodes call, so a graph here is
a list of those nodes and what they are called.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from mirrored import _nest
from mirrored._contexts import Within
from mirrored.compat.v1.device_scopes import ask_functions, device
from mirrored.compat.v1.graph_elements import Operation, Tensor
from mirrored.graph import Node, SymbolicTensor, placeholders, results_of
from mirrored.ops import Tensor as EagerTensor
from mirrored.ops import float32
from mirrored.variables import Variable as EagerVariable

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_LATER_NAME = re.compile(r"[A-Za-z0-9_.\\/>-]*")


class Graph:
    """Operations with names, which sessions run.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default() as graph:
        ...     total = tf.add(tf.constant(1.0), tf.constant(2.0))
        >>> [each.name for each in graph.get_operations()]
        ['Const', 'Const_1', 'Add']
        >>> with tf.Session(graph=graph) as session:
        ...     float(session.run(total))
        3.0
    """

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._tensors: dict[str, Tensor] = {}
        self._used: dict[str, int] = {}
        self._collections: dict[str, list[Any]] = {}
        self._scope = ""
        self._controls: tuple[Operation, ...] = ()
        self._finalized = False
        self.version = 0
        self.seed: int | None = None
        # What programs get again by its name, and the scopes in which they ask for it.
        self.variables_by_name: dict[str, Any] = {}
        self.default_scope_names: set[str] = set()
        self.outermost_scope: Any = None
        # The number of datasets, from which their draws follow.
        self.dataset_count = 0

    @property
    def finalized(self) -> bool:
        """Whether the graph cannot be changed any more."""
        return self._finalized

    def finalize(self) -> None:
        """Make the graph unchangeable."""
        self._finalized = True

    @contextmanager
    def as_default(self) -> "Iterator[Graph]":
        """Return a context that adds operations to this graph."""
        with Within(_entered, (*_entered.get(), self)):
            yield self

    def get_operations(self) -> list[Operation]:
        """Return the operations in the order of their creation."""
        return list(self._operations.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation of a name.

        Raises:
            KeyError: There is none.
            ValueError: The name is that of a tensor.
            TypeError: The name is no text.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        if name in self._tensors:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if name not in self._operations:
            raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")
        return self._operations[name]

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Return the tensor of a name such as 'add:0'.

        Raises:
            KeyError: There is none.
            ValueError: The name is that of an operation.
            TypeError: The name is no text.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        if name in self._tensors:
            return self._tensors[name]
        operation, colon, number = name.partition(":")
        if not (colon and operation and number.isdecimal()):
            problem = "looks a like a Tensor name, but is not a valid one."
            if name in self._operations:
                problem = "refers to an Operation, not a Tensor."
            elif not colon:
                problem = "looks like an (invalid) Operation name, not a Tensor."
            raise ValueError(
                f"The name {name!r} {problem} Tensor names must be of the form "
                '"<op_name>:<output_index>".'
            )
        there = "does not exist in the graph"
        if operation in self._operations:
            count = len(self._operations[operation].outputs)
            there = f"exists but only has {count} outputs"
        raise KeyError(
            f"The name {name!r} refers to a Tensor which does not exist. The operation, "
            f"{operation!r}, {there}."
        )

    def as_graph_element(self, value: Any, operations: bool = True) -> Tensor | Operation:
        """Return the tensor or the operation that something names, or that it is.

        Raises:
            TypeError: It is neither.
            KeyError: Nothing has that name.
            ValueError: It belongs to another graph.
        """
        if isinstance(value, str):
            if ":" in value or not operations:
                return self.get_tensor_by_name(value)
            return self.get_operation_by_name(value)
        wanted = "a Tensor or Operation" if operations else "a Tensor"
        if not isinstance(value, (Tensor, Operation) if operations else Tensor):
            advice = _advice_on(value)
            raise TypeError(f"Can not convert a {type(value).__name__} into {wanted}.{advice}")
        if value.graph is not self:
            kind = "Tensor" if isinstance(value, Tensor) else "Operation"
            raise ValueError(f"{kind} {value} is not an element of this graph.")
        return value

    def unique_name(self, name: str) -> str:
        """Return a name that nothing in the graph has, in the scope that is open."""
        whole = f"{self._scope}/{name}" if self._scope else name
        key = whole.lower()
        count = self._used.get(key, 0)
        self._used[key] = count + 1
        if not count:
            return whole
        while f"{key}_{count}" in self._used:
            count += 1
        self._used[f"{key}_{count}"] = 1
        return f"{whole}_{count}"

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Return a context that prefixes the names of operations, and yields the prefix."""
        if name and not name.endswith("/"):
            inner = self.unique_name(self._checked_name(name))
        else:
            inner = (name or "")[:-1]
        outer, self._scope = self._scope, inner
        try:
            yield f"{inner}/" if inner else ""
        finally:
            self._scope = outer

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Return a context whose operations run after others; None clears these."""
        outer = self._controls
        if control_inputs is None:
            self._controls = ()
        else:
            elements = [self.as_graph_element(element) for element in control_inputs]
            added = [item if isinstance(item, Operation) else item.op for item in elements]
            self._controls = tuple(dict.fromkeys((*outer, *added)))
        try:
            yield
        finally:
            self._controls = outer

    def device(self, device_name_or_function: Any) -> Any:
        """Return a context that places operations on a device, as `tf.device` does."""
        return device(device_name_or_function)

    def add_to_collection(self, name: str, value: Any) -> None:
        """Add a value to a collection."""
        self.check_open()
        self._collections.setdefault(name, []).append(value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """Return the values of a collection, filtered by the prefix of their names."""
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        return [item for item in items if re.match(scope, getattr(item, "name", ""))]

    def get_collection_ref(self, name: str) -> list[Any]:
        """Return a collection itself, which changes with the graph."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """Return the names of the collections that are not empty."""
        return [name for name, values in self._collections.items() if values]

    def clear_collection(self, name: str) -> None:
        """Remove all values from a collection."""
        self.check_open()
        self._collections.pop(name, None)

    def get_name_scope(self) -> str:
        """Return the current name scope; empty outside of all scopes."""
        return self._scope

    def check_open(self) -> None:
        """Raise RuntimeError where the graph is finalized."""
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    def draw(
        self,
        function: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        kind: str,
        name: str,
        results: Any = None,
        runs_only: bool = False,
        asks_run: bool = False,
        shown: Sequence[Tensor] = (),
    ) -> Operation:
        """Add an operation.

        Args:
            function: What computes it.
            args: Its arguments by position, with tensors in them.
            kwargs: Those by name.
            kind: Its type.
            name: What its name begins with; one that ends with a slash is the whole of it.
            results: The tensors that it makes; None: found from the arguments.
            runs_only: Whether it makes no tensors.
            asks_run: What the attribute of this name is.
            shown: Constants that it is told of, and that the function has as numbers.

        Raises:
            RuntimeError: The graph is finalized.
            ValueError: The name cannot be one, or a tensor is of another graph.
        """
        self.check_open()
        named = dict(kwargs or {})
        self.check_own(placeholders((args, named)))
        label = self._checked_name(name)
        if runs_only:
            results = SymbolicTensor((), float32, name="")
        elif results is None:
            # Where it is to run is looked up by the session.
            with device(None):
                results = results_for(function, tuple(args), named, label)
        whole = self.operation_name(name)
        self._used.setdefault(whole.lower(), 1)
        operation = Operation(self, whole, kind, function, list(self._controls), asks_run)
        controls = [control.node.outputs[0] for control in self._controls]
        if not runs_only:
            results = _nest.map_structure(_tensor, results)
        Node(operation, (controls, list(shown), *args), named, results)
        ask_functions(operation)
        self._operations[whole] = operation
        self.version += 1
        for index, tensor in enumerate(operation.outputs):
            if not tensor.name:
                tensor.name = f"{whole}:{index}"
            self._tensors[f"{whole}:{index}"] = tensor
        return operation

    def operation_name(self, name: str) -> str:
        """Return the whole name that the next operation has, which no other gets.

        Args:
            name: What its name begins with; one that ends with a slash is the whole of it.

        Raises:
            ValueError: The name cannot be one.
        """
        whole = self._checked_name(name)
        return whole if name.endswith("/") else self.unique_name(whole)

    def _checked_name(self, name: str) -> str:
        whole = name.rstrip("/") if name.endswith("/") else name
        pattern, root = (_LATER_NAME, "") if self._scope else (_NAME, "root ")
        if not pattern.fullmatch(whole):
            raise ValueError(
                f"'{whole}' is not a valid {root}scope name. A {root}scope name has to match the "
                f"following pattern: ^{pattern.pattern}$"
            )
        return whole

    def name_tensor(self, name: str, tensor: Tensor) -> None:
        """Let a tensor be found by another name too."""
        self._tensors[name] = tensor

    def check_own(self, tensors: Sequence[SymbolicTensor]) -> None:
        """Raise ValueError unless tensors are of this graph."""
        first: Tensor | None = None
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise ValueError(
                    "A placeholder of a functional model is not a tensor of a TensorFlow 1 "
                    f"graph. Received: {tensor!r}. Use `tf.placeholder`."
                )
            if tensor.graph is not self:
                other = f"{first}" if first is not None else "what is drawn in this graph"
                raise ValueError(
                    f"{tensor} must be from the same graph as {other} (graphs are {tensor.graph} "
                    f"and {self})."
                )
            first = tensor


def _tensor(symbolic: SymbolicTensor) -> Tensor:
    if isinstance(symbolic, Tensor):
        return symbolic
    tensor = Tensor(symbolic._shape, symbolic._dtype, "")
    tensor.known = symbolic.known
    return tensor


# The graph of programs that make none; and those that are entered, in each context.
_first = [Graph()]
_entered: ContextVar[tuple[Graph, ...]] = ContextVar("mirrored_graphs", default=())


def enter_graph(graph: Graph) -> None:
    """Let a graph be the default one, until it is given to `leave_graph`."""
    _entered.set((*_entered.get(), graph))


def leave_graph(graph: Graph) -> None:
    """Let the default graph be the one before it."""
    graphs = list(_entered.get())
    if graph in graphs:
        del graphs[len(graphs) - 1 - graphs[::-1].index(graph)]
        _entered.set(tuple(graphs))


def get_default_graph() -> Graph:
    """Return the graph that operations are added to.

    Raises:
        RuntimeError: Eager execution was enabled, and no graph is entered.
    """
    graphs = _entered.get()
    if not graphs and _mode[0] == EAGER:
        raise RuntimeError(
            "`tf.compat.v1` is not compatible with eager execution, which `enable_eager_execution` "
            "or `enable_v2_behavior` enabled. Remove that call, or use `import mirrored as tf`."
        )
    return graphs[-1] if graphs else _first[0]


# What a program asked for. By default the names of TensorFlow 1 draw graphs and those of
# TensorFlow 2 are eager; a program can let all of them draw graphs, or be eager.
BOTH, GRAPHS, EAGER = "both", "graphs", "eager"
_mode = [BOTH]
# What to do about a tensor that is no part of a graph.
GRAPH_ADVICE = (
    "The functions of `import mirrored.compat.v1 as tf` add operations to a graph. Those of "
    "`import mirrored as tf` add operations only within `graph.as_default()` and after "
    "`tf.compat.v1.disable_eager_execution()`, and otherwise compute at once."
)


def draws_graphs() -> bool:
    """Return whether the names of TensorFlow 2 draw graphs: after a call, or in a graph's scope."""
    return _mode[0] == GRAPHS or bool(_entered.get())


def execution_mode() -> str:
    """Return which names draw graphs: `BOTH`, `GRAPHS` or `EAGER`."""
    return _mode[0]


def set_execution_mode(mode: str) -> None:
    """Set which names draw graphs.

    Args:
        mode: `BOTH`, `GRAPHS` or `EAGER`.
    """
    _mode[0] = mode


def _advice_on(value: Any) -> str:
    if isinstance(value, EagerTensor | EagerVariable):
        return f" It was computed eagerly and is in no graph. {GRAPH_ADVICE}"
    if isinstance(value, SymbolicTensor):
        return (
            " A placeholder of a functional model is in no session's graph: use `tf.placeholder`."
        )
    return ""


def check_not_eager(values: Any) -> None:
    """Raise RuntimeError if an eager tensor or variable is among values in nested structures."""
    for value in _nest.flatten(values):
        if isinstance(value, EagerTensor | EagerVariable):
            raise RuntimeError(
                "Attempting to capture an EagerTensor without building a function. Received: "
                f"{value!r:.200}. Pass its `numpy()`, or make it part of the graph. {GRAPH_ADVICE}"
            )


def drawing_into(graph: Graph) -> Any:
    """Return a context within which operations are drawn into a graph, as they may be already."""
    return nullcontext() if get_default_graph() is graph else graph.as_default()


def reset_default_graph() -> None:
    """Replace the default graph by a new graph.

    Raises:
        AssertionError: It is called within `as_default()` of a graph.
    """
    if _entered.get():
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared "
            "graph, exit the nesting and create a new graph."
        )
    _first[0] = Graph()


def graph_of(*values: Any) -> Graph:
    """Return the graph of the first tensor among values; without one, the default graph.

    Raises:
        RuntimeError: An eager tensor is among them.
    """
    check_not_eager(values)
    for placeholder in placeholders(values):
        if isinstance(placeholder, Tensor):
            return placeholder.graph
    return get_default_graph()


@contextmanager
def drawing(name: str, *values: Any) -> Iterator[tuple[Graph, str]]:
    """Return a context that draws into the graph of values, in a name scope, and yields both.

    Args:
        name: What the names of operations begin with.
        *values: As for `graph_of`.
    """
    graph = graph_of(*values)
    with graph.as_default(), graph.name_scope(name) as scope:
        yield graph, scope


# Of tensors of unknown rank several ranks are tried: what is the same for all of them is known.
_FEW, _MOST = range(4), range(4, 6)


def results_for(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], name: str) -> Any:
    """Return placeholders for what a function returns, in the structure that it returns.

    Args:
        function: The function.
        args: Its arguments by position, with tensors of a graph in them.
        kwargs: Those by name.
        name: What errors call it.

    Raises:
        ValueError: How many tensors it returns depends on the number of axes.
    """
    tensors: list[Any] = placeholders((args, kwargs))
    unknown = list(dict.fromkeys(tensor for tensor in tensors if tensor._shape is None))
    if not unknown:
        return results_of(function, args, kwargs, name)
    results: list[Any] = []
    failure: Exception | None = None
    for tries in _ranks(len(unknown)):
        for ranks in tries:
            known = {
                tensor: Tensor((None,) * rank, tensor._dtype, tensor.name)
                for tensor, rank in zip(unknown, ranks, strict=True)
            }
            try:
                given_args, given_kwargs = (_with(known, part) for part in (args, kwargs))
                results.append(results_of(function, given_args, given_kwargs, name))
            except Exception as error:
                failure = failure or error
        if results:
            break
    if failure is not None and not results:
        raise failure
    if len({len(_nest.flatten(result)) for result in results}) > 1:
        raise ValueError(
            f"How many tensors {name} returns depends on the number of axes, which is not known. "
            f"Received: {unknown}. Set a shape for the placeholder, or call `set_shape`."
        )
    return _nest.map_structure(_common, *results)


def _ranks(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield numbers of axes to try together; later ones where none of those before does."""
    yield [(rank,) * count for rank in _FEW]
    if count == 2:
        yield [pair for pair in itertools.product(_FEW, repeat=2) if pair[0] != pair[1]]
    yield [(rank,) * count for rank in _MOST]


def _with(known: dict[Any, Tensor], structure: Any) -> Any:
    return _nest.map_structure(
        lambda leaf: known.get(leaf, leaf) if isinstance(leaf, Tensor) else leaf, structure
    )


def _common(*results: Any) -> Tensor:
    """Return a tensor with the sizes that are the same in all."""
    shapes = [result._shape for result in results]
    if len({len(shape) for shape in shapes}) > 1:
        return Tensor(None, results[0]._dtype, "")
    columns = zip(*shapes, strict=True)
    sizes = tuple(column[0] if len(set(column)) == 1 else None for column in columns)
    return Tensor(sizes, results[0]._dtype, "")
