"""What a layer is made of: its configuration, from which another one like it is made.

A layer's class says it by its constructor; of a user's own class, what it was called with says it.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NoReturn

from mirrored import _nest
from mirrored.layers.policy import as_policy
from mirrored.serialization.constructor_arguments import arguments_of, made_like

_PLAIN = (str, int, float, bool, type(None))
# What every layer's configuration has, or, of what has defaults, may have.
_SHARED = frozenset(
    ("name", "trainable", "dtype", "activity_regularizer", "autocast", "input_shape", "input_dim")
)


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
        if all(isinstance(value, _PLAIN) for value in _nest.flatten((self.args, self.kwargs))):
            return Arguments, (self.args, self.kwargs)
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


def config_of(layer: Any, shared: dict[str, Any], unique: tuple[type, ...]) -> dict[str, Any]:
    """Return the arguments that make a layer like another; `Layer.get_config` says of which.

    Args:
        layer: The layer.
        shared: What the configurations of all layers have.
        unique: The classes of what two layers cannot share.
    """
    from mirrored.serialization.class_names import public_base  # Few programs need it.

    cls = type(layer)
    owner = public_base(cls)
    if owner is cls or not vars(owner).get("_automatic"):
        definer = next(base for base in owner.__mro__ if "__init__" in vars(base))
        has_own = definer is not layer.__declaring__  # Arguments, beside those of all layers.
        return {**shared, **(arguments_of(layer, without=_SHARED) if has_own else {})}
    definer = next(base for base in cls.__mro__ if "get_config" in vars(base))
    if not issubclass(owner, definer):  # It says itself what it adds.
        return shared
    arguments = _constructor_arguments(layer, unique)
    if not ("name" in _parameters(cls) or _takes_any(cls)):
        del shared["name"]
    return {**arguments, **shared}


def _constructor_arguments(layer: Any, unique: tuple[type, ...]) -> dict[str, Any]:
    """Return what the class was called with, by name, and the defaults of what was not."""
    from mirrored.serialization.configs import in_memory  # Few programs need it.

    made_with = layer.__state__.arguments
    signature = inspect.signature(type(layer).__init__)
    kinds = {p.name: p.kind for p in signature.parameters.values()}
    if made_with is None:
        _refuse(layer, "lost its constructor arguments when it was copied")
    bound = signature.bind(None, *made_with.args, **made_with.kwargs)
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        if kinds[name] is inspect.Parameter.VAR_KEYWORD:
            arguments.update(value)
        elif kinds[name] is not inspect.Parameter.VAR_POSITIONAL:
            arguments[name] = value
        elif value:
            _refuse(layer, "takes arguments without names")
        if kinds[name] is inspect.Parameter.POSITIONAL_ONLY:
            _refuse(layer, "takes positional-only arguments")
    arguments.pop("name", None)
    values = _nest.flatten(arguments)
    if any(isinstance(value, unique) for value in values):
        _refuse(layer, "was created with layers or variables, which both copies would share")
    if not (in_memory() or all(isinstance(value, _PLAIN) for value in values)):
        _refuse(layer, "was created with arguments other than numbers, strings and lists of them")
    return arguments


def layer_of_config(cls: type, config: Mapping[str, Any]) -> Any:
    """Return a layer of a class; `Layer.from_config` says of what."""
    # A class of a user's own need not take what every layer has.
    known = {*config} if _takes_any(cls) else {*_parameters(cls)}
    left = {name: config[name] for name in ("name", "trainable", "dtype") if name in config}
    left = {name: value for name, value in left.items() if name not in known}
    try:
        layer = cls(**{name: value for name, value in config.items() if name not in left})
        if "dtype" in left and as_policy(left["dtype"]) != layer.dtype_policy:
            raise TypeError(f"It takes no `dtype`, and has {layer.dtype_policy}.")
    except Exception as error:
        raise TypeError(
            f"Error when deserializing class '{cls.__name__}' using config={config}.\n\n"
            f"Exception encountered: {error}"
        ) from error
    if left.get("trainable") is False:
        layer.trainable = False
    return layer


def _refuse(layer: Any, why: str) -> NoReturn:
    raise NotImplementedError(
        f"{layer!r} {why}: it has no automatic configuration. Define `get_config(self)` in "
        f"{type(layer).__name__}, which returns {{**super().get_config(), ...}} with its "
        "arguments by name."
    )


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _takes_any(cls: type) -> bool:
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in _parameters(cls).values())


def made_again(layer: Any) -> Any:
    """Return a layer like another, of the same name, with weights of its own.

    Args:
        layer: The layer.

    Raises:
        NotImplementedError: It does not say what it is made of.
    """
    try:
        return made_like(layer)
    except NotImplementedError as error:
        error.add_note("Or pass a `clone_function` to `clone_model`, which creates another layer.")
        raise
