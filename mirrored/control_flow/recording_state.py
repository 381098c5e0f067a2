"""TensorFlow's functions about graphs: whether a function is recorded, and the order of its ops."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._arguments import explained, explained_only
from mirrored._symbolic import Symbolic
from mirrored.errors import InvalidArgumentError
from mirrored.ops.conversion import is_tensor as _is_tensor
from mirrored.ops.hooks import RecordedTensor, active_recorder, only, recorded_by
from mirrored.ops.tensor import Tensor
from mirrored.program.variable_access import ruled_by


@contextmanager
def init_scope() -> Iterator[None]:
    """Within this context ops compute at once, even while a function is recorded; tapes see none.

    What is done in it is done when the function is recorded, and not in later calls; a tensor of
    the function has no value there.

    Example:
        >>> import mirrored as mr
        >>> @mr.function
        ... def double(x):
        ...     with mr.init_scope():
        ...         print("two is", float(mr.constant(2.0)))
        ...     return x * 2.0
        >>> float(double(double(mr.constant(1.0))))
        two is 2.0
        4.0
    """
    with recorded_by(None), only(), ruled_by(None):
        yield


def executing_eagerly() -> bool:
    """Return whether ops compute at once, which they do unless a function is recorded.

    Example:
        >>> import mirrored as mr
        >>> mr.executing_eagerly()
        True
    """
    return active_recorder() is None


def is_tensor(x: Any) -> bool:
    """Return whether an object is a tensor or a variable; the result of `Input` is neither.

    Args:
        x: Anything.

    Example:
        >>> import mirrored as mr
        >>> mr.is_tensor(mr.constant(1.0)), mr.is_tensor(1.0)
        (True, False)
    """
    return _is_tensor(x) and not isinstance(x, Symbolic)


def is_symbolic_tensor(tensor: Any) -> bool:
    """Return whether an object is a tensor without a value, of a function that is being recorded.

    Args:
        tensor: Anything.

    Example:
        >>> import mirrored as mr
        >>> mr.is_symbolic_tensor(mr.constant(1.0))
        False
    """
    return isinstance(tensor, RecordedTensor)


@explained_only
def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor as an array, or None if it is not known yet.

    Args:
        tensor: A tensor; a variable has no value that stays, and what is no tensor is returned.
        partial: Accepted for compatibility.

    Example:
        >>> import mirrored as mr
        >>> mr.get_static_value(mr.constant([1, 2]) * 2)
        array([2, 4], dtype=int32)
    """
    if not _is_tensor(tensor):
        return tensor
    known = isinstance(tensor, Tensor) and not isinstance(tensor, RecordedTensor)
    return np.asarray(tensor.numpy()) if known else None


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
        >>> [tensor.shape for tensor in mr.identity_n([1.0, mr.ones(2)])]
        [(), (2,)]
    """
    tensors = [ops.identity(tensor) for tensor in input]
    if not tensors:
        raise InvalidArgumentError("Length for attr 'T' of 0 must be at least minimum 1")
    return tensors


def group(*inputs: Any, **kwargs: Any) -> None:
    """Do nothing: the arguments were computed before, in the order in which they are written.

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
