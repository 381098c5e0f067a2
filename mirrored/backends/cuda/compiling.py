"""CUDA C sources, with their common prelude, and how NVRTC compiles them when first needed.

Element types are named once here, so that a kernel is one text for all the dtypes that it takes.
What was compiled is cached on disk. CuPy's own way, `RawModule`, adds an option that lets float32
numbers below the normal ones be 0.
"""

import contextlib
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirrored._logging import logger

# Options of every compilation. Without contraction a product and a sum round one by one, so a
# fused kernel gives the bits of the kernels that it stands for.
OPTIONS = ("--std=c++17", "--fmad=false")

# What is stored for an element, and what is computed with: NumPy's names to those of C.
_STORED = {
    "float32": "float",
    "float64": "double",
    "bfloat16": "bf16",
    "int32": "int",
    "int64": "i64",
    "bool": "bool",
    "uint8": "u8",
    "float16": "f16",
    "int8": "i8",
    "int16": "i16",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
_COMPUTED = _STORED | {"bfloat16": "float", "float16": "float"}

PRELUDE = """
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef short i16;
typedef signed char i8;
struct bf16 { u16 bits; };
struct f16 { u16 bits; };

__device__ inline float load(bf16 x) { return __int_as_float((int)x.bits << 16); }
__device__ inline float load(float x) { return x; }
__device__ inline double load(double x) { return x; }
__device__ inline int load(int x) { return x; }
__device__ inline i64 load(i64 x) { return x; }
__device__ inline bool load(bool x) { return x; }
__device__ inline u8 load(u8 x) { return x; }
__device__ inline i8 load(i8 x) { return x; }
__device__ inline i16 load(i16 x) { return x; }
__device__ inline u16 load(u16 x) { return x; }
__device__ inline u32 load(u32 x) { return x; }
__device__ inline u64 load(u64 x) { return x; }
__device__ inline float load(f16 x) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
    return wide;
}

// To the nearest, ties to even; a NaN is the one with all bits set but its sign. From compute
// capability 8.0 on a card does it by one instruction.
__device__ inline void store(bf16 &to, float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    u32 bits = (u32)__float_as_int(x);
    bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
    to.bits = nan ? (u16)0x7fff : (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#else
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
#endif
}
__device__ inline void store(float &to, float x) { to = x; }
__device__ inline void store(double &to, double x) { to = x; }
__device__ inline void store(int &to, int x) { to = x; }
__device__ inline void store(i64 &to, i64 x) { to = x; }
__device__ inline void store(bool &to, bool x) { to = x; }
__device__ inline void store(u8 &to, u8 x) { to = x; }
__device__ inline void store(i8 &to, i8 x) { to = x; }
__device__ inline void store(i16 &to, i16 x) { to = x; }
__device__ inline void store(u16 &to, u16 x) { to = x; }
__device__ inline void store(u32 &to, u32 x) { to = x; }
__device__ inline void store(u64 &to, u64 x) { to = x; }
// The same; what is too large is infinite.
__device__ inline void store(f16 &to, float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x));
}

__device__ inline float rounded_to_bf16(float x) { bf16 y; store(y, x); return load(y); }
__device__ inline float rounded_to_f16(float x) { f16 y; store(y, x); return load(y); }

#define INFINITY_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fc00000)
#define INFINITY_D __longlong_as_double(0x7ff0000000000000LL)
#define NAN_D __longlong_as_double(0x7ff8000000000000LL)
"""

# Loads and stores of several neighbouring elements at once, 2 to 16 bytes.
VECTORS = """
template <class T, int N> struct alignas(sizeof(T) * N) Adjacent { T at[N]; };
template <int N, class C, class T> __device__ inline void load_adjacent(C *to, const T *from) {
    const Adjacent<T, N> all = *(const Adjacent<T, N> *)from;
#pragma unroll
    for (int k = 0; k < N; ++k) { to[k] = load(all.at[k]); }
}
template <int N, class T, class C> __device__ inline void store_adjacent(T *to, const C *from) {
    Adjacent<T, N> all;
#pragma unroll
    for (int k = 0; k < N; ++k) { store(all.at[k], from[k]); }
    *(Adjacent<T, N> *)to = all;
}
"""


class Source(NamedTuple):
    """A text of CUDA C with one kernel or several.

    Attributes:
        name: What errors call it, as in 'softmax of float32'.
        code: All of it, the prelude included.
    """

    name: str
    code: str


def stored_type(dtype: np.dtype[Any]) -> str:
    """Return the C type that elements of a dtype are stored as."""
    return _STORED[dtype.name]


def computed_type(dtype: np.dtype[Any]) -> str:
    """Return the C type that kernels compute with: float for bfloat16, else the stored one."""
    return _COMPUTED[dtype.name]


@cache
def source(name: str, text: str, **dtypes: np.dtype[Any]) -> Source:
    """Return a text with the prelude, and with names for the element types.

    Args:
        name: What errors call it; the dtypes are added.
        text: The kernels.
        **dtypes: For each name X in the text its dtype; the type that X is computed in is X##_C.

    Example:
        >>> import numpy as np
        >>> text = 'extern "C" __global__ void one(T *out) { store(out[0], (T_C)1); }'
        >>> kernel = source("one", text, T=np.dtype("float32"))
        >>> kernel.name, "typedef float T;" in kernel.code
        ('one of float32', True)
    """
    types = "".join(
        f"typedef {stored_type(dtype)} {key};\ntypedef {computed_type(dtype)} {key}_C;\n"
        for key, dtype in dtypes.items()
    )
    suffix = ", ".join(dtype.name for dtype in dtypes.values())
    return Source(f"{name} of {suffix}" if suffix else name, f"{PRELUDE}{types}{text}")


# The environment variable with the folder of compiled kernels; empty for none.
FOLDER = "MIRRORED_KERNEL_CACHE"

_DIGEST = hashlib.sha256().digest_size

# What this process has compiled or read, for the other streams and logical devices of a card.
_compiled: dict[str, bytes] = {}


class Modules:
    """The kernels of one stream of a card, each compiled and loaded when it is first asked for.

    The card must be current when one is.

    Args:
        cupy: What `toolkit` returns.
        capability: The card's compute capability.
    """

    def __init__(self, cupy: Any, capability: tuple[int, int]) -> None:
        self._cupy = cupy
        self._made_by = f"{cupy.__version__} {cupy.cuda.nvrtc.getVersion()} {capability} {OPTIONS}"
        self._modules: dict[Source, Any] = {}
        self._kernels: dict[tuple[Source, str], Any] = {}

    def kernel(self, source: Source, name: str) -> Any:
        """Return a kernel of a text, loaded."""
        key = source, name
        kernel = self._kernels.get(key)
        if kernel is None:
            module = self._modules.get(source)
            if module is None:
                module = self._cupy.cuda.function.Module()
                module.load(self._code_for_the_card(source.code))
                self._modules[source] = module
            kernel = self._kernels[key] = module.get_function(name)
        return kernel

    def _code_for_the_card(self, text: str) -> bytes:
        key = hashlib.sha256(f"{self._made_by}\0{text}".encode()).hexdigest()
        if key not in _compiled:
            folder = cache_folder()
            path = None if folder is None else folder / f"{key}.cubin"
            code = None if path is None else read_kept(path)
            if code is None:
                compiler = self._cupy.cuda.compiler
                code, _ = compiler.compile_using_nvrtc(text, OPTIONS, cache_in_memory=True)
                if path is not None:
                    write_kept(path, code)
            _compiled[key] = code
        return _compiled[key]


def cache_folder() -> Path | None:
    """Return where compiled kernels are kept; None: nowhere."""
    folder = os.environ.get(FOLDER)
    if folder is not None:
        return Path(folder) if folder else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "mirrored" / "kernels"
    except RuntimeError:  # The user has no home.
        return None


def read_kept(path: Path) -> bytes | None:
    """Return what a file was written with; None where there is none that is whole."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    digest, code = stored[:_DIGEST], stored[_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def write_kept(path: Path, code: bytes) -> None:
    """Write a file, which is there at once or not at all: other processes may read it."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            os.replace(name, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        logger.debug("A compiled kernel was not kept for the next process: %s", str(error))
