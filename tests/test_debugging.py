"""``mr.debugging`` holds names, and no logic of its own."""

import pytest

from mirrored import debugging, devices


@pytest.mark.parametrize("name", ["get_log_device_placement", "set_log_device_placement"])
def test_names(name: str) -> None:
    assert getattr(debugging, name) is getattr(devices, name)
