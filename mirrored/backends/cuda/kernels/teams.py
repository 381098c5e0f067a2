"""Teams of threads that reduce rows together.

Reductions, softmax and the cross-entropies are built on it, so all of them sum in one fixed order.
"""

from typing import Any, NamedTuple

import numpy as np

from mirrored.backends.cuda.compiling import Source
from mirrored.backends.cuda.launcher import Launcher

INDICES = ("int32", "int64")
INTEGERS = (*INDICES, "uint8", "int8", "int16", "uint16", "uint32", "uint64")
NARROW = ("bfloat16", "float16")  # Computed in float32, and rounded where they are written.
_WARP = 32
_LARGEST_BLOCK = 512  # The registers of larger ones could be too many.
_SMALL_BLOCK = 128  # Enough warps to fill a multiprocessor with its most blocks.
_EACH = 8  # Elements that a thread has in flight at once; as in the text.
_MOST_BLOCKS = 2**31 - 1  # Along the first axis of a grid. The kernels go round where it is less.

# Integers are summed in 64 bits, so that means are exact, and without a sign: sums and products
# wrap, as NumPy's do.
WIDE = """
template <class T> struct Wide { typedef u64 Type; };
template <> struct Wide<float> { typedef float Type; };
template <> struct Wide<double> { typedef double Type; };
"""

TEXT = """
__device__ inline float lowest(float) { return -INFINITY_F; }
__device__ inline double lowest(double) { return -INFINITY_D; }
__device__ inline int lowest(int) { return -0x7fffffff - 1; }
__device__ inline i64 lowest(i64) { return -0x7fffffffffffffffLL - 1; }
__device__ inline u8 lowest(u8) { return 0; }
__device__ inline u16 lowest(u16) { return 0; }
__device__ inline u32 lowest(u32) { return 0; }
__device__ inline u64 lowest(u64) { return 0; }
__device__ inline i8 lowest(i8) { return -0x80; }
__device__ inline i16 lowest(i16) { return -0x8000; }
__device__ inline float highest(float) { return INFINITY_F; }
__device__ inline double highest(double) { return INFINITY_D; }
__device__ inline int highest(int) { return 0x7fffffff; }
__device__ inline i64 highest(i64) { return 0x7fffffffffffffffLL; }
__device__ inline u8 highest(u8) { return 0xff; }
__device__ inline u16 highest(u16) { return 0xffff; }
__device__ inline u32 highest(u32) { return 0xffffffffu; }
__device__ inline u64 highest(u64) { return 0xffffffffffffffffULL; }
__device__ inline i8 highest(i8) { return 0x7f; }
__device__ inline i16 highest(i16) { return 0x7fff; }

template <class T> struct Sum {
    typedef T State;
    static __device__ inline T nothing() { return 0; }
    static __device__ inline T combine(T a, T b) { return a + b; }
};
template <class T> struct Product {
    typedef T State;
    static __device__ inline T nothing() { return 1; }
    static __device__ inline T combine(T a, T b) { return a * b; }
};
// NaN counts as the largest, and as the smallest.
template <class T> struct Largest {
    typedef T State;
    static __device__ inline T nothing() { return lowest(T()); }
    static __device__ inline bool before(T a, T b) { return a > b; }
    static __device__ inline T combine(T a, T b) { return a >= b || a != a ? a : b; }
};
template <class T> struct Smallest {
    typedef T State;
    static __device__ inline T nothing() { return highest(T()); }
    static __device__ inline bool before(T a, T b) { return a < b; }
    static __device__ inline T combine(T a, T b) { return a <= b || a != a ? a : b; }
};

// A team of `height` threads, a power of two, reduces one row; a block is `rows` such teams.
// `along`: threads of one team are neighbours, for rows whose elements are. Otherwise neighbours
// are threads of neighbouring teams, for rows that lie side by side.
struct Team { int height, rows, row, place, step; bool along; };

__device__ inline Team my_team(int height, int along) {
    Team team;
    int me = threadIdx.x;
    team.height = height;
    team.rows = blockDim.x / height;
    team.along = along;
    team.row = along ? me / height : me % team.rows;
    team.place = along ? me % height : me / team.rows;
    team.step = along ? 1 : team.rows;
    return team;
}

template <class S> __device__ inline S exchange(S mine, int mask) {
    return __shfl_xor_sync(0xffffffffu, mine, mask);
}

template <class Op> __device__ inline typename Op::State shuffled(
    typename Op::State mine, int height
) {
    for (int mask = height / 2; mask > 0; mask /= 2) {
        mine = Op::combine(mine, exchange(mine, mask));
    }
    return mine;
}

extern __shared__ u64 shared_memory[];

// What the threads of a team hold, combined; each has the result. Every thread of the block calls.
template <class Op> __device__ inline typename Op::State combined(
    typename Op::State mine, const Team &team
) {
    typename Op::State *held = (typename Op::State *)shared_memory;
    int me = threadIdx.x;
    if (team.along) {
        mine = shuffled<Op>(mine, team.height < 32 ? team.height : 32);
        if (team.height > 32) {
            int warps = team.height / 32, warp = me / 32, lane = me % 32;
            if (lane == 0) { held[warp] = mine; }
            __syncthreads();
            mine = shuffled<Op>(held[warp / warps * warps + lane % warps], warps);
            __syncthreads();
        }
        return mine;
    }
    if (team.height == 1) { return mine; }
    held[me] = mine;
    __syncthreads();
    for (int half = team.height / 2; half > 0; half /= 2) {
        if (team.place < half) { held[me] = Op::combine(held[me], held[me + half * team.step]); }
        __syncthreads();
    }
    mine = held[team.row];  // That of the team's first thread, where the sum ends up.
    __syncthreads();
    return mine;
}

// What `made` makes of what `read` gives for each index in [start, end), combined; each thread of
// the team has the result. Every thread of the block calls, with an empty range where it has no
// row. Reading is apart, for a thread to have all its reads in flight before it waits for one.
template <class Op, class Read, class Make> __device__ inline typename Op::State reduced(
    i64 start, i64 end, const Team &team, Read read, Make made
) {
    typename Op::State parts[4];
    for (int k = 0; k < 4; ++k) { parts[k] = Op::nothing(); }
    for (i64 first = start + team.place; first < end; first += 8 * team.height) {
        decltype(read(first)) values[8];
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            i64 i = first + k * team.height;
            if (i < end) { values[k] = read(i); }
        }
#pragma unroll
        for (int k = 0; k < 8; ++k) {
            i64 i = first + k * team.height;
            if (i < end) { parts[k % 4] = Op::combine(parts[k % 4], made(values[k], i)); }
        }
    }
    return combined<Op>(
        Op::combine(Op::combine(parts[0], parts[1]), Op::combine(parts[2], parts[3])), team
    );
}
"""


class Teams(NamedTuple):
    """How a block is divided.

    Attributes:
        height: The threads of a team, which reduces one row.
        rows: The teams of a block.
        along: Whether neighbouring threads are of one team, as the text says.
    """

    height: int
    rows: int
    along: bool

    @property
    def threads(self) -> tuple[int, int, int]:
        """The size of a block."""
        return (self.height * self.rows, 1, 1)

    def shared(self, state: int) -> int:
        """Return the bytes of shared memory that a block needs for states of this size."""
        if self.height == 1 or (self.along and self.height <= _WARP):
            return 0
        threads = self.height * self.rows
        return state * (threads // _WARP if self.along else threads)

    def launch(
        self,
        xp: Launcher,
        source: Source,
        name: str,
        rows: int,
        args: tuple[Any, ...],
        *,
        state: int,
        parts: int = 1,
    ) -> None:
        """Launch a kernel for `rows`, whose parts have states of this many bytes."""
        xp.launch(source, name, self.blocks(rows, parts), self.threads, args, self.shared(state))

    def blocks(self, rows: int, parts: int = 1) -> tuple[int, int, int]:
        """Return the size of the grid for this many rows and parts."""
        return (min(-(-rows // self.rows) * parts, _MOST_BLOCKS), 1, 1)


def teams(length: int, *, along: bool, side_by_side: int = 1) -> Teams:
    """Return how a block is divided for rows.

    Args:
        length: The elements of a row.
        along: Whether the elements of a row, or runs of them, are adjacent in memory.
        side_by_side: How many rows lie side by side, where `along` is false.

    Example:
        >>> teams(10, along=True)
        Teams(height=16, rows=8, along=True)
    """
    height = _power_of_two(-(-length // _EACH))
    if along:
        shortest = min(_power_of_two(length), _WARP)
        height = min(max(height, shortest), _LARGEST_BLOCK)
        return Teams(height, max(1, _SMALL_BLOCK // height), along)
    # As many columns as there are, at most a warp's, since this is what a read fetches; more
    # of them only where the block would be small.
    columns = _power_of_two(side_by_side)
    height = min(height, _LARGEST_BLOCK // min(columns, _WARP))
    return Teams(height, min(columns, max(_WARP, _SMALL_BLOCK // height)), along)


def state_size(dtype: np.dtype[Any]) -> int:
    """Return the bytes of a sum or a maximum of elements: narrow floats are summed as float32."""
    return max(dtype.itemsize, 4)


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()
