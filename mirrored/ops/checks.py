"""Checks of values that raise at once, or whenever a recorded function runs.

There they look at the values in each run, before anything is written.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import adopt, is_tensor
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.op import Check, Grads, Op, OpCall, define_op, register
from mirrored.ops.spec import FLOATS, TensorSpec, bool_
from mirrored.ops.tensor import Tensor

FEW = 3  # How many values errors show where nobody says.


def _check_all(held: Any, *arrays: Any, text: Callable[..., str], shown: int) -> Check:
    def check() -> None:
        if not held.all():
            raise InvalidArgumentError(text(held, *arrays[:shown]))

    return check


def _check_finite(x: Any, *, message: str) -> Check:
    def check() -> None:
        nan, infinite = bool(np.isnan(x).any()), bool(np.isinf(x).any())
        if nan or infinite:
            kinds = " and ".join(["Inf"] * infinite + ["NaN"] * nan)
            raise InvalidArgumentError(f"{message} : Tensor had {kinds} values [Op:CheckNumerics]")

    return check


def _grad_check_numerics(call: OpCall, g: Tensor) -> Grads:
    said = call.attrs["message"]
    where = f"Not a number (NaN) or infinity (Inf) values detected in gradient. {said}"
    return [CHECK_NUMERICS(g, message=where)]


def check_op(name: str, validate: Callable[..., Check]) -> Op:
    """Return an op for the sake of its `validate`, which looks at its inputs in each run."""
    return Op(
        name=name,
        infer=lambda *_, **__: TensorSpec((), bool_),
        kernel=lambda xp, out, *_, **__: xp.copyto(out, True),
        devices=("CPU",),
        validate=validate,
        stateful=True,
    )


ASSERT = register(check_op("Assert", _check_all))
CHECK_NUMERICS = define_op(
    name="CheckNumerics",
    infer=lambda x, **_: x,
    kernel=lambda xp, out, x, **_: xp.copyto(out, x),
    gradient=_grad_check_numerics,
    devices=("CPU",),
    dtypes=FLOATS,
    validate=_check_finite,
    stateful=True,
)


def require(text: Callable[..., str], held: Tensor, *tensors: Tensor) -> None:
    """Raise InvalidArgumentError unless all of `held` is true, now or whenever this runs.

    Args:
        text: From the values of `held` and of the tensors to what the error says.
        held: Booleans.
        *tensors: What the error shows.
    """
    if active_recorder() is not None:
        ASSERT(held, *tensors, text=text, shown=len(tensors))
        return
    values = held.numpy()
    if not values.all():
        raise InvalidArgumentError(text(values, *(tensor.numpy() for tensor in tensors)))


def listed(array: NDArray[Any], summarize: int | None) -> str:
    """Return the first elements of an array in a row.

    Args:
        array: The array.
        summarize: How many: 3 for None, all for -1.

    Example:
        >>> listed(np.arange(9), None)
        '0, 1, 2, ...'
    """
    shown = array.size if summarize == -1 else FEW if summarize is None else summarize
    few = [str(element) for element in array.ravel()[:shown]]
    return ", ".join([*few, "..."] if array.size > shown else few)


def Assert(
    condition: TensorLike,
    data: Sequence[Any],
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise unless a condition is true.

    Args:
        condition: A scalar, or a value of Python's.
        data: What the error shows: tensors, arrays, numbers and text.
        summarize: How many elements of each: 3 for None, all for -1.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: It is not true.
        TypeError: `data` is no sequence.
        ValueError: The condition is a tensor of several elements.

    Example:
        >>> import mirrored as mr
        >>> x = mr.constant([1.0, -1.0])
        >>> mr.debugging.Assert(mr.reduce_all(x > 0.0), ["x is", x])
        Traceback (most recent call last):
        mirrored.errors.InvalidArgumentError: Expected 'False' to be true. Summarized data: x is
        1.0, -1.0
    """
    if not isinstance(data, Sequence):
        raise TypeError(f"`data` must be a list of values for the error. Received: {data!r:.100}")

    def text(held: Any, *arrays: Any) -> str:
        values = iter(arrays)
        lines = [
            listed(np.asarray(next(values)), summarize) if is_tensor(item) else str(item)
            for item in data
        ]
        shown = "\n".join(lines)
        return f"Expected '{np.asarray(held)[()]}' to be true. Summarized data: {shown}"

    with only():
        tensors = [adopt(item, None) for item in data if is_tensor(item)]
        if not is_tensor(condition):
            if not condition:
                raise InvalidArgumentError(text(condition, *(tensor.numpy() for tensor in tensors)))
            return
        held = adopt(condition, None)
        if held.shape not in ((), (1,)):
            raise ValueError(
                f"The condition must be a scalar. Received: shape {held.shape}. Reduce it first, "
                "for example with mr.reduce_all."
            )
        require(text, held, *tensors)


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Return a tensor, or raise where an element of it, or of its gradient, is not finite.

    Args:
        tensor: Floats.
        message: What the error begins with.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: An element is NaN or infinite, or they are no floats.
        TypeError: The message is no text.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.check_numerics([1.0, float("nan")], "the loss")
        Traceback (most recent call last):
        mirrored.errors.InvalidArgumentError: the loss : Tensor had NaN values [Op:CheckNumerics]
    """
    if not isinstance(message, str):
        raise TypeError(f"Expected string for argument 'message' not {message!r}.")
    return CHECK_NUMERICS(tensor, message=message)


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Return a tensor, or raise where an element is not finite, as `check_numerics` does.

    Args:
        x: Floats.
        message: What the error begins with.
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.debugging.assert_all_finite([1.0, 2.0], "the loss").numpy()
        array([1., 2.], dtype=float32)
    """
    return check_numerics(x, message)


explain_functions(__name__, all_but="check_op listed require")
