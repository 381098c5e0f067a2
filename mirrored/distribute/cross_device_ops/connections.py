"""The connections between cards, which all collectives and strategies of a process share.

To connect takes seconds and memory on every card, so each set of ranks is connected once.
"""

import os
import threading
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from mirrored.backends.communication import selftest
from mirrored.backends.communication.connection import Connection
from mirrored.backends.stream_backend import StreamBackend, is_streamed
from mirrored.devices import Device
from mirrored.errors import InvalidArgumentError

SELFTEST = "MIRRORED_NCCL_SELFTEST"

# By the first rank's device, which a connection does not keep alive: it is forgotten with the
# devices. Then by the backends of all ranks.
_known: WeakKeyDictionary[Device, dict[tuple[StreamBackend, ...], Connection]] = WeakKeyDictionary()
_lock = threading.Lock()


def connection(leaders: Sequence[Device]) -> Connection:
    """Return what connects devices; nothing is connected before it is first used.

    Before it is, known sums are tried in a process of their own, unless MIRRORED_NCCL_SELFTEST=0.

    Args:
        leaders: The device of each rank.

    Raises:
        InvalidArgumentError: A device computes on the host, where there is nothing to connect.
    """
    ranks = streamed(leaders)
    with _lock:
        mine = _known.setdefault(leaders[0], {})
        if ranks not in mine:
            mine[ranks] = _made(ranks, tuple(device.full_name for device in leaders))
        return mine[ranks]


def streamed(leaders: Sequence[Device]) -> tuple[StreamBackend, ...]:
    """Return the devices' backends, whose work runs beside the host.

    Args:
        leaders: The devices.

    Raises:
        InvalidArgumentError: One of them computes on the host.
    """
    backends = []
    for device in leaders:
        if not is_streamed(device.backend):
            raise InvalidArgumentError(
                "Connections are between GPUs that are not simulated. Received: "
                f"{device.full_name}."
            )
        backends.append(device.backend)
    return tuple(backends)


def _made(ranks: tuple[StreamBackend, ...], names: tuple[str, ...]) -> Connection:
    tried = False

    def prepare() -> None:
        nonlocal tried
        if os.environ.get(SELFTEST, "").strip() == "0":
            return
        if tried:
            selftest.forget()  # Something has failed since, so what passed then says nothing.
        tried = True
        selftest.require(ranks, names)

    return Connection(ranks, names, prepare=prepare)
