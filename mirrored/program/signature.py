"""What a recorded function was said to be called with, by `input_signature`.

Arguments become tensors of the dtypes that it names, so that numbers do not need a recording each.
"""

import inspect
from collections.abc import Callable
from typing import Any

from mirrored import _nest
from mirrored.ops.dispatch import convert_to_tensor
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.arguments import with_parts


class Signature:
    """A spec for each argument.

    Args:
        specs: `TensorSpec`s, or structures of them, one an argument.

    Raises:
        TypeError: One is something else.
    """

    def __init__(self, specs: Any) -> None:
        alone = isinstance(specs, TensorSpec) or not isinstance(specs, list | tuple)
        self._specs = (specs,) if alone else tuple(specs)
        for spec in self._specs:
            _check(spec)

    def converted(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call as tensors, but for a method's object.

        Args:
            function: What is called.
            args: Its positional arguments.
            kwargs: Its keyword arguments.

        Raises:
            TypeError: They are not those of the signature.
        """
        name = getattr(function, "__name__", type(function).__name__)
        if kwargs:
            bound = inspect.signature(function).bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        own = len(args) - len(self._specs)
        if own not in (0, 1) or kwargs:
            raise TypeError(
                f"The function {name} takes {len(self._specs)} arguments by its "
                f"`input_signature`. Received: {len(args) + len(kwargs)}."
            )
        pairs = zip(args[own:], self._specs, strict=True)
        return (*args[:own], *(_conformed(name, arg, spec) for arg, spec in pairs)), {}


def _check(spec: Any) -> None:
    if isinstance(spec, TensorSpec):
        return
    if not isinstance(spec, list | tuple | dict):
        raise TypeError(
            "`input_signature` is a list of mr.TensorSpec, or structures of them, one an argument. "
            f"Received: {spec!r}"
        )
    for each in spec.values() if isinstance(spec, dict) else spec:
        _check(each)


def _conformed(name: str, value: Any, spec: Any) -> Any:
    """Return an argument with tensors where its spec has specs."""
    if isinstance(spec, TensorSpec):
        return with_parts(value, lambda part: _tensor(name, part, spec))
    if isinstance(spec, dict) and isinstance(value, dict) and value.keys() == spec.keys():
        return {key: _conformed(name, value[key], spec[key]) for key in value}
    both = isinstance(value, list | tuple) and not isinstance(spec, dict)
    if not both or len(value) != len(spec):
        raise TypeError(
            f"The function {name} takes {spec} by its `input_signature`. Received: a "
            f"{type(value).__name__} of another structure."
        )
    pairs = zip(value, spec, strict=True)
    return _nest.rebuild(value, [_conformed(name, each, like) for each, like in pairs])


def _tensor(name: str, value: Any, spec: TensorSpec) -> Tensor:
    tensor = convert_to_tensor(value, spec.dtype)
    sizes = zip(spec.shape, tensor.shape, strict=False)
    if len(spec.shape) != tensor.ndim or any(size not in (None, given) for size, given in sizes):
        raise TypeError(
            f"The function {name} takes {spec} by its `input_signature`. Received: an argument of "
            f"shape {tensor.shape}."
        )
    return tensor
