"""Variables by their names: `get_variable`, and the scopes that say whether they are shared."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mirrored._contexts import Within
from mirrored._types import DTypeLike, PartialShapeLike
from mirrored.compat.v1.graph import Graph, drawing_into, get_default_graph, graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.initializers import glorot_uniform_initializer, zeros_initializer
from mirrored.compat.v1.partial_shapes import TensorShape, sizes_of, text_of
from mirrored.compat.v1.variables import GraphKeys, Variable
from mirrored.layers.starting_values import Initializer
from mirrored.ops.spec import FLOATS, as_dtype

AUTO_REUSE = "AUTO_REUSE"


@dataclass(eq=False, repr=False)
class VariableScope:
    """The settings of `get_variable`: a prefix of names, and whether variables are shared.

    Attributes:
        name: What names of variables begin with.
        reuse: Whether variables must be there; `AUTO_REUSE`: made where they are not.
        initializer: What makes initial values where a variable has no own.
        original_name_scope: What names of operations begin with.
    """

    name: str
    reuse: Any
    initializer: Any
    regularizer: Callable[..., Any] | None
    dtype: DTypeLike
    original_name_scope: str

    def reuse_variables(self) -> None:
        """Share variables from now on."""
        self.reuse = True

    def global_variables(self) -> list[Any]:
        """Return the variables of the scope."""
        return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, f"{self.name}/")

    def trainable_variables(self) -> list[Any]:
        """Return the trainable variables of the scope."""
        return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{self.name}/")


_scopes: ContextVar[dict[Graph, VariableScope] | None] = ContextVar(
    "mirrored_variable_scopes", default=None
)


def get_variable_scope() -> VariableScope:
    """Return the current variable scope of the default graph."""
    graph = get_default_graph()
    scope: VariableScope | None = (_scopes.get() or {}).get(graph, graph.outermost_scope)
    if scope is None:
        scope = graph.outermost_scope = VariableScope("", False, None, None, "float32", "")
    return scope


@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    caching_device: Any = None,
    partitioner: None = None,
    custom_getter: None = None,
    reuse: Any = None,
    dtype: DTypeLike | None = None,
    use_resource: bool | None = None,
    constraint: Callable[..., Any] | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Return a context that prefixes the names of variables.

    Args:
        name_or_scope: What is added, or a scope to enter again.
        default_name: What is added, and made to differ from others, where that is None.
        values: Tensors, into whose graph operations are drawn.
        initializer: What makes initial values where a variable has no own.
        regularizer: What makes a loss of each variable.
        caching_device: Accepted for compatibility.
        partitioner: Not provided.
        custom_getter: Not provided.
        reuse: Whether variables must be there; `AUTO_REUSE`: made where they are not; None: as
            around it.
        dtype: The dtype of variables that have no own.
        use_resource: Accepted for compatibility.
        constraint: Not provided.
        auxiliary_name_scope: Whether operations' names begin so too.

    Raises:
        TypeError: Neither a name nor a default is given, or one that is no name.
        ValueError: What is not provided is given.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default():
        ...     with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
        ...         v, w = tf.get_variable("v", [2]), tf.get_variable("v", [2])
        >>> v is w, v.name
        (True, 'layer/v:0')
    """
    if default_name is None and name_or_scope is None:
        raise TypeError("If default_name is None then name_or_scope is required")
    if not (partitioner is custom_getter is constraint is None):
        raise ValueError(
            "`partitioner`, `custom_getter` and `constraint` are not provided here. Leave them out."
        )
    if not isinstance(name_or_scope, str | VariableScope | None):
        raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
    graph = graph_of(values)
    with drawing_into(graph):
        outer = get_variable_scope()
    if isinstance(name_or_scope, VariableScope):
        whole, base = name_or_scope.name, name_or_scope
        added = whole.rpartition("/")[2]
    else:
        added = name_or_scope or _unique(graph, outer.name, str(default_name))
        whole, base = (f"{outer.name}/{added}" if outer.name else added), outer
        if name_or_scope is None:
            graph.default_scope_names.add(whole)
    # Scopes inside one that shares do so too.
    shared = reuse or outer.reuse or (base.reuse if reuse is None else False)
    name = added if auxiliary_name_scope else f"{graph.get_name_scope()}/"
    with drawing_into(graph), graph.name_scope(name) as opened:
        scope = VariableScope(
            whole,
            shared,
            base.initializer if initializer is None else initializer,
            base.regularizer if regularizer is None else regularizer,
            base.dtype if dtype is None else dtype,
            opened,
        )
        with Within(_scopes, {**(_scopes.get() or {}), graph: scope}):
            yield scope


def _unique(graph: Graph, outer: str, name: str) -> str:
    """Return a name that no scope of a default name has, beside those that are open."""
    names = (f"{name}_{count}" if count else name for count in itertools.count())
    taken = graph.default_scope_names
    return next(tried for tried in names if (f"{outer}/{tried}" if outer else tried) not in taken)


def get_variable(
    name: str,
    shape: PartialShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Callable[..., Any] | None = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """Return the variable of a name in the current scope, or create it.

    Args:
        name: Its name.
        shape: Its shape; None: that of an initializer that is a value.
        dtype: Its dtype; None: the scope's, float32 by default.
        initializer: A value, or a function of the shape; None: the scope's, Glorot's by default.
        regularizer: What makes a loss of it.
        trainable: Whether optimizers change it.
        collections: The collections that it is put into.
        caching_device: Accepted for compatibility.
        partitioner: Not provided.
        validate_shape: Must be True.
        use_resource: Accepted for compatibility.
        custom_getter: Not provided.
        constraint: A function of the value, from which optimizers set the variable after a step.
        synchronization: Accepted for compatibility.
        aggregation: Accepted for compatibility.

    Raises:
        ValueError: It is there and not shared, or is not there and must be; or shape or dtype are
            not those that it has; or what is not provided is given.
    """
    if not (partitioner is custom_getter is None):
        raise ValueError("`partitioner` and `custom_getter` are not provided here. Leave them out.")
    graph, scope = get_default_graph(), get_variable_scope()
    whole = f"{scope.name}/{name}" if scope.name else name
    wanted = as_dtype(scope.dtype if dtype is None else dtype)
    there = graph.variables_by_name.get(whole)
    if there is not None:
        return _shared(there, whole, shape, wanted, scope)
    if scope.reuse is True:
        raise ValueError(
            f"Variable {whole} does not exist, or was not created with tf.get_variable(). Did you "
            "mean to set reuse=tf.AUTO_REUSE in VarScope?"
        )
    initializer = scope.initializer if initializer is None else initializer
    if initializer is None:
        floating = wanted in FLOATS
        initializer = glorot_uniform_initializer() if floating else zeros_initializer()
    is_value = isinstance(initializer, Tensor) or not callable(initializer)
    if is_value and shape is not None:
        raise ValueError("If initializer is a constant, do not specify shape.")
    if not is_value and shape is None:
        raise ValueError(
            f"Variable {whole} did not get an initializer, so its `shape` argument must be "
            "specified."
        )
    sizes = sizes_of(shape)
    if shape is not None and not TensorShape(shape).is_fully_defined():
        raise ValueError(
            f"Shape of a new variable ({whole}) must be fully defined, but instead was "
            f"{text_of(sizes)}."
        )
    initial = initializer
    if not is_value:
        factory = initializer() if isinstance(initializer, type) else initializer

        def initial() -> Any:
            if not isinstance(factory, Initializer):
                return factory(list(sizes or ()), dtype=wanted)
            # One of Keras' computes in Python: each session calls it again.
            result, name = Tensor(sizes, wanted, ""), type(factory).__name__
            return graph.draw(
                factory, (sizes, wanted), kind="PyFunc", name=name, results=result, asks_run=True
            ).outputs[0]

    with graph.control_dependencies(None), graph.name_scope(None):
        variable = Variable(
            initial, trainable, collections, name=whole, dtype=wanted, constraint=constraint
        )
    graph.variables_by_name[whole] = variable
    regularizer = scope.regularizer if regularizer is None else regularizer
    if regularizer is not None:
        with graph.name_scope(f"{whole}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _shared(there: Variable, name: str, shape: Any, dtype: Any, scope: VariableScope) -> Variable:
    if not scope.reuse:
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=tf.AUTO_REUSE in VarScope?"
        )
    sizes = tuple(there._shape)
    if not TensorShape(shape).is_compatible_with(sizes):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {sizes_of(shape)} and found "
            f"shape {sizes}."
        )
    if there._dtype != dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
            f"{there._dtype.name}_ref."
        )
    return there
