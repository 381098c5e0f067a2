"""Random numbers of the emulated card, which are the host's."""

from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.backends.cuda.kernels import KERNELS

KEYS = [((7, 2**64 - 1), 3), ((2**63, 0), 2**64 + 5)]
SHAPES = [(), (3, 5), (1025,), (0,), (2, 7, 3)]
FIRSTS = [0, 1, 2, 3, 5, 8, 1001, 2**40 + 3]
# By op and dtype: the largest relative difference, in units of the dtype's precision.
OPS = [
    ("RandomUniform", "float32", 0),
    ("RandomUniform", "float64", 0),
    ("RandomUniformInt", "int32", 0),
    ("RandomUniformInt", "int64", 0),
    ("RandomStandardNormal", "float32", 1),
    ("RandomStandardNormal", "float64", 16),
]


def attributes(name: str, dtype: str, **attrs: Any) -> dict[str, Any]:
    """Return an op's attributes."""
    limits = {"minval": -3, "maxval": 10**6} if name == "RandomUniformInt" else {}
    return {"dtype": np.dtype(dtype), "key": (1, 2), "draw": 3, "first": 0, **limits, **attrs}


@cases("first", FIRSTS, clean=False)
@cases(("name", "dtype", "units"), OPS, clean=False)
def test_numbers_are_those_of_the_host(
    card: Any, name: str, dtype: str, units: int, first: int
) -> None:
    for shape in SHAPES:
        for key, draw in KEYS:
            attrs = attributes(name, dtype, shape=shape, key=key, draw=draw, first=first)
            got, expected = card.both(name, **attrs)
            if units:
                precision = np.finfo(dtype).eps
                np.testing.assert_allclose(got, expected, units * precision, precision)
            else:
                np.testing.assert_array_equal(got, expected)


@cases(
    ("dtype", "minval", "maxval"),
    [("int64", -(2**63), 2**63), ("int32", -(2**31), 2**31), ("int64", 2**53 + 1, 2**53 + 3)],
    clean=False,
)
def test_integers_of_any_range_are_those_of_the_host(
    card: Any, dtype: str, minval: int, maxval: int
) -> None:
    attrs = attributes("RandomUniformInt", dtype, shape=(999,), minval=minval, maxval=maxval)
    got, expected = card.both("RandomUniformInt", **attrs)
    np.testing.assert_array_equal(got, expected)


@cases(("name", "dtype", "units"), OPS, clean=False)
def test_counters_of_the_device_stand_for_key_and_draw(
    card: Any, name: str, dtype: str, units: int
) -> None:
    spec = ((37,), np.dtype(dtype))
    given = attributes(name, dtype, shape=(37,), key=(5, 2**64 - 2), draw=9, first=3)
    expected = card.run(KERNELS[name], spec, **given)
    counters = card.array(np.array([5, 2**64 - 2, 9], np.uint64))
    recorded = {**given, "key": None, "draw": object()}
    got = card.run(KERNELS[name], spec, **recorded, counters=counters)
    np.testing.assert_array_equal(got, expected)
    # The next step's draw: the kernel's arguments are the same, and what they point to is not.
    counters = card.array(np.array([5, 2**64 - 2, 10], np.uint64))
    got = card.run(KERNELS[name], spec, **recorded, counters=counters)
    assert (got != expected).any()


def drawn(generator: mr.random.Generator) -> list[mr.Tensor]:
    """Return numbers of a generator, and of the global streams."""
    return [
        generator.normal([5]),
        generator.truncated_normal([9], dtype="float64"),
        generator.uniform([4], 0, 100, "int32"),
        mr.random.gamma([3], [0.5, 2.0]),
        mr.random.poisson([3], [4.0, 40.0]),
        mr.random.categorical(mr.zeros([2, 5]), 4),
        mr.random.shuffle([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [False, True])
def test_generators_draw_on_the_card_what_they_draw_on_the_host(card: Any, recorded: bool) -> None:
    results = []
    for device in ("CPU:0", "GPU:0"):
        mr.random.set_seed(5)
        with mr.device(device):
            generator = mr.random.Generator.from_seed(3)
            draw = mr.function(drawn) if recorded else drawn
            steps = [draw(generator) for _ in range(3)]
        assert all(each.device.endswith(device) for step in steps for each in step)
        results.append([each.numpy() for step in steps for each in step])
    for host, of_card in zip(*results, strict=True):
        np.testing.assert_allclose(of_card, host, rtol=1e-6)
