"""Compares the copies of mirrored variables: of one process by their bits, of workers by hashes.

A copy that was written alone, or that a device computed wrong, differs from then on.
"""

import gc
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest
from mirrored._numbers import counted
from mirrored.distribute.context import check_cross_replica
from mirrored.distribute.distributed_variables import MirroredVariable, mirrored_by, same_bits
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.errors import ReplicasDifferError
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.tensor import is_readable, shared
from mirrored.program.variable_access import variable_writes
from mirrored.variables import Variable

_WHAT = "a check of replicas"  # As errors of workers call it.
_LISTED = 5


def check_context() -> None:
    """Raise RuntimeError in a replica, and where a function is being recorded."""
    text = "Copies are compared outside of replicas. Received: a call %s. Make the call outside it."
    check_cross_replica(text % "inside a replica, from the function that strategy.run calls")
    if active_recorder() is not None:
        raise RuntimeError(text % "while a function was being recorded")


def compare_copies(strategy: StrategyBase, variables: Any, step: int | None) -> None:
    """Raise ReplicasDifferError if copies of a mirrored variable differ; all workers call it.

    Args:
        strategy: The strategy.
        variables: A structure of variables, of which the mirrored ones are compared. None: all
            mirrored variables of the strategy.
        step: The number of the step, for the error.
    """
    if variables is None:
        if strategy.is_shared:
            gc.collect()  # Workers may have kept different variables that nobody uses.
        chosen = mirrored_by(strategy)
    else:
        chosen = list(_mirrored_in(variables, strategy))
    specs = [f"{v.name!r} of shape {tuple(v.shape)} and dtype {v.dtype.name}" for v in chosen]
    strategy.check_alike({"variables": specs}, _WHAT)
    own = [_values(variable, strategy.is_shared) for variable in chosen]
    by_variable = zip(*strategy.of_each_worker(own, _WHAT), strict=True)
    differing = [
        (spec, variable.name, values)
        for spec, variable, values in zip(specs, chosen, by_variable, strict=True)
        if len(set().union(*values)) > 1
    ]
    if differing:
        spec, name, values = differing[0]
        count = f"the first of {counted(len(differing), 'variable')} that differ"
        received = f"{spec}, {count}" if len(differing) > 1 else spec
        raise _error(_replicas(strategy, values), name, received, step)


def _mirrored_in(variables: Any, strategy: StrategyBase) -> Iterator[MirroredVariable]:
    """Yield the mirrored variables of a structure once each."""
    for variable in {id(leaf): leaf for leaf in _nest.flatten(variables)}.values():
        if not isinstance(variable, Variable):
            raise TypeError(
                "`variables` must be a variable, or a list, tuple or dict of variables. Received: "
                f"{variable!r:.200} of type {type(variable).__name__}."
            )
        if isinstance(variable, MirroredVariable):
            if not strategy.owns(variable):
                raise ValueError(
                    f"The variable {variable.name!r} belongs to another strategy. Received: "
                    f"{variable.strategy}, and {strategy} checks. Call the other strategy's "
                    "`check_replicas`."
                )
            yield variable


def _values(variable: MirroredVariable, hashed: bool) -> list[Hashable]:
    """Return for each copy what equals that of another copy if the bits do.

    Args:
        variable: The variable.
        hashed: Whether they are compared with those of other processes too.
    """
    different: list[NDArray[Any]] = []
    numbers: list[int] = []
    with only(), variable_writes:
        for copy in variable.copies:
            tensor = copy._view()
            array = shared(tensor) if is_readable(tensor) else np.asarray(tensor.numpy())
            known = (i for i, other in enumerate(different) if same_bits(array, other))
            number = next(known, len(different))
            if number == len(different):
                different.append(array)
            numbers.append(number)
        if not hashed:
            return [*numbers]
        blocks = [np.ascontiguousarray(array).view(np.uint8) for array in different]
        hashes = [sha256(block.data).hexdigest() for block in blocks]
        return [hashes[number] for number in numbers]


class _Replica(NamedTuple):
    """A replica of any worker, its place, and what `_values` says of its copy."""

    number: int
    device: str
    worker: int
    value: Hashable


def _replicas(strategy: StrategyBase, values: Sequence[Sequence[Hashable]]) -> list[_Replica]:
    """Return the replicas of all workers, given the values of each worker's copies."""
    own = [
        (strategy.first_replica + replica, strategy.variable_devices[copy].short_name, copy)
        for replica, copy in enumerate(strategy.copy_numbers)
    ]
    return [
        _Replica(number, device, worker, values[worker][copy])
        for worker, replicas in enumerate(strategy.of_each_worker(own, _WHAT))
        for number, device, copy in replicas
    ]


def _error(
    replicas: list[_Replica], name: str, received: str, step: int | None
) -> ReplicasDifferError:
    """Return the error, given the replicas of all workers."""
    usual, _ = Counter(replica.value for replica in replicas).most_common(1)[0]
    wrong = [replica for replica in replicas if replica.value != usual]
    other = next(replica for replica in replicas if replica.value == usual)
    several = replicas[-1].worker > 0
    shown = [
        f"replica {replica.number} ({replica.device}"
        f"{f' of worker {replica.worker}' if several else ''})"
        for replica in [*wrong[:_LISTED], other]
    ]
    more = f" and {len(wrong) - _LISTED} more" if len(wrong) > _LISTED else ""
    when = "" if step is None else f", after step {step}"
    return ReplicasDifferError(
        f"The copies of a mirrored variable must have the same bits. Received: {received}, with "
        f"another value on {', '.join(shown[:-1])}{more} than on {shown[-1]}{when}. "
        "Restore an earlier checkpoint. Assign values to the variable, not to its copies. If no "
        "code does that, a device may compute wrong: run `mirrored selftest`.",
        variable=name,
        replicas=[replica.number for replica in wrong],
        devices=[replica.device for replica in wrong],
        workers=[replica.worker for replica in wrong],
        step=step,
    )
