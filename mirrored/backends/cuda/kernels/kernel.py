"""What a kernel of the CUDA backend is, and what it is written against.

A kernel launches on the stream of the backend that it is given, and waits for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mirrored.backends.cuda.source import Source

Shape = tuple[int, ...]
# The shape and dtype of an array, as in the library's TensorSpec.
Spec = tuple[Shape, np.dtype[Any]]


class Launcher(Protocol):
    """Launches work on the compute stream of one backend, in the order of the calls.

    A recorded program gives kernels another one, which notes the calls.
    """

    def launch(
        self,
        source: Source,
        name: str,
        blocks: tuple[int, int, int],
        threads: tuple[int, int, int],
        args: tuple[Any, ...],
        shared: int = 0,
    ) -> None:
        """Launch a kernel.

        Args:
            source: The text that it is in.
            name: Its name there.
            blocks: The size of the grid, each at least 1.
            threads: The size of a block, at most 1024 in all.
            args: Arrays of the device, passed as pointers; NumPy scalars, passed by value; NumPy
                arrays of int64, passed as a struct of so many `long long`.
            shared: Bytes of dynamic shared memory.
        """

    def copy(self, target: Any, source: Any) -> None:
        """Copy one contiguous array of this card into another one of as many bytes."""

    def clear(self, target: Any) -> None:
        """Set all bytes of a contiguous array to 0."""

    def matmul(self, out: Any, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> None:
        """Write the product of two matrices of floats, or of equally many, into `out`.

        Args:
            out: Shape (n, m), or (batch, n, m); of the factors' dtype, or float32 of narrower ones.
            a: Shape (n, k), or (batch, n, k); with `transpose_a` the last two swapped. A batch
                of 1 is used for all.
            b: Shape (k, m), likewise.
            transpose_a: Whether to transpose the matrices of `a`.
            transpose_b: The same for `b`.
        """


def launch_for_each(
    xp: Launcher,
    source: Source,
    name: str,
    count: int,
    args: tuple[Any, ...],
    *,
    threads: int = 256,
) -> None:
    """Launch a kernel with a thread for each of so many elements, in blocks of so many threads."""
    xp.launch(source, name, (-(-count // threads), 1, 1), (threads, 1, 1), args)


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """An op's kernel on a device of this backend.

    Attributes:
        run: Called with a launcher, the array to write, those to read, and the op's attributes;
            with `workspace=(array, ...)` where it needs scratch memory.
        workspace: From the inputs' specs and the attributes to the specs of that memory.
    """

    run: Callable[..., None]
    workspace: Callable[..., tuple[Spec, ...]] | None = None
