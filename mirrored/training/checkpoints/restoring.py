"""A checkpoint's file beside a program's objects: what of it is whose, and how they get it.

All state is set, or none: whatever can fail is done before the first value is written.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirrored.data.pipeline import DatasetIterator
from mirrored.errors import WeightsFileError
from mirrored.ops.random import GlobalState, restore_global_state
from mirrored.optim import Optimizer
from mirrored.program.variable_access import variable_writes
from mirrored.training.checkpoints.state import GLOBAL_STATE, Part, Stateful, named_slots, slot_key
from mirrored.training.files.tensor_file import (
    CHECKPOINT,
    Spec,
    Specs,
    differences,
    raise_differences,
)
from mirrored.variables import Variable
from mirrored.variables.together import assigned_together


@dataclass(frozen=True, slots=True)
class Matches:
    """Which objects and which values of a file belong together.

    Attributes:
        places: The names of the file's tensors by all names that the values have.
        sources: The name that a variable or stream is restored by, by its identity.
        parts: The objects that the file has a state of, each with the variables that its slots
            are for.
        slots: The names of the optimizers' slots that the file has.
        used: The names of the tensors that the objects are restored from.
        missing: The places of objects that the file has nothing of.
        unused: The names of values in the file that no object has.
    """

    places: dict[str, str]
    sources: dict[int, str]
    parts: list[tuple[Part, list[Variable]]] = field(default_factory=list)
    slots: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=lambda: {GLOBAL_STATE})
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def tensor_of(self, each: Variable | Stateful) -> str:
        """Return the name of the tensor that an object is restored from."""
        return self.places[self.sources[id(each)]]


def match(name: str, parts: list[Part], specs: Specs, aliases: Mapping[str, Any]) -> Matches:
    """Find out which objects a file has a state of; nothing is changed, and no tensor is read."""
    problems = _problems_of_file(specs, aliases)
    raise_differences(name, problems, CHECKPOINT)
    places = {key: key for key in specs if key != GLOBAL_STATE} | dict(aliases)
    matches = Matches(places, _sources(parts, places))
    matches.used.update(places[key] for key in matches.sources.values())
    left = specs.keys() - {GLOBAL_STATE}
    for part in parts:
        found, own = {}, {}
        for key, each in part.objects.items():
            has_source = id(each) in matches.sources
            if key in places and has_source:
                found[key] = specs[places[key]]
            if key in places or not has_source:  # Otherwise the file has it under another name.
                own[key] = _spec_of(each)
        slots, variables = _slots_in_file(part, parts, matches)
        matches.slots.update(key for key in slots if key in places)
        matches.used.update(places[key] for key in slots if key in places)
        found |= {key: specs[places[key]] for key in slots if key in places}
        found |= {key: specs[key] for key in left - matches.used if part.claims(key)}
        if own and not found:
            matches.missing.append(part.name)
            continue
        problems += differences(found, {**own, **slots}, CHECKPOINT)
        matches.parts.append((part, variables))
        left = left - found.keys()
    raise_differences(name, problems, CHECKPOINT)
    matches.unused.extend(sorted(specs.keys() - matches.used))
    return matches


def restore(matches: Matches, parts: list[Part], tensors: Mapping[str, np.ndarray]) -> None:
    """Give objects their state from a file, on every replica; all of them or none.

    Slots that the file has none of are as they were before the first step.
    """
    optimizers = [each.optimizer for each, _ in matches.parts if each.optimizer is not None]
    with variable_writes, _slots_undone_on_failure(optimizers):
        for part, variables in matches.parts:
            if part.optimizer is not None:
                part.optimizer.build(variables)
        values = [*_values(matches, parts, tensors)]
        states = [(each, _as_words(array)) for each, array in _states(matches, parts, tensors)]
        for each, words in states:
            _check_position(each, words)
        with assigned_together(values):
            for each, words in states:
                each.restore(words)
            seed, draws, *pairs = _as_words(tensors[GLOBAL_STATE])
            by_seed = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            restore_global_state(GlobalState(seed, draws, by_seed))


def _check_position(each: Stateful, words: list[int]) -> None:
    """Raise WeightsFileError where an iterator was saved over another dataset."""
    if isinstance(each, DatasetIterator):
        try:
            each.check(words)
        except ValueError as error:
            raise WeightsFileError(str(error)) from None


def _values(
    matches: Matches, parts: list[Part], tensors: Mapping[str, np.ndarray]
) -> Iterable[tuple[Variable, np.ndarray]]:
    """Return what variables and slots get."""
    values: dict[int, tuple[Variable, np.ndarray]] = {}
    for part in parts:
        for each in part.variables.values():
            if id(each) in matches.sources:
                values[id(each)] = each, tensors[matches.tensor_of(each)]
    for part, _ in matches.parts:
        for key, slot in named_slots(part, parts).items():
            if key in matches.slots:
                values[id(slot)] = slot, tensors[matches.places[key]]
            else:  # Unless it has another name.
                values.setdefault(id(slot), (slot, np.zeros(slot.shape, slot.dtype)))
    return values.values()


def _states(
    matches: Matches, parts: list[Part], tensors: Mapping[str, np.ndarray]
) -> Iterator[tuple[Stateful, np.ndarray]]:
    """Yield what streams of random numbers get."""
    for part in parts:
        for each in part.generators.values():
            if id(each) in matches.sources:
                yield each, tensors[matches.tensor_of(each)]


def _problems_of_file(specs: Specs, aliases: Mapping[str, Any]) -> list[str]:
    """Return what no file has that was written here, whatever the program was."""
    shape, dtype = specs.get(GLOBAL_STATE, ((), ""))
    problems = []
    if dtype != "int64" or len(shape) != 1 or shape[0] < 2 or shape[0] % 2:
        problems.append(f"no state of random numbers as {GLOBAL_STATE!r}")
    for key, source in aliases.items():
        if key in specs or not isinstance(source, str) or source not in specs:
            problems.append(f"{key!r:.100} cannot be another name of {source!r:.100}")
    return problems


def _sources(parts: Iterable[Part], places: Mapping[str, str]) -> dict[int, str]:
    """Return the name that each object is restored by: the first of its names in the file.

    As in TensorFlow, a value of the file is one object's: that which has it first.
    """
    sources: dict[int, str] = {}
    owners: set[str] = set()
    for part in parts:
        for key, each in part.objects.items():
            if key in places and id(each) not in sources and places[key] not in owners:
                owners.add(places[key])
                sources[id(each)] = key
    return sources


def _spec_of(each: Variable | Stateful) -> Spec:
    if isinstance(each, Variable):
        return each.shape, each.dtype.name
    return (len(each.state),), "int64"


def _slots_in_file(
    part: Part, parts: Iterable[Part], matches: Matches
) -> tuple[Specs, list[Variable]]:
    """Return shapes and dtypes of the slots that a file has, and the variables they are for."""
    specs: Specs = {}
    variables: dict[int, Variable] = {}
    if part.optimizer is not None:
        start = slot_key(part, "", "").removesuffix("/")
        there = {key.rpartition("/")[0] for key in matches.places if key.startswith(start)}
        for other in parts:
            for key, variable in other.variables.items():
                if f"{start}{key}" not in there or id(variable) not in matches.sources:
                    continue
                for name in part.optimizer.kept_names(variable):
                    shape = part.optimizer.kept_shape(variable, name)
                    specs[slot_key(part, key, name)] = shape, variable.dtype.name
                variables[id(variable)] = variable
    return specs, list(variables.values())


@contextmanager
def _slots_undone_on_failure(optimizers: Iterable[Optimizer]) -> Iterator[None]:
    known: list[tuple[Optimizer, Any]] = [(each, each.slots()) for each in optimizers]
    try:
        yield
    except BaseException:
        for optimizer, slots in known:
            optimizer.restore_slots(slots)
        raise


def _as_words(integers: np.ndarray) -> list[int]:
    """Return the numbers from 0 to 2**64 - 1 that int64 holds."""
    words: list[int] = integers.view(np.uint64).tolist()
    return words
