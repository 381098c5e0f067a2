"""Processes that train together: their layout and their messages.

A launcher of MPI starts them, on one host or on several. It knows nothing of devices: what it sums
and sends are arrays of the host.
"""

from mirrored.workers.background import PendingSum
from mirrored.workers.connecting import connect
from mirrored.workers.worker import Workers

__all__ = ["PendingSum", "Workers", "connect"]
