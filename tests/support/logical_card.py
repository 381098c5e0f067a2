"""A logical device of an emulated card, with short ways to use it, for the tests of the backend.

It computes on arrays of a thousand numbers: more than a block of threads has, and no whole blocks.
"""

from typing import Any

import numpy as np

from mirrored.backends.cuda import nvml
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.backends.stream_backend import FusedOp, Fusion

F32 = np.dtype(np.float32)
N = 1000
ADD = Fusion((((N,), F32),) * 2, (FusedOp("AddV2", (0, 1), (N,), F32),), (0,))


class Device:
    """A backend with a pool, and short ways to use them.

    Args:
        card: The number of the card.
        priority: That of its work.
    """

    def __init__(self, card: int = 0, priority: int | None = None) -> None:
        self.backend = CudaBackend(nvml.cards()[card], priority)
        self.pool = self.backend.make_pool(None, parent=None, growth=True)

    def empty(self, like: Any) -> Any:
        """Return an array of what memory held before, with its storage."""
        return self.backend.allocate(self.pool, np.shape(like), np.asarray(like).dtype)

    def array(self, host: Any) -> Any:
        storage = self.empty(host)
        self.backend.copy_from_host(storage, np.asarray(host))
        return storage.array

    def add(self, out: Any, x: Any, y: Any) -> None:
        """Let the device add arrays of a thousand elements."""
        backend = self.backend
        backend.run(backend.fused_kernel(ADD), backend.xp, (out,), (x, y), None)

    def busy(self) -> Any:
        """Return an array that the device has still to compute: a thousand times 64."""
        x = self.array(np.full(N, 1, np.float32))
        for _ in range(6):
            self.add(x, x, x)
        return x

    def read(self, array: Any) -> Any:
        return self.backend.to_host(array)
