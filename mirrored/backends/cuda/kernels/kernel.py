"""The interfaces of CUDA kernels and of their launcher.

A kernel launches on the stream of the backend that it is given, and waits for nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mirrored.backends.cuda.compiling import Source

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
                arrays of int64, passed as a struct of N `long long`.
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

    def solve_triangular(
        self,
        out: Any,
        matrices: Any,
        addresses: Any,
        *,
        lower: bool,
        transpose: bool = False,
        unit: bool = False,
    ) -> None:
        """Replace right sides by the solutions of systems whose matrices are triangular.

        Args:
            out: The right sides, of shape (count, n, k); none of these is 0.
            matrices: Shape (count, n, n), of the same dtype, float32 or float64.
            addresses: Two int64 arrays with the addresses of all matrices and of their right
                sides, where they are solved by one call; None: one after another.
            lower: Which triangle of each matrix counts.
            transpose: Whether to transpose it.
            unit: Whether its diagonal counts as 1.
        """

    def factor(self, matrices: Any, addresses: Any, pivots: Any, status: Any) -> None:
        """Replace many small matrices by the LU factors of the transposed ones, by one call.

        Args:
            matrices: Shape (count, n, n).
            addresses: An int64 array with the address of each.
            pivots: int32, of shape (count, n): the row that each row was exchanged with, from 1 on.
            status: int32, one per matrix: 0, or the place on the diagonal of a 0, from 1 on.
        """

    def decompose(self, routine: str, dtype: Any, count: int, work: Any, *args: Any) -> None:
        """Run a routine of cuSOLVER for each of several matrices, or once for all.

        It may wait for the card, so it is in no CUDA graph.

        Args:
            routine: Its name behind the letter of the dtype, as in 'potrf'.
            dtype: float32 or float64.
            count: How often it is called.
            work: Its scratch memory, which all calls share.
            *args: The arguments behind the handle: numbers, None for NULL, `work`, and arrays, of
                which each call gets another part in order.
        """

    def refuse_capture(self) -> None:
        """Raise NotImplementedError where a CUDA graph is captured: what follows waits."""

    def workspace(self, routine: str, dtype: Any, *args: int | None) -> int:
        """Return how many elements of scratch memory a routine of cuSOLVER needs.

        Args:
            routine: Its name behind the letter of the dtype.
            dtype: float32 or float64.
            *args: The arguments behind the handle of its function for that, None for addresses.
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
    """Launch a kernel with a thread per element, in blocks of `threads` threads."""
    xp.launch(source, name, (-(-count // threads), 1, 1), (threads, 1, 1), args)


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """An op's kernel on a device of this backend.

    Attributes:
        run: Called with a launcher, the array to write, those to read, and the op's attributes;
            with `workspace=(array, ...)` where it needs scratch memory.
        workspace: From the inputs' specs and the attributes to the specs of that memory.
        asks: Whether `workspace` takes a launcher first, since libraries say what they need.
        verdicts: The number of rows of the first array of that memory in which the kernel leaves
            another number than 0 for each matrix that it has no result for. The host reads them
            behind it, so it is in no CUDA graph.
    """

    run: Callable[..., None]
    workspace: Callable[..., tuple[Spec, ...]] | None = None
    asks: bool = False
    verdicts: int = 0
