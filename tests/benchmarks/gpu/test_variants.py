"""Each way changes the choice that it is named for while a step is made, and nothing behind it."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.gpu import variants
from benchmarks.gpu.workloads import PRECISIONS
from mirrored.backends.cuda.kernels import reduction_kernels
from mirrored.program import concurrency


class Session:
    """Steps that take a second each by the clock of these tests.

    Args:
        seconds: The seconds of a step.
    """

    now = 0.0

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.taken = 0

    def ask(self, steps: int) -> None:
        Session.now += steps * 0.25 * self.seconds

    def run(self, steps: int) -> int:
        Session.now += steps * self.seconds
        self.taken += steps
        return steps


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let time be that of the sessions."""
    monkeypatch.setattr(variants, "time", SimpleNamespace(perf_counter=lambda: Session.now))


def test_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in (None, "1"):
        if before is not None:
            monkeypatch.setenv("MIRRORED_CUDA_GRAPHS", before)
        with variants.without_graphs():
            assert os.environ["MIRRORED_CUDA_GRAPHS"] == "0"
        assert os.environ.get("MIRRORED_CUDA_GRAPHS") == before


def test_one_stream() -> None:
    before = concurrency._may_branch
    with variants.on_one_stream():
        assert not concurrency._may_branch([])
    assert concurrency._may_branch is before


def test_sums_of_columns() -> None:
    shape = (256, 128)  # Those of `digits`.

    def parts() -> int:
        return reduction_kernels.plan_of_columns(shape).parts

    before = parts()
    with variants.with_sums_split(8):
        several = parts()
    with variants.with_sums_split(1 << 40):
        assert parts() == 1
    assert several > 1
    assert parts() == before


def test_the_mode_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def ask(function: str, handle: str, mode: Any) -> None:
        asked.append((function, handle, mode.value))

    streams = [
        SimpleNamespace(xp=SimpleNamespace(blas=SimpleNamespace(_ask=ask, _handle=name)))
        for name in ("own", "beside")
    ]
    streams[0].beside = streams[1]
    device = SimpleNamespace(backend=streams[0])
    monkeypatch.setattr(variants.devices, "get_device", lambda name: device)
    with variants.with_narrow_sums():
        pass
    expected = [("own", 0), ("beside", 0), ("own", 16), ("beside", 16)]
    assert asked == [("cublasSetMathMode", *each) for each in expected]


@pytest.mark.usefixtures("clock")
def test_turns() -> None:
    sessions: dict[str, Any] = {"slow": Session(2e-3), "quick": Session(1e-3)}
    found = variants.in_turns(sessions, 0.1, 3)
    assert found == {"slow": pytest.approx(2000), "quick": pytest.approx(1000)}
    assert sessions["slow"].taken == 16 + 3 * (1 + 50)
    assert sessions["quick"].taken == 16 + 3 * (1 + 100)


@pytest.mark.usefixtures("clock")
def test_the_host() -> None:
    session: Any = Session(1e-3)
    found = variants.of_the_host(session)
    assert found == {"alone": pytest.approx(250), "with a wait": pytest.approx(1000)}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_lines(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def make(workload: Any, precision: str) -> Any:
        session: Any = Session(1e-3)
        session.losses = lambda steps: [0.5] * steps
        made.append((workload.name, precision))
        return session

    monkeypatch.setattr(variants, "Resident", make)
    narrow = precision == "bfloat16"
    if narrow:
        monkeypatch.setattr(variants, "_set_math_mode", lambda mode: None)
    lines = list(variants.measure("digits", precision, 0.01, 2))
    assert made == [("digits", precision)] * (7 if narrow else 6)
    assert len(lines) == 1 + len(made) + 2
    assert any("narrow" in line for line in lines) == narrow
    assert all("1000.0" in line for line in lines[1:-2])
