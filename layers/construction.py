"""What a layer is made of: its configuration, from which another one like it is made.

A layer's class says it by its constructor; of a user's own class, what it was called with says it.
"""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn, Self

from mirrored import _nest
from mirrored.distribute.context import one_of_several
from mirrored.layers.policy import as_policy
from mirrored.layers.weights import WeightOwner
from mirrored.serialization.constructor_arguments import arguments_of, made_like, serialized
from mirrored.variables import Variable

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

    @property
    def are_plain(self) -> bool:
        """Whether they are numbers, strings and the like."""
        return all(isinstance(each, _PLAIN) for each in _nest.flatten((self.args, self.kwargs)))

    def __reduce__(self) -> Any:
        if self.are_plain:
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


class ConfiguredLayer(WeightOwner):
    """A layer that can be made again of its configuration; `Layer` says what the arguments are."""

    # Whether subclasses that say nothing are made of the arguments that they were called with.
    _automatic: ClassVar[bool] = False
    _built_from_start: ClassVar[bool] = False  # In Keras; where it has no `build` of its own.
    _made_with: Arguments | None
    build: Any
    activity_regularizer: Any
    _built_for: dict[str, Any] | None  # The shapes that `build` was given, by its arguments.

    # With `__new__` here Python would show its parameters as those of classes without `__init__`.
    __signature__ = ConstructorSignature()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep what the layer is made with, for others like it."""
        layer = super().__new__(cls)
        vars(layer)["_made_with"] = Arguments(args, kwargs)
        replica = one_of_several()
        if replica is not None:
            replica.note_made(layer)
        return layer

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make a layer like it, by name, as plain values.

        A subclass adds its own to those of `super().get_config()`. One of `Layer` or `Model` need
        not where all of its arguments are numbers, strings, lists and the like.

        Raises:
            NotImplementedError: Its arguments are others, and it has no `get_config`.

        Example:
            >>> import mirrored as mr
            >>> mr.layers.RepeatVector(2, name="twice").get_config()["n"]
            2
        """
        from mirrored.serialization.public_names import public_base  # Few programs need it.

        cls = type(self)
        owner = public_base(cls)
        shared = self._shared_config()
        if owner is cls or not vars(owner).get("_automatic"):
            definer = next(each for each in owner.__mro__ if "__init__" in vars(each))
            has_own = definer is not self._declaring  # Arguments, beside those of all layers.
            return {**shared, **(arguments_of(self, without=_SHARED) if has_own else {})}
        definer = next(each for each in cls.__mro__ if "get_config" in vars(each))
        if not issubclass(owner, definer):  # It says itself what it adds.
            return shared
        given = self._arguments_given()
        if not ("name" in _parameters(cls) or _takes_any(cls)):
            del shared["name"]
        return {**given, **shared}

    def _shared_config(self) -> dict[str, Any]:
        """Return what the configurations of all layers have."""
        config = {
            "name": self._name,
            "trainable": self._trainable,
            "dtype": serialized(self._dtype_policy),
        }
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = serialized(self.activity_regularizer)
        return config

    def _arguments_given(self) -> dict[str, Any]:
        """Return what the class was called with, by name, and the defaults of what was not."""
        from mirrored.serialization.writing import in_memory  # Few programs need it.

        made_with = vars(self).get("_made_with")
        signature = inspect.signature(type(self).__init__)
        kinds = {each.name: each.kind for each in signature.parameters.values()}
        if made_with is None:
            _refuse(self, "lost what it was called with when it was copied")
        bound = signature.bind(None, *made_with.args, **made_with.kwargs)
        bound.apply_defaults()
        given: dict[str, Any] = {}
        for name, value in list(bound.arguments.items())[1:]:
            if kinds[name] is inspect.Parameter.VAR_KEYWORD:
                given.update(value)
            elif kinds[name] is not inspect.Parameter.VAR_POSITIONAL:
                given[name] = value
            elif value:
                _refuse(self, "takes arguments without names")
            if kinds[name] is inspect.Parameter.POSITIONAL_ONLY:
                _refuse(self, "takes arguments by their places alone")
        given.pop("name", None)
        values = _nest.flatten(given)
        if any(isinstance(each, WeightOwner | Variable) for each in values):
            _refuse(self, "was made with layers or variables, which both would have")
        if not (in_memory() or all(isinstance(each, _PLAIN) for each in values)):
            _refuse(self, "was made with what is no number, string or list of such")
        return given

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Return a layer that is made with the arguments of a configuration.

        Args:
            config: What `get_config` returned.

        Raises:
            TypeError: The class does not take these arguments, or refuses them.
        """
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

    def get_build_config(self) -> dict[str, Any] | None:
        """Return the shapes that the layer was built for; None where it is not built.

        Example:
            >>> import mirrored as mr
            >>> layer = mr.layers.Dense(2)
            >>> layer.build((None, 3))
            >>> layer.get_build_config()
            {'input_shape': (None, 3)}
        """
        shapes = self._built_for
        if shapes is None:
            return None
        if len(shapes) == 1:
            return {"input_shape": next(iter(shapes.values()))}
        return {"shapes_dict": dict(shapes)}

    def build_from_config(self, config: Mapping[str, Any]) -> None:
        """Build the layer for shapes that `get_build_config` returned.

        Args:
            config: The shapes.
        """
        if not config:
            return
        if "input_shape" in config:
            self.build(config["input_shape"])
        elif "shapes_dict" in config:
            self.build(**config["shapes_dict"])


def _refuse(layer: Any, why: str) -> NoReturn:
    raise NotImplementedError(
        f"{layer!r} {why}: it has no configuration of its own accord. Define `get_config(self)` in "
        f"{type(layer).__name__}, which returns {{**super().get_config(), ...}} with its arguments "
        "by name."
    )


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls).parameters


def _takes_any(cls: type) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in _parameters(cls).values())


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
        error.add_note("Or give `clone_model` a `clone_function`, which makes another one.")
        raise
