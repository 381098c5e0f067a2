"""The kernel that checks whether the losses of a step are finite before it writes.

What it finds stays on the device, where the kernels that write look at it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from mirrored.backends.cuda.kernels.kernel import Launcher
from mirrored.backends.cuda.kernels.teams import float_dtypes
from mirrored.backends.cuda.source import Source, source

_MOST = 16  # Numbers a launch.

_TEXT = f"""
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


def sources() -> Iterator[Source]:
    """Yield each text of this module."""
    for dtype in float_dtypes():
        yield source("all finite", _TEXT, T=dtype)


def _all_finite(xp: Launcher, flag: Any, *arrays: Any) -> None:
    by_dtype = defaultdict(list)
    for array in arrays:
        by_dtype[array.dtype].append(array)
    for dtype, alike in by_dtype.items():
        for start in range(0, len(alike), _MOST):
            part = alike[start : start + _MOST]
            part += part[:1] * (_MOST - len(part))  # To look twice at one changes nothing.
            xp.launch(
                source("all finite", _TEXT, T=dtype),
                "all_finite",
                (1, 1, 1),
                (1, 1, 1),
                (flag, *part),
            )


# Called with a launcher, an int32 array of one element, and arrays of floats: the element becomes
# 0 unless the first number of each array is finite, and otherwise stays as it is.
ALL_FINITE: Callable[..., None] = _all_finite
