"""A backend with memory of its own and without streams: it computes whenever it is asked.

Its arrays are NumPy's, hidden from whoever would read them without asking the backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import ops
from mirrored.backends import Backend, Hardware, HostBackend, Platform, Pool, Storage
from mirrored.backends.host import values_on_host
from mirrored.backends.stream_backend import StreamBackend
from mirrored.program.dataflow import COPY


class Apart:
    """An array that the host does not see."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.hidden = array

    def __getitem__(self, index: Any) -> Apart:
        return Apart(self.hidden[index])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.hidden, name)
        return (lambda *args: Apart(value(*args))) if callable(value) else value


class Launcher:
    """What runs kernels on arrays that the host does not see."""

    def prepare(self, name: str, args: Sequence[Any]) -> None:
        """Do nothing: nothing is compiled."""

    def compute(self, kernel: Any, *arrays: Any, **attrs: Any) -> None:
        counters = attrs.pop("counters", None)
        if counters is not None:
            first, second, number = counters.hidden.tolist()
            attrs |= {"key": (first, second), "draw": number}
        if "workspace" in attrs:
            attrs["workspace"] = tuple(array.hidden for array in attrs["workspace"])
        kernel(np, *(None if array is None else array.hidden for array in arrays), **attrs)

    def copy(self, target: Apart, source: Apart) -> None:
        np.copyto(target.hidden, source.hidden)


class _Kernel:
    """The kernel of an op."""

    asks, verdicts = False, 0

    def __init__(self, op: Any) -> None:
        self._op, self.workspace = op, op.workspace

    def run(self, xp: Any, out: Any, *inputs: Any, **attrs: Any) -> None:
        xp.compute(self._op.kernel, out, *inputs, **attrs)


class _Kernels(dict[str, Any]):
    """The kernels of all ops that have one."""

    def get(self, name: str, default: Any = None) -> Any:
        op = COPY if name == COPY.name else ops.OPS[name]
        return default if op.kernel is None else self.setdefault(name, _Kernel(op))

    def __contains__(self, name: object) -> bool:
        return self.get(str(name)) is not None


class ApartBackend(HostBackend, StreamBackend):
    """NumPy on arrays that the host does not see, without streams."""

    host_readable = False
    xp = Launcher()
    kernels: Mapping[str, Any] = _Kernels()

    def __init__(self) -> None:
        self.memory: Any = self  # Each device's own.

    def address(self, array: Any) -> int:
        return super().address(array.hidden)

    def allocate(self, pool: Pool, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Storage:
        storage = super().allocate(pool, shape, dtype)
        storage.array = Apart(storage.array)
        return storage

    def to_host(self, array: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        return super().to_host(array.hidden, out)

    def copy_from_host(self, storage: Storage, array: NDArray[Any]) -> None:
        self.copy_between(array, storage.array)

    def copy_between(self, source: Any, target: Any) -> None:
        np.copyto(target.hidden, getattr(source, "hidden", source))

    def copy_across(self, backend: Backend, source: Any, target: Any) -> None:
        self.copy_between(values_on_host(backend, source), target)


class OwnMemory(Platform):
    """Two devices of that kind."""

    def hardware(self) -> Sequence[Hardware]:
        return [Hardware("GPU", i, "apart", lambda _: ApartBackend()) for i in range(2)]
