"""Restores objects from a checkpoint: matches them with its tensors, now and when they get more.

All state is set, or none: whatever can fail is done before the first value is written.
"""

import weakref
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._logging import logger
from mirrored.data.dataset_iterators import PositionedIterator
from mirrored.distribute import get_strategy
from mirrored.distribute.context import enter
from mirrored.errors import WeightsFileError
from mirrored.ops.hooks import only, recorded_by
from mirrored.ops.random import GlobalState, restore_global_state
from mirrored.program.variable_access import variable_writes
from mirrored.training.files.checkpoint_state import (
    GLOBAL_STATE,
    AutoTrackable,
    Part,
    Stateful,
    build_optimizers,
    find_parts,
    named_slots,
    slot_key,
    trackers,
)
from mirrored.training.files.tensor_file import CHECKPOINT, OpenFile, read_table
from mirrored.training.files.tensor_tree import (
    Spec,
    Specs,
    as_words,
    damaged,
    differences,
    raise_differences,
    slots_undone_on_failure,
)
from mirrored.variables import Variable
from mirrored.variables.device_variable import undone
from mirrored.variables.variable import assigned_together

ALIASES = "aliases"  # In the metadata: the other names of values, each with the tensor's.
_LISTED = 5


class Restoration:
    """Restores the objects of a checkpoint, now and when they get more variables.

    Where nobody has asked about it, a warning tells at its end what was left over.

    Args:
        owner: The checkpoint.
        file: The file. It stays open as long as it has values that no object has got.
        opened: What closes the file.

    Attributes:
        name: What messages call the file.
        missing: The places of objects that it has nothing of.
        unused: The names of values in it that no object has got.
    """

    def __init__(self, owner: AutoTrackable, file: OpenFile, opened: ExitStack) -> None:
        self.name = file.name
        self.missing: list[str] = []
        self.unused: list[str] = []
        self._owner = owner
        self._file = file
        self._opened = opened
        self._aliases = read_table(file.noun, file.texts.get(ALIASES, "{}"), "names")
        self._restored = Restored()
        self._is_running = False
        self._warning = weakref.finalize(self, _warn_of_rest, self.name, self.missing, self.unused)

    @property
    def objects(self) -> list[object]:
        """The variables, streams and optimizers that were restored."""
        return list(self._restored.objects.values())

    def go_on(self) -> None:
        """Restore the objects that have come, and look which ones the file has nothing of.

        A model that is being built on zeros waits for the end, since its writes are taken back.

        Raises:
            WeightsFileError: One does not fit. Nothing is restored then, now or later.
        """
        trial = undone()
        if self._is_running or (trial is not None and trial.is_trial):
            return
        self._is_running = True
        try:
            # A replica restores for all; and a function that is being recorded has no part in it.
            with enter(get_strategy(), None), recorded_by(None), only():
                self._restore()
        except BaseException:
            self.silence()
            self._listen(False)
            raise
        finally:
            self._is_running = False
        self._listen(bool(self.unused))

    def silence(self) -> None:
        """Give no warning of what is left over."""
        self._warning.detach()

    def _restore(self) -> None:
        values = self._owner.held()
        build_optimizers(values)
        parts = find_parts(values, some=True)
        matches = match(self._file.noun, parts, self._file.specs, self._aliases, self._restored)
        first = set() if self._restored.tensors else {GLOBAL_STATE}
        if matches.used or first:
            tensors = dict(self._file.read(matches.used | first))
            restore(matches, parts, tensors, self._restored)
        self._restored.tensors |= first
        self.missing[:], self.unused[:] = matches.missing, matches.unused

    def _listen(self, more: bool) -> None:
        """Have objects notify this of their new parts; or no longer."""
        for tracker in trackers(self._owner):
            if more:
                tracker.notify = self.go_on
            elif tracker.notify == self.go_on:
                tracker.notify = None
        if not more:
            self._opened.close()


def _warn_of_rest(path: str, missing: list[str], unused: list[str]) -> None:
    for text, names in (
        ("no values for %s, which keep their values. Call `expect_partial()`", missing),
        ("values that were not restored: %s. Call `expect_partial()`", unused),
    ):
        if names:
            ending = "on the result of `restore` if this is intended."
            logger.warning(f"The checkpoint %r has {text} {ending}", path, few(names))


def few(names: list[str]) -> str:
    """Return the first names, and how many more there are.

    Args:
        names: The names.
    """
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(names[:_LISTED])}{more}"


@dataclass(slots=True)
class Restored:
    """What has been restored from a file so far.

    Attributes:
        objects: Variables, streams and optimizers, by identity.
        tensors: The names of the file's tensors.
        names: All names of these that an object has, of which it was restored by one.
    """

    objects: dict[int, Any] = field(default_factory=dict)
    tensors: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Matches:
    """Which objects and which values of a file belong together, beside those restored already.

    Attributes:
        places: The names of the file's tensors by all names that the values have.
        sources: The name that a variable or stream is restored by, by its identity.
        parts: The objects that the file has a state of, each with the variables that its slots
            are for.
        slots: The names of the optimizers' slots that the file has.
        used: The names of the tensors that the objects are restored from.
        names: All names in the file that the objects have.
        missing: The places of objects that the file has nothing of.
        unused: The names of values in the file that no object has.
    """

    places: dict[str, str]
    sources: dict[int, str]
    parts: list[tuple[Part, list[Variable]]] = field(default_factory=list)
    slots: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def tensor_of(self, item: Variable | Stateful) -> str:
        """Return the name of the tensor that an object is restored from."""
        return self.places[self.sources[id(item)]]


def match(
    noun: str,
    parts: list[Part],
    specs: Specs,
    aliases: Mapping[str, Any],
    before: Restored,
) -> Matches:
    """Find out which objects a file has a state of; nothing is changed, and no tensor is read.

    Args:
        noun: What messages call the file.
        parts: The objects.
        specs: Shapes and dtypes of the file's tensors.
        aliases: The other names of these.
        before: What was restored before, which stays as it is.
    """
    problems = _problems_of_file(specs, aliases)
    raise_differences(noun, problems, CHECKPOINT.owner)
    places = {key: key for key in specs if key != GLOBAL_STATE} | dict(aliases)
    matches = Matches(places, _sources(parts, places, before))
    matches.used.update(places[key] for key in matches.sources.values())
    left = specs.keys() - {GLOBAL_STATE} - before.names
    for part in parts:
        file_specs, own = {}, {}
        for key, item in part.objects.items():
            if id(item) in before.objects:
                continue
            has_source = id(item) in matches.sources
            if key in places and has_source:
                file_specs[key] = specs[places[key]]
            if has_source <= (key in places):  # Otherwise the file has it under another name.
                own[key] = _spec_of(item)
        slots, in_file, variables = _slots_in_file(part, parts, matches, before)
        matches.slots.update(in_file)
        matches.used.update(places[key] for key in in_file)
        file_specs |= {key: specs[places[key]] for key in in_file}
        if part.is_whole:
            file_specs |= {key: specs[key] for key in left - matches.used if part.claims(key)}
        if own and not file_specs:
            matches.missing.append(part.name)
            continue
        if not part.is_whole:
            own = {key: spec for key, spec in own.items() if key in file_specs}
        problems += differences(file_specs, {**own, **slots}, CHECKPOINT.owner)
        matches.parts.append((part, variables))
        left = left - file_specs.keys()
        matches.names.update(file_specs)
    raise_differences(noun, problems, CHECKPOINT.owner)
    unused = specs.keys() - matches.used - before.tensors - {GLOBAL_STATE}
    matches.unused.extend(sorted(unused))
    return matches


def restore(
    matches: Matches,
    parts: list[Part],
    tensors: Mapping[str, np.ndarray],
    done: Restored,
) -> None:
    """Give objects their state from a file, on every replica; all of them or none.

    Slots that the file has none of are as they were before the first step.

    Args:
        matches: What `match` returned.
        parts: The objects.
        tensors: The values by name, with those of the global random streams where these are set.
        done: What was restored before; what is restored now is added.
    """
    optimizers = [entry.optimizer for entry, _ in matches.parts if entry.optimizer is not None]
    with variable_writes, slots_undone_on_failure(optimizers):
        for part, variables in matches.parts:
            if part.optimizer is not None:
                part.optimizer.build(variables)
        values = [*_values(matches, parts, tensors, done)]
        items = [item for part in parts for item in part.objects.values()]
        known = [item for item in items if id(item) in matches.sources]
        streams = [item for item in known if not isinstance(item, Variable)]
        states = [(item, as_words(tensors[matches.tensor_of(item)])) for item in streams]
        for stateful, words in states:
            _check_position(stateful, words)
        global_state = _global_state(tensors[GLOBAL_STATE]) if GLOBAL_STATE in tensors else None
        with assigned_together(values):
            for stateful, words in states:
                stateful.restore(words)
            if global_state is not None:
                restore_global_state(global_state)
    done.tensors |= matches.used
    done.names |= matches.names
    done.objects.update((id(item), item) for item in (*known, *optimizers))


def _check_position(stateful: Stateful, words: list[int]) -> None:
    """Raise WeightsFileError where an iterator was saved over another dataset."""
    if isinstance(stateful, PositionedIterator):
        try:
            stateful.check(words)
        except ValueError as error:
            raise WeightsFileError(str(error)) from None


def _global_state(integers: NDArray[Any]) -> GlobalState:
    """Return the state of the global streams; WeightsFileError where it has a seed twice."""
    seed, draws, *pairs = as_words(integers)
    by_seed = dict(zip(pairs[::2], pairs[1::2], strict=True))
    if 2 * len(by_seed) < len(pairs):
        raise damaged("The checkpoint", "corrupt: no state of random numbers has a seed twice")
    return GlobalState(seed, draws, tuple(by_seed.items()))


def _values(
    matches: Matches, parts: list[Part], tensors: Mapping[str, np.ndarray], before: Restored
) -> Iterable[tuple[Variable, np.ndarray]]:
    """Return variables and slots with their new values."""
    values: dict[int, tuple[Variable, np.ndarray]] = {}
    for part in parts:
        for variable in part.variables.values():
            if id(variable) in matches.sources:
                values[id(variable)] = variable, tensors[matches.tensor_of(variable)]
    for part, _ in matches.parts:
        for key, slot in named_slots(part, parts).items():
            if key in matches.slots:
                values[id(slot)] = slot, tensors[matches.places[key]]
            elif id(part.optimizer) not in before.objects:  # Unless it has another name.
                values.setdefault(id(slot), (slot, np.zeros(slot.shape, slot.dtype)))
    return values.values()


def _problems_of_file(specs: Specs, aliases: Mapping[str, Any]) -> list[str]:
    """Return the problems of a file that show that this library did not write it."""
    shape, dtype = specs.get(GLOBAL_STATE, ((), ""))
    problems = []
    if dtype != "int64" or len(shape) != 1 or shape[0] < 2 or shape[0] % 2:
        problems.append(f"no state of random numbers as {GLOBAL_STATE!r}")
    for key, source in aliases.items():
        if key in specs or not isinstance(source, str) or source not in specs:
            problems.append(f"{key!r:.100} cannot be another name of {source!r:.100}")
    return problems


def _sources(parts: Iterable[Part], places: Mapping[str, str], before: Restored) -> dict[int, str]:
    """Return the name that each object is restored by: the first of its names in the file.

    As in TensorFlow, a value of the file is one object's: that which has it first.
    """
    sources: dict[int, str] = {}
    owners = set(before.tensors)
    for part in parts:
        for key, item in part.objects.items():
            if key not in places or places[key] in owners:
                continue
            if id(item) not in sources and id(item) not in before.objects:
                owners.add(places[key])
                sources[id(item)] = key
    return sources


def _spec_of(item: Variable | Stateful) -> Spec:
    if isinstance(item, Variable):
        return item.shape, item.dtype.name
    return (len(item.state),), "int64"


def _slots_in_file(
    part: Part, parts: Iterable[Part], matches: Matches, before: Restored
) -> tuple[Specs, set[str], list[Variable]]:
    """Return the slots that an optimizer is to have, those in the file, and their variables.

    They are those of variables that have their value from the file.
    """
    specs: Specs = {}
    in_file: set[str] = set()
    variables: dict[int, Variable] = {}
    if part.optimizer is not None:
        start = slot_key(part, "", "").removesuffix("/")
        there: dict[str, set[str]] = {}
        for key, tensor in matches.places.items():
            if key.startswith(start) and tensor not in before.tensors:
                there.setdefault(key.rpartition("/")[0], set()).add(key)
        for other in parts:
            for key, variable in other.variables.items():
                has_value = id(variable) in matches.sources or id(variable) in before.objects
                if f"{start}{key}" not in there or not has_value:
                    continue
                in_file |= there[f"{start}{key}"]
                for name in part.optimizer.slots.names(variable):
                    shape = part.optimizer.slots.shape(variable, name)
                    specs[slot_key(part, key, name)] = shape, variable.dtype.name
                variables[id(variable)] = variable
    return specs, in_file, list(variables.values())
