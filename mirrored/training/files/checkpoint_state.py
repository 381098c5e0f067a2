"""The state of a program's objects by name, as it is written to a checkpoint.

Names follow from where an object is, never from what it is called, nor from the number of replicas.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrored.data.dataset_iterators import PositionedIterator
from mirrored.layers import Layer
from mirrored.layers.layer import unbuilt, walk
from mirrored.layers.weights import find
from mirrored.ops.random import SeedGenerator, global_state
from mirrored.optim import Optimizer
from mirrored.training.files.tensor_tree import (
    as_integers,
    leaf_name,
    named_by_place,
    named_weights,
    place,
)
from mirrored.training.metrics import Metric
from mirrored.training.model_state import is_model
from mirrored.variables import Generator, Module, Variable
from mirrored.variables.generator import SeedGenerator as SeedVariable
from mirrored.variables.tracking import Tracker, Watched

GLOBAL_STATE = "global_random_state"  # The name in the file.
ROOT = "root"  # Whose attributes are named as if they were the checkpoint's own.
_STATES: tuple[type[Any], ...] = (Generator, SeedVariable)  # Whose state is a variable.
_KINDS = (Variable, Layer, Optimizer, Metric, SeedGenerator, *_STATES, PositionedIterator)

# What has a state that is a few numbers: a stream of random ones, an iterator over a dataset.
Stateful = SeedGenerator | PositionedIterator


class AutoTrackable(Watched):
    """An object whose public attributes are in a checkpoint."""

    def held(self) -> dict[str, Any]:
        """Return the attributes by name, in the order of their names."""
        attributes = vars(self)
        return {name: attributes[name] for name in sorted(attributes) if name[0] != "_"}


_TRACKED = (*_KINDS, AutoTrackable, Module)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One object of a checkpoint: a file has all of its state, or nothing of it.

    Attributes:
        name: The object's place in the checkpoint; in the file its names begin so.
        objects: Its variables, but for an optimizer's slots, its streams of random numbers, and
            iterators, by name in the file.
        optimizer: The optimizer that it is; None for other objects.
        is_whole: Whether it has all that it is to have; else layers in it are still to be built.
    """

    name: str
    objects: dict[str, Variable | Stateful]
    optimizer: Optimizer | None = None
    is_whole: bool = True

    @property
    def variables(self) -> dict[str, Variable]:
        """The variables by name in the file."""
        return {key: item for key, item in self.objects.items() if isinstance(item, Variable)}

    def claims(self, key: str) -> bool:
        """Return whether a name in a file is one of this part's; slots are their variables'."""
        if self.optimizer is not None and key.startswith(slot_key(self, "", "").rstrip("/")):
            return False
        return key == self.name or key.startswith(f"{self.name}/")


def check_kinds(values: Mapping[str, Any]) -> None:
    """Raise ValueError where something has no state that a checkpoint could hold."""
    root = {ROOT: values[ROOT]} if ROOT in values else {}
    named = root if not isinstance(root.get(ROOT), _TRACKED) else {}
    for name, value in (*named.items(), *_objects(values)):
        if not isinstance(value, _KINDS):
            raise ValueError(
                f"`Checkpoint` was expecting {name} to be a trackable object, got {value!r:.200}. "
                "Trackable objects are models, layers, modules, optimizers, variables, metrics, "
                "seed generators, iterators over datasets, other checkpoints, and lists, tuples "
                "and dicts of them. For a number, use a variable: mr.Variable(5)."
            )


def build_optimizers(values: Mapping[str, Any]) -> None:
    """Let optimizers make what their own `build` makes, so that it can be restored."""
    check_kinds(values)
    objects = [value for _, value in _objects(values)]
    layers = [layer for layer in objects if isinstance(layer, Layer) and not unbuilt(layer)]
    trained = {id(v): v for layer in layers for v in layer.trainable_variables}
    for owner in objects:
        owned = owner.optimizer if is_model(owner) else None
        optimizer = owner if isinstance(owner, Optimizer) else owned
        if optimizer is not None and optimizer.slots.builds_once and trained:
            own = owner.trainable_variables if optimizer is owned else list(trained.values())
            optimizer.slots.build_for((), own)


def find_parts(values: Mapping[str, Any], *, some: bool = False) -> list[Part]:
    """Return the parts of a checkpoint; an object that is there twice has a name in each place.

    Args:
        values: The objects by name.
        some: Whether layers that are not built yet have the variables that are there already.

    Raises:
        ValueError: A layer is not built, and all variables are needed.
    """
    check_kinds(values)
    objects = list(_objects(values))
    listed_ids = {id(value) for _, value in objects if isinstance(value, Optimizer)}
    parts = [part for name, value in objects for part in _parts_of(name, value, listed_ids, some)]
    _check_names_differ(parts)
    known = {id(variable) for part in parts for variable in part.variables.values()}
    return [_with_slots_by_place(part, known) for part in parts]


def _with_slots_by_place(part: Part, known: set[int]) -> Part:
    """Return an optimizer's part with its slots, where the checkpoint has none of its variables.

    They are named by the places of their variables in the optimizer, as there is no other name.
    """
    optimizer = part.optimizer
    slots = () if optimizer is None else optimizer.slots.snapshot().values()
    if optimizer is None or any(id(variable) in known for variable, _ in slots):
        return part
    named = {
        f"{part.name}/alone/{number}/{name}": slot
        for number, (variable, variable_slots) in enumerate(slots)
        for name, slot in zip(optimizer.slots.names(variable), variable_slots, strict=True)
    }
    return replace(part, objects={**part.objects, **named})


def slot_key(part: Part, variable_key: str, slot_name: str) -> str:
    """Return the name in the file of an optimizer's slot."""
    return f"{part.name}/slots/{variable_key}/{slot_name}"


def named_slots(part: Part, parts: Iterable[Part]) -> dict[str, Variable]:
    """Return the slots that an optimizer has, by all their names; none for other parts."""
    if part.optimizer is None:
        return {}
    keys: dict[int, list[str]] = {}
    for other in parts:
        for key, other_variable in other.variables.items():
            keys.setdefault(id(other_variable), []).append(key)
    named = {}
    own = {id(own_variable) for own_variable in part.variables.values()}
    for variable, slots in part.optimizer.slots.snapshot().values():
        if slots and id(slots[0]) in own:
            continue
        if id(variable) not in keys:
            raise ValueError(
                f"The optimizer {part.name!r} keeps {part.optimizer.slots.names(variable)} for "
                f"the variable {variable.name!r}, which is not in the checkpoint. Pass the model "
                "to the checkpoint too, as in mr.train.Checkpoint(model=model, "
                "optimizer=optimizer)."
            )
        names = part.optimizer.slots.names(variable)
        for key in keys[id(variable)]:
            for slot_name, slot in zip(names, slots, strict=True):
                named[slot_key(part, key, slot_name)] = slot
    return named


def trackers(value: Any, seen: set[int] | None = None) -> Iterator[Tracker]:
    """Yield the trackers that notice when objects of a checkpoint get more parts.

    Args:
        value: An object of the checkpoint, or the checkpoint.
        seen: The identities of objects that were looked at.
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Layer):
        yield from (layer.__tracker__ for layer in walk(value))
    elif isinstance(value, Metric):
        yield value.__tracker__
    elif isinstance(value, Watched):
        attributes = vars(value)
        if value.__tracker__ is None:
            tracker = attributes["__tracker__"] = Tracker()
            if isinstance(value, Module):  # A checkpoint is given lists that others keep.
                for name, attribute in [*attributes.items()]:
                    attributes[name] = tracker.track(attribute)
        yield attributes["__tracker__"]
        for item in [*attributes.values()]:
            yield from trackers(item, seen)
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from trackers(item, seen)


def collect(parts: list[Part]) -> tuple[dict[str, Variable | np.ndarray], dict[str, str]]:
    """Return the whole state of all parts and of the global random streams, each value once.

    Returns:
        Variables and arrays by name in the file; and the other names of these, each with the name
        in the file.
    """
    tensors: dict[str, Variable | np.ndarray] = {}
    aliases: dict[str, str] = {}
    names: dict[int, str] = {}
    named: list[Mapping[str, Variable | Stateful]] = [
        *(part.variables for part in parts),
        *(named_slots(part, parts) for part in parts),
        *(part.objects for part in parts),
    ]
    for key, item in (pair for pairs in named for pair in pairs.items()):
        first = names.setdefault(id(item), key)
        if first != key:
            aliases[key] = first
        elif key not in tensors:
            tensors[key] = item if isinstance(item, Variable) else as_integers(item.state)
    seed, draws, draws_by_seed = global_state()
    pairs = [number for pair in draws_by_seed for number in pair]
    tensors[GLOBAL_STATE] = as_integers((seed, draws, *pairs))
    return tensors, aliases


def _objects(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    root = values.get(ROOT)
    if isinstance(root, Module):  # What is in it has the names that it has there.
        yield from _walk("", _inner(ROOT, root) or {}, (root,))
        values = {name: value for name, value in values.items() if name != ROOT}
    yield from _walk("", values, ())


def _walk(
    prefix: str, values: Mapping[str, Any], around: tuple[Any, ...]
) -> Iterator[tuple[str, Any]]:
    """Yield the objects in a mapping by name; of a module only those that have a state."""
    in_module = any(isinstance(container, Module) for container in around)
    for key, value in values.items():
        name = f"{prefix}{key}"
        if in_module and not find([value], _TRACKED):
            continue
        inner = _inner(name, value)
        if inner is None:
            yield name, value
        elif not any(value is container for container in around):  # A container may hold itself.
            yield from _walk(f"{name}/", inner, (*around, value))


def _inner(name: str, value: Any) -> Mapping[str, Any] | None:
    """Return the items of a container by name; None for a value that is no container."""
    if isinstance(value, AutoTrackable):
        return value.held()
    if isinstance(value, Module):
        return dict(sorted(vars(value).items()))
    if isinstance(value, list | tuple):
        return {str(i): item for i, item in enumerate(value)}
    if isinstance(value, dict):
        strange = [key for key in value if not isinstance(key, str)]
        if strange:
            raise ValueError(
                "Keys of a dict in a checkpoint must be strings, because they become names in "
                f"the file. Received: {name} with the key {strange[0]!r}."
            )
        return {key: value[key] for key in sorted(value)}
    return None


def _parts_of(name: str, value: Any, listed_ids: set[int], some: bool) -> list[Part]:
    """Return an object's part, and a model's optimizer's unless it is given by itself."""
    if isinstance(value, Variable | SeedGenerator | PositionedIterator):
        return [Part(name, {name: value})]
    if isinstance(value, _STATES):
        return [Part(name, {name: value.state})]
    if isinstance(value, Optimizer):
        return [_of_optimizer(name, value)]
    if isinstance(value, Metric):
        return [Part(name, _named(name, value.variables))]
    parts = [_of_layer(name, value, some)]
    optimizer = value.optimizer if is_model(value) else None
    # As in TensorFlow, a model that is compiled brings its optimizer with it.
    if optimizer is not None and id(optimizer) not in listed_ids:
        parts.append(_of_optimizer(f"{name}.optimizer", optimizer))
    return parts


def _of_optimizer(name: str, optimizer: Optimizer) -> Part:
    slots = {id(slot) for _, slots in optimizer.slots.snapshot().values() for slot in slots}
    own = [variable for variable in optimizer.variables if id(variable) not in slots]
    return Part(name, _named(name, own), optimizer)


def _of_layer(name: str, layer: Layer, some: bool) -> Part:
    is_whole = not unbuilt(layer)
    if not (is_whole or some):
        raise ValueError(
            f"The checkpoint's {name} is a model that has not yet been built, {layer.name!r}, so "
            "it has no weights to save. Build the model first, by calling it on some data or by "
            "using `build()`."
        )
    layers = list(walk(layer))
    if not is_whole:  # Names of later layers are not known: an unbuilt one may make some.
        layers = list(itertools.takewhile(lambda inner: inner.built, layers))
    streams: list[tuple[str, Any]] = []
    for index, inner in enumerate(layers):
        prefix, values = f"{name}/{place(index, inner)}", vars(inner).values()
        for kind in _STATES:
            streams += [(f"{prefix}.generator", held.state) for held in find(values, kind)]
        streams += [(f"{prefix}.seed_generator", held) for held in find(values, SeedGenerator)]
    weights = {f"{name}/{key}": weight for key, weight in named_weights(layers).items()}
    return Part(name, {**weights, **named_by_place(streams)}, is_whole=is_whole)


def _named(name: str, variables: Iterable[Variable]) -> dict[str, Variable | Stateful]:
    return named_by_place((f"{name}/{leaf_name(variable)}", variable) for variable in variables)


def _check_names_differ(parts: list[Part]) -> None:
    taken: dict[str, Any] = {GLOBAL_STATE: None}
    for part in parts:
        for key, item in part.objects.items():
            if taken.setdefault(key, item) is not item:
                raise ValueError(
                    "Two values of a checkpoint have the same name in the file. Received: "
                    f"{key!r} twice. Rename one of them, and leave slashes out of the keys of "
                    "dicts."
                )
