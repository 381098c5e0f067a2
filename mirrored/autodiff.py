"""Reverse-mode differentiation: a tape that follows ops and composes their gradient rules.

Gradients are made of ops too, so they are placed, logged and can themselves be differentiated.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, TypeVar, overload

from mirrored import _nest, ops
from mirrored._absent import refused_members
from mirrored._arguments import explained
from mirrored._logging import logger
from mirrored.devices import device as device_scope
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import active_listeners, add_listener, only, remove_listener
from mirrored.ops.op import Op, OpCall
from mirrored.ops.spec import FLOATS
from mirrored.ops.tensor import Operators, Tensor

# How often each remark is made, here and in TensorFlow: loops would fill the log with it.
_MOST_TOLD = 5
_told: Counter[str] = Counter()


_Key = TypeVar("_Key")
_Source = TypeVar("_Source", bound=Operators)


@dataclass(frozen=True, slots=True)
class _Read:
    """A variable's value as it was read."""

    variable: Any
    output: Tensor


@explained
@refused_members("tf.GradientTape", "batch_jacobian jacobian reset")
class GradientTape:
    """Follows what is computed while it is open, and differentiates it.

    Trainable variables are watched when they are read; tensors are watched on request.

    Args:
        persistent: Whether `gradient` may be called more than once. A tape that is not lets go
            of what it holds with the first call.
        watch_accessed_variables: Whether trainable variables are watched by being read.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant(3.0)
        >>> with mr.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> float(tape.gradient(y, x))
        6.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        """Make a tape that follows nothing until it is entered."""
        self._persistent = persistent
        self._watch_variables = watch_accessed_variables
        self._nodes: list[OpCall | _Read] = []
        self._tracked: set[int] = set()
        self._variables: dict[int, Any] = {}
        self._entered = False
        self._used = False

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A GradientTape is neither pickled nor copied: it follows what this process computes. "
            "Take its gradients, and pickle these."
        )

    def __enter__(self) -> Self:
        """Follow what this context computes."""
        if self._entered:
            raise ValueError("Tape is already recording. Leave its `with` block first.")
        self._entered = True
        add_listener(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following."""
        remove_listener(self)
        self._entered = False

    def watch(self, tensor: Any) -> None:
        """Follow what is computed from a tensor, a variable, or a structure of them.

        What has no floating-point dtype has no gradient: a line of the log says so, as
        TensorFlow's does.

        Raises:
            TypeError: One of them is neither.
        """
        for each in _nest.flatten(tensor):
            if not hasattr(each, "_id"):
                raise TypeError(
                    f"Only tensors and variables can be watched. Received: {each!r}. Make a "
                    "tensor of it with mr.constant first."
                )
        for each in _nest.flatten(tensor):
            if not _is_floating(each, "watched tensor"):
                continue
            self._tracked.add(each._id)
            if not isinstance(each, Tensor):
                self._variables[each._id] = each

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that the tape follows, in the order in which it met them."""
        return tuple(self._variables.values())

    def stop_recording(self) -> AbstractContextManager[None]:
        """Return a context within which this tape follows nothing.

        Example:
            >>> import mirrored as mr
            >>> x = mr.constant(3.0)
            >>> with mr.GradientTape() as tape:
            ...     tape.watch(x)
            ...     with tape.stop_recording():
            ...         y = x * x
            >>> tape.gradient(y, x) is None
            True
        """
        return only(*(each for each in active_listeners() if each is not self))

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Note an op whose inputs are followed. The ops call this."""
        if op.gradient is None or self._used or output.dtype not in FLOATS:
            return
        needed = tuple(tensor._id in self._tracked for tensor in inputs)
        if any(needed):
            self._tracked.add(output._id)
            self._nodes.append(OpCall(op, inputs, attrs, output, needed))

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note that a variable was read. Variables call this."""
        if self._used:
            return
        key = variable._id
        if key not in self._tracked:
            if not (self._watch_variables and variable.trainable and value.dtype in FLOATS):
                return
            self._tracked.add(key)
        self._variables.setdefault(key, variable)
        self._tracked.add(value._id)
        self._nodes.append(_Read(variable, value))

    @overload
    def gradient(
        self,
        target: Any,
        sources: Operators,
        output_gradients: Any = None,
        unconnected_gradients: Literal["none"] = "none",
    ) -> Tensor | None: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: list[_Source],
        output_gradients: Any = None,
        unconnected_gradients: Literal["none"] = "none",
    ) -> list[Tensor | None]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: tuple[Operators, ...],
        output_gradients: Any = None,
        unconnected_gradients: Literal["none"] = "none",
    ) -> tuple[Tensor | None, ...]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: dict[_Key, _Source],
        output_gradients: Any = None,
        unconnected_gradients: Literal["none"] = "none",
    ) -> dict[_Key, Tensor | None]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any: ...

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: str = "none",
    ) -> Any:
        """Return the gradients of `target` by each of `sources`.

        That of a tensor or variable by itself is one, whether it was watched or not. What has no
        floating-point dtype has no other gradient, which a line of the log says.

        Args:
            target: A tensor, or a structure of them, whose gradients are summed.
            sources: Tensors or variables that were watched, or a structure of them.
            output_gradients: The gradient that flows into each target; None: ones.
            unconnected_gradients: "none" gives None for a source that the target does not
                depend on, "zero" gives zeros.

        Returns:
            A structure like that of `sources`.

        Raises:
            RuntimeError: The tape is not persistent and was used before.
            ValueError: An unknown `unconnected_gradients`, or gradients that do not fit.
        """
        if self._used:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                "(or jacobians). Make it with persistent=True to use it again."
            )
        if unconnected_gradients not in ("none", "zero"):
            raise ValueError(
                f"Unknown value for unconnected_gradients: {unconnected_gradients!r}. Give 'none' "
                "or 'zero'."
            )
        leaves = _nest.flatten(sources)
        for each in leaves:
            if not hasattr(each, "_id"):
                raise TypeError(
                    f"Sources are tensors and variables. Received: {each!r}. Make a tensor of it "
                    "and watch it before it is used."
                )
            _is_floating(each, "source tensor", " when calling GradientTape.gradient")
        wanted = {each._id for each in leaves}
        grads = self._seed_gradients(target, output_gradients, wanted)
        if self._persistent:
            nodes = list(self._nodes)
        else:
            nodes, self._nodes, self._used = self._nodes, [], True
        found = _backpropagate(nodes, grads, wanted)
        results = [found.get(each._id) for each in leaves]
        if unconnected_gradients == "zero":
            results = [
                _zeros_for(each) if result is None else result
                for each, result in zip(leaves, results, strict=True)
            ]
        return _nest.pack_like(sources, results)

    def _seed_gradients(
        self, target: Any, output_gradients: Any, wanted: set[int]
    ) -> dict[int, list[Tensor]]:
        targets = [
            adopt(each, None) if not hasattr(each, "_id") else each
            for each in _nest.flatten(target)
        ]
        upstream = _nest.flatten(output_gradients) if output_gradients is not None else []
        if upstream and len(upstream) != len(targets):
            raise ValueError(
                "Give one output gradient a target. Received: "
                f"{len(upstream)} for {len(targets)} targets."
            )
        grads: dict[int, list[Tensor]] = {}
        for i, each in enumerate(targets):
            _is_floating(each, "target tensor", " when calling GradientTape.gradient")
            if each._id not in self._tracked and each._id not in wanted:
                continue
            given = upstream[i] if upstream else None
            with _on_device_of(each):
                g = _ones_for(each) if given is None else adopt(given, each.dtype)
            if g.shape != each.shape:
                raise ValueError(
                    f"An output gradient has the shape of its target. Received: {g.shape} for "
                    f"a target of shape {each.shape}."
                )
            grads.setdefault(each._id, []).append(g)
        return grads


def _backpropagate(
    nodes: list[OpCall | _Read], grads: dict[int, list[Tensor]], wanted: set[int]
) -> dict[int, Tensor]:
    """Walk the nodes backwards and return the gradients of the ids that are wanted.

    Nodes are taken off the list, so that what only they hold is let go of on the way.
    """
    found: dict[int, Tensor] = {}
    while nodes:
        node = nodes.pop()
        key = node.output._id
        parts = grads.pop(key, None)
        if parts is None:
            continue
        with _on_device_of(node.output):
            g = _summed(parts)
            if key in wanted:
                found[key] = g
            if isinstance(node, _Read):
                grads.setdefault(node.variable._id, []).append(g)
                continue
            rule = node.op.gradient
            results = rule(node, g) if rule is not None else ()
        for tensor, needed, result in zip(node.inputs, node.needed, results, strict=True):
            if needed and result is not None:
                grads.setdefault(tensor._id, []).append(result)
    for key in wanted & grads.keys():
        with _on_device_of(grads[key][0]):
            found[key] = _summed(grads[key])
    return found


def _ones_for(target: Any) -> Tensor:
    # A variable is not read for it.
    is_tensor = isinstance(target, Tensor)
    return ops.ones_like(target) if is_tensor else ops.ones(target.shape, target.dtype)


def _is_floating(value: Any, what: str, when: str = "") -> bool:
    """Return whether a value has gradients; the log says where it has not, as TensorFlow's does."""
    if value.dtype in FLOATS:
        return True
    _told[what] += 1
    if _told[what] <= _MOST_TOLD:
        logger.warning(
            "The dtype of the %s must be floating (e.g. mr.float32)%s, got %s",
            what,
            when,
            value.dtype.name,
        )
    return False


def _zeros_for(source: Any) -> Tensor:
    with _on_device_of(source):
        return ops.zeros(source.shape, source.dtype)


def _summed(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else ops.add_n(parts)


def _on_device_of(value: Any) -> AbstractContextManager[None]:
    """Return the device scope in which the gradient of `value` is computed: where it lives."""
    return device_scope(value._device if isinstance(value, Tensor) else value.device)
