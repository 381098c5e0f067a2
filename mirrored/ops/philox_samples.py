"""What is drawn from TensorFlow's generator by distributions with parameters of their own.

Gamma and Poisson numbers are found by rejection: each has blocks of its own, so that it does not
depend on how often the others were rejected.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.errors import InvalidArgumentError
from mirrored.ops.op import Op, register
from mirrored.ops.philox4x32 import (
    RESERVED,
    Stream,
    Words,
    fill,
    normals,
    unit_double,
)
from mirrored.ops.spec import (
    FLOATS_AND_INDICES,
    DType,
    Shape,
    TensorSpec,
    bool_,
    float64,
    int64,
    shape_text,
)

Doubles = NDArray[np.float64]
_CHUNK = 128  # Numbers a round: keeps the temporaries of a kernel small.


class _Places:
    """The blocks of some numbers, each of which takes as many as it needs.

    Args:
        stream: The blocks of all.
        numbers: The places of the numbers in their draw.
    """

    def __init__(self, stream: Stream, numbers: NDArray[np.int64]) -> None:
        self._stream = stream
        self._next = numbers.astype(np.uint64) * np.uint64(RESERVED)
        # What is left of a block is taken from its end.
        self._kept: dict[str, tuple[Doubles, NDArray[np.int64]]] = {
            kind: (np.zeros((len(numbers), 2)), np.zeros(len(numbers), np.int64))
            for kind in ("uniform", "normal")
        }

    def take(self, kind: str, rows: NDArray[np.int64]) -> Doubles:
        """Return the next double of each of some numbers."""
        kept, left = self._kept[kind]
        empty = rows[left[rows] == 0]
        if empty.size:
            words = self._stream.blocks(self._next[empty])
            self._next[empty] += np.uint64(1)
            numbers = normals(words, float64) if kind == "normal" else _uniforms(words)
            kept[empty] = np.stack(numbers, axis=1)
            left[empty] = 2
        left[rows] -= 1
        taken: Doubles = kept[rows, left[rows]]
        return taken


def _uniforms(words: list[Words]) -> list[Doubles]:
    return [unit_double(*words[:2]), unit_double(*words[2:])]


class Part(NamedTuple):
    """Which numbers of a draw are drawn, where a replica draws a part of it.

    Attributes:
        samples: How many numbers the whole draw has for each parameter.
        sample: The first of them that is drawn.
        parameter: How many parameters of the whole draw come before those given.
    """

    samples: int
    sample: int = 0
    parameter: int = 0


def _draw_numbers(
    out: Any, state: Any, parameters: Any, part: Part, draw: Callable[[_Places, Doubles], Doubles]
) -> None:
    """Draw numbers that have a parameter each, of which the last axes of the result are made."""
    rates = parameters.reshape(-1).astype(np.float64)
    flat, stream = out.reshape(-1), Stream(state)
    for start in range(0, flat.size, _CHUNK):
        places = np.arange(start, min(start + _CHUNK, flat.size))
        # All numbers of one parameter come first, and then those of the next.
        sample, which = np.divmod(places, rates.size)
        numbers = (which + part.parameter) * part.samples + sample + part.sample
        flat[places] = draw(_Places(stream, numbers), rates[which])


def _gamma_each(places: _Places, alpha: Doubles) -> Doubles:
    """Return gamma numbers (Marsaglia and Tsang, 2000)."""
    numbers = np.full(len(alpha), np.nan)
    (ones,) = np.nonzero(alpha == 1)
    numbers[ones] = -np.log1p(-places.take("uniform", ones))
    small = alpha < 1
    d = alpha + np.where(small, 2.0 / 3.0, -1.0 / 3.0)
    c = 1.0 / 3.0 / np.sqrt(d)
    (rows,) = np.nonzero((alpha != 1) & (d >= 0))
    while rows.size:
        x = places.take("normal", rows)
        v = 1 + c[rows] * x
        positive = v > 0
        tried, x, v = rows[positive], x[positive], v[positive]
        v = v * v * v
        u, square = places.take("uniform", tried), x * x
        taken = u < 1 - 0.0331 * square * square
        taken |= np.log(u) < 0.5 * square + d[tried] * (1 - v + np.log(v))
        kept = tried[taken]
        numbers[kept] = d[kept] * v[taken]
        less = kept[small[kept]]
        numbers[less] *= places.take("uniform", less) ** (1 / alpha[less])
        rows = rows[~np.isin(rows, kept, assume_unique=True)]
    return numbers


def _gamma(xp: Any, out: Any, state: Any, alpha: Any, *, shape: Shape, part: Part) -> None:
    _draw_numbers(out, state, alpha, part, _gamma_each)


def _poisson(
    xp: Any, out: Any, state: Any, rate: Any, *, shape: Shape, dtype: DType, part: Part
) -> None:
    most = float(np.iinfo(dtype).max if dtype.kind == "i" else np.finfo(dtype).max)

    def draw(places: _Places, rates: Doubles) -> Doubles:
        numbers = np.full(len(rates), np.nan)
        _few(places, rates, numbers, most)
        _many(places, rates, numbers, most)
        return numbers

    _draw_numbers(out, state, rate, part, draw)


def _few(places: _Places, rates: Doubles, numbers: Doubles, most: float) -> None:
    """Draw Poisson numbers of rates below 10: how many uniform ones have so small a product."""
    (rows,) = np.nonzero(rates < 10)
    bounds, product, count = np.exp(-rates), np.ones(len(rates)), 0.0
    while rows.size:
        product[rows] *= places.take("uniform", rows)
        done = product[rows] <= bounds[rows]
        numbers[rows[done]] = min(count, most)
        rows, count = rows[~done], count + 1


def _many(places: _Places, rates: Doubles, numbers: Doubles, most: float) -> None:
    """Draw Poisson numbers of greater rates (Hormann's transformed rejection, 1993)."""
    numbers[np.isposinf(rates)] = np.inf
    (rows,) = np.nonzero((rates >= 10) & np.isfinite(rates))
    b = 0.931 + 2.53 * np.sqrt(rates)
    a = -0.059 + 0.02483 * b
    v_r = 0.9277 - 3.6224 / (b - 2)
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while rows.size:
        u = places.take("uniform", rows) - 0.5
        v = places.take("uniform", rows)
        left, rate = 0.5 - np.abs(u), rates[rows]
        k = np.floor((2 * a[rows] / left + b[rows]) * u + rate + 0.43)
        sure = (left >= 0.07) & (v <= v_r[rows])
        never = (k < 0) | ((left < 0.013) & (v > left))
        s = np.log(v * inverse_alpha[rows] / (a[rows] / (left * left) + b[rows]))
        t = -rate + k * np.log(rate) - np.array([math.lgamma(max(count, 0) + 1) for count in k])
        taken = (k <= most) & (sure | (~never & (s <= t)))
        numbers[rows[taken]] = k[taken]
        rows = rows[~taken]


def _categorical(
    xp: Any,
    out: Any,
    state: Any,
    logits: Any,
    *,
    num_samples: int,
    dtype: DType,
    first: int,
    workspace: tuple[Any, ...],
) -> None:
    sums, finite = workspace
    for number, row in enumerate(logits):
        np.isfinite(row, out=finite)
        largest = np.max(row, initial=np.finfo(row.dtype).min, where=finite)
        np.subtract(row, float(largest), out=sums, dtype=np.float64)
        np.exp(sums, out=sums)
        np.logical_not(finite, out=finite)
        np.copyto(sums, 0, where=finite)
        np.cumsum(sums, out=sums)
        begin = first + number * num_samples
        for start in range(0, num_samples, _CHUNK):
            drawn = np.empty(min(_CHUNK, num_samples - start))
            fill(drawn, state, begin + start, 2, _uniforms)
            drawn *= sums[-1]
            # The first class whose sum is above.
            out[number, start : start + _CHUNK] = np.searchsorted(sums, drawn, side="right")


def _shuffle(
    xp: Any, out: Any, state: Any, value: Any, *, workspace: tuple[NDArray[np.int64], ...]
) -> None:
    (places,), count = workspace, len(value)
    places[1:], places[:1] = 1, 0
    np.cumsum(places, out=places)  # From 0 on, without an array beside.
    order, words = memoryview(places.data), np.empty(_CHUNK, np.uint64)
    # Fisher and Yates: each place takes one of those that are left.
    for start in range(0, count - 1, _CHUNK):
        fill(words, state, start, 4, lambda blocks: blocks)
        left = np.arange(count - start, max(count - start - _CHUNK, 1), -1)
        for place, taken in enumerate(
            (words[: len(left)] % left.astype(np.uint64)).tolist(), start
        ):
            other = place + taken
            order[place], order[other] = order[other], order[place]
    np.take(value, places, axis=0, out=out, mode="clip")


def _infer_rates(name: str) -> Callable[..., TensorSpec]:
    def infer(
        state: TensorSpec,
        rates: TensorSpec,
        *,
        shape: Shape,
        part: Part,
        dtype: DType | None = None,
    ) -> TensorSpec:
        rank = len(rates.shape)
        if rank and tuple(shape[-rank:]) != tuple(rates.shape):
            raise InvalidArgumentError(
                f"Shape passed in must end with broadcasted shape. Received: {shape_text(shape)}, "
                f"and parameters of shape {shape_text(rates.shape)} [Op:{name}]"
            )
        return TensorSpec(shape, rates.dtype if dtype is None else dtype)

    return infer


def _infer_categorical(
    state: TensorSpec, logits: TensorSpec, *, num_samples: int, dtype: DType, first: int
) -> TensorSpec:
    if len(logits.shape) != 2:
        raise InvalidArgumentError(
            f"logits should be a matrix, got shape {shape_text(logits.shape)} "
            "[Op:StatelessMultinomial]"
        )
    if not logits.shape[1]:
        raise InvalidArgumentError(
            "num_classes should be positive, got 0 [Op:StatelessMultinomial]"
        )
    return TensorSpec((logits.shape[0], num_samples), dtype)


def _enter(name: str, infer: Callable[..., TensorSpec], kernel: Callable[..., None]) -> Op:
    """Enter an op of a state and parameters."""
    return register(
        Op(name=name, infer=infer, kernel=kernel, dtypes=FLOATS_AND_INDICES, whole=True)
    )


GAMMA = _enter("StatelessRandomGammaV3", _infer_rates("StatelessRandomGammaV3"), _gamma)
POISSON = _enter("StatelessRandomPoisson", _infer_rates("StatelessRandomPoisson"), _poisson)
CATEGORICAL = register(
    Op(
        name="StatelessMultinomial",
        infer=_infer_categorical,
        kernel=_categorical,
        dtypes=FLOATS_AND_INDICES,
        workspace=lambda state, logits, **_: (
            TensorSpec(logits.shape[1:], float64),
            TensorSpec(logits.shape[1:], bool_),
        ),
        whole=True,
    )
)
SHUFFLE = register(
    Op(
        name="StatelessShuffle",
        infer=lambda state, value: value,
        kernel=_shuffle,
        workspace=lambda state, value: (TensorSpec(value.shape[:1], int64),),
        whole=True,
    )
)
