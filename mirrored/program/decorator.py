"""The decorator `mr.function`, with types for the functions that it returns."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from mirrored._arguments import explained
from mirrored.ops.tensor import Operators, Tensor
from mirrored.program.function import Function
from mirrored.program.signature import Signature

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Decorator(Protocol):
    """What `function` returns where it is given no function."""

    @overload
    def __call__(self, func: Callable[_P, Operators | float], /) -> Function[_P, Tensor]: ...

    @overload
    def __call__(self, func: Callable[_P, _R], /) -> Function[_P, _R]: ...


@overload
def function(
    func: Callable[_P, Operators | float],
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Function[_P, Tensor]: ...


@overload
def function(
    func: Callable[_P, _R],
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Function[_P, _R]: ...


@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> _Decorator: ...


@explained
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    *,
    jit_compile: bool | None = None,
    autograph: bool | None = None,
    reduce_retracing: bool = False,
) -> Any:
    """Return a function that is recorded once for each kind of call, and then replayed.

    The first call with arguments of some shapes and dtypes runs Python and notes which ops it
    calls; later ones replay those on memory that is kept. So what Python does beside calling ops -
    printing, appending to lists, choosing by a number - happens when the function is recorded, and
    not again. Tensors and arrays are fed to each call; Python's numbers, strings and objects are
    part of what is recorded, and other ones are recorded again.

    It returns tensors and None: a variable as the value that it has at the end, a number as a
    constant. Variables are made by its first call alone, where there are none yet; that call then
    runs Python twice.

    Around `strategy.run` it records the step of all replicas as one. A call inside a replica, or
    with a tape open around it, runs Python.

    Args:
        func: The function; None returns a decorator.
        input_signature: A `TensorSpec` for each argument, whose sizes may be None, or a structure
            of them. Numbers and arrays are converted to its dtype, and one recording serves all
            numbers.
        jit_compile: Accepted for compatibility, like the two below; there is nothing to choose.
        autograph: Python's `if` and loops are not translated: on tensors' values they are errors.
        reduce_retracing: Accepted for compatibility.

    Raises:
        TypeError: `func` cannot be called, or has not the signature's arguments; or, when it is
            called, its arguments are not those of the signature, or it returns what becomes no
            tensor.
        ValueError: When it is called: it creates variables again in every call.
        OperatorNotAllowedInGraphError: When it is called: Python asks for a tensor's value.

    Example:
        >>> import mirrored as mr
        >>> w = mr.Variable(2.0)
        >>> @mr.function
        ... def step(x):
        ...     print("recorded for", x.shape)
        ...     w.assign_add(mr.reduce_sum(x))
        ...     return w * 2.0
        >>> float(step(mr.constant([1.0, 2.0])))
        recorded for (2,)
        10.0
        >>> float(step(mr.constant([3.0, 4.0])))
        24.0
    """
    del jit_compile, autograph, reduce_retracing
    if func is None:
        return functools.partial(function, input_signature=input_signature)
    if not callable(func):
        raise TypeError(f"`mr.function` takes a function. Received: {func!r}")
    if input_signature is None:
        return func if isinstance(func, Function) else Function(func)
    if isinstance(func, Function):
        func = func.python_function
    return Function(func, Signature(input_signature, func))
