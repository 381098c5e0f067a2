"""From what a checkpoint holds to the state of a program's objects: all of it, or nothing.

Whatever can fail is done before the first value is written: all is compared, and all is allocated.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirrored._interrupt import InterruptGuard
from mirrored.ops.random import GlobalState, restore_global_state
from mirrored.ops.recording import variable_writes
from mirrored.optim import Optimizer
from mirrored.training.checkpoint_parts import GLOBAL_STATE, Part, named_slots, slot_key
from mirrored.training.weights_file import CHECKPOINT, Specs, differences, raise_differences
from mirrored.variables import Variable

_GENERATOR_SPEC: tuple[tuple[int, ...], str] = ((2,), "int64")


@dataclass(frozen=True, slots=True)
class Matches:
    """Which objects and which values of a file belong together.

    Attributes:
        parts: The objects that the file has a state of, each with the variables that its slots
            are for.
        missing: The places of objects that the file has nothing of.
        unused: The names of values in the file that no object has.
    """

    parts: list[tuple[Part, list[Variable]]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


def match(name: str, parts: list[Part], tensors: Mapping[str, np.ndarray]) -> Matches:
    """Find out which objects a file has a state of; nothing is changed.

    Args:
        name: The file.
        parts: The objects.
        tensors: What is in the file.

    Raises:
        WeightsFileError: The file has a part of an object's state, more than that, or values of
            other shapes and dtypes.
    """
    specs = {key: (each.shape, each.dtype.name) for key, each in tensors.items()}
    left = {key: spec for key, spec in specs.items() if key != GLOBAL_STATE}
    matches = Matches()
    problems: list[str] = []
    for part in parts:
        found = {key: spec for key, spec in left.items() if part.claims(key)}
        own = _own_specs(part)
        if own and not found:
            matches.missing.append(part.name)
            continue
        slots, variables = _slots_in_file(part, parts, found)
        problems += differences(found, {**own, **slots}, CHECKPOINT)
        matches.parts.append((part, variables))
        for key in found:
            del left[key]
    raise_differences(name, problems, CHECKPOINT)
    matches.unused.extend(sorted(left))
    return matches


def restore(matches: Matches, parts: list[Part], tensors: Mapping[str, np.ndarray]) -> None:
    """Give objects their state from a file, on every replica; all of them or none.

    Slots that the file has none of are as they were before the first step.

    Args:
        matches: What `match` returned.
        parts: All objects of the checkpoint.
        tensors: What is in the file.

    Raises:
        ValueError: An optimizer was made in another strategy's scope than the model.
        ResourceExhaustedError: A device has no room for the new values beside the old ones.
    """
    optimizers = [each.optimizer for each, _ in matches.parts if each.optimizer is not None]
    with variable_writes, _slots_undone_on_failure(optimizers):
        values: dict[str, tuple[Variable, np.ndarray]] = {}
        for part, variables in matches.parts:
            if part.optimizer is not None:
                part.optimizer.build(variables)
            values |= {key: (each, tensors[key]) for key, each in part.variables.items()}
            for key, slot in named_slots(part, parts).items():
                initial = np.zeros(slot.shape, slot.dtype)
                values[key] = (slot, tensors.get(key, initial))
        prepared = [
            pair for each, array in values.values() for pair in each.prepare("assign", array)
        ]
        with InterruptGuard(whole=True):  # Half of the state would be none.
            for copy, value in prepared:
                copy.commit(value)
            for part, _ in matches.parts:
                for key, generator in part.generators.items():
                    generator.restore(_as_words(tensors[key]))
            seed, draws, *pairs = _as_words(tensors[GLOBAL_STATE])
            by_seed = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            restore_global_state(GlobalState(seed, draws, by_seed))


def _own_specs(part: Part) -> Specs:
    """Return the shapes and dtypes of a part's values, but for an optimizer's slots."""
    variables = {key: (each.shape, each.dtype.name) for key, each in part.variables.items()}
    return {**variables, **dict.fromkeys(part.generators, _GENERATOR_SPEC)}


def _slots_in_file(part: Part, parts: Iterable[Part], found: Specs) -> tuple[Specs, list[Variable]]:
    """Return shapes and dtypes of the slots that a file has, and the variables they are for."""
    specs: Specs = {}
    variables: list[Variable] = []
    if part.optimizer is not None:
        for other in parts:
            for key, variable in other.variables.items():
                keys = [slot_key(part, key, name) for name in part.optimizer.slot_names]
                if any(each in found for each in keys):
                    specs |= dict.fromkeys(keys, (variable.shape, variable.dtype.name))
                    variables.append(variable)
    return specs, variables


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
