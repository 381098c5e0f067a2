"""Refuses single allocations on devices, as full ones do."""

from typing import Any

import pytest

from mirrored.devices.logical_device import Device
from mirrored.errors import ResourceExhaustedError


class Refusals:
    """Counts allocations down, and refuses the one that is number 0.

    Args:
        monkeypatch: What takes this back.

    Attributes:
        left: How many allocations there are up to the one that is refused; below 0: none is.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = 0
        allocate = Device.allocate

        def counted(device: Device, *args: Any) -> Any:
            self.left -= 1
            if not self.left:
                raise ResourceExhaustedError("full")
            return allocate(device, *args)

        monkeypatch.setattr(Device, "allocate", counted)
