"""The state of a model in Keras' layout: where files have its parts, and their variables by number.

Paths consist of attributes and of kinds of layers, since automatic names differ between programs.
The order in which attributes are looked through belongs to the format. The whole file is compared
with the model, and all new values are read, before the first is written: so a file that does not
fit changes nothing.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from mirrored._logging import warn_caller
from mirrored._naming import file_case
from mirrored.errors import WeightsFileError
from mirrored.layers import Layer
from mirrored.layers.layer import own_weights
from mirrored.layers.weights import check_count, find, shape_problem
from mirrored.ops.random import SeedGenerator
from mirrored.optim import Optimizer
from mirrored.optim.optimizer import skipped
from mirrored.program.variable_access import Late, variable_writes
from mirrored.training.files.hdf5_file import Groups, Hdf5Reader, ReadGroup, to_array
from mirrored.training.files.tensor_file import copies_for_thread
from mirrored.training.files.tensor_tree import as_integers, as_words, slots_undone_on_failure
from mirrored.training.model_state import is_model
from mirrored.variables import Variable
from mirrored.variables.generator import SeedGenerator as SeedVariable
from mirrored.variables.variable import assign_together

if TYPE_CHECKING:
    from mirrored.training.model import Model

Owner = Layer | Optimizer
Stream = SeedGenerator | SeedVariable

_CONTAINERS = (list, tuple, dict)


class Place(NamedTuple):
    """A part of a model, and where files have it.

    Attributes:
        path: The path, as in "layers/dense_1"; "" for the model.
        owner: The layer, model or optimizer.
    """

    path: str
    owner: Owner


def places(model: "Model", skipped: Iterable[Any] = ()) -> list[Place]:
    """Return a model and all parts of it that have variables, each once, in Keras' order.

    Args:
        model: The model.
        skipped: Parts that are left out, with all inside them.

    Raises:
        ValueError: A weight is in none of them, so that a file would lack it.
    """
    parts: list[Place] = []
    left_out = {id(part) for part in skipped}
    _walk(model, "", parts, set(left_out))
    if left_out:
        return parts
    layers = [owner for _, owner in parts if isinstance(owner, Layer)]
    there = {id(weight) for layer in layers for weight in own_weights(layer)}
    missing = [weight.name for weight in model.weights if id(weight) not in there]
    if missing:
        raise ValueError(
            "Files in Keras' formats have the layers that are attributes of the model or of its "
            "layers, also inside lists, tuples and dicts. Received: weights of other layers, "
            f"{missing[:5]}. Assign their layers to attributes, or use a name that ends in "
            "'.safetensors'."
        )
    return parts


def streams(place: Place) -> Iterator[tuple[str, Stream]]:
    """Yield the streams of random numbers in a part's attributes, each with its path.

    Those in lists, tuples and dicts have numbers.
    """
    for name, value in sorted(vars(place.owner).items()):
        path = _join(place.path, name)
        held: list[Stream] = find([value], (SeedGenerator, SeedVariable))
        for i, stream in enumerate(held):
            yield path if stream is value else f"{path}/seed_generator_{i}", stream


def _walk(owner: Owner, path: str, parts: list[Place], seen: set[int]) -> None:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    parts.append(Place(path, owner))
    for name, child in _attributes(owner):
        if isinstance(child, Owner):
            _walk(child, _join(path, name), parts, seen)
        elif isinstance(child, _CONTAINERS):
            _walk_container(child, _join(path, name), parts, seen, set())


def _walk_container(
    container: Any, path: str, parts: list[Place], seen: set[int], around: set[int]
) -> None:
    """Look through a list, tuple or dict, whose items are known by their kinds, numbered."""
    if id(container) in around:
        return
    around.add(id(container))
    used: dict[str, int] = {}
    for item in container.values() if isinstance(container, dict) else container:
        if isinstance(item, Owner):
            _walk(item, _join(path, _numbered(_kind(item), used)), parts, seen)
        elif isinstance(item, _CONTAINERS):
            _walk_container(item, _join(path, _numbered("container", used)), parts, seen, around)


def _attributes(owner: Owner) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that are a part's own: the layers of a graph first, private ones last.

    As in Keras properties count too, and what one raises says that there is nothing.
    """
    if isinstance(owner, Optimizer):  # It may be around others.
        for name in ("inner_optimizer", "optimizers"):
            yield name, getattr(owner, name, None)
        return
    if is_model(owner) and owner._layer_chain:
        yield "layers", owner.layers
    kind: Any = type(owner)  # As a class it has a hash, which type checkers do not see.
    common = _common(kind)
    for name in sorted(dir(owner), key=lambda attr: f"~{attr}" if attr[0] == "_" else attr):
        if name.startswith("__") or name in common:
            continue
        try:
            value = getattr(owner, name)
        except Exception:  # Whatever a property of the user's raises.
            continue
        yield name, value


@functools.cache
def _common(kind: Any) -> frozenset[str]:
    """Return the attributes that every layer has, or every model: Keras looks into none of them."""
    names = {*dir(kind.__declaring__(name="any"))}  # `Layer` or `Model` itself.
    own = [base for base in kind.__mro__ if base.__module__.startswith("mirrored.training.")]
    return frozenset(names.union(*map(vars, own)) - {"layers", "optimizer"})


def _kind(owner: Owner) -> str:
    # A functional model of no class of the user's has that name, too.
    graph = is_model(owner) and owner.__state__.graph is not None
    graph = graph and vars(type(owner)).get("_functional_name") is not None
    return file_case("Functional" if graph else type(owner).__name__)


def _numbered(name: str, used: dict[str, int]) -> str:
    used[name] = used.get(name, -1) + 1
    return f"{name}_{used[name]}" if used[name] else name


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def save_assets(model: "Model", folder: str) -> None:
    """Let layers that have a `save_assets` write their files, each into a folder of its own.

    Args:
        model: The model.
        folder: Where these folders are made.
    """
    for owner, path in _having(model, "save_assets"):
        own = os.path.join(folder, path)
        os.makedirs(own, exist_ok=True)
        owner.save_assets(own)


def keeps_assets(model: "Model", method: str) -> bool:
    """Return whether a layer has files of its own.

    Args:
        model: The model.
        method: What it has then: "save_assets" or "load_assets".
    """
    return any(True for _ in _having(model, method))


def load_assets(model: "Model", folder: str) -> None:
    """Let layers that have a `load_assets` read the files that `save_assets` wrote.

    Args:
        model: The model.
        folder: Where it is.
    """
    for owner, path in _having(model, "load_assets"):
        own = os.path.join(folder, path)
        owner.load_assets(own if os.path.isdir(own) else None)


def _having(model: "Model", method: str) -> Iterator[tuple[Any, str]]:
    for path, owner in places(model):
        if callable(getattr(type(owner), method, None)):
            yield owner, path


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
        undo: Takes back what parts have loaded by themselves, unless it is emptied.
        late: What sets variables to their initial values, by identity, where the file has none.
    """

    def __init__(self, late: Iterable[Late] = ()) -> None:
        self.late = {id(variable): start for variable, start in late}
        self.targets: list[Target] = []
        self.problems: list[tuple[Any, Exception]] = []
        self.undo = contextlib.ExitStack()


# ---------------------------------------------------------------------------- saving


def save_state(model: "Model", group_of: Groups, *, with_streams: bool) -> None:
    """Write the variables of a model and of its optimizer.

    Args:
        model: The model.
        group_of: The file's groups.
        with_streams: Whether random streams are written too, in places of which Keras reads none.
    """
    for place in places(model):
        group = group_of(place.path, place.owner.name)
        if _is_usual(place.owner, "save_own_variables"):
            for number, variable in enumerate(_state_of(place.owner, model)):
                group[str(number)] = variable
        else:
            place.owner.save_own_variables(group)
        if with_streams:
            for path, stream in streams(place):
                group_of(path, None)["0"] = _words_of(stream)


def writer_of_state(model: "Model", *, with_streams: bool) -> Callable[[Groups], object]:
    """Return what writes the state of a model into a file: a copy, where a thread is to call it.

    Args:
        model: The model.
        with_streams: As for `save_state`.
    """
    copies = copies_for_thread()
    if copies is None:
        return functools.partial(save_state, model, with_streams=with_streams)
    groups: list[tuple[str, str | None, dict[str, Any]]] = []

    def copied_group_of(path: str, name: str | None) -> dict[str, Any]:
        groups.append((path, name, {}))
        return groups[-1][2]

    save_state(model, copied_group_of, with_streams=with_streams)
    numbered = [(f"{i}/{key}", group, key) for i, (*_, group) in enumerate(groups) for key in group]
    copied = copies.of({name: group[key] for name, group, key in numbered})
    for name, group, key in numbered:
        group[key] = copied[name]

    def write(group_of: Groups) -> None:
        for path, name, group in groups:
            group_of(path, name).update(group)

    return write


def _state_of(owner: Owner, model: "Model") -> list[Variable]:
    """Return the variables of a layer or an optimizer as Keras has them.

    An optimizer has slots for all that is trained, with a gradient or not, in the model's order.
    """
    if isinstance(owner, Layer):
        return own_weights(owner)
    optimizer = owner
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
    """Return the variables of Keras' optimizer before its first step: no slots and shared ones."""
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
    return stream.state if isinstance(stream.state, Variable) else as_integers(stream.state)


# ---------------------------------------------------------------------------- loading


def load_state(
    model: "Model",
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
    with variable_writes, slots_undone_on_failure([getattr(model, "optimizer", None)]), plan.undo:
        for place in model_places:
            _plan_part(plan, place, reader.group(place.path), model, is_new)
        if plan.problems:
            text = _problems_text(plan.problems)
            if not skip_mismatch:
                raise WeightsFileError(f"{reader.noun} does not fit the model. {text}")
            warn_caller(text)
        values = ((target.variable, _value(target)) for target in plan.targets)
        if is_new:
            for variable, value in values:
                variable.assign(value)
                plan.late.pop(id(variable), None)
            for start in plan.late.values():
                start()
            _set_streams(model_places, reader)
        else:
            assign_together(values)
        plan.undo.pop_all()


def _plan_part(plan: Plan, place: Place, group: ReadGroup, model: "Model", is_new: bool) -> None:
    """Compare a part of the model with the file's arrays of it."""
    owner = place.owner
    try:
        if _is_usual(owner, "load_own_variables"):
            plan.targets += _targets(owner, group, model, is_new)
            return
        with contextlib.ExitStack() as undo:
            variables: list[Variable] = owner.variables
            for variable in variables:
                plan.late.pop(id(variable), lambda: None)()
                undo.callback(variable.assign, variable.numpy())
            owner.load_own_variables(group)
            plan.undo.push(undo.pop_all())
    except WeightsFileError:
        raise
    except Exception as error:
        plan.problems.append((owner, error))


def _targets(owner: Owner, group: ReadGroup, model: "Model", is_new: bool) -> list[Target]:
    """Return the variables of a part; none, with a warning, of an optimizer with others."""
    own = _state_of(owner, model)
    if isinstance(owner, Layer):
        check_count(owner, own, len(group))
    elif is_new and len(group) == len(start := _unbuilt_state(owner)):
        own = start  # It was saved before its first step.
    elif len(group) != len(own):
        warn_caller(skipped(owner, len(own), len(group)))
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
    """Return the value that a file has for a variable."""
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
            stream.restore(as_words(group["0"]))


def _problems_text(problems: list[tuple[Any, Exception]]) -> str:
    """Return the text about parts that could not be loaded, in Keras' words."""
    first, error = problems[0]
    names = [repr(owner) for owner, _ in problems[:_LISTED]]
    return (
        f"A total of {len(problems)} objects could not be loaded. Example error message for "
        f"object {first!r}:\n\n{error}\n\nList of objects that could not be loaded:\n"
        f"[{', '.join(names)}]"
    )
