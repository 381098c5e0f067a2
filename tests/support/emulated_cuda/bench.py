"""Short ways to use an emulated card, for the tests of the emulator.

The kernels here are the smallest that show one thing each.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from emulated_cuda import Emulator, EmulatorError, cards

OPTIONS = ("--std=c++17", "--fmad=false")
CODE = r"""
extern "C" __global__ void set(float *out, float value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = value; }
}
extern "C" __global__ void add(float *out, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = a[i] + b[i]; }
}
extern "C" __global__ void before(float *out) { out[-1] = 1; }
"""
BARRIERS = r"""
template <class T> __device__ inline T warp_sum(T x) {
    for (int step = 16; step; step >>= 1) { x += __shfl_xor_sync(0xffffffffu, x, step); }
    return x;
}
extern "C" __global__ void block_sum(double *out, const double *in, int n) {
    __shared__ double parts[32];
    double x = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { x += in[i]; }
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0) { parts[threadIdx.x / 32] = x; }
    __syncthreads();
    if (threadIdx.x < 32) {
        x = warp_sum(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0);
        if (threadIdx.x == 0) { out[blockIdx.x] = x; }
    }
}
extern "C" __global__ void without_barrier(int *out) {
    __shared__ int all[64];
    all[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = all[63 - threadIdx.x];
}
extern "C" __global__ void some_leave(int *out) {
    if (threadIdx.x == 3) { return; }
    __syncthreads();
    out[threadIdx.x] = 1;
}
extern "C" __global__ void part_of_a_warp(int *out) {
    out[threadIdx.x] = __shfl_sync(0x0000ffffu, (int)threadIdx.x, 0);
}
"""


class Bench:
    """One card with a stream, and short ways to use them."""

    def __init__(self, emulator: Emulator, card: int = 0) -> None:
        self.emulator = emulator
        self.cupy = emulator.cupy
        self.runtime = self.cupy.cuda.runtime
        self.device = self.cupy.cuda.Device(card)
        with self.device:
            self.pool = self.cupy.cuda.MemoryPool()
            self.stream = self.new_stream()
            # Loaded now, since that may not be done in a capture, and compiled, for a launch to say
            # at once what is wrong with it.
            module = self.cupy.RawModule(code=CODE, options=OPTIONS)
            module.get_function("set")
            module.compile()

    def new_stream(self) -> Any:
        return self.cupy.cuda.Stream(non_blocking=True)

    def empty(self, shape: Any, dtype: Any = np.float32, stream: Any = None) -> Any:
        bits = np.dtype(dtype)
        with self.device, stream or self.stream:
            memory = self.pool.malloc(int(np.prod(shape)) * bits.itemsize)
        return self.cupy.ndarray(shape, bits, memptr=memory)

    def array(self, host: Any) -> Any:
        host = np.ascontiguousarray(host)
        array = self.empty(host.shape, host.dtype)
        self.upload(array, host)
        return array

    def upload(self, array: Any, host: Any, stream: Any = None) -> None:
        handle = (stream or self.stream).ptr
        self.runtime.memcpyAsync(array.data.ptr, host.ctypes.data, host.nbytes, 1, handle)

    def download(self, array: Any, host: Any, stream: Any = None) -> None:
        handle = (stream or self.stream).ptr
        self.runtime.memcpyAsync(host.ctypes.data, array.data.ptr, host.nbytes, 2, handle)

    def read(self, array: Any) -> Any:
        host = np.empty(array.shape, array.dtype)
        self.download(array, host)
        return host

    def pinned(self, count: int) -> Any:
        return np.frombuffer(self.cupy.cuda.alloc_pinned_memory(4 * count), np.float32, count)

    def launch(
        self,
        name: str,
        *args: Any,
        code: str = CODE,
        grid: Any = (1, 1, 1),
        block: Any = (64, 1, 1),
        stream: Any = None,
        shared: int = 0,
    ) -> None:
        with self.device, stream or self.stream:
            kernel = self.cupy.RawModule(code=code, options=OPTIONS).get_function(name)
            kernel(grid, block, args, shared_mem=shared)

    def set(self, array: Any, value: float, stream: Any = None) -> None:
        n = array.size
        self.launch("set", array, np.float32(value), np.int32(n), stream=stream)

    def event(self, stream: Any = None) -> Any:
        with self.device:
            return (stream or self.stream).record(self.cupy.cuda.Event(disable_timing=True))

    def capture(self, work: Callable[[], object]) -> Any:
        with self.device, self.stream:
            self.stream.begin_capture()
            work()
            return self.stream.end_capture()


@contextmanager
def mistake(emulator: Emulator, text: str) -> Iterator[None]:
    """Expect a mistake that the emulator would else report again at the end."""
    with pytest.raises(EmulatorError, match=text):
        yield
    emulator.failures.clear()


def outcomes(work: Callable[[Bench], Any], seeds: int = 24) -> list[Any]:
    """Return what work reads with each of some seeds."""
    return [work(Bench(Emulator(cards(1), seed))) for seed in range(seeds)]
