"""A recorded function for one kind of call, with TensorFlow's attributes and methods."""

from typing import Any, Protocol

import numpy as np

from mirrored import _nest
from mirrored._absent import refused_members
from mirrored.devices import place
from mirrored.errors import InvalidArgumentError
from mirrored.ops.host_tensor import HostTensor
from mirrored.ops.spec import TENSORFLOW_NAMES, TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.function_arguments import Parameters
from mirrored.program.signature import Slot, conformed, slotted
from mirrored.program.trace_cache import Trace

Structure = tuple[tuple[Any, ...], dict[str, Any]]


class Recorded(Protocol):
    """A function that is recorded, as this module knows it."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def parameters(self) -> Parameters:
        """Its parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""

    def trace_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trace:
        """Return the recording for such arguments, made where there is none."""


@refused_members(
    "tf.types.experimental.ConcreteFunction",
    "add_gradient_functions_to_graph add_to_graph captured_inputs from_func_graph function_def "
    "function_type graph inference_fn output_dtypes output_shapes "
    "replace_capture_with_deferred_capture set_external_captures set_variables",
)
class ConcreteFunction:
    """A recorded function for arguments of one kind; its `get_concrete_function` makes it.

    It is called with tensors, or what becomes tensors of its specs. What is no tensor is known and
    may be left out.

    Args:
        function: The function.
        args: A value for each positional argument, with a spec or a tensor for each tensor.
        kwargs: The others by their names.
        own: How many of the positional ones are its own: the object of a method.
    """

    def __init__(
        self, function: Recorded, args: tuple[Any, ...], kwargs: dict[str, Any], own: int = 0
    ) -> None:
        """Record the function for them, where their sizes are known."""
        self._function = function
        self._own = args[:own]
        self._like: Structure = slotted((args[own:], kwargs))
        if _is_whole(self.inputs):
            self._recorded()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function, and return what it returns.

        Args:
            *args: Tensors, numbers or structures of them, in the function's order; or its tensors
                alone, without the structures that they are in.
            **kwargs: Others by the names of their parameters, or of their specs.

        Raises:
            TypeError: They are not those that it was made for.
        """
        values, named = self._bound(args, kwargs)
        return self._function(*self._own, *values, **named)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._function.name

    @property
    def structured_input_signature(self) -> Structure:
        """The positional and the keyword arguments, with a `TensorSpec` for each tensor."""
        signature: Structure = _nest.map_structure(_spec, self._like)
        return signature

    @property
    def structured_outputs(self) -> Any:
        """What the function returns, with a `TensorSpec` for each tensor.

        Raises:
            ValueError: A size of an input is not known.
        """
        return _nest.map_structure(_spec, slotted(self._returned()))

    @property
    def inputs(self) -> list[TensorSpec]:
        """The spec of each tensor that it takes."""
        return _specs(self._like)

    @property
    def outputs(self) -> list[TensorSpec]:
        """The spec of each tensor that it returns; errors as for `structured_outputs`."""
        return _specs(slotted(self._returned()))

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that it reads or writes, but for its arguments: all copies of each.

        Raises:
            ValueError: A size of an input is not known.
        """
        return self._recorded().variables()

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """Those of `variables` that tapes watch."""
        return tuple(variable for variable in self.variables if variable.trainable)

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """Return a text that says what the function takes and returns.

        Args:
            verbose: Whether each argument has a line of its own.
        """
        returned = self._returned() if _is_whole(self.inputs) else ...
        return described(self._arguments(), returned, verbose=verbose)

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.pretty_printed_signature(verbose=False)}>"

    def _arguments(self) -> list[tuple[str, str, Any]]:
        args, kwargs = self._like
        named = self._function.parameters.named((*self._own, *args), kwargs)
        return list(named)[len(self._own) :]

    def _returned(self) -> Any:
        results = self._recorded().results
        return None if results is None else results.structure

    def _recorded(self) -> Trace:
        """Return the recording, made where there is none."""
        if not _is_whole(self.inputs):
            raise ValueError(
                "A function can be recorded only for tensors with known sizes. Received: "
                f"{self.inputs} for {self.name}. Pass all sizes to get_concrete_function, or look "
                "at the result of a call."
            )
        device = place("_Arg", ("GPU", "CPU"))

        def stand_in(leaf: Any) -> Any:
            if not isinstance(leaf, Slot):
                return leaf
            nothing = np.zeros((), leaf.spec.dtype)
            return HostTensor(np.broadcast_to(nothing, leaf.spec.shape), device)

        args, kwargs = _nest.map_structure(stand_in, self._like)
        return self._function.trace_for((*self._own, *args), kwargs)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Structure:
        """Return the arguments of a call as the function is called with them."""
        try:
            return self._by_structure(args, kwargs)
        except TypeError as error:
            specs = self.inputs
            if not kwargs and len(args) == len(specs) and all(isinstance(a, Tensor) for a in args):
                self._check_dtypes(args)
                pairs = zip(args, specs, strict=True)
                fed = iter([conformed(self.name, tensor, Slot(spec)) for tensor, spec in pairs])
                filled: Structure = _nest.map_structure(
                    lambda leaf: next(fed) if isinstance(leaf, Slot) else leaf, self._like
                )
                return filled
            raise TypeError(
                f"Binding inputs to mr.function failed due to `{error}`. Received args: "
                f"{args!r:.200} and kwargs: {kwargs!r:.200} for signature: "
                f"{self.pretty_printed_signature(verbose=False)}."
            ) from None

    def _check_dtypes(self, tensors: tuple[Tensor, ...]) -> None:
        """Raise InvalidArgumentError, as TensorFlow does, where one is of another dtype."""
        for i, (tensor, spec) in enumerate(zip(tensors, self.inputs, strict=True)):
            if tensor.dtype != spec.dtype:
                expected, received = (TENSORFLOW_NAMES[value.dtype] for value in (spec, tensor))
                raise InvalidArgumentError(
                    f"cannot compute {self.name} as input #{i}(zero-based) was expected to be a "
                    f"{expected} tensor but is a {received} tensor [Op:{self.name}]"
                )

    def _by_structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Structure:
        """Return a call's arguments, each for its parameter."""
        positional, options = self._like
        if len(args) > len(positional):
            raise TypeError("too many positional arguments")
        named, values = dict(kwargs), []
        for i, (name, _, like) in enumerate(self._arguments()):
            if i < len(args):
                value = args[i]
            elif name in named:
                value = named.pop(name)
            elif i < len(positional) and isinstance(like, Slot) and like.spec.name in named:
                value = named.pop(like.spec.name)
            elif _specs(like):
                raise TypeError(f"missing a required argument: {name!r}")
            else:
                value = like
            values.append(conformed(self.name, value, like))
        if named:
            raise TypeError(f"got an unexpected keyword argument {next(iter(named))!r}")
        first = len(positional)
        return tuple(values[:first]), dict(zip(options, values[first:], strict=True))


def described(arguments: list[tuple[str, str, Any]], returned: Any, *, verbose: bool) -> str:
    """Return a text on what a function takes and returns.

    Args:
        arguments: Name, kind and value of each argument, with slots or tensors for tensors.
        returned: What it returns, likewise; an ellipsis where that is not known.
        verbose: Whether each argument has a line of its own.
    """
    output = "?" if returned is ... else _type_text(slotted(returned))
    if not verbose:
        texts = [f"{name}: {_type_text(slotted(value))}" for name, _, value in arguments]
        return f"({', '.join(texts)}) -> {output}"
    lines = [f"  {name} ({kind}): {_type_text(slotted(v))}" for name, kind, v in arguments]
    return "\n".join(["Input Parameters:", *(lines or ["  None"]), "Output Type:", f"  {output}"])


def outlined(structure: Any) -> Any:
    """Return the arguments of a call as `described` shows them, without keeping what they are.

    Args:
        structure: Nested lists, tuples and dicts of them.
    """
    return _nest.map_structure(_outline, slotted(structure))


def _outline(leaf: Any) -> Any:
    plain = leaf is None or isinstance(leaf, Slot | bool | int | float | str | bytes)
    return leaf if plain else type(leaf)


def _type_text(structure: Any) -> str:
    if isinstance(structure, Slot) or structure is None:
        return repr(structure)
    if isinstance(structure, dict):
        items = [f"[{key!r}, {_type_text(value)}]" for key, value in structure.items()]
        return f"Dict[{', '.join(items)}]"
    if isinstance(structure, list | tuple):
        kind = "List" if isinstance(structure, list) else "Tuple"
        return f"{kind}[{', '.join(map(_type_text, structure))}]"
    return f"Literal[{structure!r}]"


def _spec(leaf: Any) -> Any:
    return leaf.spec if isinstance(leaf, Slot) else leaf


def _specs(like: Any) -> list[TensorSpec]:
    return [slot.spec for slot in _nest.flatten(like) if isinstance(slot, Slot)]


def _is_whole(specs: list[TensorSpec]) -> bool:
    """Whether all sizes are known."""
    shapes: list[Any] = [spec.shape for spec in specs]
    return all(shape is not None and None not in shape for shape in shapes)
