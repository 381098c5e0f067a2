"""What makes a layer an owner of variables: naming them, finding them, reading and setting them.

It is apart from how layers are called, so that each of the two can be read alone.
"""

import contextlib
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mirrored import ops
from mirrored._absent import missing_attribute
from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._name_scope import name_scope, path_of, within_path
from mirrored._naming import check_name, snake_case, unique_name
from mirrored._overrides import Subclassable
from mirrored._tracebacks import shortened
from mirrored.distribute.context import one_of_several
from mirrored.layers import added_losses, constraints, initializers, regularizers
from mirrored.layers.conversion import as_input
from mirrored.layers.policy import DTypePolicy, as_policy
from mirrored.layers.regularizers import Penalty
from mirrored.layers.shapes import as_known_shape
from mirrored.ops import SeedGenerator, Tensor
from mirrored.ops.spec import ALL_DTYPES, holds_numbers
from mirrored.program.variable_creation import room_in_force
from mirrored.variables import Module, Variable, VariableAggregation, VariableSynchronization
from mirrored.variables.module import held_by
from mirrored.variables.tracking import Seeds, Tracking
from mirrored.variables.traits import check_overwrite
from mirrored.variables.variable import mode_of

_Found = TypeVar("_Found")
_HOLDERS = (Tensor, list, tuple, dict)


@explained
class WeightOwner(Tracking, Subclassable):
    """An object with a name, a dtype and weights: its own, and those of the owners it holds.

    Owners and variables that are assigned to attributes count as held, also in lists, tuples
    and dicts. ``Layer`` says what the arguments are.
    """

    _autocast: bool = True
    _input_dtype: np.dtype[Any] | None
    _autocast_dtype: np.dtype[Any] | None

    def __init__(self, name: str | None, trainable: bool, dtype: Any) -> None:
        if name is None:
            name = unique_name(snake_case(type(self).__name__))
        self._name = check_name(name)
        self._path: str | None = None  # Known when it is built.
        self._take_policy(as_policy(dtype))
        self._trainable = bool(trainable)
        self._added: list[Variable] = []
        self.built = False
        self._has_run = False  # Then what it has not built it does not use.

    if not TYPE_CHECKING:  # It would tell type checkers that every attribute exists.

        def __getattr__(self, attribute: str) -> Any:
            if "_name" not in vars(self):
                raise AttributeError(
                    f"In layer '{type(self).__name__}', you forgot to call `super().__init__()` "
                    "as the first statement in the `__init__()` method: there is no "
                    f"{attribute!r}. Go add it!"
                )
            values = (self._replica_attributes or {}).get(attribute)
            with contextlib.suppress(AttributeError):
                if values is not None:
                    return values.value()
            return missing_attribute(self, attribute)

        def __delattr__(self, name: str) -> None:
            if name in (self._replica_attributes or ()):
                from mirrored.distribute.replica_attributes import delete  # Few programs need it.

                delete(self, name)
            else:
                super().__delattr__(name)

    def _store(self, name: str, value: Any) -> None:
        """Assign an attribute: tensors that a replica of several assigns are its own."""
        if self._replica_attributes or (isinstance(value, _HOLDERS) and one_of_several()):
            from mirrored.distribute.replica_attributes import assign  # Few programs need it.

            if assign(self, name, value):
                return
        super(Subclassable, self).__setattr__(name, value)

    @property
    def name(self) -> str:
        """The layer's name."""
        return self._name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the layer's weights."""
        return self._dtype

    @property
    def variable_dtype(self) -> np.dtype[Any]:
        """The same as ``dtype``."""
        return self._dtype

    @property
    def compute_dtype(self) -> np.dtype[Any]:
        """The dtype that it computes in: its inputs are cast to it, and beside them its weights."""
        return self._compute_dtype

    @property
    def dtype_policy(self) -> DTypePolicy:
        """Both dtypes, by their common name. It can be set; weights that exist keep their dtype."""
        return self._dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, value: Any) -> None:
        self._take_policy(as_policy(value))

    def _take_policy(self, policy: DTypePolicy) -> None:
        """Compute in the dtypes of a policy from now on."""
        self._dtype_policy = policy
        self._dtype = ops.as_dtype(policy.variable_dtype)
        self._compute_dtype = ops.as_dtype(policy.compute_dtype)
        # None: floats that it is called on keep their dtype.
        self._input_dtype = self._compute_dtype if self._autocast else None
        mixed = self._autocast and self._compute_dtype != self._dtype
        self._autocast_dtype = self._compute_dtype if mixed else None

    @property
    def autocast(self) -> bool:
        """Whether floats and weights are cast to the dtype that it computes in."""
        return self._autocast

    @autocast.setter
    def autocast(self, value: bool) -> None:
        self._autocast = bool(value)
        self._take_policy(self._dtype_policy)

    @property
    def path(self) -> str | None:
        """The names of the models and layers around it, and its own; None before it is built."""
        return self._path

    def _within_path(self) -> Within:
        """Return the context in which the paths of what it makes begin with its own."""
        if self._path is None:
            self._path = path_of(self._name)
        return within_path(self._path)

    @property
    def trainable(self) -> bool:
        """Whether training changes the layer's weights; setting it sets it in all sublayers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for layer in self._walk():
            layer._trainable = bool(value)

    def add_weight(
        self,
        shape: Any = None,
        initializer: Any = None,
        dtype: Any = None,
        *,
        name: str | None = None,
        trainable: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        synchronization: VariableSynchronization | str | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | str | None = VariableAggregation.NONE,
        autocast: bool = True,
        overwrite_with_gradient: bool = False,
    ) -> Variable:
        """Create a variable that belongs to the layer; a strategy's scope mirrors it.

        Args:
            shape: Its shape, every size known; () for None.
            initializer: What it starts as: a name or ``initializer(shape, dtype=None)``; for None
                "glorot_uniform", or "zeros" where it is no floating-point variable.
            dtype: Its dtype; the layer's for None.
            name: Its name within the layer; numbered for None.
            trainable: Whether training changes it.
            regularizer: The penalty on it: a name, a function of the variable, or None.
            constraint: What optimizers bring it back to after a step: a name, a function of its
                value, or None.
            synchronization: When its copies on several replicas are brought together; Keras' name
                of it, as in "on_read", will do.
            aggregation: How values that replicas assign become one; so will Keras' "mean".
            autocast: Whether a layer in mixed precision computes with it in the narrow dtype.
            overwrite_with_gradient: False: there is no training in float8.

        Raises:
            ValueError: The shape has an unknown size, a name is unknown, or the initializer
                returns another shape.
        """
        if isinstance(shape, str):
            raise ValueError(
                f"`name` must be passed as a keyword argument. Received: add_weight({shape!r}, "
                f"...). Use: add_weight(shape=..., name={shape!r})."
            )
        path = f"{self._name}/{name or f'variable_{len(self._added)}'}"
        check_overwrite(overwrite_with_gradient)
        synchronization = mode_of(VariableSynchronization, synchronization)
        aggregation = mode_of(VariableAggregation, aggregation)
        known = as_known_shape(() if shape is None else shape, path)
        wanted = self._dtype if dtype is None else ops.as_dtype(dtype)
        make = _initializer_of(initializer, wanted)
        penalty, projection = regularizers.get(regularizer), constraints.get(constraint)
        room = room_in_force()
        if room is not None:
            room.take(path, math.prod(known) * wanted.itemsize, "weights")

        def initial_value() -> Tensor:
            value = as_input(make(known, dtype=wanted), wanted, path)
            if value.shape != known:
                raise ValueError(
                    f"The initializer of {path} must return the shape {known}. Received: a "
                    f"value of shape {value.shape}"
                )
            return value

        is_late = room is not None and getattr(make, "takes_long", False)
        with name_scope(""):  # As Keras' objects, it has names of its own.
            variable = Variable(
                (lambda: ops.zeros(known, wanted)) if is_late else initial_value,
                trainable=trainable,
                name=path,
                dtype=wanted,
                constraint=projection,
                synchronization=synchronization,
                aggregation=aggregation,
            )
        if room is not None and is_late:
            room.late.append((variable, lambda: variable.assign(initial_value())))
        self._added.append(variable)
        traits = variable._traits
        traits.regularizer, traits.autocast = penalty, bool(autocast)
        traits.path = f"{self._path or path_of(self._name)}/{path.removeprefix(self._name + '/')}"
        return variable

    @property
    def _sublayers(self) -> list["WeightOwner"]:
        """The layers in this layer's attributes, each once, in order of assignment."""
        return find(vars(self).values(), WeightOwner, self)

    def _walk(self) -> Iterator["WeightOwner"]:
        """Yield this layer and all inside it, each once, a layer before its sublayers."""
        return (layer for layer, _ in self._walk_with(()))

    def _walk_with(
        self, kind: type[_Found] | tuple[Any, ...], seen: set[int] | None = None
    ) -> Iterator[tuple["WeightOwner", list[_Found]]]:
        """Yield the layers of `_walk`, each with what its own attributes hold of a kind."""
        seen = set() if seen is None else seen
        if id(self) in seen:
            return
        seen.add(id(self))
        # Looked through once for both.
        held: list[Any] = find(vars(self).values(), (WeightOwner, kind), self)
        yield self, [weight for weight in held if isinstance(weight, kind)]
        for value in held:
            if isinstance(value, WeightOwner):
                yield from value._walk_with(kind, seen)

    def _trained(self) -> list[tuple["WeightOwner", list[Variable]]]:
        """Return the layers whose own weights training changes, with these: none where frozen.

        Those inside a frozen layer say it for themselves, as in Keras: setting ``trainable`` sets
        theirs too, and one that is thawed afterwards is trained.
        """
        if not self._trainable:
            return []
        return [(layer, own) for layer, own in self._walk_with(Variable) if layer._trainable]

    def _own_weights(self) -> list[Variable]:
        """The variables in this layer's own attributes, trainable ones first, as Keras has it."""
        return _in_order(find(vars(self).values(), Variable, self))

    @property
    def weights(self) -> list[Variable]:
        """All variables of the layer and its sublayers, each once."""
        return find([_in_order(own) for _, own in self._walk_with(Variable)], Variable)

    @property
    def variables(self) -> list[Variable]:
        """The layer's weights, then its streams of random numbers, then those of its sublayers.

        A stream's state is a variable of two integers, its seed and the number of its draws.
        """
        kinds = (Variable, SeedGenerator, Seeds)
        walk: Iterator[tuple[WeightOwner, list[Any]]] = self._walk_with(kinds)
        return find([_with_states(layer._name, own) for layer, own in walk], Variable)

    @property
    def trainable_weights(self) -> list[Variable]:
        """Those of ``weights`` that training changes."""
        owned = find([_in_order(own) for _, own in self._trained()], Variable)
        return [variable for variable in owned if variable.trainable]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The same as ``trainable_weights``."""
        return self.trainable_weights

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """Those of ``weights`` that training leaves alone."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in trained]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those of ``variables`` that training leaves alone."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [variable for variable in self.variables if id(variable) not in trained]

    @property
    def regularized_weights(self) -> list[tuple[Variable, Penalty]]:
        """The trainable weights that have a penalty, each with its penalty."""
        pairs = [(weight, weight.regularizer) for weight in self.trainable_weights]
        return [(weight, penalty) for weight, penalty in pairs if penalty is not None]

    @property
    def losses(self) -> list[Tensor]:
        """What is added to the loss in training: `add_loss`, then the penalties on weights.

        Those that the layer and its sublayers added are there from their calls until the next
        call that none of them is in the midst of; those of a step that `fit` or `evaluate` ran
        are gone with it. A penalty is the present one, a scalar for each regularized weight.
        """
        pairs = self.regularized_weights
        penalties = [ops.convert_to_tensor(penalty(weight)) for weight, penalty in pairs]
        return [*self._added_losses(), *penalties]

    def _added_losses(self) -> list[Tensor]:
        """Return what this layer and its sublayers added to the loss, without penalties."""
        return added_losses.held_by(self._in_order_of_losses())

    def _in_order_of_losses(self) -> Iterator["WeightOwner"]:
        """Yield what `_walk` does in the order of Keras' `losses`: parts of parts from the last."""
        yield self
        seen, waiting = {id(self)}, deque(self._sublayers)
        while waiting:
            layer = waiting.popleft()
            if id(layer) not in seen:
                seen.add(id(layer))
                yield layer
                waiting.extendleft(layer._sublayers)

    def count_params(self) -> int:
        """Return the number of scalars in the weights.

        Raises:
            ValueError: The layer has no weights yet.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer '{self._name}', but the layer isn't "
                "built. You can build it manually via: `layer.build(input_shape)`."
            )
        return sum(weight.size for weight in self.weights)

    def get_weights(self) -> list[np.ndarray[Any, Any]]:
        """Return the values of ``weights``, as arrays on the host."""
        return [np.asarray(weight.numpy()) for weight in self.weights]

    @shortened
    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign the values of all weights; nothing is changed unless all of them fit.

        Args:
            weights: One array a weight, in the order and shapes of ``get_weights``.

        Raises:
            ValueError: There are more or fewer than weights, or a shape differs.
            TypeError: A value is not numbers.
        """
        own, values = self.weights, list(weights)
        if len(values) != len(own):
            raise ValueError(
                f"You called `set_weights(weights)` on layer '{self._name}' with a weight list "
                f"of length {len(values)}, but the layer was expecting {len(own)} weights."
            )
        arrays = []
        for weight, value in zip(own, values, strict=True):
            array = np.asarray(value)
            if not holds_numbers(array.dtype):
                raise TypeError(
                    f"Layer {self._name} weight {weight.name} takes numbers. Received: a value "
                    f"of dtype {array.dtype}"
                )
            if array.shape != weight.shape:
                raise ValueError(
                    f"Layer {self._name} weight shape {weight.shape} is not compatible with "
                    f"provided weight shape {array.shape}. The weight is {weight.name}."
                )
            arrays.append(array.astype(weight.dtype, copy=False))
        from mirrored.variables.together import assign_together  # Needed here only.

        assign_together(zip(own, arrays, strict=True))

    def save_own_variables(self, store: Any) -> None:
        """Put the layer's own variables into a store, under "0", "1" and so on.

        Files in Keras' formats have what it puts there; layers inside are asked for themselves.

        Args:
            store: What the file has of this layer, as a dict; an array is written at once.
        """
        for number, variable in enumerate(self._own_weights()):
            store[str(number)] = variable

    def load_own_variables(self, store: Any) -> None:
        """Set the layer's own variables to what `save_own_variables` put into a store.

        Args:
            store: What the file has of this layer, as a dict of arrays.

        Raises:
            ValueError: It has more or fewer variables, or one of another shape. None was set.
        """
        from mirrored.layers.stored import load_into  # Few programs read such files.

        load_into(self, store)


def _with_states(owner: str, parts: list[Any]) -> list[Variable]:
    """Return what an object holds as variables: its own in order, and the states of its streams."""
    own = _in_order([variable for variable in parts if isinstance(variable, Variable)])
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
    from mirrored.variables.stream_variable import StreamVariable  # Few programs look at it.

    state: Variable = vars(stream).setdefault(
        "state_variable", StreamVariable(stream, f"{owner}/seed_generator_state")
    )
    return state


def _in_order(variables: list[Variable]) -> list[Variable]:
    return sorted(variables, key=lambda variable: not variable.trainable)


def _initializer_of(identifier: object, dtype: np.dtype[Any]) -> initializers.Filling:
    """Return the initializer of a weight; where none is asked for, Keras' for its dtype."""
    usual = initializers.Zeros() if dtype.kind in "biu" else initializers.GlorotUniform()
    return initializers.get(identifier) or usual


# Most attributes are one of these, and hold nothing.
_LEAVES = frozenset((str, int, float, bool, type(None), FunctionType, *map(type, ALL_DTYPES)))
_CONTAINERS = (list, tuple, dict)
_SETS = (set, frozenset)  # A union of them would be made anew for each value.


def find(
    values: Iterable[object],
    kind: type[_Found] | tuple[Any, ...],
    owner: Tracking | None = None,
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
    _find(values, kind, by_id, set())
    instances = list(by_id.values())
    if owner is not None and len(instances) > 1:
        return owner._tracker.in_order(instances)
    return instances


def _find(
    values: Iterable[object],
    kind: type[_Found] | tuple[Any, ...],
    by_id: dict[int, _Found],
    open_containers: set[int],
) -> None:
    # A model's attributes are looked through several times in each call of `fit`.
    for value in values:
        if type(value) in _LEAVES:
            continue
        if isinstance(value, kind):
            by_id.setdefault(id(value), value)
        elif isinstance(value, _CONTAINERS):
            if value and id(value) not in open_containers:
                open_containers.add(id(value))  # A container may hold itself.
                inner = value.values() if isinstance(value, dict) else value
                _find(inner, kind, by_id, open_containers)
        elif isinstance(value, Module):
            if id(value) not in open_containers:
                open_containers.add(id(value))
                _find(held_by(value), kind, by_id, open_containers)
        elif isinstance(value, _SETS):
            for item in value:
                if isinstance(item, kind):
                    raise ValueError(
                        "A set has no order by which weights could be listed and saved. Received: "
                        f"a set that holds {item!r}. Use a list or a dict."
                    )
