"""What bits depend on: what is read of the machine, and which difference is told."""

import builtins
import io
import logging
import platform
from typing import Any

import numpy as np
import pytest
import threadpoolctl

import mirrored as mr
from mirrored.backends import fingerprint as module
from mirrored.backends.fingerprint import fingerprint, processor, tell_differences

CPUINFO = """
processor\t: 0
cpu family\t: 6
model\t\t: 207
model name\t: A Processor

processor\t: 1
model name\t: Another
"""


@pytest.mark.behaviour("fingerprint")
def test_facts_of_this_machine() -> None:
    facts = fingerprint([])
    assert (facts["mirrored"], facts["NumPy"]) == (mr.__version__, np.__version__)
    assert all(facts.values())
    assert facts["BLAS threads"].isdecimal()


@pytest.mark.parametrize(
    ("libraries", "expected"),
    [
        (
            [
                ("blas", "mkl", "2024.1", "/site-packages/torch/libmkl.so"),
                ("openmp", "openmp", None, "/numpy.libs/libgomp.so"),
                ("blas", "openblas", "0.3.31", "/site-packages/numpy.libs/libopenblas.so"),
            ],
            "openblas 0.3.31, kernel Zen",
        ),
        ([("blas", "blis", "0.9", "/usr/lib/libblis.so")], "blis 0.9, kernel Zen"),
        ([], f"the one inside NumPy {np.__version__}, of unknown name"),
    ],
)
def test_the_blas_is_that_of_numpy(
    monkeypatch: pytest.MonkeyPatch, libraries: list[tuple[Any, ...]], expected: str
) -> None:
    names = ("user_api", "internal_api", "version", "filepath")
    rows = [dict(zip(names, row, strict=True)) | {"architecture": "Zen"} for row in libraries]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: rows)
    assert module._of_host.__wrapped__()["BLAS"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CPUINFO, "A Processor (family 6, model 207)"),
        ("model name: Short\n", "Short"),
        ("CPU implementer: 0x41\n\n", "as Python says"),
        (None, "as Python says"),
    ],
)
def test_the_processor(monkeypatch: pytest.MonkeyPatch, text: str | None, expected: str) -> None:
    def opened(path: str, **options: Any) -> io.StringIO:
        if text is None:
            raise FileNotFoundError(path)
        return io.StringIO(text)

    monkeypatch.setattr(platform, "processor", lambda: "as Python says")
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "open", opened)
        model = processor()
    assert model == expected


HERE = {"NumPy": "2.4", "BLAS": "mkl", "BLAS threads": "4"}


@pytest.mark.parametrize(
    ("before", "differences"),
    [
        ({}, None),  # An older file says nothing.
        (HERE, None),
        ({**HERE, "BLAS threads": "2"}, "BLAS threads was 2, and is 4 here"),
        (
            {**HERE, "NumPy": "2.1", "GPU": "NVIDIA H200"},
            "NumPy was 2.1, and is 2.4 here; GPU was NVIDIA H200, and is not there here",
        ),
        ({"NumPy": "2.4", "BLAS threads": "4"}, "BLAS was not there, and is mkl here"),
        ({**HERE, "NumPy": ["x"] * 99}, f"NumPy was {str(['x'] * 99)[:200]}, and is 2.4 here"),
    ],
)
def test_one_line_says_what_differs(
    caplog: pytest.LogCaptureFixture, before: dict[str, Any], differences: str | None
) -> None:
    caplog.set_level(logging.INFO, "mirrored")
    tell_differences("'ckpt-1'", before, HERE)
    line = (
        "Training from 'ckpt-1' may differ in the last bits from training where it was saved: "
        f"{differences}."
    )
    assert caplog.messages == ([] if differences is None else [line])


def test_threads_do_not_always_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mirrored")
    tell_differences("'ckpt-1'", {**HERE, "BLAS threads": "2"}, HERE, any_threads=True)
    tell_differences("'ckpt-1'", HERE, HERE, any_threads=True)
    assert caplog.messages == []
