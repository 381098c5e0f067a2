"""Functions with custom gradients instead of the gradients of their ops.

Tapes are told of such a function's call as a whole, with the rule that it returned.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mirrored import _nest, ops
from mirrored._arguments import explained
from mirrored.autodiff.tape import GradientTape, UnconnectedGradients
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import CustomCall, active_listeners, only
from mirrored.ops.op import Op
from mirrored.ops.tensor import Tensor

_NUMBERS = (bool, int, float, str, np.ndarray, np.generic)


@explained
def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Return a function whose gradient is custom instead of that of its ops.

    The function may use variables; its gradient then has a keyword argument ``variables``, gets a
    list of those that are trainable and no arguments, and returns two things: the gradients by the
    arguments, and a list of those by the variables. Gradients of any order flow through what the
    gradient function computes; it may be a function with a custom gradient itself.

    Args:
        f: From tensors, in nested lists, tuples and dicts, to two things: the result, in such a
            structure, and a function from the gradients of the result's tensors, each an argument,
            to the gradients by the arguments' tensors and numbers: a list, or one by itself. None
            stands for no gradient. Keyword arguments have none. None for `f`: return a decorator.

    Raises:
        TypeError: When it is called: it returns something else, or uses variables and has no
            ``variables``.
        ValueError: When it is called: an argument becomes no tensor; or, when the gradient is
            taken, there are more or fewer of them than arguments.

    Example:
        >>> import mirrored as mr
        >>> @mr.custom_gradient
        ... def log1pexp(x):  # With a gradient that is finite at 100.
        ...     e = mr.exp(x)
        ...     return mr.log(1.0 + e), lambda upstream: upstream * (1.0 - 1.0 / (1.0 + e))
        >>> x = mr.constant(100.0)
        >>> with mr.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = log1pexp(x)
        >>> float(tape.gradient(y, x))
        1.0
    """
    return custom_gradient if f is None else _CustomGradient(f)


def grad_pass_through(f: Callable[..., Any]) -> Any:
    """Return a function with the result of `f` and the gradient of the identity.

    Args:
        f: A function with as many tensors as arguments as it returns. Variables that it uses get
            no gradient.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant(2.6)
        >>> with mr.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = mr.grad_pass_through(mr.round)(x)
        >>> float(y), float(tape.gradient(y, x))
        (3.0, 1.0)
    """

    def passing(*args: Any, **kwargs: Any) -> Any:
        def gradient(*upstream: Tensor, variables: Sequence[Any] | None = None) -> Any:
            return upstream if variables is None else (upstream, [None] * len(variables))

        return f(*args, **kwargs), gradient

    return _CustomGradient(functools.update_wrapper(passing, f))


def recompute_grad(f: Callable[..., Any]) -> Any:
    """Return a function with the result of `f` that computes it again for its gradient.

    What `f` computes on the way is not kept for the gradient: the memory of deep networks is less,
    their time more.

    Args:
        f: A function from tensors to tensors. It is run again with the same arguments, so random
            numbers that it draws are others then.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant(0.5)
        >>> block = mr.recompute_grad(lambda x: mr.tanh(mr.tanh(x)))
        >>> with mr.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = block(x)
        >>> round(float(tape.gradient(y, x)), 4)
        0.6398
    """

    def recomputing(*args: Any, **kwargs: Any) -> Any:
        with only(*(entry for entry in active_listeners() if not isinstance(entry, GradientTape))):
            result = f(*args, **kwargs)

        def gradient(*upstream: Tensor, variables: Sequence[Any] | None = None) -> Any:
            with GradientTape() as tape:
                copies = _nest.map_structure(ops.identity, args)
                tape.watch((copies, list(variables or ())))
                again = f(*copies, **kwargs)
            gradients = tape.gradient(
                again,
                [*copies, *(variables or ())],
                output_gradients=upstream,
                unconnected_gradients=UnconnectedGradients.ZERO,
            )
            by_args, by_variables = gradients[: len(args)], gradients[len(args) :]
            return by_args if variables is None else (by_args, by_variables)

        return result, gradient

    return _CustomGradient(functools.update_wrapper(recomputing, f))


class _CustomGradient:
    """A function with a custom gradient, as `custom_gradient` returns it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return _CustomGradient(functools.partial(self._function, instance))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watcher = _VariableWatcher()
        with only(*active_listeners(), watcher):
            result, gradient = _pair(self._function(*args, **kwargs))
        leaves = _nest.flatten(args)
        others = {id(leaf) for leaf in (*leaves, *_nest.flatten(kwargs))}
        variables = [variable for variable in watcher.variables if id(variable) not in others]
        if variables and not _takes_variables(gradient):
            raise TypeError(
                "@mr.custom_gradient grad_fn must accept keyword argument 'variables', since "
                f"function uses variables: {[variable.name for variable in variables]}"
            )
        # Tensors of their own. To a tape that follows no input they are what the ops made.
        results = _nest.map_structure(_result, result)
        inputs = [*map(_input, leaves), *(adopt(variable, None) for variable in variables)]
        rule = functools.partial(_gradients, gradient, len(leaves), variables)
        call = CustomCall(inputs, _nest.flatten(results), rule)
        for listener in active_listeners():
            listener.on_custom_call(call)
        return results


class _VariableWatcher:
    """Notes which trainable variables are read: a listener, like tapes."""

    def __init__(self) -> None:
        self.variables: list[Any] = []

    def follows(self, tensor: Tensor) -> bool:
        """Return False: no tensor is followed."""
        return False

    def on_op(
        self, op: Op, inputs: tuple[Tensor, ...], attrs: Mapping[str, Any], output: Tensor
    ) -> None:
        """Do nothing."""

    def on_read(self, variable: Any, value: Tensor) -> None:
        """Note the variable."""
        if variable.trainable and not any(known is variable for known in self.variables):
            self.variables.append(variable)

    def on_custom_call(self, call: CustomCall) -> None:
        """Do nothing: the reads were noted."""


def _gradients(
    gradient: Callable[..., Any], count: int, variables: Sequence[Any], upstream: list[Tensor]
) -> list[Any]:
    """Return what a gradient function returns, with its numbers of gradients checked.

    Args:
        gradient: The function.
        count: The number of the call's tensors and numbers.
        variables: The variables that it used.
        upstream: The gradients of its results.
    """
    by_variables: Sequence[Any] = ()
    if variables:
        by_inputs, by_variables = gradient(*upstream, variables=list(variables))
        if len(by_variables) != len(variables):
            raise ValueError(
                "Must return gradient for each variable from @mr.custom_gradient grad_fn. "
                f"Received: {len(by_variables)} for {len(variables)} variables."
            )
    else:
        by_inputs = gradient(*upstream)
    by_inputs = _nest.flatten(by_inputs)
    if len(by_inputs) != count:
        raise ValueError(
            f"custom_gradient function expected to return {count} gradients, but "
            f"returned {len(by_inputs)} instead."
        )
    return [*by_inputs, *by_variables]


def _pair(returned: Any) -> tuple[Any, Callable[..., Any]]:
    """Take a return value apart: the result and the gradient function."""
    is_sequence = isinstance(returned, tuple | list)
    if is_sequence and len(returned) == 2 and callable(returned[1]):
        return returned[0], returned[1]
    kind = ValueError if is_sequence and len(returned) != 2 else TypeError
    raise kind(
        "A function with @mr.custom_gradient must return two values: its result, and a function "
        "from the gradient of the result to the gradients of its arguments. Received: "
        f"{returned!r:.100}"
    )


def _takes_variables(gradient: Callable[..., Any]) -> bool:
    parameters = inspect.signature(gradient).parameters
    return "variables" in parameters or any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()
    )


def _result(leaf: Any) -> Tensor:
    _check_leaf(leaf)
    return ops.identity(leaf)


def _input(leaf: Any) -> Tensor | None:
    """Return an argument as a tensor that tapes know; numbers have no gradient."""
    _check_leaf(leaf)
    return adopt(leaf, None) if is_tensor(leaf) else None


def _check_leaf(leaf: Any) -> None:
    if leaf is None or not (is_tensor(leaf) or isinstance(leaf, _NUMBERS)):
        raise ValueError(
            f"Attempt to convert a value ({leaf!r:.100}) with an unsupported type ({type(leaf)}) "
            "to a Tensor. A function with @mr.custom_gradient takes and returns tensors and "
            "numbers. Use a closure for other values."
        )
