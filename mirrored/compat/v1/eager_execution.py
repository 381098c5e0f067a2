"""Lets the public functions of the library draw graphs, as TensorFlow 2 does in a graph's scope.

The public modules get a class of their own. Where a graph is entered, or eager execution is
disabled, a name that a program looks up is a function that adds an operation to the default graph.
Runs and recordings get the eager functions. The library takes its own from `mirrored.ops`.
"""

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

from mirrored._tracebacks import shorten, shortened
from mirrored.compat.v1.call_table import ROWS
from mirrored.compat.v1.drawn_calls import drawing_call, eager_name
from mirrored.compat.v1.graph import (
    EAGER,
    GRAPHS,
    draws_graphs,
    execution_mode,
    get_default_graph,
    graph_of,
    set_execution_mode,
)
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.partial_shapes import disable_v2_tensorshape, enable_v2_tensorshape
from mirrored.compat.v1.running import current_run
from mirrored.compat.v1.sources import constant as _constant
from mirrored.compat.v1.special import where as _where
from mirrored.compat.v1.variables import Variable as _Variable
from mirrored.distribute import has_strategy
from mirrored.graph import SymbolicTensor, placeholders
from mirrored.ops.conversion import constant_array, is_tensor
from mirrored.ops.hooks import active_recorder, in_graph
from mirrored.ops.op import Op

_PACKAGE = __name__.partition(".")[0]
# By module: names that are those of TensorFlow 1 with the same name, or the one behind the equals
# sign. The arguments of functions keep the order of TensorFlow 2.
_SAME = {
    "": (
        "Assert Operation Tensor TensorShape assert_equal assert_greater assert_less "
        "assert_rank boolean_mask case clip_by_global_norm clip_by_value cond control_dependencies "
        "convert_to_tensor dynamic_partition ensure_shape foldl foldr gradients group "
        "map_fn name_scope no_op numpy_function=py_func scan unique unique_with_counts while_loop"
    ),
    "debugging": (
        "Assert assert_equal assert_greater assert_greater_equal assert_less assert_less_equal "
        "assert_negative assert_non_negative assert_non_positive assert_none_equal "
        "assert_positive assert_rank assert_rank_at_least"
    ),
    "math": "in_top_k=nn.in_top_k",
    "nn": (
        "dropout=nn.dropout embedding_lookup=nn.embedding_lookup in_top_k=nn.in_top_k "
        "sigmoid_cross_entropy_with_logits=nn.sigmoid_cross_entropy_with_logits "
        "sparse_softmax_cross_entropy_with_logits=nn.sparse_softmax_cross_entropy_with_logits"
    ),
    "random": (
        "normal=random_normal poisson=random_poisson set_seed=set_random_seed "
        "truncated_normal=truncated_normal uniform=random_uniform"
    ),
}
# What TensorFlow 2's functions ask of those of TensorFlow 1 that they call.
_FIXED: dict[str, dict[str, Any]] = {
    "cond": {"strict": True},
    "while_loop": {"return_same_structure": True},
}
# Functions of no tensors, which stay as they are, and of all modules.
_UNCHANGED = frozenset(
    (
        *("as_dtype", "assert_proper_iterable", "assert_same_float_dtype", "compare_replicas"),
        *("disable_traceback_filtering", "enable_traceback_filtering", "get_log_device_placement"),
        *("is_numeric_tensor", "is_traceback_filtering_enabled", "mixing_operations"),
        *("set_log_device_placement", "assert_type", "assert_integer"),
    )
)
_ASSERTS = "Use `tf.compat.v1.assert_equal` and its like, or `tf.debugging.Assert`."
_DRAWS = "Use `tf.random.normal` and its like, which draw new numbers in each run."
_SUMMARIES = "Use `tf.compat.v1.summary`."
# By module: what is refused, with what to do instead.
_REFUSED: dict[str, dict[str, str]] = {
    "": {
        "GradientTape": "Use `tf.gradients`.",
        "Module": "Keep the variables in an object of Python's.",
        "function": "Call the function directly: a session records the operations of a graph.",
        "get_static_value": "Keep the value that the constant was created from.",
        "py_function": "Use `tf.numpy_function`.",
        "switch_case": "Use `tf.case`.",
        "timestamp": "Use `tf.numpy_function(time.time, [], tf.float64)`.",
        "vectorized_map": "Use `tf.map_fn`.",
        "variable_creator_scope": "Use `tf.compat.v1.get_variable` in a `variable_scope`.",
        **dict.fromkeys(
            ("custom_gradient", "grad_pass_through", "recompute_grad"),
            "Write it with `tf.stop_gradient`.",
        ),
    },
    "debugging": dict.fromkeys(
        (
            *("assert_all_finite", "assert_near", "assert_rank_in", "assert_scalar"),
            "assert_shapes",
        ),
        _ASSERTS,
    ),
    "random": dict.fromkeys(
        ("Generator", "get_global_generator", "set_global_generator", "create_rng_state"), _DRAWS
    ),
    "summary": dict.fromkeys(
        (
            *("scalar", "histogram", "text", "create_file_writer", "create_noop_writer", "flush"),
            *("record_if", "should_record_summaries", "SummaryWriter"),
        ),
        _SUMMARIES,
    ),
}
_BY_TARGET = {row.target: row for row in ROWS.values()}
_MODULES = ("", "debugging", "dtypes", "linalg", "math", "nn", "random", "summary")


class GraphModule(ModuleType):
    """A public module whose functions draw graphs for programs, and compute for the library."""

    def __getattribute__(self, name: str) -> Any:
        """Return what the name is in graphs, if a program asks."""
        try:
            if not draws_graphs() or name[:1] == "_" or _computes():
                return super().__getattribute__(name)
            return _in_graphs(self.__name__.partition(".")[2], name)
        except AttributeError as error:
            shorten(error)
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it by name, as cloudpickle does with modules of Python's own class."""
        return import_module, (self.__name__,)


def _in_graphs(home: str, name: str) -> Any:
    """Return what a name of a module is where graphs are drawn."""
    if name in _tables()[home]:
        return _tables()[home][name]
    if name in _REFUSED.get(home, ()):
        raise AttributeError(
            f"`tf.{home}{'.' * bool(home)}{name}` is not provided in graphs, as after "
            f"`disable_eager_execution`. {_REFUSED[home][name]}"
        )
    value = eager_name(home, name)
    if isinstance(value, FunctionType | Op) and name not in _UNCHANGED:
        _tables()[home][name] = value = _drawing(home, name, value)
    return value


def _computes() -> bool:
    """Return whether a run or a recording asks."""
    return current_run() is not None or active_recorder() is not None or in_graph()


def _drawing(home: str, name: str, function: Any, drawn: Any = None) -> Any:
    """Return a function that computes in a run or a recording, and draws elsewhere."""
    if drawn is None:
        target = f"{home}.{name}".lstrip(".")
        places = (target, *(f"{part}{name}" for part in ("", "math.", "nn.", "linalg.")))
        row = next((_BY_TARGET[place] for place in places if place in _BY_TARGET), None)
        kind, called = (name, name) if row is None else (row.kind, row.called)
        drawn = drawing_call(function, kind, called)

    @functools.wraps(function)
    @shortened
    def call(*args: Any, **kwargs: Any) -> Any:
        # A placeholder of a functional model belongs to that.
        leaves = placeholders((args, kwargs))
        others = (not isinstance(leaf, Tensor) for leaf in leaves)
        return (function if _computes() or any(others) else drawn)(*args, **kwargs)

    return call


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    """Return what names are in graphs, by the module and the name."""
    v1 = import_module("mirrored.compat.v1")
    tables: dict[str, dict[str, Any]] = {home: {} for home in _MODULES}
    for home, names in _SAME.items():
        for name, _, other in (text.partition("=") for text in names.split()):
            part, _, last = (other or name).rpartition(".")
            target = getattr(getattr(v1, part) if part else v1, last)
            if isinstance(target, FunctionType):
                function = eager_name(home, name)
                target = _drawing(home, name, function, _with_order_of(function, target))
            tables[home][name] = target
    own: dict[str, Any] = {
        "constant": constant,
        "device": lambda device_name: v1.device(device_name),
        "print": _later_print(eager_name("", "print")),
        "where": _later_where(eager_name("", "where")),
    }
    tables[""].update({name: _drawing("", name, eager_name("", name), own[name]) for name in own})
    tables[""].update(
        Variable=Variable,
        executing_eagerly=lambda: _computes(),
        get_current_name_scope=lambda: get_default_graph().get_name_scope(),
        init_scope=nullcontext,
        is_symbolic_tensor=lambda tensor: isinstance(tensor, SymbolicTensor),
        is_tensor=lambda x: isinstance(x, SymbolicTensor) or is_tensor(x),
    )
    return tables


def _with_order_of(function: Any, target: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes the arguments of one function and calls another."""
    signature = inspect.signature(function)
    fixed = _FIXED.get(target.__name__, {})
    if any(kind.kind is kind.VAR_POSITIONAL for kind in signature.parameters.values()):
        return target

    def call(*args: Any, **kwargs: Any) -> Any:
        return target(**signature.bind(*args, **kwargs).arguments, **fixed)

    return call


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Any:
    """Return a tensor of the graph, with TensorFlow 2's rules for shapes."""
    array: Any = None if value is None else constant_array(value, dtype, shape)
    return _constant(array, name=name)


def _later_where(function: Any) -> Any:
    select = drawing_call(function, "SelectV2", "SelectV2")

    def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
        if x is None and y is None:
            return _where(condition, name=name or "Select")
        return select(condition, x, y, name=name)

    return where


def _later_print(function: Any) -> Any:
    def print_later(*inputs: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None) or "PrintV2"
        graph = graph_of(inputs)
        return graph.draw(function, inputs, kwargs, kind="Print", name=name, runs_only=True)

    return print_later


class _VariableClass(type):
    """What makes each variable of a graph an instance of `Variable`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _Variable)

    def __call__(
        cls,
        initial_value: Any = None,
        trainable: bool | None = None,
        *,
        name: str | None = None,
        dtype: Any = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: Any = None,  # One copy of a variable has nothing to synchronise.
        aggregation: Any = None,
    ) -> Any:
        if has_strategy():
            raise RuntimeError(
                "A strategy's variables are eager. Remove `disable_eager_execution`, or write "
                "towers: docs/howto/from-tensorflow-1.md."
            )
        return _Variable(initial_value, trainable, name=name, dtype=dtype, constraint=constraint)


class Variable(metaclass=_VariableClass):
    """`tf.Variable` after `disable_eager_execution`: creates a variable of the default graph."""


def disable_eager_execution() -> None:
    """Let the functions of `import mirrored as tf` draw graphs too, as TensorFlow does.

    Call it at the beginning of a program: what was computed before is in no graph. Keras'
    training, strategies and datasets stay eager. Sizes in shapes are integers and None.
    """
    _draw_graphs()
    enable_v2_tensorshape()


def disable_v2_behavior() -> None:
    """Do the same as `disable_eager_execution`, with `Dimension`s as sizes in shapes."""
    _draw_graphs()
    disable_v2_tensorshape()


def _draw_graphs() -> None:
    _tables()  # Modules that are first imported by then find whole ones.
    set_execution_mode(GRAPHS)


def enable_eager_execution() -> None:
    """Let the functions of `import mirrored as tf` compute at once, as they do by default.

    Raises:
        ValueError: The default graph has operations.
    """
    if execution_mode() != EAGER and get_default_graph().version:
        raise ValueError(
            "tf.enable_eager_execution must be called at program startup. The default graph has "
            "operations: call `tf.compat.v1.reset_default_graph()` first."
        )
    set_execution_mode(EAGER)


def enable_v2_behavior() -> None:
    """Do the same as `enable_eager_execution`."""
    enable_eager_execution()
    enable_v2_tensorshape()


def disable_resource_variables() -> None:
    """Do nothing: a variable's value is a reference here, as in TensorFlow 1."""


def disable_control_flow_v2() -> None:
    """Do nothing: a loop or a condition is one operation here, with the results of either kind."""


def disable_tensor_equality() -> None:
    """Do nothing: `==` compares whether two tensors of a graph are one, as in TensorFlow 1."""


def executing_eagerly() -> bool:
    """Return whether these names compute at once: only after `enable_eager_execution`."""
    return execution_mode() == EAGER


for _home in _MODULES:
    import_module(f"{_PACKAGE}.{_home}".rstrip(".")).__class__ = GraphModule
