"""What replicas ask in tests: their context, their number, and what memory is in use."""

import pytest

from mirrored import devices
from mirrored.distribute import ReplicaContext, get_replica_context

# For the tests of training, whose `strategy` is one of three replicas where nothing else is said.
ONE_AND_THREE = pytest.mark.parametrize(
    "strategy", [1, 3], ids=["one replica", "three replicas"], indirect=True
)


def context() -> ReplicaContext:
    """Return the context of the running replica, which there must be."""
    found = get_replica_context()
    assert found is not None
    return found


def number() -> int:
    """Return the number of the running replica."""
    return context().replica_id_in_sync_group


def in_use() -> list[int]:
    """Return the bytes in use on every device."""
    return [device.pool.current for device in devices.logical_devices()]
