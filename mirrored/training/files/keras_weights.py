"""The state of a model in Keras' layout: each part's variables by their numbers.

All that a file has is compared with the model, and all new values are there, before the first is
written: so a file that does not fit changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from mirrored._logging import warn_caller
from mirrored.errors import WeightsFileError
from mirrored.layers import Layer
from mirrored.layers.layer import own_weights
from mirrored.layers.weights import check_count, shape_problem
from mirrored.optim import Optimizer
from mirrored.optim.optimizer import skipped
from mirrored.program.variable_access import variable_writes
from mirrored.program.variable_creation import Late
from mirrored.training.files.hdf5_file import Hdf5Reader, Hdf5Writer, ReadGroup, to_array
from mirrored.training.files.keras_places import Owner, Place, Stream, places, streams
from mirrored.training.network import Network
from mirrored.variables import Variable
from mirrored.variables.together import assign_together

_LISTED = 20  # Objects named in one error.


class Target(NamedTuple):
    """A variable, and where a file has its value."""

    variable: Variable
    group: ReadGroup
    key: str


class Plan:
    """What a file has for a model.

    Attributes:
        targets: The variables that get a value.
        problems: The parts that do not fit the file, each with why.
        undo: What takes back what parts have loaded by themselves.
        late: What sets variables to their initial values, by identity, where the file has none.
    """

    def __init__(self, late: Iterable[Late] = ()) -> None:
        self.late = {id(variable): start for variable, start in late}
        self.targets: list[Target] = []
        self.problems: list[tuple[Any, Exception]] = []
        self.undo: list[tuple[Owner, list[Any]]] = []


# ---------------------------------------------------------------------------- saving


def save_state(model: Network, writer: Hdf5Writer, *, with_streams: bool) -> None:
    """Write the variables of a model and of its optimizer.

    Args:
        model: The model.
        writer: The file.
        with_streams: Whether random streams are written too, in places of which Keras reads none.
    """
    for place in places(model):
        group = writer.group(place.path, place.owner.name)
        if isinstance(place.owner, Optimizer) and _is_usual(place.owner, "save_own_variables"):
            for number, value in enumerate(_state_of(place.owner, model)):
                group[str(number)] = value
        else:
            place.owner.save_own_variables(group)
        if with_streams:
            for path, stream in streams(place):
                writer.group(path, None)["0"] = _words_of(stream)


def _state_of(optimizer: Optimizer, model: Network) -> list[Variable]:
    """Return an optimizer's variables as Keras has them.

    With slots for all that is trained, whether it got a gradient or not, in the model's order.
    """
    if not optimizer.built:
        return _unbuilt_state(optimizer)
    if optimizer is getattr(model, "optimizer", None):
        optimizer.build(model.trainable_weights)
        places = {id(variable): i for i, variable in enumerate(model.weights)}
        for inner in optimizer.within:
            slots = inner.slots.snapshot().items()
            last = len(places)
            inner.slots.restore(dict(sorted(slots, key=lambda entry: places.get(entry[0], last))))
    return optimizer.variables


def _unbuilt_state(optimizer: Optimizer) -> list[Variable]:
    """Return what Keras' optimizer has before its first step: no slots, nor numbers beside them."""
    slots = [slot for _, own in optimizer.slots.snapshot().values() for slot in own]
    shared = [variable for inner in optimizer.within for variable in inner._shared]
    later = {id(variable) for variable in (*slots, *shared)}
    return [variable for variable in optimizer.variables if id(variable) not in later]


def _is_usual(owner: object, method: str) -> bool:
    """Whether a method is none of a subclass's own."""
    base = Optimizer if isinstance(owner, Optimizer) else Layer
    return getattr(type(owner), method) is getattr(base, method)


def _words_of(stream: Stream) -> Any:
    """Return a stream's state as int64, with the same bits."""
    state = stream.state
    return state if isinstance(state, Variable) else np.array(state, np.uint64).view(np.int64)


# ---------------------------------------------------------------------------- loading


def load_state(
    model: Network,
    reader: Hdf5Reader,
    *,
    skip_mismatch: bool = False,
    skipped_objects: Collection[Any] = (),
    is_new: bool = False,
    late: Iterable[Late] = (),
) -> None:
    """Set the variables of a model and of its optimizer, on every replica.

    Args:
        model: The model.
        reader: The file.
        skip_mismatch: Whether parts that do not fit are left as they are, with a warning.
        skipped_objects: Parts that are left as they are, with all inside them.
        is_new: Whether the model was made for this file. Its random streams are set too, where the
            file has them; and since it is given up on an error, values are not held back.
        late: Variables of a new model that have yet to get their initial values where the file
            has none for them, each with what sets it.

    Raises:
        WeightsFileError: A part does not fit the file, or the file is spoilt. Nothing was changed,
            unless the model is new.
    """
    plan = Plan(late)
    model_places = places(model, skipped_objects)
    with variable_writes, _undone_on_failure(model, plan):
        for place in model_places:
            _plan_part(plan, place, reader.group(place.path), model, is_new)
        if plan.problems:
            text = _problems_text(plan.problems)
            if not skip_mismatch:
                raise WeightsFileError(f"{reader.noun} does not fit the model. {text}")
            warn_caller(text)
        values = ((target.variable, _value(target)) for target in plan.targets)
        if not is_new:
            assign_together(values)
            return
        for variable, value in values:
            variable.assign(value)
            plan.late.pop(id(variable), None)
        for start in plan.late.values():
            start()
        _set_streams(model_places, reader)


def _plan_part(plan: Plan, place: Place, group: ReadGroup, model: Network, is_new: bool) -> None:
    """Compare what a file has of one part with the part."""
    owner = place.owner
    try:
        if not _is_usual(owner, "load_own_variables"):
            for variable in _variables_of(owner):
                plan.late.pop(id(variable), lambda: None)()
            plan.undo.append((owner, [(weight, weight.numpy()) for weight in _variables_of(owner)]))
            owner.load_own_variables(group)
        elif isinstance(owner, Optimizer):
            plan.targets += _targets_of_optimizer(owner, group, model, is_new)
        else:
            plan.targets += _targets_of_layer(owner, group)
    except WeightsFileError:
        raise
    except Exception as error:
        plan.problems.append((owner, error))
        _take_back(plan.undo.pop() if plan.undo and plan.undo[-1][0] is owner else None)


def _targets_of_layer(layer: Layer, group: ReadGroup) -> list[Target]:
    own = own_weights(layer)
    check_count(layer, own, len(group))
    return [_target(weight, group, str(i)) for i, weight in enumerate(own)]


def _targets_of_optimizer(
    optimizer: Optimizer, group: ReadGroup, model: Network, is_new: bool
) -> list[Target]:
    """Return the variables of an optimizer; none, with a warning, where the file has others."""
    own = _state_of(optimizer, model)
    if is_new and len(group) == len(start := _unbuilt_state(optimizer)):
        own = start  # It was saved before its first step.
    if len(group) != len(own):
        warn_caller(skipped(optimizer, len(own), len(group)))
        return []
    return [_target(variable, group, str(i)) for i, variable in enumerate(own)]


def _target(variable: Variable, group: ReadGroup, key: str) -> Target:
    try:
        shape, _ = group.spec(key)
    except KeyError:
        raise ValueError(f"The file has no {key!r} for the variable {variable.name}.") from None
    if shape != variable.shape:
        raise ValueError(shape_problem(variable, shape))
    return Target(variable, group, key)


def _value(target: Target) -> Any:
    """Return what a variable gets."""
    try:
        return to_array(target.group[target.key], target.variable)
    except WeightsFileError:
        raise
    except ValueError as error:
        raise WeightsFileError(f"{target.group.reader.noun} does not fit: {error}") from None


def _set_streams(model_places: list[Place], reader: Hdf5Reader) -> None:
    """Set the random streams of which a file has the state."""
    for path, stream in (pair for place in model_places for pair in streams(place)):
        group = reader.group(path)
        if "0" not in group:
            continue
        if group.spec("0") != ((2,), "int64"):
            raise WeightsFileError(f"{reader.noun} has no state of random numbers as {path!r}.")
        if isinstance(stream.state, Variable):
            stream.state.assign(group["0"])
        else:
            stream.restore(group["0"].view(np.uint64).tolist())


def _problems_text(problems: list[tuple[Any, Exception]]) -> str:
    """Return what is said of parts that could not be loaded, in Keras' words."""
    first, error = problems[0]
    names = [repr(owner) for owner, _ in problems[:_LISTED]]
    return (
        f"A total of {len(problems)} objects could not be loaded. Example error message for "
        f"object {first!r}:\n\n{error}\n\nList of objects that could not be loaded:\n"
        f"[{', '.join(names)}]"
    )


# ---------------------------------------------------------------------------- all or nothing


def _variables_of(owner: Owner) -> list[Variable]:
    return owner.variables


def _take_back(saved: tuple[Any, list[Any]] | None) -> None:
    for variable, value in [] if saved is None else saved[1]:
        variable.assign(value)


@contextmanager
def _undone_on_failure(model: Network, plan: Plan) -> Iterator[None]:
    """Within this context, an exception takes back new slots, and what parts loaded themselves."""
    optimizer = getattr(model, "optimizer", None)
    known = optimizer.slots.snapshot() if isinstance(optimizer, Optimizer) else {}
    try:
        yield
    except BaseException:
        for saved in plan.undo:
            _take_back(saved)
        if isinstance(optimizer, Optimizer):
            optimizer.slots.restore(known)
        raise
