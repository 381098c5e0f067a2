"""Sessions: they run parts of a graph, as recorded functions, on variables of their own."""

from collections.abc import Callable, Hashable, Mapping
from operator import itemgetter
from typing import Any, NoReturn, Self

from mirrored import _nest
from mirrored._tracebacks import shorten
from mirrored.compat.v1.graph import (
    GRAPH_ADVICE,
    Graph,
    enter_graph,
    get_default_graph,
    leave_graph,
)
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.messages import RunMetadata, RunOptions, checked_config
from mirrored.compat.v1.placing import Placement
from mirrored.compat.v1.plans import Kept, Plan
from mirrored.compat.v1.running import default_session, entered_sessions
from mirrored.compat.v1.session_devices import set_up
from mirrored.compat.v1.variables import Variable
from mirrored.devices import logical_devices
from mirrored.errors import InvalidArgumentError
from mirrored.program.variable_access import variable_writes


class Session:
    """Runs parts of a graph. Each session has its own values of the variables.

    Threads may share one: their runs wait for each other.

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
        options = checked_config(config)
        set_up(options)
        self._kept = Kept(Placement(self._graph, options))
        # By the fetches and what is fed, of as many operations as were placed.
        self._plans: dict[Any, Plan] = {}
        self._placed = 0
        self._closed = False
        self._scopes: list[_Entered] = []

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Compute fetches, and return their values.

        Args:
            fetches: Tensors, operations, variables or their names, in nested structures.
            feed_dict: Values by the tensors whose place they take, or by their names.
            options: A `RunOptions`, which changes nothing.
            run_metadata: A `RunMetadata`, which gets nothing.

        Returns:
            Arrays and numbers in the structure of the fetches; None for operations.

        Raises:
            RuntimeError: The session is closed, or the graph is empty.
            TypeError: A fetch or a key of `feed_dict` is nothing that can be one, or an option is
                of another class.
            ValueError: A fetch is not in the graph, or a value has the wrong shape.
            FailedPreconditionError: A variable has no value yet.
            InvalidArgumentError: A placeholder that is needed is not fed.
        """
        try:
            if options is not None or run_metadata is not None:
                _check_options(options, run_metadata)
            fed = {} if feed_dict is None else feed_dict
            if not isinstance(fed, dict):
                raise TypeError(
                    "FlattenDictItems: 'dict' must be a dictionary or collection.Mapping type "
                    f"object, instead of {type(feed_dict).__name__!r}."
                )
            kind = type(fetches)
            try:
                key = (kind, tuple(fetches) if kind is list else fetches, *fed)
                plan = self._plans.get(key)
            except TypeError:  # Nested lists, a dict, or nothing that can be fetched.
                key = (_frozen(fetches), *fed)
                plan = self._plans.get(key)
            if plan is None or self._placed != self._graph.version:
                plan = self._planned(key, fetches, fed)
            return plan(fed.values())
        except Exception as error:
            shorten(error)
            raise

    def _planned(self, key: Any, fetches: Any, fed: Mapping[Any, Any]) -> Plan:
        """Return the plan for fetches and feeds, with all operations that there are now placed."""
        self._require_open()
        if not self._graph.version:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run(). "
                f"{GRAPH_ADVICE}"
            )
        with variable_writes:
            leaves: list[Any] = []
            part = _fetched(fetches, self._graph, leaves)
            self._place()
            plan = self._plans.get(key)
            if plan is None:
                tensors = [self._feedable(tensor) for tensor in fed]
                plan = Plan(leaves, tensors, self._kept, _structured(fetches, part))
                self._plans[key] = plan
            return plan

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")

    def _place(self) -> None:
        version = self._graph.version
        self._kept.placement.place()
        self._placed = version

    def partial_run(self, *_: Any, **__: Any) -> NoReturn:
        """Raise NotImplementedError: a run is whole."""
        raise NotImplementedError(
            "`partial_run` is not provided: a run is recorded as a whole. Fetch what is needed "
            "in one `run`, or feed the results of an earlier run."
        )

    partial_run_setup = partial_run

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Return a function that takes the values of feeds by position, and runs fetches.

        Args:
            fetches: As for `run`.
            feed_list: The tensors that are fed, or their names.
            accept_options: Whether it is given `options` and `run_metadata` by name.
        """
        keys = list(feed_list or ())

        def call(*values: Any, **options: Any) -> Any:
            for name in options:
                if not accept_options or name not in ("options", "run_metadata"):
                    raise TypeError(
                        f"A callable got an unexpected keyword argument {name!r}. Pass "
                        "`accept_options=True` for `options` and `run_metadata`."
                    )
            return self.run(fetches, dict(zip(keys, values, strict=True)), **options)

        return call

    def list_devices(self) -> list[Any]:
        """Return the devices that it may use."""
        return list(logical_devices())

    def _feedable(self, key: Any) -> Tensor:
        """Return the tensor that a key of `feed_dict` is, or names."""
        try:
            tensor: Tensor = self._graph.as_graph_element(key, operations=False)  # type: ignore[assignment]
        except (KeyError, TypeError, ValueError) as error:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from None
        if tensor.fetched != [tensor]:
            raise ValueError(f"Tensor {tensor} may not be fed.")
        return tensor

    def set_values(self, values: Mapping[Variable, Any]) -> None:
        """Give variables values that fit them, without running anything of the graph.

        Args:
            values: Arrays of the variables' shapes and dtypes.

        Raises:
            RuntimeError: The session is closed.
        """
        self._require_open()
        with variable_writes:
            self._place()
            for variable, value in values.items():
                self._kept.storage(variable).assign(value)
                self._kept.initialized.add(variable)

    def close(self) -> None:
        """Release the values of the variables. The session cannot run any more."""
        self._closed = True
        self._kept.clear()
        self._plans.clear()

    def as_default(self) -> Any:
        """Return a context within which `eval()` and `run()` use this session."""
        return _Entered(self)

    def __enter__(self) -> Self:
        """Let `eval()` and `run()` use this session, and operations be drawn into its graph."""
        self._scopes.append(_Entered(self))
        self._scopes[-1].__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._scopes.pop().__exit__()
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
    """A session that is the default session until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        entered_sessions.set((*entered_sessions.get(), self))
        if graph is not None:
            enter_graph(graph)
        self._entered_graph = graph

    def close(self) -> None:
        """Close it, and let the session before it be the default one."""
        super().close()
        entered_sessions.set(tuple(other for other in entered_sessions.get() if other is not self))
        if self._entered_graph is not None:
            leave_graph(self._entered_graph)


def _fetched(fetches: Any, graph: Graph, leaves: list[Any]) -> Callable[[Any], Any]:
    """Add the tensors and operations among fetches to a list, and return what puts values there."""
    if fetches is None:
        raise TypeError('Argument `fetch` = None has invalid type "NoneType". Cannot be None')
    if isinstance(fetches, list | tuple):
        parts = [_fetched(fetch, graph, leaves) for fetch in fetches]
        return lambda values: _nest.rebuild(fetches, [part(values) for part in parts])
    if isinstance(fetches, dict):
        named = {key: _fetched(fetch, graph, leaves) for key, fetch in fetches.items()}
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


def _check_options(options: Any, run_metadata: Any) -> None:
    for name, value, kind in (
        ("options", options, RunOptions),
        ("run_metadata", run_metadata, RunMetadata),
    ):
        if not isinstance(value, kind | None):
            raise TypeError(f"`{name}` must be a `tf.{kind.__name__}`. Received: {value!r}")


def _structured(fetches: Any, part: Callable[[Any], Any]) -> Callable[[list[Any]], Any]:
    """Return what puts a list of values into the structure of fetches; flat lists are usual."""
    if not isinstance(fetches, list | tuple | dict):
        return itemgetter(0)
    if type(fetches) is list and not any(isinstance(e, list | tuple | dict) for e in fetches):
        return lambda values: values
    return lambda values: part(iter(values))


def _frozen(fetches: Any) -> Any:
    """Return what is equal for the same fetches in the same structure, and can be hashed."""
    if isinstance(fetches, list | tuple):
        return (type(fetches), *map(_frozen, fetches))
    if isinstance(fetches, dict):
        return (type(fetches), *fetches, *map(_frozen, fetches.values()))
    return fetches if isinstance(fetches, Hashable) else id(fetches)  # It is refused later.


def get_default_session() -> Session | None:
    """Return the default session; None if there is none."""
    session: Session | None = default_session()
    return session
