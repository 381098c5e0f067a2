"""The ranks of replicas to NCCL, and the connections between the cards of all workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from mirrored._logging import logger
from mirrored.backends import selftest
from mirrored.backends.communication.collective_failures import Peers
from mirrored.backends.communication.connection import MULTI_RANK, Connection
from mirrored.backends.stream_backend import StreamBackend, is_offloaded
from mirrored.devices import Device
from mirrored.distribute.cross_device_ops.options import (
    CommunicationImplementation,
    CommunicationOptions,
)
from mirrored.errors import CollectiveError, CollectiveTimeoutError, InvalidArgumentError
from mirrored.workers.notices import WorkersLost

SELFTEST = "MIRRORED_NCCL_SELFTEST"


class TestedPeers(Peers, Protocol):
    """Other processes, as `Peers`, with which sums are tried before they are relied on."""

    @property
    def generation(self) -> int:
        """How often processes were lost before; the others need not try sums again."""

    def agree(self, test: Callable[[], object]) -> object:
        """Call a test, as all processes do, and raise where it failed in any of them.

        Raises:
            CollectiveError: It failed; the text says where, and why.
        """


# By the first rank's device, which a connection does not keep alive: it is forgotten with the
# devices. Then by the backends of all ranks, and the other processes.
_Key = tuple[tuple[StreamBackend, ...], TestedPeers | None]
_known: WeakKeyDictionary[Device, dict[_Key, Connection]] = WeakKeyDictionary()
_lock = threading.Lock()


class Rank(NamedTuple):
    """One part in an all-reduce between cards: it adds the values of some replicas, in order."""

    replicas: tuple[int, ...]

    @property
    def leader(self) -> int:
        """The replica on whose device it adds them: the first."""
        return self.replicas[0]


def ranks(memories: Sequence[Hashable]) -> list[Rank]:
    """Return the ranks, one a memory, in the order of their first replicas.

    With MIRRORED_NCCL_MULTI_RANK=1 in the environment every replica is a rank, as a test of many
    ranks on few cards needs it.

    Example:
        >>> [rank.replicas for rank in ranks(["card A", "card B", "card A"])]
        [(0, 2), (1,)]
    """
    if every_replica_is_a_rank():
        return [Rank((replica,)) for replica in range(len(memories))]
    members: dict[Hashable, list[int]] = {}
    for replica, memory in enumerate(memories):
        members.setdefault(memory, []).append(replica)
    return [Rank(tuple(replicas)) for replicas in members.values()]


def every_replica_is_a_rank() -> bool:
    """Return whether the environment asks for a rank a replica, on whichever card."""
    return os.environ.get(MULTI_RANK) == "1"


def connection(leaders: Sequence[Device], peers: TestedPeers | None = None) -> Connection:
    """Return what connects devices; nothing is connected before it is first used.

    Before it is, known sums are tried in a process of their own, unless MIRRORED_NCCL_SELFTEST=0.

    Args:
        leaders: The devices of this process.
        peers: Other processes, with whose devices they are connected; None: there are none.

    Raises:
        InvalidArgumentError: A device computes on the host, where there is nothing to connect.
    """
    ranks = streamed(leaders)
    with _lock:
        mine = _known.setdefault(leaders[0], {})
        if (ranks, peers) not in mine:
            names = tuple(device.full_name for device in leaders)
            mine[ranks, peers] = _new_connection(ranks, names, peers)
        return mine[ranks, peers]


def streamed(leaders: Sequence[Device]) -> tuple[StreamBackend, ...]:
    """Return the devices' backends, whose work runs beside the host."""
    backends = []
    for device in leaders:
        if not is_offloaded(device.backend):
            raise InvalidArgumentError(
                "Connections exist only between GPUs that are not simulated. Received: "
                f"{device.full_name}."
            )
        backends.append(device.backend)
    return tuple(backends)


def _new_connection(
    ranks: tuple[StreamBackend, ...], names: tuple[str, ...], peers: TestedPeers | None
) -> Connection:
    tried = False

    def prepare() -> None:
        nonlocal tried
        is_known = peers is not None and peers.generation > 0
        if is_known or os.environ.get(SELFTEST, "").strip() == "0":
            return
        if tried:
            selftest.forget()  # Something has failed since, so what passed then says nothing.
        tried = True
        if peers is None:
            selftest.require(ranks, names)
            return
        place = peers.meet(ranks[0].new_key)
        peers.agree(lambda: selftest.require(ranks, names, place=place))

    return Connection(ranks, names, prepare=prepare, peers=peers)


if TYPE_CHECKING:  # Workers without cards need none of these.
    from mirrored.backends.stream_backend import Place
    from mirrored.workers import Workers

T = TypeVar("T")

_WHAT = "the cards of all workers"
_SUM = f"a sum of {_WHAT}"
# Seconds that MPI has to notice a death that NCCL has noticed, and between two looks at it.
_PATIENCE, _OFTEN = 5.0, 0.005


class Cards(NamedTuple):
    """What a worker says of its devices.

    Attributes:
        why_no_nccl: Why NCCL cannot sum between them and others, in a sentence; None: it can.
        ranks: How many ranks of NCCL they are.
        cards: The cards that these are on, by the names that their host has for them.
        shared: Whether the environment lets several ranks be on one card.
    """

    why_no_nccl: str | None
    ranks: int = 0
    cards: tuple[str, ...] = ()
    shared: bool = False


def cards_of(devices: Sequence[Device], options: CommunicationOptions | None) -> Cards:
    """Return what a worker says of its devices; nothing is started for it.

    Args:
        devices: Those of its replicas.
        options: The strategy's hints.
    """
    if options is not None and options.implementation is CommunicationImplementation.RING:
        return Cards("CommunicationOptions(implementation='RING') asks for sums on the host")
    for device in devices:
        if device.why_no_card is not None:
            return Cards(f"{device.full_name} is {device.why_no_card}")
    memories = [device.backend.memory for device in devices]
    parts = ranks(memories)
    first, *others = streamed([devices[rank.leader] for rank in parts])
    return Cards(
        first.why_not_connected(others),
        len(parts),
        tuple(str(memories[rank.leader]) for rank in parts),
        every_replica_is_a_rank(),
    )


def why_no_nccl(by_rank: Sequence[Cards], hosts: Sequence[str]) -> str | None:
    """Return why NCCL does not sum between workers, None where it does: the same on all of them.

    Args:
        by_rank: What each worker says, by rank.
        hosts: The host of each.

    Example:
        >>> why_no_nccl([Cards(None, 1, ("card A",)), Cards(None, 1, ("card B",))], ["a", "a"])
        >>> why_no_nccl([Cards(None, 1, ("card A",)), Cards("CPU:0 is not a GPU")], ["a", "b"])
        'on worker 1 (b) CPU:0 is not a GPU'
    """
    for rank, (worker, host) in enumerate(zip(by_rank, hosts, strict=True)):
        if worker.why_no_nccl is not None:
            return f"on worker {rank} ({host}) {worker.why_no_nccl.rstrip('.')}"
    if all(entry.shared for entry in by_rank):
        return None
    owners: dict[tuple[str, str], int] = {}
    for rank, (worker, host) in enumerate(zip(by_rank, hosts, strict=True)):
        for card in worker.cards:
            other = owners.setdefault((host, card), rank)
            if other != rank:
                return (
                    f"workers {other} and {rank} share the card {card} of {host}, and NCCL allows "
                    "one worker per card"
                )
    return None


def agreed(workers: Workers, by_rank: Sequence[Cards], replicas: int) -> WorkerCards | None:
    """Return how the workers' cards are connected, and log it; None: they sum on the host.

    Args:
        workers: The workers.
        by_rank: What each of them says, by rank.
        replicas: How many replicas all of them have.
    """
    why = why_no_nccl(by_rank, workers.hosts)
    counts = [worker.ranks for worker in by_rank]
    if why is None:
        logger.debug(
            "All %d replicas are on %d cards: values of recorded steps, and gradients, are summed "
            "over %d workers by NCCL, and others by MPI.",
            *(replicas, sum(counts), workers.count),
        )
        return WorkerCards(workers, sum(counts[: workers.rank]), sum(counts), workers.generation)
    logger.debug("Values are summed over %d workers by MPI, on the host: %s.", workers.count, why)
    return None


@dataclass(frozen=True)
class WorkerCards:
    """The cards of all workers, as `Peers` of a connection: MPI brings together who connects them.

    Args:
        workers: The workers.
        first: The number of this worker's first rank of NCCL.
        count: How many ranks all have.
        generation: How often workers were lost before.
    """

    workers: Workers
    first: int
    count: int
    generation: int = 0

    @property
    def goes_on(self) -> bool:
        """Whether the other workers go on where one dies."""
        return self.workers.on_failure != "raise"

    def meet(self, new_key: Callable[[], bytes]) -> Place:
        """Return where this worker's ranks are, with a key that the first worker makes."""
        from mirrored.backends.stream_backend import Place

        key = self.agree(new_key if self.workers.is_chief else bytes)
        return Place(self.first, self.count, self._gathered(key, _WHAT)[0])

    def look(self) -> None:
        """Raise where another worker has told that it goes no further."""
        self.workers.check(_SUM)

    def lost(self, error: BaseException) -> None:
        """Tell the others that the cards are no longer connected, and why."""
        if not self.goes_on:  # Else it may be that one has died, as `together` finds out.
            self.workers.failed(error)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let the sums of this block, which waits for them, be done on all workers or on none.

        Raises:
            WorkersChangedError: Workers have died; the sums are done on nobody.
            CollectiveError: They failed on a worker that lives, or cannot be aborted here.
        """
        if not self.goes_on:
            yield
            return
        failure: Exception | None = None
        workers = self.workers
        failed = np.zeros(workers.count, np.int32)
        workers.require(self.generation, _SUM)
        try:
            yield
        except (CollectiveError, WorkersLost) as error:
            failure, failed[workers.rank] = error, 1
            if not isinstance(error, CollectiveTimeoutError):  # Else one may hang.
                self._expect_death(error)
        workers.sum_in_order(failed, failed, _SUM)
        if failed.any():
            failure = failure or CollectiveError(
                f"{_SUM.capitalize()} failed. Received: on workers {np.flatnonzero(failed)}."
            )
            workers.failed(failure)
            raise failure

    def _expect_death(self, error: Exception) -> None:
        """Return when MPI knows of a death, which NCCL may have noticed first; raise if none."""
        began = time.monotonic()
        with suppress(WorkersLost):
            while time.monotonic() - began < _PATIENCE:
                self.look()
                time.sleep(_OFTEN)
            self.workers.failed(error)
            raise error

    def _gathered(self, data: bytes, label: str) -> list[bytes]:
        self.workers.require(self.generation, label)
        parts = self.workers.gather_arrays(np.frombuffer(data, np.uint8), label)
        return [part.tobytes() for part in parts]

    def agree(self, test: Callable[[], T]) -> T:
        """Return what a call returns, that all workers make, or raise where any of them failed.

        Raises:
            CollectiveError: That of another worker has failed.
            Exception: This one's has.
        """
        failure, result = None, None
        try:
            result = test()
        except Exception as error:
            failure = error
        said = "" if failure is None else f"{type(failure).__name__}: {failure}"
        answers = self._gathered(said.encode(), f"whether {_WHAT} can be connected")
        if failure is not None:
            raise failure
        for rank, text in enumerate(answers):
            if text:
                raise CollectiveError(
                    f"Worker {rank} on host {self.workers.hosts[rank]} cannot connect its cards "
                    f"to the cards of the other workers. Received there: {text.decode()}"
                )
        return result  # type: ignore[return-value]
