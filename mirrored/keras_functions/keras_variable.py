"""`keras.Variable`: its constructor takes an initializer and a shape."""

from typing import Any

from mirrored import ops
from mirrored._arguments import explained_only
from mirrored._naming import check_name, unique_name
from mirrored.layers import initializers
from mirrored.ops.spec import default_float
from mirrored.variables import Variable as AnyVariable
from mirrored.variables import VariableAggregation, VariableSynchronization
from mirrored.variables.variable import mode_of


def _variable(
    cls: Any,
    initializer: Any,
    shape: Any = None,
    dtype: Any = None,
    trainable: bool = True,
    autocast: bool = True,
    aggregation: Any = "none",
    synchronization: Any = "auto",
    name: str | None = None,
    layout: None = None,
) -> AnyVariable:
    name = unique_name("variable") if name is None else check_name(name)
    if layout is not None:
        raise ValueError(f"Every replica has all of a variable. Received: layout={layout!r}")
    start = initializers.get(initializer) if isinstance(initializer, str) else initializer
    if callable(start):
        if shape is None:
            raise ValueError(
                "When creating a Variable from an initializer, the `shape` argument should be "
                f"specified. Received: initializer={initializer} and shape={shape}"
            )
        make_value = start
        dtype = default_float() if dtype is None else ops.as_dtype(dtype)

        def start() -> Any:
            return make_value(tuple(shape), dtype=dtype)

    variable = AnyVariable(
        start,
        trainable,
        name=name,
        dtype=dtype,
        synchronization=mode_of(VariableSynchronization, synchronization),
        aggregation=mode_of(VariableAggregation, aggregation),
    )
    variable._traits.autocast = bool(autocast)
    return variable


_variable.__qualname__ = "Variable"  # What errors about its arguments call it.


class _KerasVariable(type):
    """Makes variables of Keras' arguments; every variable is an instance."""

    __call__ = explained_only(_variable)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, AnyVariable)


class Variable(metaclass=_KerasVariable):
    """Returns a variable, of Keras' arguments; those of layers are instances of it too.

    Args:
        initializer: An array or tensor, the name of an initializer, or a function of a shape and a
            dtype.
        shape: The shape, for an initializer.
        dtype: The dtype; None: that of the array, or floatx.
        trainable: Whether tapes watch it and optimizers get it.
        autocast: Whether a layer in mixed precision computes with it in the narrow dtype.
        aggregation: How values that replicas assign become one: None, "none", "sum", "mean" or
            "only_first_replica".
        synchronization: When copies are brought together: None, "none", "auto", "on_write" or
            "on_read".
        name: Its name; None: "variable", numbered.
        layout: None: every replica has all of it.

    Raises:
        ValueError: The name has a slash, an initializer has no shape, a layout is given, or there
            is no such mode.

    Example:
        >>> import mirrored as mr
        >>> v = mr.keras.Variable("zeros", shape=(2,), name="v")
        >>> v.path, v.value.numpy().tolist(), isinstance(v, mr.keras.Variable)
        ('v', [0.0, 0.0], True)
    """
