"""The kernel that ends a recorded step: it writes the small results where the host reads them.

The address is stored in the memory of the card. So a captured CUDA graph of the step can be
replayed unchanged, and nothing is copied between two replays.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirrored.backends.cuda.kernels.kernel import Launcher
from mirrored.backends.cuda.source import Source, source

_THREADS = 256
_TEXT = """
// `state`: an address of this card's memory or of pinned host memory, 0 for none; the number of the
// next of the places there; how many there are; and how far each is from the one before, in bytes.
extern "C" __global__ void tell(u64 *state, const u32 *told, u32 words) {
    u64 place = state[0] + state[1] % state[2] * state[3];
    if (state[0]) {
        for (u32 i = threadIdx.x; i < words; i += blockDim.x) { ((u32 *)place)[i] = told[i]; }
    }
    __syncthreads();
    if (threadIdx.x == 0) { state[1] += 1; }
}

extern "C" __global__ void aim(u64 *state, u64 address, u64 count, u64 size) {
    state[0] = address;
    state[1] = 0;
    state[2] = count;
    state[3] = size;
}
"""
_SOURCE = source("tell", _TEXT)


def sources() -> Iterator[Source]:
    """Yield the text of this module."""
    yield _SOURCE


def _report(xp: Launcher, state: Any, report: Any) -> None:
    words = np.uint32(report.nbytes // 4)
    xp.launch(_SOURCE, "tell", (1, 1, 1), (_THREADS, 1, 1), (state, report.view(np.uint32), words))


def _aim(xp: Launcher, state: Any, address: int, count: int, size: int) -> None:
    args = (state, np.uint64(address), np.uint64(count), np.uint64(size))
    xp.launch(_SOURCE, "aim", (1, 1, 1), (1, 1, 1), args)


# Called with a launcher, an array of four uint64, and one of bytes, of a multiple of four.
REPORT: Callable[..., None] = _report
# Called with a launcher, that array, the address of places, and how many there are of which size.
AIM: Callable[..., None] = _aim
