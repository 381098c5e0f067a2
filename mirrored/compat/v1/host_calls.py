"""Operations that call Python in each run: `py_func` and `Print`."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirrored import ops
from mirrored._types import TensorLike
from mirrored.compat.v1.graph import graph_of
from mirrored.compat.v1.graph_elements import Tensor
from mirrored.compat.v1.running import current_run
from mirrored.compat.v1.sources import converted
from mirrored.ops.hooks import active_recorder, graph_scope, only
from mirrored.ops.host_function import numpy_function
from mirrored.ops.printing import PRINT
from mirrored.ops.printing import summary as number_text
from mirrored.ops.spec import as_dtype


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Return what a function of Python makes of arrays, in each run.

    A run with such an operation in it is not recorded: its operations run one after the other.

    Args:
        func: Takes one array an input, and returns an array, or a list of them.
        inp: The inputs.
        Tout: The dtype of the result, or a list of dtypes for several.
        stateful: Accepted for compatibility.
        name: Its name.

    Raises:
        TypeError: `func` cannot be called.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     session.run(tf.py_func(lambda x: x + 1, [tf.constant([1.0])], tf.float32))
        array([2.], dtype=float32)
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: {func!r}")
    several = isinstance(Tout, list | tuple)
    dtypes = [as_dtype(dtype) for dtype in (Tout if several else [Tout])]
    name = name or "PyFunc"
    graph = graph_of(inp)
    with graph.as_default():
        inputs = [converted(value, name=f"{name}/input_{i}") for i, value in enumerate(inp)]

    def call(*values: Any) -> Any:
        with graph_scope():
            return numpy_function(func, values, dtypes if several else dtypes[0])

    results = [Tensor(None, dtype, "") for dtype in dtypes]
    operation = graph.draw(
        call,
        tuple(inputs),
        kind="PyFunc",
        name=name,
        results=results or None,
        runs_only=not results,
        asks_run=True,
    )
    if not results:
        return operation
    return operation.outputs if several else operation.outputs[0]


def Print(
    input_: TensorLike,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor as it is, and print others to standard error whenever a run computes it.

    Args:
        input_: The tensor that is returned.
        data: Those that are printed.
        message: What stands before them.
        first_n: How often it prints in a session; None or -1: each time.
        summarize: How many elements of each are printed; None: 3.
        name: Its name.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> with tf.Graph().as_default(), tf.Session() as session:
        ...     x = tf.constant([1.0, 2.0])
        ...     session.run(tf.Print(x, [x, tf.shape(x)], "x: "))  # On standard error: x: [1 2][2]
        array([1., 2.], dtype=float32)
    """
    name = name or "Print"
    most = -1 if first_n is None else first_n
    graph = graph_of(input_, data)
    with graph.as_default():
        kept = converted(input_, name=f"{name}/input")
        inputs = [converted(value, name=f"{name}/data_{i}") for i, value in enumerate(data)]

    def show(value: Any, *shown: Any) -> Any:
        run = current_run()
        if run is None:  # Its shape is looked for.
            return ops.identity(value)

        def write(*arrays: Any) -> None:
            if most < 0 or run.kept.count(show) < most:
                parts = [
                    f"[{_summarized(np.asarray(array), 3 if summarize is None else summarize)}]"
                    for array in arrays[: len(shown)]
                ]
                sys.stderr.write(f"{message or ''}{''.join(parts)}\n")
                sys.stderr.flush()

        with only():
            if active_recorder() is None:
                write(*(tensor.numpy() for tensor in shown))
            else:
                PRINT(*(shown or [ops.constant(0)]), write=write)
        return ops.identity(value)

    return graph.draw(show, (kept, *inputs), kind="Print", name=name).outputs[0]


def _summarized(array: Any, most: int) -> str:
    """Return the first elements of an array as text, each axis but the last in brackets."""
    limit = array.size if most < 0 else most
    elements = iter(array.reshape(-1))
    parts: list[str] = []
    printed = 0

    def add(axis: int) -> None:
        nonlocal printed
        last = axis >= array.ndim - 1
        for i in range(array.shape[axis] if array.ndim else 1):
            if printed >= limit:
                if last and axis:
                    parts.append("...")
                return
            if last:
                parts.append(f"{' ' if i else ''}{number_text(next(elements), 1)}")
                printed += 1
            else:
                parts.append("[")
                add(axis + 1)
                parts.append("]")

    add(0)
    return "".join(parts) + ("..." if array.size > limit else "")
