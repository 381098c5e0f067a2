"""The kernels of a step's end: whether its losses are finite, and where its small results go.

What they find stays on the device, where the kernels that write look at it. The address of the
results is in the memory of the card too, so a captured CUDA graph of the step can be replayed
unchanged, and nothing is copied between two replays.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from mirrored.backends.cuda.compiling import source
from mirrored.backends.cuda.launcher import Launcher

_MOST = 16  # Numbers a launch.

_FINITE_TEXT = f"""
// One thread, so that nothing depends on the order of threads. What is not finite is not equal to
// itself without itself.
extern "C" __global__ void all_finite(
    int *flag, {", ".join(f"const T *x{i}" for i in range(_MOST))}
) {{
    const T *numbers[{_MOST}] = {{ {", ".join(f"x{i}" for i in range(_MOST))} }};
    if (blockIdx.x == 0 && threadIdx.x == 0) {{
#pragma unroll
        for (int i = 0; i < {_MOST}; ++i) {{
            T_C x = load(*numbers[i]);
            if (x - x != (T_C)0) {{ *flag = 0; }}
        }}
    }}
}}
"""


def _all_finite(xp: Launcher, flag: Any, *arrays: Any) -> None:
    by_dtype = defaultdict(list)
    for array in arrays:
        by_dtype[array.dtype].append(array)
    for dtype, alike in by_dtype.items():
        for start in range(0, len(alike), _MOST):
            part = alike[start : start + _MOST]
            part += part[:1] * (_MOST - len(part))  # To look twice at one changes nothing.
            xp.launch(
                source("all finite", _FINITE_TEXT, T=dtype),
                "all_finite",
                (1, 1, 1),
                (1, 1, 1),
                (flag, *part),
            )


# Called with a launcher, an int32 array of one element, and arrays of floats: the element becomes
# 0 unless the first number of each array is finite, and otherwise stays as it is.
ALL_FINITE: Callable[..., None] = _all_finite


_THREADS = 256
_REPORT_TEXT = """
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
_REPORT_SOURCE = source("tell", _REPORT_TEXT)


def _report(xp: Launcher, state: Any, report: Any) -> None:
    words = np.uint32(report.nbytes // 4)
    xp.launch(
        _REPORT_SOURCE, "tell", (1, 1, 1), (_THREADS, 1, 1), (state, report.view(np.uint32), words)
    )


def _aim(xp: Launcher, state: Any, address: int, count: int, size: int) -> None:
    args = (state, np.uint64(address), np.uint64(count), np.uint64(size))
    xp.launch(_REPORT_SOURCE, "aim", (1, 1, 1), (1, 1, 1), args)


# Called with a launcher, an array of four uint64, and one of bytes, of a multiple of four.
REPORT: Callable[..., None] = _report
# Called with a launcher, that array, the address of places, and how many there are of which size.
AIM: Callable[..., None] = _aim
