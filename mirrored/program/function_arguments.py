"""What a call of a recorded function takes and returns.

Calls that pass the same arguments differently are one call: an argument may be given by its place
or by its name, or be left out where that is its default. Arrays among them are fed, and the rest is
part of the key; a call is served by the recording of another one where the keys are equal. Results
are tensors, as in TensorFlow: a variable's value at the end of the function, a number as a
constant.
"""

import contextlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from operator import call
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.devices import Device, place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, constant, is_tensor, to_array
from mirrored.ops.hooks import UnknownShape
from mirrored.ops.host_tensor import HostTensor
from mirrored.ops.spec import TensorSpec, default_float
from mirrored.ops.tensor import Tensor
from mirrored.program.dataflow import SHARED
from mirrored.program.iterator import PeekingIterator

_Completed = tuple[tuple[Any, ...], dict[str, Any]]
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Parameters:
    """The parameters of a function.

    Args:
        function: The function; of one that does not tell nothing is known.

    Attributes:
        count: How many may be given by their places; -1 where a call that gives just these may
            leave others out.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):  # One that is not Python's.
            self._signature = inspect.signature(function)
        items = [] if self._signature is None else [*self._signature.parameters.values()]
        self._positional = [item for item in items if item.kind in POSITIONAL]
        self._named = {item.name: item.default for item in items if item.kind is item.KEYWORD_ONLY}
        self.count = -1 if self._named else len(self._positional)

    def completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Completed:
        """Return a call's arguments by their places, with defaults for what is missing.

        What does not fit stays as it is: Python says so when the function is called.

        Args:
            args: The call's positional arguments.
            kwargs: Its keyword arguments.
        """
        values, rest = list(args), dict(kwargs)
        for item in self._positional[len(args) :]:
            if item.name in rest and item.kind is item.POSITIONAL_OR_KEYWORD:
                values.append(rest.pop(item.name))
            elif item.default is not item.empty:
                values.append(item.default)
            else:
                return args, kwargs
        for name, default in self._named.items():
            if default is not inspect.Parameter.empty:
                rest.setdefault(name, default)
        return tuple(values), rest

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise TypeError unless a complete call fits, as Python does when it is made."""
        if self._signature is None:
            return
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"Binding inputs to mr.function failed due to `{error}`. Received args: "
                f"{args!r:.200} and kwargs: {kwargs!r:.200} for signature: {self._signature}."
            ) from None

    def named(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Iterator[tuple[str, str, Any]]:
        """Yield for each argument of a complete call its name, its kind, and itself.

        Args:
            args: The call's positional arguments.
            kwargs: Its keyword arguments.
        """
        for i, value in enumerate(args):
            if i < len(self._positional):
                yield self._positional[i].name, self._positional[i].kind.name, value
            else:
                yield f"args_{i - len(self._positional)}", "POSITIONAL_ONLY", value
        for name, value in kwargs.items():
            yield name, "KEYWORD_ONLY", value


# Types whose values hold one value a replica, with a function that makes another one like it.
_per_replica: dict[type, Callable[[Any, list[Any]], Any]] = {}

# Types of variables, each with a function from one to its copies.
_variables: dict[type, Callable[[Any], Sequence[Any]]] = {}

# Functions that return what else is in force where a function is called.
_in_force: list[Callable[[], Any]] = []


def register_in_force(ask: Callable[[], Any]) -> None:
    """Let calls be of different kinds where something else is in force around them.

    Args:
        ask: Returns what is in force, which can be hashed.
    """
    _in_force.append(ask)


_TENSORS = frozenset((Tensor, HostTensor))
_SEQUENCES = (list, tuple)
_NUMBERS = (bool, int, float)
_STATIC = (bool, int, float, str, bytes, type(None), np.dtype)


def _key_of(leaf: Any) -> tuple[Any, Any]:
    """Return what a value of Python's is known by: as in TensorFlow, equal numbers are alike."""
    kind = type(leaf)
    if kind not in _NUMBERS:
        return kind, leaf
    if kind is float and (leaf != leaf or (leaf == 0.0 and math.copysign(1.0, leaf) < 0.0)):
        return kind, leaf.hex()  # NaN equals not even itself; -0.0 equals 0.0, and is another one.
    return float, leaf


def register_per_replica(kind: type, rebuild: Callable[[Any, list[Any]], Any]) -> None:
    """Let functions take and return values that have `values`, one a replica.

    Args:
        kind: Their type.
        rebuild: From such a value and other parts to one like it with those.
    """
    _per_replica[kind] = rebuild


def register_variable(kind: type, copies: Callable[[Any], Sequence[Any]]) -> None:
    """Let what was recorded for a variable serve others of its kind.

    Args:
        kind: Its type.
        copies: From one to its copies, each of which has one value on one device.
    """
    _variables[kind] = copies


def is_variable(leaf: Any) -> bool:
    """Return whether a leaf is a variable that `register_variable` knows."""
    return type(leaf) in _variables


def kind_of(variable: Any) -> Any:
    """Return what is equal for variables of one kind, in all but their values and names."""
    modes = variable.trainable, variable.synchronization, variable.aggregation
    copies = [(tuple(c.shape), c.dtype, c.device) for c in _variables[type(variable)](variable)]
    return type(variable), getattr(variable, "strategy", None), *modes, *copies


# A tensor that is fed to a program: what it is like, where, and for which replica, or SHARED.
Input = tuple[TensorSpec, Device, int]


class Arguments:
    """The arguments of a call, or an element of a dataset.

    Args:
        structures: Nested lists, tuples and dicts of them.

    Attributes:
        key: Equal for those that one recording serves.
        inputs: What is fed.
        arrays: The values to feed.
        iterators: The iterators over datasets among them.
        known: Those that are known by their identity, which is theirs while somebody keeps them.
        variables: The variables among them, which are known so too.
        structures: What they were made of.
    """

    __slots__ = (
        "_device",
        "_key",
        "_places",
        "arrays",
        "inputs",
        "iterators",
        "key",
        "known",
        "structures",
        "variables",
    )

    def __init__(self, *structures: Any) -> None:
        self.structures = structures
        self.inputs: list[Input] = []
        self.arrays: list[Any] = []
        self.iterators: list[PeekingIterator] = []
        self.known: list[Any] = []
        self.variables: list[Any] = []
        self._places: list[int] = []
        self._device = place("_Arg", ("GPU", "CPU"))
        # What is in force around the call is part of it: code may ask for it.
        self._key: list[Any] = [self._device, default_float(), *map(call, _in_force)]
        for structure in structures:
            if type(structure) is tuple:
                self._key.append(len(structure))
                self._add_all(structure)
            elif type(structure) is not dict or structure:  # Most calls are without keywords.
                self._add(structure)
        self.key = tuple(self._key)

    def _add_all(self, items: Sequence[Any], replicas: Iterable[int] = repeat(SHARED)) -> None:
        """Add values, each for a replica; tensors, which most are, without a call for each."""
        key, inputs, arrays = self._key, self.inputs, self.arrays
        for item, replica in zip(items, replicas, strict=False):
            if type(item) in _TENSORS:
                input_ = item._spec, item._device, replica
                key.append(input_)
                inputs.append(input_)
                arrays.append(item._feed)
            elif replica == SHARED:
                self._add(item)
            else:
                self._add_part(item, replica)

    def _add(self, item: Any) -> None:
        key, kind = self._key, type(item)
        if kind in _per_replica:
            key += (kind, getattr(item, "first_examples", None), getattr(item, "examples", None))
            self._add_all(item.values, count())
        elif isinstance(item, _SEQUENCES):
            key += (kind, len(item))
            self._add_all(item)
        elif isinstance(item, dict):
            names = _nest.sorted_keys(item)
            key += (kind, *names)
            if item:
                self._add_all(list(map(item.__getitem__, names)))
        elif isinstance(item, PeekingIterator):
            key.append(kind)
            self.iterators.append(item)
        else:
            self._add_part(item, SHARED)

    def _add_part(self, leaf: Any, replica: int) -> None:
        if isinstance(leaf, Tensor):
            self._feed(leaf._feed, (leaf._spec, leaf._device, replica))
        elif isinstance(leaf, np.ndarray | np.generic):
            array = np.asarray(to_array(leaf))
            spec = TensorSpec(array.shape, array.dtype)
            self._feed(array, (spec, self._device, replica))
        elif isinstance(leaf, _STATIC):
            self._key += _key_of(leaf)
        else:
            self._key += ("object", id(leaf))
            if is_variable(leaf):
                self.variables.append(leaf)
                self._places.append(len(self._key) - 1)
            else:
                self.known.append(leaf)

    def _feed(self, array: Any, input_: Input) -> None:
        self._key.append(input_)
        self.arrays.append(array)
        self.inputs.append(input_)

    def copies(self) -> list[Any]:
        """Return the copies of all variables, each once."""
        copies = (copy for owner in self.variables for copy in _variables[type(owner)](owner))
        return list({id(copy): copy for copy in copies}.values())

    def alike(self) -> Any:
        """Return a key that is equal for calls whose variables are of the same kinds too.

        It says which of them are the same variable.
        """
        key, numbers = list(self._key), {id(copy): i for i, copy in enumerate(self.copies())}
        for i, owner in zip(self._places, self.variables, strict=True):
            key[i] = kind_of(owner), *(numbers[id(copy)] for copy in _variables[type(owner)](owner))
        return tuple(key)

    def with_tensors(self, tensors: list[Tensor]) -> tuple[Any, ...]:
        """Return the structures with these tensors in the places of what is fed."""
        remaining = iter(tensors)

        def taken(leaf: Any) -> Any:
            fed = isinstance(leaf, Tensor | np.ndarray | np.generic)
            return next(remaining) if fed else leaf

        structures: tuple[Any, ...] = _nest.map_structure(
            lambda leaf: with_parts(leaf, taken), self.structures
        )
        return structures


def with_parts(leaf: Any, taken: Callable[[Any], Any]) -> Any:
    """Return a leaf, or each of the parts that it has for replicas, as `taken` gives them.

    Args:
        leaf: The leaf.
        taken: From a part, or the leaf, to what replaces it.
    """
    rebuild = _per_replica.get(type(leaf))
    return taken(leaf) if rebuild is None else rebuild(leaf, [taken(part) for part in leaf.values])


def has_parts(leaf: Any) -> bool:
    """Return whether a leaf has one value a replica."""
    return type(leaf) in _per_replica


def as_tensors(structure: Any, function: Callable[..., Any]) -> Any:
    """Return what a function returned with tensors for all leaves but None.

    Args:
        structure: What it returned, at its end: variables are read now.
        function: The function, for messages.

    Raises:
        TypeError: A leaf is nothing that becomes a tensor.
    """
    if structure is None or isinstance(structure, Tensor):  # The usual cases.
        return structure

    def converted(part: Any) -> Any:
        return _as_tensor(part, function)

    return _nest.map_structure(lambda leaf: with_parts(leaf, converted), structure)


def _as_tensor(value: Any, function: Callable[..., Any]) -> Any:
    if value is None or isinstance(value, Tensor) or has_parts(value):
        return value
    if isinstance(value, UnknownShape) and not value.is_known:
        return value
    if is_tensor(value):
        return adopt(value, None)
    if isinstance(value, bool | int | float | np.ndarray | np.generic):
        try:
            return constant(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise _refused(value, function, f": {error}") from error
    raise _refused(value, function, ". Return only numbers and tensors.")


def _refused(value: Any, function: Callable[..., Any], why: str) -> TypeError:
    return TypeError(
        "To be compatible with mr.function, Python functions must return zero or more Tensors or "
        f"ExtensionTypes or None values; in compilation of {function!r}, found return value of "
        f"type {type(value).__name__}, which is not a Tensor or ExtensionType. Received: "
        f"{value!r:.100}{why}"
    )


class Results:
    """The structure that a function returned, with recorded tensors for leaves.

    Args:
        structure: What it returned.
        is_recorded: Whether a part is a recorded tensor.

    Attributes:
        structure: What the function returned.
        parts: The recorded tensors in it.
    """

    def __init__(self, structure: Any, is_recorded: Callable[[Any], bool]) -> None:
        self.structure = structure
        self._is_recorded = is_recorded
        self._alone = is_recorded(structure)
        self.parts = [part for part in _parts_of(structure) if is_recorded(part)]

    def with_tensors(self, tensors: list[Tensor]) -> Any:
        """Return the structure with these tensors in the places of the recorded ones."""
        if self._alone:
            return tensors[0]
        remaining = iter(tensors)

        def taken(part: Any) -> Any:
            if isinstance(part, UnknownShape):
                return part.value()
            return next(remaining) if self._is_recorded(part) else part

        return _nest.map_structure(lambda leaf: with_parts(leaf, taken), self.structure)


def _parts_of(result: Any) -> Iterator[Any]:
    for leaf in _nest.flatten(result):
        if has_parts(leaf):
            for part in leaf.values:
                if has_parts(part):
                    raise InvalidArgumentError(
                        "A per-replica value that a recorded function returns must consist of "
                        "tensors. Received: a per-replica value of per-replica values: "
                        f"{leaf!r:.200}. Return the tensors that the replicas compute from it."
                    )
                yield part
        else:
            yield leaf
