"""Operations of MPI that fail on all workers or on none; `test_worker_deaths` has real deaths."""

import pickle
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mirrored.errors import FailedPreconditionError, WorkerTimeoutError
from mirrored.workers import regrouping
from mirrored.workers.launch import sees_deaths
from mirrored.workers.notices import WorkersLost

MPI: Any = SimpleNamespace(
    Exception=ArithmeticError, Get_library_version=lambda: "MPICH Version:      5.0.2"
)


class Comm:
    """A communicator on which another worker agrees, or has failed, or does not come."""

    def __init__(self, others: int | None = 1) -> None:
        self.others, self.is_revoked = others, False

    def Revoke(self) -> None:  # As MPI names it.
        self.is_revoked = True

    def Iagree(self, flag: np.ndarray[Any, Any]) -> Any:
        if self.others is not None:
            flag[0] &= self.others
        return SimpleNamespace(Test=lambda: self.others is not None)


def fail() -> None:
    raise ArithmeticError("a process failed")


def succeed() -> int:
    return 7


def receive_nothing() -> Any:
    """Unpickle what a worker sent that died meanwhile."""
    return pickle.loads(b"")


def receive_zeros() -> Any:
    return pickle.loads(bytes(9))


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("operation", [succeed, fail, receive_nothing, receive_zeros])
def test_an_operation_succeeds_on_all_or_on_none(others: int, operation: Any) -> None:
    world, comm = Comm(others), Comm()
    together = partial(regrouping.agreed, MPI, world, 1.0)
    works = operation is succeed
    if others and works:
        assert together(comm, operation) == 7
    else:
        with pytest.raises(WorkersLost):
            together(comm, operation)
    assert comm.is_revoked != works  # Who waits in it wakes up.


def test_a_worker_that_does_not_come_is_a_timeout() -> None:
    with pytest.raises(WorkerTimeoutError, match="not all others came to go on without it"):
        regrouping.agreed(MPI, Comm(None), 0.0, Comm(), lambda: 7)


def test_deaths_need_open_mpi_with_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", "1")
    assert sees_deaths()
    regrouping.require_deaths_seen(MPI, "continue")
    monkeypatch.delenv("OMPI_MCA_mpi_ft_enable")
    with pytest.raises(FailedPreconditionError, match=r"--with-ft ulfm.*Received: MPICH 5\.0\.2"):
        regrouping.require_deaths_seen(MPI, "continue")
