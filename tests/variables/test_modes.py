"""When copies of a variable are brought together and how: what is accepted, and what follows."""

from typing import Any

import pytest

from mirrored.variables import VariableAggregation, VariableSynchronization
from mirrored.variables.modes import check_modes

SYNCHRONIZATIONS = list(VariableSynchronization)


def test_names_and_numbers_are_tensorflows() -> None:
    assert [(each.name, each.value) for each in VariableSynchronization] == [
        ("AUTO", 0),
        ("NONE", 1),
        ("ON_WRITE", 2),
        ("ON_READ", 3),
    ]
    assert [(each.name, each.value) for each in VariableAggregation] == [
        ("NONE", 0),
        ("SUM", 1),
        ("MEAN", 2),
        ("ONLY_FIRST_REPLICA", 3),
    ]


@pytest.mark.parametrize("synchronization", SYNCHRONIZATIONS)
@pytest.mark.parametrize("aggregation", list(VariableAggregation))
@pytest.mark.parametrize("trainable", [None, True, False])
def test_trainable(
    synchronization: VariableSynchronization,
    aggregation: VariableAggregation,
    trainable: bool | None,
) -> None:
    by_default = synchronization is not VariableSynchronization.ON_READ
    expected = by_default if trainable is None else trainable
    assert check_modes(synchronization, aggregation, trainable, "v") is expected


@pytest.mark.parametrize("value", ["sum", "SUM", None, 1, VariableSynchronization.ON_READ])
def test_an_aggregation_that_there_is_not(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Invalid variable aggregation mode: .* variable: v") as e:
        check_modes(VariableSynchronization.AUTO, value, None, "v")
    assert all(str(each) in str(e.value) for each in VariableAggregation)


@pytest.mark.parametrize("value", ["on_read", None, 3, VariableAggregation.SUM])
def test_a_synchronization_that_there_is_not(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Invalid variable synchronization mode: .*: v") as e:
        check_modes(value, VariableAggregation.NONE, None, "v")
    assert all(str(each) in str(e.value) for each in SYNCHRONIZATIONS)
