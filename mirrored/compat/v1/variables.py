"""Variables of a graph: operations that read and write what each session keeps for itself."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._types import DTypeLike, TensorLike
from mirrored.compat.v1.graph import Graph, get_default_graph
from mirrored.compat.v1.graph_elements import Operation, Tensor, session_or_default
from mirrored.compat.v1.listing import named
from mirrored.compat.v1.partial_shapes import check_same
from mirrored.compat.v1.running import is_initialized, storage_of
from mirrored.compat.v1.sources import converted
from mirrored.devices import device
from mirrored.graph import placeholders


class GraphKeys:
    """The names of standard collections."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"
    SUMMARIES = "summaries"
    GLOBAL_STEP = "global_step"
    TRAIN_OP = "train_op"
    MODEL_VARIABLES = "model_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    METRIC_VARIABLES = "metric_variables"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    SAVERS = "savers"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    SUMMARY_OP = "summary_op"
    QUEUE_RUNNERS = "queue_runners"


class Variable(Tensor):
    """A value that runs can change. As a tensor it has the value at the time of reading.

    Args:
        initial_value: A tensor or what becomes one, or a function that returns it.
        trainable: Whether optimizers change it; None: they do.
        collections: The collections that it is put into, by default that of global variables.
        validate_shape: Whether its shape is that of the initial value, as it must be here.
        name: Its name.
        dtype: Its dtype; None: that of the initial value.

    Raises:
        ValueError: There is no initial value.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     v = tf.Variable([1.0, 2.0], name="v")
        ...     session.run(tf.global_variables_initializer())
        ...     session.run(tf.assign_add(v, [1.0, 1.0]))
        array([2., 3.], dtype=float32)
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: DTypeLike | None = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if not validate_shape or variable_def is not None:
            raise ValueError(
                "A variable has the shape of its initial value here. Leave `validate_shape` and "
                "`variable_def` out."
            )
        tensors = placeholders(initial_value)
        first = tensors[0] if tensors else None
        graph = first.graph if isinstance(first, Tensor) else get_default_graph()
        graph.check_open()
        self.trainable = trainable is not False
        self.constraint = constraint
        with graph.control_dependencies(None), graph.name_scope(name or "Variable") as scope:
            self.initial_value = _initial(graph, initial_value, dtype)
            if self.initial_value._shape is None or None in self.initial_value._shape:
                raise ValueError(f"initial_value must have a shape specified: {self.initial_value}")
            super().__init__(
                self.initial_value._shape, self.initial_value._dtype, f"{scope[:-1]}:0"
            )
            self._op = graph.draw(nothing, kind="VariableV2", name=scope, runs_only=True)
            self._op.keeps = (self,)
            self._op.refers = self
            self.initializer = _write(self, "assign", self.initial_value, None)
            self.read_op = _read(self, self)
        graph.name_tensor(self.name, self)
        kept = collections if collections is not None else [GraphKeys.GLOBAL_VARIABLES]
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in kept:
            kept = [*kept, GraphKeys.TRAINABLE_VARIABLES]
        for collection in kept:
            graph.add_to_collection(collection, self)

    @property
    def op(self) -> Operation:
        """The operation that is the variable; `read_op` computes its value."""
        return self._op

    def value(self) -> Tensor:
        """Return its value as a tensor, as of the time of reading."""
        return self

    def read_value(self) -> Tensor:
        """Return a tensor that reads the value after the current control dependencies."""
        return _read(self, _unnamed(self)).outputs[0]

    def initialized_value(self) -> Tensor:
        """Return its value, or its initial value if the session has not initialized it.

        A run with it in it is not recorded.
        """

        def value(initial: Any) -> Any:
            return storage_of(self).read_value() if is_initialized(self) else initial

        return self.graph.draw(
            value,
            (self.initial_value,),
            kind="InitializedValue",
            name=f"{self.op.name}/cond/Merge",
            results=_unnamed(self),
        ).outputs[0]

    def assign(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Return a tensor that sets the value, and is the new one."""
        return _written(self, "assign", value, name, read_value)

    def assign_add(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Return a tensor that adds to the value, and is the new one."""
        return _written(self, "assign_add", delta, name, read_value)

    def assign_sub(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Return a tensor that subtracts from the value, and is the new one."""
        return _written(self, "assign_sub", delta, name, read_value)

    def eval(self, session: Any = None) -> Any:  # type: ignore[override]
        """Return its value in a session, by default the default session.

        Raises:
            ValueError: No session was given or entered.
        """
        return super().eval(None, session)

    def load(self, value: TensorLike, session: Any = None) -> None:
        """Set the value in a session, by default the default session."""
        problem = "Either session argument should be provided or default session set."
        session = session_or_default(session, problem)
        session.set_values({self: np.asarray(value, self._dtype)})

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return f"<tf.Variable '{self.name}' shape={self._text} dtype={self._dtype.name}_ref>"


def nothing() -> None:
    """Do nothing."""


def _initial(graph: Graph, value: Any, dtype: Any) -> Tensor:
    if not callable(value) or isinstance(value, Tensor):
        return converted(value, dtype, "initial_value")
    with graph.name_scope("Initializer"):
        return converted(value(), dtype, "initial_value")


def _unnamed(variable: Variable) -> Tensor:
    """Return a tensor of a variable's shape and dtype, which gets its operation's name."""
    return Tensor(variable._shape, variable._dtype, "")


def _read(variable: Variable, result: Tensor) -> Operation:
    """Return an operation that reads a variable."""
    return _on_device_of(
        variable, lambda: storage_of(variable).read_value(), (), "Identity", "read", result
    )


def _on_device_of(
    variable: Variable,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kind: str,
    name: str,
    result: Tensor,
) -> Operation:
    """Return an operation that reads a variable, and whose result is the variable's value."""
    with device(variable.op.node.device):
        operation = variable.graph.draw(
            function, args, kind=kind, name=name, results=result, asks_run=True
        )
    operation.reads = (variable,)
    operation.refers = variable
    return operation


_KINDS = {"assign": "Assign", "assign_add": "AssignAdd", "assign_sub": "AssignSub"}


def _write(variable: Variable, method: str, value: Any, name: str | None) -> Operation:
    """Return an operation that writes a variable, checked as far as shapes are known.

    Raises:
        TypeError: The value has another dtype.
    """
    kind = _KINDS[method]
    if isinstance(value, Tensor) and value._dtype != variable._dtype:
        raise TypeError(
            f"Input 'value' of '{kind}' Op has type {value._dtype.name} that does not match type "
            f"{variable._dtype.name} of argument 'ref'."
        )
    name = name or kind
    value = converted(value, variable._dtype, f"{name}/value")
    check_same(variable._shape, value._shape)

    def write(new: Any) -> Any:
        storage = storage_of(variable)
        getattr(storage, method)(new)
        return storage.read_value()

    operation = _on_device_of(variable, write, (value,), kind, name, _unnamed(variable))
    operation.writes = (variable,)
    operation.reads = () if method == "assign" else (variable,)
    return operation


def _written(
    variable: Variable, method: str, value: Any, name: str | None, read_value: bool
) -> Any:
    operation = _write(variable, method, value, name)
    return operation.outputs[0] if read_value else operation


def update(
    variables: Sequence[Variable],
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    kind: str,
    name: str,
) -> Operation:
    """Return an operation that computes new values of variables from the ones they have.

    Args:
        variables: The variables.
        function: Given their values and then `args`, returns their new ones in that order; None for
            what stays as it is.
        args: Tensors and numbers.
        kind: The type of the operation.
        name: Its name.
    """

    def write(*values: Any) -> None:
        storages = [storage_of(variable) for variable in variables]
        new = function(*(kept.read_value() for kept in storages), *values)
        for storage, value in zip(storages, new, strict=True):
            if value is not None:
                storage.assign(value)

    graph = variables[0].graph
    with device(variables[0].op.node.device):
        operation = graph.draw(write, tuple(args), kind=kind, name=name, runs_only=True)
    operation.reads = operation.writes = tuple(variables)
    return operation


def assign(
    ref: Variable,
    value: TensorLike,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor that sets a variable's value, and is the new one.

    Raises:
        ValueError: The value has another shape or dtype.
    """
    result: Tensor = ref.assign(value, name=name)
    return result


def assign_add(
    ref: Variable, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor that adds to a variable's value, and is the new one."""
    result: Tensor = ref.assign_add(value, name=name)
    return result


def assign_sub(
    ref: Variable, value: TensorLike, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Return a tensor that subtracts from a variable's value, and is the new one."""
    result: Tensor = ref.assign_sub(value, name=name)
    return result


def _scatter(
    called: str, function: Callable[..., Any], locks: bool, verb: str
) -> Callable[..., Tensor]:
    """Return a function that draws a change of a variable's rows.

    Args:
        called: Its name.
        function: From the value, indices and rows to the new value.
        locks: The default of `use_locking`.
        verb: What it does with the rows.
    """
    kind = "".join(word.capitalize() for word in called.split("_"))

    def scatter(
        ref: Variable,
        indices: TensorLike,
        updates: TensorLike,
        use_locking: bool = locks,
        name: str | None = None,
    ) -> Tensor:
        """Return a tensor that {verb} rows of a variable, and is its new value.

        Args:
            ref: The variable.
            indices: Which rows.
            updates: Their values, or what they change by.
            use_locking: Accepted for compatibility.
            name: Its name.
        """
        name = name or kind
        with ref.graph.as_default():
            places = converted(indices, name=f"{name}/indices")
            rows = converted(updates, ref._dtype, f"{name}/updates")

        def write(places: Any, rows: Any) -> Any:
            storage = storage_of(ref)
            value = storage.read_value()
            spread = ops.broadcast_to(rows, (*places.shape, *value.shape[1:]))
            storage.assign(function(value, ops.expand_dims(places, -1), spread))
            return storage.read_value()

        operation = _on_device_of(ref, write, (places, rows), kind, name, _unnamed(ref))
        operation.writes = (ref,)
        return operation.outputs[0]

    return named(scatter, called, verb=verb)


scatter_update = _scatter("scatter_update", ops.tensor_scatter_nd_update, True, "sets")
scatter_add = _scatter("scatter_add", ops.tensor_scatter_nd_add, False, "adds to")
scatter_sub = _scatter("scatter_sub", ops.tensor_scatter_nd_sub, False, "subtracts from")
