"""TensorFlow's functions on the order of ops, which is the program's order here."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mirrored import ops
from mirrored._arguments import explained, explained_only
from mirrored.errors import InvalidArgumentError
from mirrored.ops.tensor import Tensor


@explained
def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Return tensors equal to those of a list.

    Args:
        input: Tensors, variables and numbers, one at least.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: There are none.

    Example:
        >>> import mirrored as mr
        >>> [each.shape for each in mr.identity_n([1.0, mr.ones(2)])]
        [(), (2,)]
    """
    tensors = [ops.identity(tensor) for tensor in input]
    if not tensors:
        raise InvalidArgumentError("Length for attr 'T' of 0 must be at least minimum 1")
    return tensors


def group(*inputs: Any, **kwargs: Any) -> None:
    """Do nothing: what is given was computed before, in the order in which it is written.

    Args:
        *inputs: Anything.
        **kwargs: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> mr.group(v.assign_add(1.0), v.assign_add(1.0))
        >>> float(v)
        3.0
    """


@explained_only
def no_op(name: str | None = None) -> None:
    """Do nothing.

    Args:
        name: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.no_op()
    """


@explained_only
def control_dependencies(control_inputs: Iterable[Any] | None) -> AbstractContextManager[None]:
    """Return a context that changes nothing: operations run in the order in which they are written.

    Args:
        control_inputs: What is to come before; None: nothing.

    Raises:
        TypeError: It is no list.

    Example:
        >>> import mirrored as mr
        >>> v = mr.Variable(1.0)
        >>> with mr.control_dependencies([v.assign(2.0)]):
        ...     y = v * 3.0
        >>> float(y)
        6.0
    """
    if control_inputs is not None:
        iter(control_inputs)
    return nullcontext()
