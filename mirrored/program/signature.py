"""Checks and converts the arguments of a recorded function by its `input_signature`.

Arguments become tensors of the dtypes that it names, so that numbers do not need a recording each.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored import _nest
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import convert_to_tensor, to_array
from mirrored.ops.hooks import UnknownShape
from mirrored.ops.spec import TensorSpec, has_shape
from mirrored.ops.tensor import Tensor
from mirrored.program.function_arguments import POSITIONAL, is_variable, kind_of, with_parts


class Signature:
    """A spec for each positional argument of a function.

    A parameter without a spec keeps its default, which the recording has as it is. As in
    TensorFlow, a first parameter that is called ``self`` is the object of a method.

    Args:
        specs: `TensorSpec`s, or structures of them, one an argument, in a list or tuple.
        function: The function.

    Raises:
        TypeError: They are something else, or not those of the function's parameters.

    Attributes:
        specs: The specs, one an argument.
    """

    def __init__(self, specs: Any, function: Callable[..., Any]) -> None:
        if isinstance(specs, TensorSpec) or not isinstance(specs, list | tuple):
            raise TypeError(
                f"input_signature must be either a tuple or a list, got {type(specs)}. Received: "
                f"{specs!r}. Pass a list with one mr.TensorSpec, or one structure of them, per "
                "argument."
            )
        for spec in specs:
            _check(spec)
        self.specs = tuple(specs)
        self._slots = tuple(slotted(pattern) for pattern in specs)
        self._name: str = getattr(function, "__name__", type(function).__name__)
        self._parameters, self._own = _parameters(function, len(specs), self._name)

    def converted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call as tensors, but for a method's object.

        Args:
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            TypeError: They are not those of the signature.
        """
        own = args[: self._own]
        direct = not kwargs and len(args) == self._own + len(self._slots)
        values = args[self._own :] if direct else self._bound(args, own, kwargs)
        pairs = zip(values, self._slots, strict=True)
        return (*own, *(conformed(self._name, arg, slot) for arg, slot in pairs)), {}

    def _bound(
        self, args: tuple[Any, ...], own: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Return a value for each spec, from arguments that are not one for each in order."""
        try:
            if len(own) < self._own:
                raise TypeError("missing a required argument: 'self'")
            bound = self._parameters.bind(*args[self._own :], **kwargs)
        except TypeError as error:
            raise self._misfit(str(error), args, kwargs) from None
        bound.apply_defaults()
        values = list(bound.arguments.items())
        for name, value in values[len(self._slots) :]:
            default = self._parameters.parameters[name].default
            if value is not default and not (type(value) is type(default) and value == default):
                problem = f"{name} has no type constraint and stays {default!r}: not {value!r:.100}"
                raise self._misfit(problem, args, kwargs)
        return tuple(value for _, value in values[: len(self._slots)])

    def _misfit(self, why: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
        specs = ", ".join(
            f"{name}: {spec}"
            for name, spec in zip(self._parameters.parameters, self.specs, strict=False)
        )
        return TypeError(
            f"Binding inputs to mr.function failed due to `{why}`. Received args: {args!r:.200} "
            f"and kwargs: {kwargs!r:.200} for signature: ({specs}), of the function {self._name}."
        )


def _parameters(
    function: Callable[..., Any], count: int, name: str
) -> tuple[inspect.Signature, int]:
    """Return the parameters that arguments are bound to, and how many come before them: `self`.

    Args:
        function: The function.
        count: How many specs there are.
        name: What messages call it.

    Raises:
        TypeError: A parameter without a default has no spec, or a spec has no parameter.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # One that is not Python's does not tell.
        parameters = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
    own = int(bool(parameters) and parameters[0].name == "self")
    named = [entry for entry in parameters[own:] if entry.kind in POSITIONAL]
    takes_more = any(entry.kind is inspect.Parameter.VAR_POSITIONAL for entry in parameters)
    for item in named[count:]:
        if item.default is item.empty:
            raise TypeError(
                f"input_signature missing type constraint for {item.name}. Received: {count} "
                f"specs for the function {name}. Pass one spec per parameter without a default."
            )
    if count > len(named) and not takes_more:
        raise TypeError(
            f"input_signature contains {count - len(named)} extra type constraints. Received: "
            f"{count} specs for the function {name}, which takes {len(named)} arguments."
        )
    rest = [entry for entry in parameters if entry.kind is inspect.Parameter.KEYWORD_ONLY]
    for item in rest:
        if item.default is item.empty:
            raise TypeError(
                f"Since input_signature is defined, keyword-only parameter `{item.name}` must "
                f"have a default value. Received: the function {name}. Set a default value, or "
                "leave out `*`."
            )
    more = [
        inspect.Parameter(f"args_{i}", inspect.Parameter.POSITIONAL_ONLY)
        for i in range(count - len(named))
    ]
    if more:  # None of those before them can be left out.
        named = [
            entry.replace(kind=inspect.Parameter.POSITIONAL_ONLY, default=entry.empty)
            for entry in named
        ]
    return inspect.Signature([*named, *more, *rest]), own


def _check(spec: Any) -> None:
    if isinstance(spec, TensorSpec):
        return
    if not isinstance(spec, list | tuple | dict):
        raise TypeError(
            "`input_signature` must be a list of mr.TensorSpec, or structures of them, one per "
            f"argument. Received: {spec!r}"
        )
    for part in spec.values() if isinstance(spec, dict) else spec:
        _check(part)


class Slot:
    """Stands in a structure for a tensor of one kind: specs themselves are tuples.

    Args:
        spec: The kind.
    """

    __slots__ = ("spec",)

    def __init__(self, spec: TensorSpec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return repr(self.spec)


def slotted(structure: Any) -> Any:
    """Return a structure with slots in the places of specs, tensors and arrays.

    Args:
        structure: Nested lists, tuples and dicts.
    """
    if isinstance(structure, TensorSpec):
        return Slot(structure)
    if isinstance(structure, dict):
        return _nest.rebuild_dict(structure, {k: slotted(v) for k, v in structure.items()})
    if isinstance(structure, list | tuple):
        return _nest.rebuild(structure, [slotted(part) for part in structure])
    if isinstance(structure, np.ndarray | np.generic):
        array = to_array(structure)
        return Slot(TensorSpec(array.shape, array.dtype))
    if isinstance(structure, UnknownShape):
        return Slot(TensorSpec(None, structure.dtype))
    return Slot(structure.spec) if isinstance(structure, Tensor) else structure


def conformed(name: str, value: Any, like: Any) -> Any:
    """Return an argument with tensors where there are slots for them.

    Args:
        name: What messages call the function.
        value: The argument.
        like: A structure with slots; what else is in it is known, and the argument's equals it.

    Raises:
        TypeError: It is another structure, or no such tensors.
        InvalidArgumentError: It is no variable of the kind of one that is in the structure.
    """
    if isinstance(like, Slot):
        return with_parts(value, lambda part: _tensor(name, part, like.spec))
    if isinstance(like, dict) and isinstance(value, dict) and value.keys() == like.keys():
        values = {key: conformed(name, value[key], like[key]) for key in value}
        return _nest.rebuild_dict(value, values)
    if is_variable(like):
        if isinstance(value, Tensor) or (is_variable(value) and kind_of(value) != kind_of(like)):
            raise InvalidArgumentError(
                f"cannot compute {name}: an input was expected to be a variable like {like!r} "
                f"(a resource tensor). Received: {value!r:.200}"
            )
        if is_variable(value):
            return value
    if not isinstance(like, list | tuple | dict):
        alike = type(value) is type(like) or {type(value), type(like)} <= {bool, int, float}
        if value is like or (alike and value == like):
            return like
        raise TypeError(f"Can not cast {value!r:.100} to Literal[{like!r}]")
    both = isinstance(value, list | tuple) and not isinstance(like, dict)
    if not both or len(value) != len(like):
        raise TypeError(
            f"The function {name} takes {like} by its signature. Received: a "
            f"{type(value).__name__} of another structure."
        )
    pairs = zip(value, like, strict=True)
    return _nest.rebuild(value, [conformed(name, part, slot) for part, slot in pairs])


def _tensor(name: str, value: Any, spec: TensorSpec) -> Tensor:
    try:
        tensor = convert_to_tensor(value, spec.dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"The function {name} takes {spec} by its signature. Received: {value!r:.100}. {error}"
        ) from error
    shape: Any = spec.shape
    if shape is None:
        return tensor
    if not has_shape(tensor.shape, shape):
        raise TypeError(
            f"The function {name} takes {spec} by its signature. Received: an argument of "
            f"shape {tensor.shape}."
        )
    return tensor
