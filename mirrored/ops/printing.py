"""Values as text, as TensorFlow's `print` writes it: the ends of each axis, and short numbers.

In a recorded function it prints whenever that runs, and not while it is recorded.
"""

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import InvalidArgumentError
from mirrored.ops.checks import check_op
from mirrored.ops.conversion import adopt, constant, is_tensor
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.op import register
from mirrored.ops.spec import is_bfloat16
from mirrored.ops.structures import is_nested, map_structure
from mirrored.ops.tensor import Tensor
from mirrored.ops.tensor_shape import TensorShape

_OPTIONS = {"output_stream": None, "end": os.linesep, "summarize": 3, "sep": " ", "name": None}
_FILE = "file://"
# What stands for tensor number i while a structure is laid out in lines: as long as TensorFlow's.
_MARK = re.compile("\ue000([\ue100-\ue13f]{3})")


# They pass their inputs' arrays to `write` in each run.
PRINT, WRITE = (
    register(check_op(name, lambda *arrays, write: lambda: write(*arrays)))
    for name in ("PrintV2", "WriteSummary")
)


def print(*inputs: Any, **kwargs: Any) -> None:
    """Print tensors, and whatever else, as TensorFlow does, in one line where they are short.

    In a recorded function it prints in each call, each replica for itself.

    Args:
        *inputs: Tensors, text, and structures of them; of each axis the first and last elements.
        **kwargs: `output_stream`: `sys.stderr`, as by default, `sys.stdout`, or a file to write
            behind, as in "file:///tmp/values.txt". `summarize`: of how many elements at each end of
            an axis, 3 by default; -1 for all. `sep`: what stands between values, a space. `end`:
            what comes last, a new line. `name` is accepted for compatibility.

    Raises:
        ValueError: There is no such option, or no such stream.
        TypeError: `end` is no text, or `summarize` no integer.
        OperatorNotAllowedInGraphError: It is in a function that is recorded for a real GPU.

    Example:
        >>> import sys
        >>> import mirrored as mr
        >>> mr.print("x:", mr.range(10), {"b": mr.constant(0.1)}, output_stream=sys.stdout)
        x: [0 1 2 ... 7 8 9] {'b': 0.1}
    """
    unknown = {name: value for name, value in kwargs.items() if name not in _OPTIONS}
    if unknown:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {unknown}")
    options = {**_OPTIONS, **kwargs}
    end, summarize = options["end"], options["summarize"]
    if not isinstance(end, str):
        raise TypeError(f"Expected string for argument 'end' not {end!r}.")
    if not isinstance(summarize, int):
        raise TypeError(f"Expected int for argument 'summarize' not {summarize!r}.")
    write = _writer(options["output_stream"])
    tensors: list[Tensor] = []
    template = options["sep"].join([_laid_out(value, tensors) for value in inputs])

    def write_all(*arrays: Any) -> None:
        write(_MARK.sub(lambda mark: summary(arrays[_place(mark[1])], summarize), template) + end)

    if active_recorder() is None:
        write_all(*(tensor.numpy() for tensor in tensors))
        return
    with only():
        PRINT(*(tensors or [constant(0)]), write=write_all)


class _Mark(str):
    """Text whose repr is the text."""

    __slots__ = ()
    __repr__ = str.__str__


def _laid_out(value: Any, tensors: list[Tensor]) -> str:
    """Return a value as text, with a mark for each tensor, which is added to the list."""
    import pprint  # Few programs need it.

    def mark(leaf: Any) -> Any:
        if isinstance(leaf, TensorShape):
            return _Mark(f"TensorShape({leaf.dims})")
        if not is_tensor(leaf):
            return leaf
        place = len(tensors)
        try:
            tensors.append(adopt(leaf, None))
        except InvalidArgumentError:  # A value a replica is no tensor, and shows itself.
            if active_recorder() is not None:
                raise
            return leaf
        digits = (place >> 12 & 63, place >> 6 & 63, place & 63)
        return _Mark("\ue000" + "".join(chr(0xE100 + digit) for digit in digits))

    if isinstance(value, str):
        return value
    return pprint.pformat(map_structure(mark, value) if is_nested(value) else mark(value))


def _place(mark: str) -> int:
    """Return the number of the tensor that a mark stands for."""
    high, middle, low = (ord(character) - 0xE100 for character in mark)
    return high << 12 | middle << 6 | low


def _writer(stream: Any) -> Callable[[str], None]:
    """Return what writes text to a stream, or to a file whose name begins with file://."""
    if isinstance(stream, str) and stream.startswith(_FILE):
        path = stream.removeprefix(_FILE)

        def append(text: str) -> None:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)

        return append
    if stream not in (None, sys.stdout, sys.stderr):
        raise ValueError(
            f"Unsupported output stream, logging level, or file.{stream}. Supported streams are "
            'sys.stdout and sys.stderr, and files, as in "file:///tmp/values.txt".'
        )

    def write(text: str) -> None:
        target = stream or sys.stderr
        target.write(text)
        target.flush()

    return write


def summary(array: Any, ends: int) -> str:
    r"""Return an array as text, with N elements at both ends of each axis.

    Args:
        array: The array, or a number.
        ends: How many; negative ones mean all.

    Example:
        >>> summary(np.arange(14).reshape(2, 7), 3)
        '[[0 1 2 ... 4 5 6]\n [7 8 9 ... 11 12 13]]'
    """
    array = np.asarray(array)
    ends = array.size if ends < 0 else min(ends, array.size)
    return _text_of(array, ends, array.ndim)


def _text_of(array: NDArray[Any], ends: int, rank: int) -> str:
    if not array.ndim:
        return _number(array) if ends else "..."
    size = array.shape[0]
    space = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (rank - array.ndim + 1)
    first, last = range(min(ends, size)), range(max(ends, size - ends), size)
    parts = [_text_of(array[i, ...], ends, rank) for i in first]
    if size > 2 * ends:
        parts.append("..." if parts else f"{space}...")
    parts += [_text_of(array[i, ...], ends, rank) for i in last]
    return f"[{space.join(parts)}]"


def _number(value: NDArray[Any]) -> str:
    """Return a number in the fewest of two lengths by which it is read back as it is."""
    if value.dtype.kind not in "fV":
        return str(int(value[()]))
    short, long = (15, 17) if value.dtype == np.float64 else (6, 9)
    number = float(value[()])
    kind = np.float32 if is_bfloat16(value.dtype) else value.dtype.type
    text = f"{number:.{short}g}"
    return text if kind(text) == kind(number) or number != number else f"{number:.{long}g}"
