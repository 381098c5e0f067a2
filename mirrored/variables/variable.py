"""The base class of variables, and the creators that decide which class a new variable has.

A read is a snapshot: what was read stays as it was, whatever is assigned later.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol, TypeVar

from numpy.typing import NDArray

from mirrored import ops
from mirrored._absent import refused_members
from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._interrupt import InterruptGuard
from mirrored._naming import scoped
from mirrored._tracebacks import shorten
from mirrored._types import PartialShapeLike, TensorLike
from mirrored.ops.hooks import recorded_by
from mirrored.ops.spec import Shape, check_shape
from mirrored.ops.tensor import Tensor, value_text
from mirrored.ops.tensor_views import VariableValue, variable_value
from mirrored.program import variable_access
from mirrored.program.variable_access import variable_writes
from mirrored.variables.scatters import Change, Scatters

# What `prepare` hands to `commit`: a tensor, or an array of the host to be copied.
Prepared = Tensor | NDArray[Any]


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several replicas are brought together.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableSynchronization.ON_WRITE.name
        'ON_WRITE'
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How values that replicas assign to one variable become one value.

    Example:
        >>> import mirrored as mr
        >>> mr.VariableAggregation.MEAN.name
        'MEAN'
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


_Mode = TypeVar("_Mode", bound=enum.Enum)


def mode_of(kind: type[_Mode], value: Any) -> _Mode:
    """Return a mode by Keras' name, such as "on_read"; None means "none".

    Args:
        kind: `VariableSynchronization` or `VariableAggregation`.
        value: One of its members, its name in lower case, or None.

    Raises:
        ValueError: There is no such mode.

    Example:
        >>> mode_of(VariableAggregation, "mean")
        <VariableAggregation.MEAN: 2>
    """
    if isinstance(value, kind):
        return value
    names = {member.name.lower(): member for member in kind}
    mode = names.get("none" if value is None else value)
    if mode is None:
        argument = kind.__name__.removeprefix("Variable").lower()
        raise ValueError(
            f"Invalid value for argument `{argument}`. Expected one of None, "
            f"{', '.join(map(repr, names))}, or a `{kind.__name__}`. Received: {argument}={value!r}"
        )
    return mode


def check_modes(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: str | None
) -> bool:
    """Check the modes of a variable, and return whether it is trainable.

    Args:
        synchronization: A `VariableSynchronization`.
        aggregation: A `VariableAggregation`.
        trainable: What was asked for; None: unless it is brought together on reads.
        name: The variable's name, for messages.

    Raises:
        ValueError: One of the two is something else.
    """
    for label, value, kind in (
        ("synchronization", synchronization, VariableSynchronization),
        ("aggregation", aggregation, VariableAggregation),
    ):
        if not isinstance(value, kind):
            raise ValueError(
                f"Invalid variable {label} mode: {value} for variable: {name}. Use one of "
                f"{[str(member) for member in kind]}."
            )
    on_read = synchronization is VariableSynchronization.ON_READ
    return not on_read if trainable is None else bool(trainable)


class Creator(Protocol):
    """Creates a variable; `next_creator` is the creator that would do so otherwise."""

    def __call__(self, next_creator: Callable[..., "Variable"], **kwargs: Any) -> "Variable":
        """Return the variable."""


_creators: ContextVar[tuple[Creator, ...]] = ContextVar("mirrored_variable_creators", default=())


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """Within this context a function creates the variables.

    Of several the one that was entered last is asked first.

    Args:
        variable_creator: Called as ``variable_creator(next_creator, **kwargs)`` with what makes the
            variable otherwise, and the arguments of `Variable`; it returns the variable.

    Example:
        >>> import mirrored as mr
        >>> def frozen(next_creator, **kwargs):
        ...     return next_creator(**{**kwargs, "trainable": False})
        >>> with mr.variable_creator_scope(frozen):
        ...     v = mr.Variable(1.0)
        >>> v.trainable
        False
    """
    with creators_with(variable_creator):
        yield


def creators_with(creator: Creator) -> Within:
    """Return the context of `variable_creator_scope`, to be entered once.

    Args:
        creator: As there.
    """
    return Within(_creators, (*_creators.get(), creator))


def set_variable_creators(*creators: Creator) -> None:
    """Replace the creators of this context by these, from now on."""
    _creators.set(creators)


class _VariableType(type):
    """Lets `Variable(...)` call the creators; subclasses are instantiated as usual."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        try:
            if cls is not Variable:
                return super().__call__(*args, **kwargs)
            return _checked(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise


def _create(
    initial_value: Any = None,
    trainable: bool | None = None,
    *,
    name: str | None = None,
    dtype: Any = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> "Variable":
    if initial_value is None:
        raise ValueError(
            "The `initial_value` arg to `mr.Variable` is required. Received: None. Pass a value, "
            "or a function without arguments that returns a value."
        )
    trainable = check_modes(synchronization, aggregation, trainable, name)
    if not (constraint is None or callable(constraint)):
        raise ValueError(
            "Argument `constraint` must be None or a callable. Received: "
            f"constraint={constraint!r}. Names of constraints are for layers."
        )
    variable_access.ask(scoped(name or "Variable"))
    make: Callable[..., Variable] = _create_plain
    for creator in _creators.get():
        make = _bound(creator, make)
    with recorded_by(None):  # It is made once, not whenever a recorded function runs.
        return make(
            initial_value=initial_value,
            trainable=trainable,
            name=name,
            dtype=None if dtype is None else ops.as_dtype(dtype),
            constraint=constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )


def _create_plain(*, name: str | None, **kwargs: Any) -> "Variable":
    """Create a variable if no creator does, with the name of its scope."""
    return Variable._plain(name=scoped(name or "Variable"), **kwargs)


_create.__qualname__ = "Variable"  # What errors about its arguments call it.
_checked = explained(_create)


def _bound(creator: Creator, make: Callable[..., "Variable"]) -> Callable[..., "Variable"]:
    return lambda **kwargs: creator(make, **kwargs)


@dataclasses.dataclass(slots=True)
class Traits:
    """Traits of a variable; `Variable` explains them.

    Example:
        >>> Traits().set_function("constraint", "non_neg")
        Traceback (most recent call last):
        ValueError: Invalid value for attribute `constraint`. Expected a callable (such as a ...
    """

    constraint: Callable[[Any], Any] | None = None
    regularizer: Callable[[Any], Any] | None = None
    path: str = ""
    autocast: bool = True

    def set_function(self, name: str, value: Callable[[Any], Any] | None) -> None:
        """Set the constraint or the regularizer.

        Args:
            name: Which of the two.
            value: A function of the variable; None: none.

        Raises:
            ValueError: It cannot be called.
        """
        if not (value is None or callable(value)):
            raise ValueError(
                f"Invalid value for attribute `{name}`. Expected a callable (such as a "
                f"`keras.{name}s.{name.capitalize()}` instance) or `None`. Received: "
                f"{name}={value!r}"
            )
        setattr(self, name, value)


def check_overwrite(value: bool) -> None:
    """Raise an error for the arguments of Keras' training in float8.

    Args:
        value: Whether optimizers should assign its gradient to a variable.

    Raises:
        TypeError: It is no boolean.
        ValueError: It is True.
    """
    if not isinstance(value, bool):
        raise TypeError(f"`overwrite_with_gradient` must be a boolean. Received: {value!r}")
    if value:
        raise ValueError(
            "Optimizers take steps with all gradients, which are sums over replicas: there is no "
            "training in float8. Received: overwrite_with_gradient=True. Assign the value in a "
            "custom `train_step`."
        )


@refused_members(
    "tf.Variable",
    "T astype batch_scatter_update clip count_up_to create eval experimental_ref "
    "from_proto graph handle initial_value initialized_value is_initialized item load "
    "max mean min op ravel read_value_no_copy ref reshape sum to_proto tolist transpose",
)
class Variable(Scatters, metaclass=_VariableType):
    """A value that can be assigned. In computations it is the tensor that it holds when it is read.

    Inside a strategy's scope this makes a variable with a copy on every replica.

    Args:
        initial_value: A number, array or tensor, or a function without arguments that returns
            one.
        trainable: Whether tapes watch it and optimizers get it; True by default, but for variables
            that are brought together on reads.
        name: What messages and files call it.
        dtype: The dtype to convert the initial value to.
        constraint: A function of the value, of its shape: what optimizers set the variable to after
            a step. Other assigns leave it alone.
        synchronization: When the copies on several replicas are brought together.
        aggregation: How values that replicas assign become one.

    Raises:
        ValueError: No initial value, an unknown synchronization or aggregation, or a constraint
            that cannot be called; or a recorded function creates it in every call.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable([1.0, 2.0], name="q")
        >>> v
        <mr.Variable 'q:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>
        >>> v.assign_add([1.0, 1.0]).numpy()
        array([2., 3.], dtype=float32)
    """

    __slots__ = (
        "__weakref__",
        "_aggregation",
        "_name",
        "_synchronization",
        "_trainable",
        "_traits",
    )

    _name: str
    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _traits: Traits
    _plain: ClassVar[Callable[..., "Variable"]]  # The subclass of variables that no creator makes.

    def __init_subclass__(cls, *, plain: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if plain:
            Variable._plain = cls

    if TYPE_CHECKING:  # The signature of `Variable(...)`; `_create` is what runs.

        def __init__(
            self,
            initial_value: Any = None,
            trainable: bool | None = None,
            *,
            name: str | None = None,
            dtype: Any = None,
            constraint: Callable[[Any], Any] | None = None,
            synchronization: VariableSynchronization = VariableSynchronization.AUTO,
            aggregation: VariableAggregation = VariableAggregation.NONE,
        ) -> None: ...

    @property
    def name(self) -> str:
        """The name, followed by TensorFlow's ``:0``."""
        return f"{self._name}:0"

    @property
    def trainable(self) -> bool:
        """Whether tapes watch it and optimizers update it."""
        return self._trainable

    @property
    def device(self) -> str:
        """The full name of the device that holds the value."""
        raise NotImplementedError

    @property
    def aggregation(self) -> VariableAggregation:
        """How values that replicas assign become one."""
        return self._aggregation

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the copies on several replicas are brought together."""
        return self._synchronization

    @property
    def initializer(self) -> None:
        """None, as in TensorFlow 2: a variable has its value from the start."""

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that optimizers apply to its new value; None: none. It can be set."""
        return self._traits.constraint

    @constraint.setter
    def constraint(self, value: Callable[[Any], Any] | None) -> None:
        self._traits.set_function("constraint", value)

    @property
    def regularizer(self) -> Callable[[Any], Any] | None:
        """The penalty on it, which is one of its layer's `losses`; None: none. It can be set."""
        return self._traits.regularizer

    @regularizer.setter
    def regularizer(self, value: Callable[[Any], Any] | None) -> None:
        self._traits.set_function("regularizer", value)

    @property
    def overwrite_with_gradient(self) -> bool:
        """Whether optimizers assign its gradient to it instead of a step: False, as float8 is."""
        return False

    @overwrite_with_gradient.setter
    def overwrite_with_gradient(self, value: bool) -> None:
        check_overwrite(value)

    @property
    def autocast(self) -> bool:
        """Whether a layer in mixed precision casts it to the layer's compute dtype."""
        return self._traits.autocast

    @property
    def path(self) -> str:
        """Keras' path: the names of the model and the layers around it, and its own."""
        return self._traits.path or self.name.removesuffix(":0")

    def set_shape(self, shape: PartialShapeLike | None) -> None:
        """Check that the variable has a shape, which never changes.

        Args:
            shape: Its sizes, of which some may be None; None: any shape.

        Raises:
            ValueError: It has another shape.
        """
        check_shape("Variable", self.shape, shape)

    def read_value(self) -> Tensor:
        """Return the value; a later assign does not change what was returned."""
        raise NotImplementedError

    def assign(
        self,
        value: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable":
        """Set the value and return the variable.

        In a replica, what is returned is that replica's own: the value of a mirrored variable, the
        copy of one that is brought together on reads.

        Args:
            value: The value, of the variable's shape and dtype.
            use_locking: Accepted for compatibility.
            name: Accepted for compatibility.
            read_value: Whether to return the variable; otherwise None is returned.

        Raises:
            ValueError: The shapes differ.
            InvalidArgumentError: The dtypes differ.
        """
        try:
            written: Variable = self._written("assign", value, read_value)
            return written
        except Exception as error:
            shorten(error)
            raise

    def assign_add(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable":
        """Add to the value and return the variable; the rest as for `assign`."""
        try:
            written: Variable = self._written("assign_add", delta, read_value)
            return written
        except Exception as error:
            shorten(error)
            raise

    def assign_sub(
        self,
        delta: TensorLike,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> "Variable":
        """Subtract from the value and return the variable; the rest as for `assign`."""
        try:
            written: Variable = self._written("assign_sub", delta, read_value)
            return written
        except Exception as error:
            shorten(error)
            raise

    def _written(self, method: str, value: Any, read_value: bool) -> Any:
        written = self._write(method, value)
        return written if read_value else None

    def prepare(self, method: str, value: TensorLike) -> "Sequence[tuple[Variable, Prepared]]":
        """Return what `assign`, `assign_add` or `assign_sub` would write into each copy.

        All that can fail happens here, and nothing is changed: variables that belong together
        are prepared one by one, and their copies are committed then. An array of the host may be
        handed on as it is; it must not change until then.

        Args:
            method: The name of one of the three; or "change", for a function of the value.
            value: Its argument, or that function.
        """
        raise NotImplementedError

    def _check_assigned(self, shape: Shape) -> None:
        if shape != self.shape:
            raise ValueError(
                f"Cannot assign value to variable ' {self.name}': Shape mismatch.The variable "
                f"shape {self.shape}, and the assigned value shape {shape} are incompatible."
            )

    def commit(self, value: Prepared, method: str = "assign") -> None:
        """Set the value that `prepare` returned for this copy.

        Args:
            value: The value.
            method: What it was prepared for.
        """
        raise NotImplementedError

    def _write(self, method: str, value: Any) -> Any:
        with variable_writes:
            for copy, prepared in self.prepare(method, value):
                copy.commit(prepared, method)
        return self

    def _change(self, method: str, change: Change) -> Any:
        return self._write("change", change)

    def _no_in_place(self, _: Any) -> NoReturn:
        raise RuntimeError(
            "A variable is not changed by `variable += value` and the like. Use "
            "`variable.assign_add(value)` to change it, or `out = variable + value` to get a new "
            f"tensor. Received: the variable {self.name!r}."
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ipow__ = __imatmul__ = _no_in_place

    @property
    def value(self) -> VariableValue:
        """The value, which `read_value` returns: Keras' attribute, and TensorFlow's method too.

        Example:
            >>> import mirrored as mr
            >>> v = mr.Variable(1.0)
            >>> float(v.value), float(v.value())
            (1.0, 1.0)
        """
        return variable_value(self.read_value)

    def numpy(self) -> Any:
        """Return a copy of the value on the host; nothing is allocated on its device."""
        return self._view().numpy()

    def _view(self) -> Tensor:
        """Return the value in place, for a copy to the host; an assignment may change it."""
        return self.read_value()

    def _as_tensor(self) -> Tensor:
        return self.read_value()

    def __format__(self, spec: str) -> str:
        return super().__format__(spec) if spec else str(self)

    def __repr__(self) -> str:
        return (
            f"<mr.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, "
            f"numpy={value_text(self)}>"
        )


def assign_together(values: Iterable[tuple[Variable, Any]]) -> None:
    """Assign values to variables, all of them or none.

    Args:
        values: As `assigned_together` takes them.
    """
    with assigned_together(values):
        pass


@contextmanager
def assigned_together(values: Iterable[tuple[Variable, Any]]) -> Iterator[None]:
    """Assign values to variables; interrupts wait until the context ends too.

    Args:
        values: Variables and arrays that fit them. Each array is let go before the next one is
            asked for, so that a file need not be in memory as a whole.
    """
    with variable_writes:
        prepared = [
            pair for variable, value in values for pair in variable.prepare("assign", value)
        ]
        with InterruptGuard(whole=True):  # Half of the state would be none.
            for copy, value in prepared:
                copy.commit(value)
            prepared.clear()
            yield
