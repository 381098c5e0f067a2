"""Sums between hosts that go on while a recorded step computes, a bucket at a time.

Messages take their time on a network, where no core is busy with them. docs/howto/several-hosts.md
has the figures.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mirrored import devices
from mirrored.distribute.cross_device_ops import buckets
from mirrored.distribute.cross_device_ops.options import CommunicationOptions
from mirrored.distribute.cross_device_ops.worker_times import WorkerTimes
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.op import Op
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.workers import PendingSum, Workers

# A bucket has so many bytes at least, unless `bytes_per_pack` says otherwise; it takes two of them
# for sums to go on beside what a step computes. Of less the thread costs more than it hides.
BUCKET_BYTES = 4 << 20
# What comes first in a batch, and is no larger, does not wait for the next: a step's loss is there
# before all gradients.
_FIRST = 1 << 12


def pays(workers: Workers, specs: Iterable[TensorSpec]) -> bool:
    """Return whether sums go on beside what a step computes.

    They do between hosts alone, where there is much to sum. Within one they are work of the cores
    that compute, and one vector at the end of the step is quicker. Eager calls have all gradients
    before the first sum.

    Args:
        workers: The workers.
        specs: What is summed.
    """
    if not workers.on_several_hosts or active_recorder() is None:
        return False
    if workers.on_failure != "raise":  # A step that is taken again waits for all of its sums.
        return False
    return sum(map(buckets.nbytes, specs)) >= 2 * BUCKET_BYTES


def cut(
    batch: Sequence[Sequence[Tensor]], groups: Sequence[list[int]], options: CommunicationOptions
) -> list[list[int]]:
    """Return the places of the values that are summed together, in the order of the sums.

    Args:
        batch: The values, by replica.
        groups: The places of those that may be summed together.
        options: Hints for this call.
    """
    least = options.bytes_per_pack or BUCKET_BYTES
    cuts: list[list[int]] = []
    for members in groups:
        sizes = [buckets.nbytes(batch[i][0].spec) for i in members]
        first = 1 if sizes[0] <= _FIRST and len(sizes) > 1 else 0
        ranges = buckets.bucket_ranges(sizes[first:], least)
        parts = [[members[first + place] for place in places] for places in ranges]
        if len(parts) > 1 and sum(sizes[first + place] for place in ranges[-1]) < least:
            rest = parts.pop()  # Where nothing is left to compute each sum more is time.
            parts[-1] += rest
        cuts += [members[:first], *parts] if first else parts
    return cuts


class SumsMeanwhile:
    """The sums of one batch: all are begun, in order, and then all are waited for.

    Args:
        workers: The workers.
        times: The clocks of the workers, which stop while this one waits.
    """

    def __init__(self, workers: Workers, times: WorkerTimes) -> None:
        self._workers = workers
        self._times = times
        self._pending: list[PendingSum] = []

    def begin(self, tensor: Tensor, what: str) -> Tensor:
        """Return what becomes the sum over the workers.

        Args:
            tensor: This worker's.
            what: What errors call the sum.
        """
        with only(), devices.device(tensor._device):
            return _BEGIN(tensor, begin=self._begin, what=what)

    def end(self, begun: Tensor) -> Tensor:
        """Return the sum that was begun.

        Args:
            begun: What `begin` returned.
        """
        with only(), devices.device(begun._device):
            return _END(begun, wait=self._wait)

    def _begin(self, vector: NDArray[Any], what: str) -> None:
        try:
            self._pending.append(self._workers.begin_sum(vector, vector, what))
        except BaseException:
            self._wait()  # The first one that failed says why.
            raise

    def _wait(self) -> None:
        """Wait for all sums; note how long each worker took up to now."""
        if not self._pending:
            return
        self._times.stop()
        try:
            for pending in self._pending:
                pending.wait()
        except BaseException as error:
            self._workers.failed(error)  # So that the others end too, and write nothing later.
            for pending in self._pending:
                pending.settle()
            raise
        finally:
            self._pending.clear()
        self._times.go_on()


def _begin(
    xp: Any, out: Any, x: Any, *_: Any, begin: Callable[[Any, str], None], what: str
) -> None:
    """Begin a sum in its place; the sums before this one are inputs that are not read."""
    if not np.may_share_memory(out, x):
        xp.copyto(out, x)
    begin(out.reshape(-1), what)


def _end(xp: Any, out: Any, x: Any, *_: Any, wait: Callable[[], None]) -> None:
    """Wait for the sums."""
    wait()
    if not np.may_share_memory(out, x):
        xp.copyto(out, x)


# Makes an op that all workers call. Strategies alone do: it is not in the table of ops.
worker_op = partial(
    Op,
    infer=lambda x, *_, **__: x,
    may_alias=(0,),
    whole=True,
    stateful=True,
    ordered=True,
)
_BEGIN = worker_op(name="CollectiveReduceV2", kernel=_begin, early=True)
_END = worker_op(name="_CollectiveWait", kernel=_end)
