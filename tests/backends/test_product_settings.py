"""The switch for TensorFloat-32, by its public names."""

from collections.abc import Iterator
from typing import Any

import pytest

import mirrored as mr
from mirrored.backends import product_settings
from mirrored.errors import InvalidArgumentError

enable = mr.config.experimental.enable_tensor_float_32_execution
enabled = mr.config.experimental.tensor_float_32_execution_enabled


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    product_settings.allow_tensor_float_32(True)


@pytest.mark.behaviour("tensor-float-32")
def test_it_is_on_by_default_as_in_tensorflow() -> None:
    assert enabled() is True


@pytest.mark.behaviour("tensor-float-32")
@pytest.mark.parametrize(("value", "expected"), [(False, False), (0, False), (1, True)])
def test_what_was_set_reads_back(value: Any, expected: bool) -> None:
    enable(not expected)
    enable(value)
    assert enabled() is expected
    assert product_settings.tensor_float_32_allowed() is expected


@pytest.mark.behaviour("tensor-float-32")
@pytest.mark.parametrize("value", ["x", None, 2, 0.5])
def test_what_is_no_flag_changes_nothing(value: Any) -> None:
    enable(False)
    with pytest.raises(InvalidArgumentError, match=r"`enabled` must be True or False\. Received: "):
        enable(value)
    assert enabled() is False
