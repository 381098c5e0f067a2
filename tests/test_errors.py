"""The exceptions are Python's own as well."""

import pytest
from case_table import cases

from mirrored import errors


@pytest.mark.behaviour("errors-are-several")
@cases(
    ("name", "bases"),
    [
        ("InvalidArgumentError", (ValueError, RuntimeError)),
        ("ResourceExhaustedError", (MemoryError, RuntimeError)),
        ("DeviceUnavailableError", (RuntimeError,)),
        ("DeviceLostError", (RuntimeError,)),
        ("DevicesResetError", (RuntimeError,)),
        ("FailedPreconditionError", (RuntimeError,)),
        ("DataLossError", (ValueError,)),
        ("CollectiveError", (RuntimeError,)),
        ("CollectiveTimeoutError", (errors.CollectiveError, RuntimeError, TimeoutError)),
        ("NonFiniteLossError", (FloatingPointError, ArithmeticError)),
        ("NonFiniteGradientError", (errors.NonFiniteLossError, FloatingPointError)),
        ("ReplicasDifferError", (RuntimeError,)),
        ("StepDiffersError", (RuntimeError,)),
        ("OperatorNotAllowedInGraphError", (TypeError,)),
        ("WeightsFileError", (ValueError,)),
        ("WorkerError", (RuntimeError,)),
        ("WorkerTimeoutError", (errors.WorkerError, RuntimeError, TimeoutError)),
        ("WorkersChangedError", (errors.WorkerError, RuntimeError)),
        ("OutOfRangeError", (StopIteration,)),
    ],
)
def test_what_catches_them(name: str, bases: tuple[type[Exception], ...]) -> None:
    kind = getattr(errors, name)
    for base in bases:
        with pytest.raises(base, match="what went wrong"):
            raise kind("what went wrong")


def test_table_has_every_error() -> None:
    defined = {
        name for name, each in vars(errors).items() if isinstance(each, type) and name[0] != "_"
    }
    assert defined == {
        "InvalidArgumentError",
        "ResourceExhaustedError",
        "DeviceUnavailableError",
        "DeviceLostError",
        "DevicesResetError",
        "FailedPreconditionError",
        "DataLossError",
        "CollectiveError",
        "CollectiveTimeoutError",
        "NonFiniteLossError",
        "NonFiniteGradientError",
        "ReplicasDifferError",
        "StepDiffersError",
        "OperatorNotAllowedInGraphError",
        "WeightsFileError",
        "WorkerError",
        "WorkerTimeoutError",
        "WorkersChangedError",
        "OutOfRangeError",
    }
