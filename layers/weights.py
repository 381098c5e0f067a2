"""How layers make weights, find them in their attributes, and set all of them together."""

import math
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from mirrored import ops
from mirrored._arguments import only
from mirrored._naming import name_scope
from mirrored.layers import constraints, initializers, regularizers
from mirrored.layers.input_conversion import as_input
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import ALL_DTYPES, holds_numbers
from mirrored.program.variable_access import room_in_force
from mirrored.variables import Module, Variable
from mirrored.variables.module import held_by
from mirrored.variables.tracking import Part, Seeds
from mirrored.variables.variable import assign_together

_Found = TypeVar("_Found")
# The initializer, the regularizer and the constraint of a weight, as users write them.
WeightSettings = tuple[Any, Any, Any]


def settings_of(
    settings: WeightSettings,
) -> tuple[initializers.Filling | None, regularizers.Penalty | None, constraints.Projection | None]:
    """Return the settings of a weight as functions.

    Args:
        settings: As users write them: names, configurations or functions.
    """
    initializer, regularizer, constraint = settings
    return (
        initializers.get(initializer),
        regularizers.get(regularizer),
        constraints.get(constraint),
    )


def new_weight(
    path: str,
    shape: tuple[int, ...],
    initializer: Any,
    dtype: np.dtype[Any],
    *,
    regularizer: Any,
    constraint: Any,
    **options: Any,
) -> Variable:
    """Return a new variable; `Layer.add_weight` says what the arguments are.

    Args:
        path: Its name, with that of its layer.
        shape: Its shape.
        initializer: What it starts as.
        dtype: Its dtype.
        regularizer: The penalty on it.
        constraint: What optimizers bring it back to.
        **options: Those of `Variable`.
    """
    usual = initializers.Zeros if dtype.kind in "biu" else initializers.GlorotUniform
    make = initializers.get(initializer) or usual()
    penalty, projection = regularizers.get(regularizer), constraints.get(constraint)
    room = room_in_force()
    if room is not None:
        room.take(path, math.prod(shape) * dtype.itemsize, "weights")

    def initial_value() -> Tensor:
        value = as_input(make(shape, dtype=dtype), dtype, path)
        if value.shape != shape:
            raise ValueError(
                f"The initializer of {path} must return the shape {shape}. Received: a value of "
                f"shape {value.shape}"
            )
        return value

    is_late = room is not None and getattr(make, "takes_long", False)
    with name_scope(""):  # As Keras' objects, it has names of its own.
        variable = Variable(
            (lambda: ops.zeros(shape, dtype)) if is_late else initial_value,
            name=path,
            dtype=dtype,
            constraint=projection,
            **options,
        )
    if room is not None and is_late:
        room.late.append((variable, lambda: variable.assign(initial_value())))
    variable._traits.regularizer = penalty
    return variable


class _Kept:
    """What an attribute is in the class: where a subclass has a property, `super` reads through it.

    Instances keep the weight under the attribute's own name.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        if layer is None:
            return self
        if self._name in vars(layer):
            return vars(layer)[self._name]
        raise AttributeError(self._name)  # The layer's `__getattr__` says more.


def overridable() -> Any:
    """Return the attribute of a weight that a subclass may compute, by a property of its name."""
    return _Kept()


def not_quantized(quantization_config: Any) -> Any:
    """Return the argument of layers whose weights Keras quantizes, which must be None.

    Args:
        quantization_config: The argument.

    Raises:
        ValueError: It is not None.
    """
    advice = "Weights are not quantized."
    return only("quantization_config", quantization_config, None, advice)


def add_configured(
    layer: Any, name: str, shape: Any, initializer: Any = None, prefix: str | None = None
) -> Variable:
    """Create a weight with the settings of a layer, and keep it in the attribute of its name.

    The settings are attributes such as `bias_constraint`. A subclass may have a property instead
    of the attribute.

    Args:
        layer: The layer.
        name: The weight's name.
        shape: Its shape.
        initializer: What it starts as; None: as the attribute says.
        prefix: What the attributes begin with; None: the weight's name.
    """
    prefix = prefix or name
    weight: Variable = layer.add_weight(
        shape=shape,
        initializer=initializer or getattr(layer, f"{prefix}_initializer"),
        regularizer=getattr(layer, f"{prefix}_regularizer"),
        constraint=getattr(layer, f"{prefix}_constraint"),
        name=name,
    )
    vars(layer)[name] = weight
    return weight


def assign_all(owner: str, weights: Sequence[Variable], values: Sequence[Any]) -> None:
    """Set weights, all of them or none; `Layer.set_weights` says what is raised.

    Args:
        owner: The layer's name.
        weights: The weights.
        values: An array for each.
    """
    if len(values) != len(weights):
        raise ValueError(
            f"You called `set_weights(weights)` on layer '{owner}' with a weight list of length "
            f"{len(values)}, but the layer was expecting {len(weights)} weights."
        )
    arrays = []
    for weight, value in zip(weights, values, strict=True):
        array = np.asarray(value)
        if not holds_numbers(array.dtype):
            raise TypeError(
                f"Layer {owner} weight {weight.name} takes numbers. Received: a value of dtype "
                f"{array.dtype}"
            )
        if array.shape != weight.shape:
            raise ValueError(
                f"Layer {owner} weight shape {weight.shape} is not compatible with provided weight "
                f"shape {array.shape}. The weight is {weight.name}."
            )
        arrays.append(array.astype(weight.dtype, copy=False))
    assign_together(zip(weights, arrays, strict=True))


def with_states(owner: str, parts: list[Any]) -> list[Variable]:
    """Return what an object holds as variables: its own in order, and the states of its streams.

    Args:
        owner: Its name.
        parts: What its attributes hold.
    """
    own = in_order([variable for variable in parts if isinstance(variable, Variable)])
    for part in parts:
        if isinstance(part, Seeds):
            own.append(part.state)
        elif isinstance(part, SeedGenerator):
            own.append(state_variable(owner, part))
    return own


def state_variable(owner: str, stream: SeedGenerator) -> Variable:
    """Return the state of a layer's stream as a variable, always the same one.

    Args:
        owner: The layer's name.
        stream: The stream.
    """
    from mirrored.variables.generator import StreamVariable  # Few programs look at it.

    state: Variable = vars(stream).setdefault(
        "state_variable", StreamVariable(stream, f"{owner}/seed_generator_state")
    )
    return state


def in_order(variables: list[Variable]) -> list[Variable]:
    """Return variables, trainable ones first."""
    return sorted(variables, key=lambda variable: not variable.trainable)


def load_into(layer: Any, own: Sequence[Variable], store: Any) -> None:
    """Set a layer's own variables; `Layer.load_own_variables` says what is raised.

    Args:
        layer: The layer.
        own: Its own variables.
        store: What a file in Keras' formats has of it: arrays by their numbers.
    """
    check_count(layer, own, len(store.keys()))
    assign_together(_stored_values(own, store))


def _stored_values(own: Sequence[Variable], store: Any) -> Iterator[tuple[Any, Any]]:
    for number, variable in enumerate(own):
        value = np.asarray(store[str(number)])
        if value.shape != variable.shape:
            raise ValueError(shape_problem(variable, value.shape))
        yield variable, value.astype(variable.dtype, copy=False)


def check_count(layer: Any, own: Sequence[Variable], count: int) -> None:
    """Raise ValueError where a file has more or fewer variables of a layer than it has itself.

    Args:
        layer: The layer.
        own: Its own variables.
        count: How many the file has.
    """
    if count == len(own):
        return
    if not own and not layer.built:
        raise ValueError(
            f"Layer '{layer.name}' was never built and thus it doesn't have any variables. "
            f"However the weights file lists {count} variables for this layer. A layer's `build` "
            "must create the weights of all layers inside it: call the model on data, or `build` "
            "them there."
        )
    raise ValueError(
        f"Layer '{layer.name}' expected {len(own)} variables, but received {count} variables "
        f"during loading. Expected: {[variable.name for variable in own]}"
    )


def shape_problem(variable: Variable, shape: tuple[int, ...]) -> str:
    """Return what is said where a file has a variable of another shape.

    Args:
        variable: The variable.
        shape: The file's.
    """
    return (
        "The shape of the target variable and the shape of the target value in "
        f"`variable.assign(value)` must match. variable.shape={variable.shape}, Received: "
        f"value.shape={shape}. Target variable: {variable.name}"
    )


# Most attributes are one of these, and hold nothing.
_LEAVES: frozenset[type] = frozenset(
    (str, int, float, bool, type(None), FunctionType, *map(type, ALL_DTYPES))
)
_CONTAINERS = (list, tuple, dict)
# The classes whose instances are seen to hold nothing, by what is looked for: a model's attributes
# are looked through in each call of `fit`.
_without_parts: dict[Any, set[type]] = {}
_SETS = (set, frozenset)  # A union would be created for each value.


def find(
    values: Iterable[object], kind: type[_Found] | tuple[Any, ...], owner: Part | None = None
) -> list[_Found]:
    """Return the instances of ``kind`` among ``values``, each once, in order.

    Args:
        values: What to look through. Lists, tuples, the values of dicts and the attributes of
            modules are looked into at any depth; other objects are not.
        kind: The class to look for, or a tuple of such; of objects, not of numbers or strings.
        owner: Whose attributes the values are: in the order in which it got them.

    Raises:
        ValueError: One of them is in a set.

    Example:
        >>> find([1j, "a", [2j, {"x": (3j, 1)}]], complex)
        [1j, 2j, 3j]
    """
    by_id: dict[int, _Found] = {}
    leaves = _without_parts.get(kind)
    if leaves is None:
        leaves = _without_parts[kind] = set(_LEAVES)
    _find(values, kind, by_id, set(), leaves)
    instances = list(by_id.values())
    if owner is not None and len(instances) > 1:
        instances = owner.__tracker__.in_order(instances)
    return instances


def _find(
    values: Iterable[object],
    kind: type[_Found] | tuple[Any, ...],
    by_id: dict[int, _Found],
    open_containers: set[int],
    leaves: set[type],
) -> None:
    for value in values:
        if type(value) in leaves:
            continue
        if isinstance(value, kind):
            by_id.setdefault(id(value), value)
        elif isinstance(value, _CONTAINERS):
            if value and id(value) not in open_containers:
                open_containers.add(id(value))  # A container may hold itself.
                inner = value.values() if isinstance(value, dict) else value
                _find(inner, kind, by_id, open_containers, leaves)
        elif isinstance(value, Module):
            if id(value) not in open_containers:
                open_containers.add(id(value))
                _find(held_by(value), kind, by_id, open_containers, leaves)
        elif isinstance(value, _SETS):
            for item in value:
                if isinstance(item, kind):
                    raise ValueError(
                        "A set has no order by which weights could be listed and saved. Received: "
                        f"a set that holds {item!r}. Use a list or a dict."
                    )
        else:
            leaves.add(type(value))
