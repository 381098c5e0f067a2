"""The kernels that draw random numbers: each number is a function of a key and a counter.

The generator is Philox 4x64 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
SC 2011), so any part of a stream can be drawn without what comes before it.
"""

import functools
from typing import Any

import numpy as np

from mirrored.ops.op import Op, register
from mirrored.ops.spec import DType, Shape, TensorSpec, float32

WORD = 1 << 64
_CHUNK = 1024  # Elements a round: keeps the temporaries of a kernel at a few KiB.
Key = tuple[int, int]


@functools.cache
def _unseeded() -> tuple[Any, Any]:
    """Return what seeds a generator that gets its key afterwards, and the state that it has then.

    NumPy would ask the system for a seed first. Its random numbers are slow to import, which is
    done when the first one is drawn.
    """
    from numpy.random.bit_generator import ISeedSequence

    class NoSeed(ISeedSequence):
        def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
            return np.zeros(n_words, dtype)

    return NoSeed(), np.random.Philox(NoSeed()).state  # type: ignore[arg-type]


def _bits(key: Key, draw: int, block: int) -> "np.random.Philox":
    seed, fresh = _unseeded()
    # As arrays: among plain integers one above 63 bits would turn all of them into floats.
    counter = np.array([block, 0, draw % WORD, 0], np.uint64)
    bits = np.random.Philox(seed)
    bits.state = fresh | {"state": {"counter": counter, "key": np.array(key, np.uint64)}}
    return bits


def philox(key: Key, draw: int, first: int, per_block: int) -> "np.random.Generator":
    """Return a generator whose next number is number `first` of draw number `draw`."""
    block, skip = divmod(first, per_block)
    generator = np.random.Generator(_bits(key, draw, block))
    if skip:
        generator.random(skip, dtype=np.float32 if per_block == 8 else np.float64)
    return generator


def first_word(key: Key, draw: int) -> int:
    """Return the first 64 bits of a draw."""
    return int(_bits(key, draw, 0).random_raw())


def _infer(*, shape: Shape, dtype: DType, **_: Any) -> TensorSpec:
    return TensorSpec(shape, dtype)


def _uniform(
    xp: Any, out: Any, *, shape: Shape, dtype: DType, key: Key, draw: int, first: int
) -> None:
    # A block of Philox is four words of 64 bits: four doubles or eight singles.
    generator = philox(key, draw, first, 8 if dtype == float32 else 4)
    generator.random(out=out.reshape(-1), dtype=dtype.type)


def _uniform_int(
    xp: Any,
    out: Any,
    *,
    shape: Shape,
    dtype: DType,
    key: Key,
    draw: int,
    first: int,
    minval: int,
    maxval: int,
) -> None:
    generator, flat = philox(key, draw, first, 4), out.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        part[...] = minval + np.floor(generator.random(part.size) * (maxval - minval))


def _normal(
    xp: Any, out: Any, *, shape: Shape, dtype: DType, key: Key, draw: int, first: int
) -> None:
    # Box and Muller's transform (1958) of pairs: every normal has its place in the stream, which
    # rejection methods such as the ziggurat do not give. 1 - u is never 0.
    flat = out.reshape(-1)
    generator = philox(key, draw, first - first % 2, 4)
    lead = first % 2
    for start in range(-lead, flat.size, _CHUNK):
        count = min(_CHUNK, flat.size - start)
        pairs = generator.random(2 * -(-count // 2)).reshape(-1, 2)
        radius = np.sqrt(-2.0 * np.log1p(-pairs[:, 0]))
        angle = 2.0 * np.pi * pairs[:, 1]
        pairs[:, 0] = radius * np.cos(angle)
        pairs[:, 1] = radius * np.sin(angle)
        begin = max(start, 0)
        flat[begin : start + count] = pairs.reshape(-1)[begin - start : count]


# Kernels of the host; a backend with its own memory overrides them with the same mapping from
# key, draw and position to numbers.
RANDOM_UNIFORM = register(Op(name="RandomUniform", infer=_infer, kernel=_uniform, random=True))
RANDOM_UNIFORM_INT = register(
    Op(name="RandomUniformInt", infer=_infer, kernel=_uniform_int, random=True)
)
RANDOM_NORMAL = register(Op(name="RandomStandardNormal", infer=_infer, kernel=_normal, random=True))
