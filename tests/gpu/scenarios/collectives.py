"""Sums over ranks, of one card or of several: through connections, strategies, and training.

Each function says in what it returns whether NCCL took part, so that no test passes without it.
"""

import importlib.util
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from training import split, train_one

import mirrored as mr
from mirrored import devices
from mirrored.backends import selftest
from mirrored.backends.communication.connection import Connection
from mirrored.backends.cuda import graphs, toolkit
from mirrored.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
    bandwidth,
)
from mirrored.distribute.cross_device_ops import connections
from mirrored.distribute.experimental import CommunicationOptions
from mirrored.errors import CollectiveError

Array = np.ndarray[Any, Any]
SEED = 20
MEGABYTES = 512  # Of a virtual GPU.
SECONDS = 30.0  # That an all-reduce may take.
TRIAL = 40.0  # That the self-test may take.
DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64"]
# None is a whole number of what NCCL moves at a time; the largest goes in several pieces.
COUNTS = (1, 3, 127, 4099, 300_007, 3_000_017)
KINDS: dict[str, type[CrossDeviceOps]] = {
    "nccl": NcclAllReduce,
    "hierarchical": HierarchicalCopyAllReduce,
    "reference": ReductionToOneDevice,
}


def place(parts: Sequence[int]) -> list[str]:
    """Make so many virtual GPUs of each card, and return their names.

    Args:
        parts: How many of each card; 1 leaves it whole.
    """
    if len(parts) == 1:
        return split(parts[0], MEGABYTES)
    for card, count in zip(mr.config.list_physical_devices("GPU"), parts, strict=False):
        if count > 1:
            part = mr.config.LogicalDeviceConfiguration(memory_limit=MEGABYTES)
            mr.config.set_logical_device_configuration(card, [part] * count)
    return [f"GPU:{index}" for index in range(sum(parts))]


class Ranks:
    """A connection, with the arrays that it sums.

    Args:
        parts: How many ranks each card has.
    """

    def __init__(self, parts: Sequence[int]) -> None:
        """Connect nothing yet."""
        self.devices = [devices.get_device(name) for name in place(parts)]
        self.backends = connections.streamed(self.devices)
        self.names = [each.full_name for each in self.devices]
        self.connection = Connection(self.backends, self.names, connect_timeout=60.0)

    def put(self, arrays: Sequence[Array]) -> list[Any]:
        """Return an array on each device, a view that begins one element into its memory."""
        found = []
        for device, backend, array in zip(self.devices, self.backends, arrays, strict=True):
            storage = device.allocate((array.size + 1,), array.dtype)
            padded = np.concatenate([array[:1], array]) if array.size else array
            backend.copy_from_host(storage, padded)
            found.append((storage, storage.array[1:]))
        return found

    def ask(self, sends: list[Any], receives: list[Any], **options: Any) -> None:
        """Ask for a sum, after what the devices were asked for and before what comes then."""
        for stream, backend in zip(self.connection.streams, self.backends, strict=True):
            stream.wait(backend.record())
        events = self.connection.all_reduce(
            [array for _, array in sends],
            [array for _, array in receives],
            **{"what": "a test", "timeout": SECONDS, **options},
        )
        for event, backend in zip(events, self.backends, strict=True):
            backend.wait(event)

    def wrong(self, arrays: list[Any], expected: Array) -> int:
        """Return how many elements are not the expected ones, over all devices."""
        self.connection.finish()
        found = (b.to_host(array) for b, (_, array) in zip(self.backends, arrays, strict=True))
        return sum(int(np.count_nonzero(each != expected)) for each in found)

    def prepare(self, count: int, dtype: Any, in_place: bool = False) -> tuple[Any, Any, Array]:
        """Return what is sent and received, and the sum: whole numbers that every dtype adds."""
        rng = np.random.default_rng(count)
        arrays = [rng.integers(0, 16, count) for _ in self.devices]
        sends = self.put([each.astype(dtype) for each in arrays])
        receives = sends if in_place else self.put([np.full(count, 99, dtype)] * len(arrays))
        return sends, receives, np.sum(arrays, axis=0).astype(dtype)

    def check(self, prepared: tuple[Any, Any, Array], **options: Any) -> int:
        """Sum what is prepared; return how many elements are wrong."""
        sends, receives, expected = prepared
        self.ask(sends, receives, **options)
        return self.wrong(receives, expected)


# ---------------------------------------------------------------------------- connections


def tried(counts: list[int]) -> dict[str, Any]:
    """Return, for several ranks on one card, why they cannot be; nothing where they can."""
    names = place([max(counts)])
    backends = connections.streamed([devices.get_device(name) for name in names])
    reasons: dict[str, str] = {}
    for count in sorted(counts):
        first, *others = backends[:count]
        reason = first.why_not_connected(others) or next(filter(None, reasons.values()), None)
        if reason is None:
            try:
                selftest.require(backends[:count], names[:count], TRIAL)
            except CollectiveError as error:
                reason = str(error)
        reasons[str(count)] = reason or ""
    return reasons


def sums(parts: list[int]) -> dict[str, Any]:
    """Sum arrays of every dtype and of many sizes; return how many elements were wrong."""
    ranks = Ranks(parts)
    found: dict[str, Any] = {}
    for name in dtypes():
        for count in COUNTS:
            for in_place in (False, True):
                where = "in place" if in_place else "apart"
                found[f"{name} {count} {where}"] = ranks.check(ranks.prepare(count, name, in_place))
    found["in a row"] = in_a_row(ranks)
    found["without waiting"] = without_waiting(ranks)
    ranks.connection.close()
    found["open after closing"] = ranks.connection.is_open
    ranks.connection.close()
    found["again"] = ranks.check(ranks.prepare(1001, "float32"))
    ranks.connection.close()
    return found


def left_open(parts: list[int]) -> dict[str, Any]:
    """Sum, and leave the devices connected when the process ends; return what was wrong."""
    ranks = Ranks(parts)
    return {"wrong": ranks.check(ranks.prepare(4099, "float32"))}


def dtypes() -> list[str]:
    """Return the dtypes that NCCL sums, as far as NumPy has them here."""
    if importlib.util.find_spec("ml_dtypes") is None:
        return DTYPES
    import ml_dtypes  # Gives NumPy the name.

    return [*DTYPES, np.dtype(ml_dtypes.bfloat16).name]


def in_a_row(ranks: Ranks) -> int:
    """Sum sums again and again, in place; return how many elements are wrong in the end."""
    count = len(ranks.devices)
    times = 30 if count == 1 else int(30 / math.log2(count))
    arrays = [np.arange(4099) % 16 + rank for rank in range(count)]
    values = ranks.put(arrays)
    for _ in range(times):
        ranks.ask(values, values)
    return ranks.wrong(values, np.sum(arrays, axis=0) * count ** (times - 1))


def without_waiting(ranks: Ranks) -> int:
    """Ask for many sums before the host waits once; return how many elements are wrong."""
    count, wrong = len(ranks.devices), 0
    rng = np.random.default_rng(SEED)
    arrays = [rng.integers(0, 1000, (50, 4099)) for _ in range(count)]
    sends = [ranks.put([each[turn] for each in arrays]) for turn in range(50)]
    receives = [ranks.put([np.zeros(4099, np.int64)] * count) for _ in range(50)]
    for turn in range(400):
        ranks.ask(sends[turn % 50], receives[turn % 50])
    for turn, received in enumerate(receives):
        wrong += ranks.wrong(received, np.sum([each[turn] for each in arrays], axis=0))
    return wrong


def peers(cards: int) -> dict[str, Any]:
    """Copy between all cards; return how many elements are wrong, and of which pairs.

    Returns:
        wrong: Elements that did not arrive.
        differ: Pairs of which CUDA says something else than what the library expects.
    """
    found = [devices.get_device(f"GPU:{number}") for number in range(cards)]
    backends = connections.streamed(found)
    runtime = toolkit.toolkit().cuda.runtime
    wrong, differ = 0, 0
    for (owner, source), (reader, target) in itertools.permutations(
        zip(found, backends, strict=True), 2
    ):
        values = np.random.default_rng(owner.index).normal(size=300_007)
        there, here = (each.allocate(values.shape, values.dtype) for each in (owner, reader))
        source.copy_from_host(there, values)
        target.copy_across(source, there.array, here.array)
        wrong += int(np.count_nonzero(target.to_host(here.array) != values))
        said = bool(runtime.deviceCanAccessPeer(target.device.id, source.device.id))
        differ += said != target.reads(source)
    return {"wrong": wrong, "differ": differ}


# ---------------------------------------------------------------------------- strategies


def make_strategy(names: list[str], kind: str, packs: int = 1, **options: Any) -> Any:
    """Return a strategy with collectives of a kind, and a short deadline.

    Args:
        names: The devices.
        kind: A key of KINDS; empty for those that fit the devices.
        packs: The number of packs.
        options: Those of `CommunicationOptions`, and "deterministic".
    """
    deterministic = options.pop("deterministic", False)
    made = KINDS[kind](*([packs] if kind != "reference" else [])) if kind else None
    return mr.MirroredStrategy(
        names,
        made,
        communication_options=CommunicationOptions(**{"timeout_seconds": SECONDS, **options}),
        deterministic=deterministic,
    )


def connected(strategy: Any) -> bool:
    """Return whether NCCL connects a strategy's devices now."""
    return bool(connections.connection(bandwidth.leaders(strategy.devices)).is_open)


def against_reference(parts: list[int], kinds: list[str], examples: int) -> dict[str, Any]:
    """Reduce random batches eagerly and recorded; return how far they are from the reference.

    Returns:
        worst: The largest error, by what rounding allows.
        same: Whether recorded and eager ones have the same bits.
        connected: Whether NCCL took part.
    """
    names, rng = place(parts), np.random.default_rng(SEED)
    worst, same, took_part = 0.0, True, False
    for _ in range(examples):
        arrays, reduce_op = _random_batch(rng, len(names)), str(rng.choice(["sum", "mean"]))
        wanted = _reduced(make_strategy(names, "reference"), arrays, reduce_op, False)
        for kind in kinds:
            sizes = {"bytes_per_pack": int(rng.choice([0, 24, 4096]))}
            strategy = make_strategy(names, kind, int(rng.integers(0, 4)), **sizes)
            eager, recorded = (_reduced(strategy, arrays, reduce_op, way) for way in (False, True))
            took_part = took_part or (kind == "nccl" and connected(strategy))
            for inputs, one, other, each in zip(arrays, eager, recorded, wanted, strict=True):
                same = same and [a.tobytes() for a in one] == [b.tobytes() for b in other]
                worst = max(worst, *(_error(inputs, a, b) for a, b in zip(one, each, strict=True)))
    return {"worst": worst, "same": same, "connected": took_part}


def _random_batch(rng: np.random.Generator, replicas: int) -> list[list[Array]]:
    """Return some values, each as arrays by replica."""
    batch = []
    for _ in range(int(rng.integers(1, 6))):
        shape = tuple(rng.integers(0, 70, int(rng.integers(0, 3))).tolist())
        dtype = str(rng.choice(["float32", "float64", "int32", "int64"]))
        batch.append([(rng.normal(size=shape) * 100).astype(dtype) for _ in range(replicas)])
    return batch


def _reduced(
    strategy: Any, batch: list[list[Array]], reduce_op: str, recorded: bool
) -> list[list[Array]]:
    """Return each value's reduction, by replica."""

    def replica(*values: Any) -> Any:
        context = mr.distribute.get_replica_context()
        return context.all_reduce(reduce_op, list(values))

    args = tuple(
        strategy.experimental_distribute_values_from_function(
            lambda context, values=values: values[context.replica_id_in_sync_group]
        )
        for values in batch
    )
    step = mr.function(lambda args: strategy.run(replica, args))
    out = step(args) if recorded else strategy.run(replica, args)
    return [[part.numpy() for part in strategy.experimental_local_results(each)] for each in out]


def _error(inputs: list[Array], found: Array, wanted: Array) -> float:
    """Return an error by what N roundings of the sum of all magnitudes allow."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return math.inf
    if found.dtype.kind == "i":
        return 0.0 if found.tobytes() == wanted.tobytes() else math.inf
    allowed = len(inputs) * np.finfo(found.dtype).eps * np.sum(np.abs(inputs), axis=0)
    ratio = np.abs(found - wanted) / np.maximum(allowed, np.finfo(found.dtype).tiny)
    return float(np.max(ratio, initial=0.0))


def train(
    parts: list[int], cases: list[dict[str, Any]], kind: str = "nccl", **options: Any
) -> dict[str, Any]:
    """Train each case on so many virtual GPUs of each card.

    Args:
        parts: How many of each card.
        cases: Arguments of `train_one`.
        kind: Which collectives.
        options: Those of `make_strategy`.

    Returns:
        What each case leaves, by "number/name", and whether NCCL took part.
    """
    strategy = make_strategy(place(parts), kind, **options)
    results: dict[str, Any] = {}
    for number, case in enumerate(cases):
        found = train_one(strategy, **case)
        results.update({f"{number}/{name}": value for name, value in found.items()})
    results["connected"] = kind in ("", "nccl") and connected(strategy)
    strategy.close()
    return results


def order(parts: list[int], case: dict[str, Any]) -> dict[str, Any]:
    """Train with small buckets; return in which order sums and other work were asked for.

    Returns:
        order: A letter for each: "S" for a sum, "G" for a part of a step that a graph launches.
    """
    asked: list[str] = []
    launch, all_reduce = graphs.CapturedGraph.launch, Connection.all_reduce

    def noted(letter: str, function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            asked.append(letter)
            return function(*args, **options)

        return call

    strategy = make_strategy(place(parts), "nccl", bytes_per_pack=64)
    graphs.CapturedGraph.launch = noted("G", launch)
    Connection.all_reduce = noted("S", all_reduce)
    found = train_one(strategy, **case)
    return {"order": "".join(asked), "connected": connected(strategy), **found}
