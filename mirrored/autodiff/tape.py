"""Reverse-mode differentiation: a tape records ops and composes their gradients.

What it notes is walked backwards by the module `backpropagation`; here is what users see of it.
"""

import enum
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeVar, overload

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored._contexts import Within
from mirrored._types import TensorLike
from mirrored.autodiff.backpropagation import (
    Node,
    backpropagate,
    batch_jacobian_of,
    jacobian_of,
    on_device_of,
    zeros_for,
)
from mirrored.autodiff.recording import Recording, is_floating
from mirrored.ops.conversion import adopt
from mirrored.ops.hooks import active_recorder
from mirrored.ops.tensor import Operators, Tensor

_Key = TypeVar("_Key")
_Source = TypeVar("_Source", bound=Operators)


class UnconnectedGradients(enum.Enum):
    """The gradient for a source that the target does not depend on.

    Attributes:
        NONE: None.
        ZERO: Zeros of the source's shape.

    Example:
        >>> import mirrored as mr
        >>> mr.UnconnectedGradients("zero").name
        'ZERO'
    """

    NONE = "none"
    ZERO = "zero"


# Called with the targets and sources before a gradient is computed; its result is called with the
# gradients, None where there is none.
GradientsMade = Callable[[list[Tensor | None]], None]
Listener = Callable[[list[Any], list[Any]], GradientsMade]
_listener: ContextVar[Listener | None] = ContextVar("mirrored_gradient_listener", default=None)


def telling_of_gradients(listener: Listener) -> Within:
    """Return a context in which a function is notified of all gradients that tapes compute.

    Listeners of outer contexts are notified first.

    Args:
        listener: Called as `listener(targets, sources)` before they are computed. Its result is
            called with the gradients. An error of either is raised to the tape's user.
    """
    outer = _listener.get()
    if outer is None:
        return Within(_listener, listener)

    def both(targets: list[Any], sources: list[Any]) -> GradientsMade:
        of_both = outer(targets, sources), listener(targets, sources)

        def on_gradients(gradients: list[Tensor | None]) -> None:
            for callback in of_both:
                callback(gradients)

        return on_gradients

    return Within(_listener, both)


_NoneMode = Literal["none", UnconnectedGradients.NONE]


@explained
class GradientTape(Recording):
    """Records the ops that run while it is open, and differentiates them.

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
        """Create a tape, which records nothing until it is entered."""
        super().__init__(persistent, watch_accessed_variables)

    @overload
    def gradient(
        self,
        target: Any,
        sources: Operators,
        output_gradients: Any = None,
        unconnected_gradients: _NoneMode = UnconnectedGradients.NONE,
    ) -> Tensor | None: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: list[_Source],
        output_gradients: Any = None,
        unconnected_gradients: _NoneMode = UnconnectedGradients.NONE,
    ) -> list[Tensor | None]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: tuple[Operators, ...],
        output_gradients: Any = None,
        unconnected_gradients: _NoneMode = UnconnectedGradients.NONE,
    ) -> tuple[Tensor | None, ...]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: dict[_Key, _Source],
        output_gradients: Any = None,
        unconnected_gradients: _NoneMode = UnconnectedGradients.NONE,
    ) -> dict[_Key, Tensor | None]: ...

    @overload
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any: ...

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradients of `target` by each of `sources`.

        That of a tensor or variable by itself is one, whether it was watched or not. What has no
        floating-point dtype has no other gradient, which a line of the log says.

        Args:
            target: A tensor, or a structure of them, whose gradients are summed.
            sources: Tensors or variables that were watched, or a structure of them.
            output_gradients: The gradient that flows into each target; None: ones.
            unconnected_gradients: "none" gives None for a source that the target does not
                depend on, "zero" gives zeros; or one of `UnconnectedGradients`.

        Returns:
            A structure like that of `sources`.

        Raises:
            RuntimeError: The tape is not persistent and was used before.
            ValueError: An unknown `unconnected_gradients`, or gradients that do not fit.
        """
        self._check_usable()
        mode = _as_mode(unconnected_gradients)
        leaves = _checked_sources(sources)
        wanted = {leaf._id for leaf in leaves}
        listener = _listener.get()
        callback = None if listener is None else listener(_nest.flatten(target), leaves)
        grads = self._seed_gradients(target, output_gradients, wanted)
        by_id = backpropagate(self._taken_nodes(), grads, wanted)
        results = [by_id.get(leaf._id) for leaf in leaves]
        if callback is not None:
            callback(results)
        return _nest.pack_like(sources, _connected(results, leaves, mode))

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the gradient of each element of `target` by each of `sources`.

        It takes one way back an element of the target.

        Args:
            target: A tensor or variable.
            sources: Tensors or variables that were watched, or a structure of them.
            unconnected_gradients: As for `gradient`.
            parallel_iterations: Accepted for compatibility.
            experimental_use_pfor: False takes a persistent tape, as in TensorFlow; nothing else
                depends on it.

        Returns:
            A structure like that of `sources`, of tensors of shape (target's..., source's...).

        Raises:
            RuntimeError: The tape is not persistent and was used before, or is to use no pfor.
            ValueError: An unknown `unconnected_gradients`.

        Example:
            >>> import mirrored as mr
            >>> x = mr.constant([1.0, 2.0])
            >>> with mr.GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            >>> tape.jacobian(y, x).numpy()
            array([[2., 0.],
                   [0., 4.]], dtype=float32)
        """
        self._check_usable("jacobian", experimental_use_pfor)
        mode, leaves = _as_mode(unconnected_gradients), _checked_sources(sources)
        _check_single("target", target)
        results = jacobian_of(self._way_back(target), target, leaves)
        return _nest.pack_like(sources, _connected(results, leaves, mode, target.shape))

    def batch_jacobian(
        self,
        target: TensorLike,
        source: TensorLike,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor:
        """Return the gradient of each example's target by the same example's source.

        It takes one way back an element of an example's target. Where examples depend on each
        other, it is the sum of their gradients.

        Args:
            target: A tensor of shape (batch, ...), of two axes or more.
            source: A tensor or variable of shape (batch, ...), of two axes or more.
            unconnected_gradients: As for `gradient`; where nothing is connected both give zeros.
            parallel_iterations: Accepted for compatibility.
            experimental_use_pfor: As for `jacobian`.

        Returns:
            A tensor of shape (batch, target's others..., source's others...).

        Raises:
            RuntimeError: The tape is not persistent and was used before, or is to use no pfor.
            ValueError: The shapes do not fit, or an unknown `unconnected_gradients`.

        Example:
            >>> import mirrored as mr
            >>> x = mr.constant([[1.0, 2.0], [3.0, 4.0]])
            >>> with mr.GradientTape() as tape:
            ...     tape.watch(x)
            ...     y = x * x
            >>> tape.batch_jacobian(y, x).numpy()
            array([[[2., 0.],
                    [0., 4.]],
            <BLANKLINE>
                   [[6., 0.],
                    [0., 8.]]], dtype=float32)
        """
        self._check_usable("batch_jacobian", experimental_use_pfor)
        _as_mode(unconnected_gradients)
        _check_single("target", target)
        _check_single("source", source)
        _checked_sources(source)
        return batch_jacobian_of(self._way_back, target, source)

    def _way_back(self, target: Any) -> Callable[[Tensor, set[int]], dict[int, Tensor]]:
        """Return a function from the target's gradient to the gradients for the wanted ids."""
        nodes, key = self._taken_nodes(), target._id

        def back(upstream: Tensor, wanted: set[int]) -> dict[int, Tensor]:
            return backpropagate(list(nodes), {key: [upstream]}, wanted)

        return back

    def _taken_nodes(self) -> list[Node]:
        """Return the recording; a tape that is not persistent releases it."""
        if self._persistent:
            return list(self._nodes)
        nodes, self._nodes, self._used = self._nodes, [], True
        return nodes

    def _check_usable(self, jacobian: str = "", use_pfor: bool = True) -> None:
        if self._used or not self._started:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients "
                "(or jacobians), once it has recorded. Create it with persistent=True to use it "
                "again."
            )
        if not use_pfor and not self._persistent and active_recorder() is None:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {jacobian} with "
                "eager execution enabled and with experimental_use_pfor set to False. Or leave it "
                "True: nothing else depends on it."
            )

    def _seed_gradients(
        self, target: Any, output_gradients: Any, wanted: set[int]
    ) -> dict[int, list[Tensor]]:
        targets = [
            adopt(value, None) if not hasattr(value, "_id") else value
            for value in _nest.flatten(target)
        ]
        upstream = _nest.flatten(output_gradients) if output_gradients is not None else []
        if upstream and len(upstream) != len(targets):
            raise ValueError(
                f"Pass one output gradient per target. Received: {len(upstream)} for "
                f"{len(targets)} targets."
            )
        grads: dict[int, list[Tensor]] = {}
        for i, leaf in enumerate(targets):
            is_floating(leaf, "target tensor", " when calling GradientTape.gradient")
            if leaf._id not in self._tracked and leaf._id not in wanted:
                continue
            seed = upstream[i] if upstream else None
            with on_device_of(leaf):
                g = _ones_for(leaf) if seed is None else adopt(seed, leaf.dtype)
            if g.shape != leaf.shape:
                raise ValueError(
                    f"An output gradient must have the shape of its target. Received: {g.shape} "
                    f"for a target of shape {leaf.shape}."
                )
            grads.setdefault(leaf._id, []).append(g)
        return grads


def _ones_for(target: Any) -> Tensor:
    # A variable is not read for it.
    is_tensor = isinstance(target, Tensor)
    return ops.ones_like(target) if is_tensor else ops.ones(target.shape, target.dtype)


def _as_mode(value: Any) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}. Use 'none' or 'zero'."
        ) from None


def _connected(
    results: list[Any], sources: list[Any], mode: UnconnectedGradients, shape: Any = ()
) -> list[Any]:
    """Return gradients, with zeros for missing ones if the mode demands them."""
    if mode is not UnconnectedGradients.ZERO:
        return results
    return [
        zeros_for(source, (*shape, *source.shape)) if result is None else result
        for result, source in zip(results, sources, strict=True)
    ]


def _checked_sources(sources: Any) -> list[Any]:
    """Return the tensors and variables whose gradients are requested."""
    leaves = _nest.flatten(sources)
    for leaf in leaves:
        if not hasattr(leaf, "_id"):
            raise TypeError(
                f"Sources must be tensors or variables. Received: {leaf!r}. Convert it to a "
                "tensor, and watch it before it is used."
            )
        is_floating(leaf, "source tensor", " when calling GradientTape.gradient")
    return leaves


def _check_single(role: str, value: Any) -> None:
    if not hasattr(value, "_id"):
        raise AttributeError(
            f"The {role} of a jacobian must be one tensor. Received: {value!r:.100}. For several, "
            "use a persistent tape and call it for each."
        )


@explained
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
    stop_gradients: Any = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> NoReturn:
    """Raise RuntimeError: gradients are taken by a `GradientTape`, which follows what is computed.

    The parameters are TensorFlow's.

    Raises:
        RuntimeError: Always.

    Example:
        >>> import mirrored as mr
        >>> mr.gradients(mr.constant(1.0), mr.constant(2.0))
        Traceback (most recent call last):
        RuntimeError: mr.gradients is not supported when eager execution is enabled. Use ...
    """
    raise RuntimeError(
        "mr.gradients is not supported when eager execution is enabled. Use mr.GradientTape "
        "instead, in recorded functions too: open it around the operations to differentiate."
    )
