"""Every text of a kernel compiles for the cards that the library is meant for."""

from collections.abc import Callable
from typing import Any

import pytest
from case_table import cases
from kernel_sources import all_sources
from op_table import TABLE

from mirrored.backends.cuda.compiling import source
from mirrored.backends.cuda.kernels import KERNELS

SOURCES = list(all_sources())


def test_names_tell_sources_apart() -> None:
    assert len({each.name for each in SOURCES}) == len(set(SOURCES)) == len(SOURCES)


# Their texts are those of others, but for an expression.
ALIKE = ("prod", "min", "less", "argmin", "cumprod", "any", "cross-entropy")
ALIKE += tuple(f"{kind} along 2 axes beside 2" for kind in ("prod", "max", "min", "any"))
FLOATS = ("float16", "float32", "float64", "bfloat16")


def kinds() -> dict[str, Any]:
    """Return a source of each kind, of one dtype; on the emulated card others run, as C++."""
    return {each.name.partition(" of ")[0]: each for each in SOURCES}


def is_of_its_own(source: Any) -> bool:
    """Return whether a text has no other with the same dtypes that differs in an expression."""
    kind, _, dtypes = source.name.partition(" of ")
    return kind not in ALIKE or dtypes.endswith(FLOATS)


@pytest.mark.slow
def test_each_kind_compiles(complaints: Callable[..., str]) -> None:
    """Down to a card's own code."""
    assert complaints([kinds()[name] for name in kinds().keys() - {*ALIKE}], "sm_90") == ""


@pytest.mark.slow
def test_every_dtype_compiles(complaints: Callable[..., str]) -> None:
    """For the oldest cards; those that are like others in floats, which C++ converts otherwise."""
    assert complaints(filter(is_of_its_own, SOURCES), "lto_80") == ""


@pytest.mark.slow
def test_what_does_not_compile_is_told(complaints: Callable[..., str]) -> None:
    wrong = source("wrong", 'extern "C" __global__ void f(int *out) { out[0] = absent; }')
    assert '"absent" is undefined' in complaints([wrong], "compute_80")


@cases("name", sorted(KERNELS))
def test_no_kernel_launches_another_text(noted: Callable[..., Any], name: str) -> None:
    row = TABLE[name]
    for dtype in row.dtypes:
        for case in (*row.small, *row.large[:2]):
            launcher = noted(name, *row.specs(case, dtype), **case.attrs)
            assert {source for source, _ in launcher.launches} <= set(SOURCES)
