"""Where Keras' files have the parts of a model: paths of attributes and of kinds of layers.

Names of layers are not in them, since automatic ones are numbered anew in every program. The order
in which attributes are looked through belongs to the format.
"""

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mirrored._naming import file_case
from mirrored.layers import Layer
from mirrored.layers.layer import own_weights
from mirrored.layers.weights import find
from mirrored.ops.random import SeedGenerator
from mirrored.optim import Optimizer
from mirrored.training.network import Network
from mirrored.variables.seed_generator import SeedGenerator as SeedVariable

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


def places(model: Network, skipped: Iterable[Any] = ()) -> list[Place]:
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
    there = {
        id(weight)
        for _, owner in parts
        if isinstance(owner, Layer)
        for weight in own_weights(owner)
    }
    missing = [weight.name for weight in model.weights if id(weight) not in there]
    if missing:
        raise ValueError(
            "Files in Keras' formats have the layers in a model's and its layers' attributes, and "
            f"in lists, tuples and dicts there. Received: weights of others, {missing[:5]}. Assign "
            "their layers to attributes, or use a name that ends in '.safetensors'."
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
        yield from (
            (name, getattr(owner, name, None)) for name in ("inner_optimizer", "optimizers")
        )
        return
    if isinstance(owner, Network) and owner._chain:
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
def _common(kind: type) -> frozenset[str]:
    """Return the attributes that every layer has, or every model: Keras looks into none of them."""
    names = {*dir(Layer(name="any"))}
    if issubclass(kind, Network):
        own = [base for base in kind.__mro__ if base.__module__.startswith("mirrored.training.")]
        names.update(vars(Network(name="any")), *(vars(base) for base in own))
        names -= {"layers", "optimizer"}
    return frozenset(names)


def _kind(owner: Owner) -> str:
    # A functional model of no class of the user's has that name, too.
    graph = isinstance(owner, Network) and owner._part is not None
    graph = graph and vars(type(owner)).get("_functional_name") is not None
    return file_case("Functional" if graph else type(owner).__name__)


def _numbered(name: str, used: dict[str, int]) -> str:
    used[name] = used.get(name, -1) + 1
    return f"{name}_{used[name]}" if used[name] else name


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
