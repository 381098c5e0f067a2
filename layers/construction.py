"""What a layer was made with, from which another one like it is made, with weights of its own."""

import inspect
from typing import Any, NoReturn

from mirrored import _nest
from mirrored.layers.weights import WeightOwner
from mirrored.variables import Variable


class Arguments:
    """The arguments of a constructor. No container: weights in them are no weights of the layer.

    Args:
        args: Those by position.
        kwargs: Those by name.
    """

    __slots__ = ("args", "kwargs")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    def __reduce__(self) -> Any:
        return _forgotten, ()  # They may hold what cannot be copied, and the layer needs them not.


def _forgotten() -> None:
    return None


class ConstructorSignature:
    """The signature of a class: that of its `__init__`, whichever class above defines `__new__`."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError("__signature__")  # That of an object is that of its `__call__`.
        signature = inspect.signature(owner.__init__)  # type: ignore[misc]
        return signature.replace(parameters=list(signature.parameters.values())[1:])


def made_again(layer: Any) -> Any:
    """Return a layer like another, of the same name, with weights of its own.

    Args:
        layer: The layer.

    Raises:
        NotImplementedError: It was made with layers or variables, which both would have, or came
            out of a file or a copy.
    """
    made_with = vars(layer).get("_made_with")
    if made_with is None:
        _refuse(layer, "was unpickled or copied, and what it was made with did not travel along")
    given = (made_with.args, made_with.kwargs)
    if any(isinstance(each, WeightOwner | Variable) for each in _nest.flatten(given)):
        _refuse(layer, "was made with layers or variables, which both would have")
    signature = inspect.signature(type(layer))
    kinds = {each.kind for each in signature.parameters.values()}
    kwargs = dict(made_with.kwargs)
    if "name" not in signature.bind_partial(*made_with.args).arguments and (
        "name" in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds
    ):
        kwargs["name"] = layer.name
    return type(layer)(*made_with.args, **kwargs)


def _refuse(layer: Any, why: str) -> NoReturn:
    raise NotImplementedError(
        f"{layer!r} {why}. Give `clone_model` a `clone_function`, which makes another one."
    )
