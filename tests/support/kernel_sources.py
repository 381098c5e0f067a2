"""Every text of CUDA kernels, for every dtype, so that all can be compiled ahead."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from mirrored.backends.cuda.compiling import Source, source
from mirrored.backends.cuda.kernels import (
    convolution_kernels,
    copying,
    gather_kernels,
    line_kernels,
    matrices,
    pooling_kernels,
    product_kernels,
    random_states,
    random_streams,
    reduction_kernels,
    softmax_kernels,
    step_end,
    teams,
)

# The floats that kernels take.
FLOATS = [np.dtype(dtype) for dtype in (np.float32, np.float64, np.float16)]
with suppress(ImportError):
    import ml_dtypes

    FLOATS.append(np.dtype(ml_dtypes.bfloat16))


def _copying() -> Iterator[Source]:
    yield from copying._SOURCES.values()
    for dtype in (*FLOATS, *map(np.dtype, (*teams.INTEGERS, "bool"))):
        yield copying._fill_source(dtype)


def _convolution() -> Iterator[Source]:
    for index in map(np.dtype, teams.INDICES):
        for dtype in FLOATS:
            for is_turned in (False, True):
                yield convolution_kernels._depthwise_source(dtype, is_turned, index)
            yield convolution_kernels._filters_source(dtype, index)
        for width in (2, 4, 8, 16):
            for is_turned in (False, True):
                yield convolution_kernels._patches_source(width, is_turned, index)


def _gather() -> Iterator[Source]:
    yield gather_kernels._FLAT_SOURCE
    for index in map(np.dtype, teams.INDICES):
        for width in gather_kernels.ELEMENTS:
            yield gather_kernels._gather_source(width, index)
        for kind in gather_kernels._COMBINED:
            for dtype in (
                *FLOATS,
                *map(np.dtype, (*teams.INTEGERS, "bool") if kind == "update" else teams.INTEGERS),
            ):
                yield gather_kernels._combine_source(kind, dtype, index)


def _line() -> Iterator[Source]:
    for dtype in (*FLOATS, *map(np.dtype, teams.INTEGERS)):
        for index in teams.INDICES:
            yield line_kernels._order_source(dtype, np.dtype(index))
    for kind in line_kernels._KINDS:
        integers = () if kind == "CumulativeLogsumexp" else map(np.dtype, teams.INTEGERS)
        for dtype in (*FLOATS, *integers):
            yield line_kernels._source(kind, dtype)


def _matrices() -> Iterator[Source]:
    yield from map(matrices._source, (np.dtype(np.float32), np.dtype(np.float64)))


def _pooling() -> Iterator[Source]:
    for kind in pooling_kernels._KINDS:
        integers = map(np.dtype, teams.INTEGERS if kind == "MaxPool" else ())
        for dtype in (*FLOATS, *integers):
            for index in map(np.dtype, teams.INDICES):
                yield pooling_kernels._source(kind, dtype, index)


def _product() -> Iterator[Source]:
    for index in teams.INDICES:
        yield source("product", product_kernels._PRODUCT_TEXT, T=np.dtype(index))
    for dtype in FLOATS:
        for sums in dict.fromkeys((dtype, reduction_kernels.dtype_of_parts(dtype))):
            yield product_kernels._source(dtype, sums)


def _random_states() -> Iterator[Source]:
    yield random_states._STATES_SOURCE
    for name, (_, dtypes) in random_states._TEXTS.items():
        yield from (random_states._source(name, np.dtype(kind)) for kind in dtypes)
    yield random_states._SHUFFLE_SOURCE
    floats = FLOATS
    for parameter in floats:
        yield random_states._each_source("gamma", parameter, parameter)
    for rate in (*floats, *map(np.dtype, teams.INDICES)):
        for dtype in map(np.dtype, ("float32", "float64", "int32", "int64")):
            yield random_states._each_source("Poisson", dtype, rate)
    for logits in FLOATS:
        for dtype in map(np.dtype, teams.INDICES):
            yield random_states._categorical_source(dtype, logits)


def _random_streams() -> Iterator[Source]:
    for name in random_streams._TEXTS:
        for dtype in teams.INDICES if name == "uniform integers" else random_streams._FLOATS:
            yield random_streams._source(name, np.dtype(dtype))


def _reduction() -> Iterator[Source]:
    """Yield the texts for the usual axes, and those for others of up to four."""
    text, usual = reduction_kernels._source, reduction_kernels._USUAL_AXES
    numbers = [*FLOATS, *map(np.dtype, teams.INTEGERS)]
    for dtype in numbers:
        for kind in ("Sum", "Prod", "Max", "Min"):
            for axes in (usual, (2, 2)):
                yield text(kind, axes, dtype, dtype)
            if (partial_results := reduction_kernels.dtype_of_parts(dtype, kind == "Sum")) != dtype:
                yield text(kind, usual, dtype, partial_results)
                yield text(kind, usual, partial_results, dtype)
        for index in teams.INDICES:
            for kind in reduction_kernels._PLACES:
                yield text(kind, usual, dtype, np.dtype(index))
    for kind in reduction_kernels._LOGICAL:
        for axes in (usual, (2, 2)):
            yield text(kind, axes, np.dtype(bool), np.dtype(bool))


def _softmax() -> Iterator[Source]:
    for dtype in FLOATS:
        for name in softmax_kernels._FORMS:
            yield softmax_kernels._softmax_source(name, dtype)
        yield softmax_kernels._source(dtype, dtype)
        for labels in teams.INDICES:
            yield softmax_kernels._source(dtype, np.dtype(labels))
    # In mixed precision; those of float16 differ in the type alone.
    single = np.dtype(np.float32)
    for narrow in (kind for kind in FLOATS if kind.name == "bfloat16"):
        for read, written in ((narrow, narrow), (narrow, single), (single, narrow)):
            yield softmax_kernels._source(single, single, read, written)
            yield softmax_kernels._source(single, np.dtype(np.int64), read, written)


def _step_end() -> Iterator[Source]:
    yield step_end._REPORT_SOURCE
    for dtype in FLOATS:
        yield source("all finite", step_end._FINITE_TEXT, T=dtype)


_KINDS = (
    _convolution,
    _copying,
    _gather,
    _line,
    _matrices,
    _pooling,
    _product,
    _random_states,
    _random_streams,
    _reduction,
    _softmax,
    _step_end,
)


def all_sources() -> Iterator[Source]:
    """Yield every text."""
    for texts in _KINDS:
        yield from texts()
