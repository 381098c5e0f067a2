"""What a layer is called with: which argument of its `call` is what, and the shapes of tensors.

By these shapes it is built, as in Keras: by that of its first argument, or by one for each.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored.graph import SymbolicTensor
from mirrored.layers.shapes import Shapes
from mirrored.ops import Tensor
from mirrored.ops.conversion import is_tensor

_Parameter = inspect.Parameter
_CATCH_ALL = (_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD)


class CallArguments(NamedTuple):
    """The arguments of a call by the names that `call` gives them.

    Attributes:
        values: The arguments by name, those with a default included.
        tensors: Those that are tensors or structures of such.
        shapes: The shapes of these, as `inputs_shape`, masks apart.
        binding: The arguments as they were given.
    """

    values: dict[str, Any]
    tensors: dict[str, Any]
    shapes: dict[str, Shapes]
    binding: inspect.BoundArguments

    def mapped(self, function: Callable[[Any], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments, by position and by name, with what a function makes of leaves."""
        binding = inspect.BoundArguments(self.binding.signature, self.binding.arguments.copy())
        for name, value in self.binding.arguments.items():
            binding.arguments[name] = _nest.map_structure(function, value)
        return binding.args[1:], binding.kwargs  # The first one is the layer.

    @property
    def first(self) -> Shapes:
        """The shapes of the first tensors; None where there are none."""
        return next(iter(self.shapes.values()), None)

    def of(self, method: Callable[..., Any], what: str) -> dict[str, Shapes]:
        """Return the shapes that a layer's method is given, by the names of its parameters.

        Args:
            method: A `build` or `compute_output_shape`.
            what: What errors call it, with its class.

        Raises:
            ValueError: It has several parameters, and one that no argument has the shape of.
        """
        names = _parameters_of(getattr(method, "__func__", method))
        if len(names) == 1:
            return {names[0]: self.first}
        for name in names:
            if not name.endswith("_shape") or name.removesuffix("_shape") not in self.values:
                raise ValueError(
                    f"For a `{method.__name__}()` method with more than one argument, all "
                    "arguments should have a `_shape` suffix and match an argument from `call()`. "
                    f"E.g. `{method.__name__}(self, foo_shape, bar_shape)`. Received: `{name}` of "
                    f"{what}, whose `call` has the arguments {list(self.values)}."
                )
        return {name: self.shapes[name] for name in names if name in self.shapes}


class CallForm(NamedTuple):
    """The facts about a layer's `call` that its signature says.

    Attributes:
        signature: The signature, with the layer itself.
        takes_more: Whether it needs more than itself and the inputs.
        takes_training: Whether it is given the mode.
        default_mode: The mode that it has by default; None: none.
        masks: Its parameters that are masks.
        asks_for_masks: Whether a user's `call` has some: that of several inputs is given a list,
            be they all None.
    """

    signature: inspect.Signature
    takes_more: bool
    takes_training: bool
    default_mode: bool | None
    masks: frozenset[str]
    asks_for_masks: bool

    @classmethod
    def of(cls, call: Callable[..., Any]) -> "CallForm":
        """Return the form of a layer's `call`.

        Args:
            call: The method, as a function.
        """
        signature = inspect.signature(call)
        parameters = dict(signature.parameters)
        masks = frozenset(name for name in parameters if f"_{name}".endswith("_mask"))
        mode = parameters.pop("training", None)
        needed = [parameter for parameter in parameters.values() if is_needed(parameter)]
        default = None if mode is None else mode.default
        is_own = str(getattr(call, "__module__", None)).startswith("mirrored.")
        return cls(
            signature,
            takes_more=len(needed) > 2,
            takes_training=mode is not None,
            default_mode=default if isinstance(default, bool) else None,
            masks=masks,
            asks_for_masks=bool(masks) and not is_own,
        )


@functools.lru_cache(maxsize=1024)  # Each call on placeholders asks.
def _parameters_of(method: Callable[..., Any]) -> list[str]:
    """Return the names of a method's parameters, but for the object and for catch-alls."""
    parameters = list(inspect.signature(method).parameters.items())[1:]
    return [name for name, parameter in parameters if parameter.kind not in _CATCH_ALL]


def is_needed(parameter: inspect.Parameter) -> bool:
    """Return whether a call has to give an argument for a parameter."""
    return parameter.default is parameter.empty and parameter.kind not in _CATCH_ALL


def bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> CallArguments:
    """Return what arguments are to a layer's `call`.

    Args:
        signature: That of `call`, with the layer itself.
        args: The arguments by position, all of them tensors or structures of tensors.
        kwargs: Those by name.

    Raises:
        TypeError: `call` does not take them.
        ValueError: An argument has tensors beside what is none.
    """
    # The mode, whose argument may have no default, comes with the call itself.
    binding = signature.bind_partial(None, *args, **kwargs)
    whole = inspect.BoundArguments(binding.signature, binding.arguments.copy())
    whole.apply_defaults()
    for name, parameter in signature.parameters.items():
        if is_needed(parameter) and name not in binding.arguments and name != "training":
            raise TypeError(f"missing a required argument: {name!r}")
    values = dict(list(whole.arguments.items())[1:])
    tensors, shapes = {}, {}
    for name, value in values.items():
        if value is not None and _is_of_tensors(name, value):
            tensors[name] = value
            if name != "mask" and signature.parameters[name].kind not in _CATCH_ALL:
                shapes[f"{name}_shape"] = shapes_of(value)
    return CallArguments(values, tensors, shapes, binding)


def _is_of_tensors(name: str, value: Any) -> bool:
    """Whether an argument is a tensor, or a structure of tensors and None."""
    leaves = _nest.flatten(value)
    flags = [is_tensor(leaf) for leaf in leaves]
    if not any(flags):
        return False
    if not all(is_one or leaf is None for is_one, leaf in zip(flags, leaves, strict=True)):
        raise ValueError(
            "In a nested call() argument, you cannot mix tensors and non-tensors. Received "
            f"invalid mixed argument: {name}={value!r:.300}"
        )
    return True


def shapes_of(value: Any) -> Shapes:
    """Return the shapes of tensors in nested lists, tuples and dicts; None where there is none."""
    return _nest.map_structure(lambda leaf: None if leaf is None else _shape_of(leaf), value)


def _shape_of(leaf: Any) -> tuple[Any, ...]:
    if isinstance(leaf, SymbolicTensor):
        return tuple(leaf._shape)
    if isinstance(leaf, Tensor):
        return tuple(leaf.shape)
    return np.shape(leaf)
