"""The strategy of several processes, on one host or on several: each is a worker with devices.

Replicas are numbered over the workers. A worker runs its own, and what all of them put together
goes over the workers as well.
"""

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from mirrored import _nest, devices, ops
from mirrored._files import keep_company
from mirrored._logging import logger
from mirrored._numbers import check_count
from mirrored.distribute.context import get_replica_context
from mirrored.distribute.cross_device_ops import CommunicationOptions, CrossDeviceOps
from mirrored.distribute.cross_device_ops.across_workers import AcrossWorkers
from mirrored.distribute.cross_device_ops.buckets import by_replica
from mirrored.distribute.cross_device_ops.connections import Cards, agreed, cards_of
from mirrored.distribute.cross_device_ops.options import ReduceOp
from mirrored.distribute.global_batch import assumed_replicas, global_batch
from mirrored.distribute.graph_lines import GATHERED, OF_FIRST
from mirrored.distribute.input import DistributedDataset, InputContext, distributed_from_function
from mirrored.distribute.mirrored_strategy import MirroredStrategy, check_replica_count, resolve
from mirrored.distribute.on_read_variables import SyncOnReadVariable
from mirrored.distribute.per_replica import DistributedValues, Mirrored, PerReplica, select
from mirrored.distribute.sharding import cut, split_sizes
from mirrored.distribute.strategy import Strategy
from mirrored.distribute.worker_agreement import (
    Facts,
    WorkerFiles,
    check_alike,
    check_function,
    described,
    draw_alike,
    own_devices,
)
from mirrored.distribute.worker_input import SharedDataset, WorkerDataset, is_own
from mirrored.distribute.worker_resolver import WorkerResolver, check_resolver
from mirrored.errors import InvalidArgumentError, OperatorNotAllowedInGraphError
from mirrored.ops.hooks import active_recorder, only
from mirrored.ops.spec import FLOATS, DType, bool_
from mirrored.ops.tensor import Tensor
from mirrored.program import Graph
from mirrored.program.variable_access import Moves
from mirrored.variables import Variable, VariableAggregation
from mirrored.variables.flat import packing_order
from mirrored.workers import Workers, connect

# Of what is logged, how much a worker tells that is not the first; no program sets such a level.
_QUIET = logging.WARNING - 1
_numbers = itertools.count()
_strategies: WeakValueDictionary[int, "MultiWorkerMirroredStrategy"] = WeakValueDictionary()
ON_WORKER_FAILURE = ("raise", "continue", "replace")


class MultiWorkerMirroredStrategy(MirroredStrategy):
    """Trains one model on the devices of several processes, on one host or on several.

    The processes are started by MPI, as in `mpiexec -n 4 python train.py`; each is a worker. Its
    replicas run on its GPUs, or on its CPU where it has none. They are numbered over all workers,
    and all of them together make of each global batch what one device makes of it. A process that
    was started alone is the only worker.

    All workers run the same program. What has to do with all replicas - `fit`, `evaluate`,
    `predict`, `run` of what reduces, `reduce`, `gather`, and reads of variables that are summed on
    reads - is called by all of them in the same order.

    Args:
        cluster_resolver: Accepted where it says what MPI says: how many workers there are, and
            which one this is. None: so has the environment variable `TF_CONFIG`, if it is there.
        communication_options: The hints for all collectives that are given none.
        replicas: The number of replicas of all workers together; None: one per device. Results
            then have the same bits for any number of workers and devices; see `MirroredStrategy`.
        on_worker_failure: What is done where the process of a worker dies: "raise" raises
            WorkerError in all others; "continue" lets the others share its replicas' work and take
            the running step again; "replace" does so too, and in `fit` and `elastic` starts a new
            process for it. Both need Open MPI's `mpiexec --with-ft ulfm`. Where NCCL connects the
            cards, "replace" raises ValueError, and "continue" has run on emulated cards only.
        min_workers: The number of workers below which the others raise WorkerError too.

    Raises:
        ValueError: The resolver, or `TF_CONFIG`, names other workers than MPI started, or other
            tasks than workers; or `replicas` is less than the number of devices of all workers, or
            more than 1,024.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.distribute.MultiWorkerMirroredStrategy()
        >>> strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id
        (1, 0)
    """

    _how_without_nccl = (
        'With CommunicationOptions(implementation="RING") workers sum on the host, without NCCL.'
    )

    def __init__(
        self,
        cluster_resolver: Any = None,
        communication_options: CommunicationOptions | None = None,
        *,
        replicas: int | None = None,
        on_worker_failure: str = "raise",
        min_workers: int = 1,
    ) -> None:
        """Meet the other workers."""
        if replicas is not None:
            check_replica_count(replicas)
        if on_worker_failure not in ON_WORKER_FAILURE:
            raise ValueError(
                f"`on_worker_failure` must be one of {ON_WORKER_FAILURE}. Received: "
                f"on_worker_failure={on_worker_failure!r}"
            )
        check_count("min_workers", min_workers, least=1)
        options = communication_options
        self._workers = workers = connect(None if options is None else options.timeout)
        check_resolver(cluster_resolver, workers)
        if min_workers > workers.count:
            raise ValueError(
                "`min_workers` must be at most the number of workers. Received: "
                f"min_workers={min_workers} and {workers.count} worker(s)."
            )
        workers.go_on(on_worker_failure, min_workers)
        self.generation = workers.generation
        self.replaces_workers = workers.on_failure == "replace"
        self._on_worker_failure, self._min_workers = on_worker_failure, min_workers
        if not workers.is_chief and logger.level == logging.NOTSET:
            logger.setLevel(_QUIET)  # The first one tells what is alike on all.
        self._given_resolver = cluster_resolver
        self._unsent: list[Variable] = []
        self._own_datasets: WeakSet[WorkerDataset] = WeakSet()
        # By their ids: they have no hash. Their replicas may change.
        self._variables: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._replicas_of_all = replicas
        names = own_devices(workers)
        own_replicas = None if replicas is None else _own_replicas(workers, names, replicas)
        super().__init__(names, communication_options=communication_options, replicas=own_replicas)
        _strategies[next(_numbers)] = self
        self._local_ops = self._cross_device_ops
        self._number_replicas()
        if workers.count > 1:
            files = WorkerFiles(workers)
            keep_company(files)
            # A new process gets what the first worker had at this place.
            draw_alike(lambda own, what: files.as_before(lambda: files.of_all(own, what)))

    def _number_replicas(self) -> None:
        """Number the replicas of all workers, and connect them."""
        workers = self._workers
        own = len(self._devices), cards_of(self._devices, self._options)
        counts, cards = zip(*workers.gather(own, "replicas and their devices"), strict=True)
        self._replica_counts: tuple[int, ...] = counts  # By rank.
        self._rank = workers.rank  # That of the workers changes before replicas are shared out.
        self.first_replica = sum(counts[: self._rank])
        self._replicas = sum(counts)
        self._cross_device_ops = self._local_ops
        if workers.count > 1:
            self._cross_device_ops = self._over_all(cards)
            layout = described(self._replica_counts, workers.hosts)
            super()._log_devices(f", and {self._replicas} replicas: {layout}.")

    def reform(self) -> None:
        """Share the work out again where workers have died."""
        workers = self._workers
        if self.generation == workers.generation:
            return
        if self.generation < 0:  # This process has joined, with the first worker's values.
            self._unsent.clear()
        self._cross_device_ops.close()
        while self.generation != workers.generation:  # More may die meanwhile.
            self.generation = workers.generation
            if self._replicas_of_all is not None:
                own = _own_replicas(workers, self._variable_devices, self._replicas_of_all)
                self._fixed_replicas = own
                self._share_devices(own, self.executor)
                for variable in self.own_variables():
                    variable.share()
            self._number_replicas()
        for variable in self.on_read_variables():
            variable.take_over()
        if self._own_datasets and workers.is_chief:
            logger.warning(
                "What the others had left of datasets of their own is lost. Functions given to "
                "`distribute_datasets_from_function` share the data out again when the next pass "
                "begins; datasets under `AutoShardPolicy.OFF` stay as they are."
            )
        for dataset in self._own_datasets:
            dataset.lose()
        Moves.count += 1  # Functions that were recorded for other shares are recorded again.
        if workers.is_chief and logger.level == _QUIET:
            logger.setLevel(logging.NOTSET)

    def _over_all(self, cards: Sequence[Cards]) -> CrossDeviceOps:
        """Return the collectives over all workers, given what each says of its devices."""
        local, workers = self._local_ops, self._workers
        if self._replicas_of_all is not None:
            from mirrored.distribute.cross_device_ops.tree_across_workers import TreeAcrossWorkers

            return TreeAcrossWorkers(local, workers, self._replica_counts)
        connected = agreed(workers, cards, self._replicas)
        if connected is None:  # Workers without cards never need the other.
            return AcrossWorkers(local, workers, self._replicas)
        if self.replaces_workers:
            raise ValueError(
                "Workers whose cards are connected by NCCL are not replaced: a new process would "
                f"not know which card is free. Received: on_worker_failure={workers.on_failure!r}. "
                f'Pass on_worker_failure="continue". {self._how_without_nccl}'
            )
        from mirrored.distribute.cross_device_ops.nccl_across_workers import NcclAcrossWorkers

        return NcclAcrossWorkers(local, workers, self._replicas, connected, self._devices)

    def _log_devices(self, workers: str = "") -> None:
        """Log the devices of a single worker; those of several are logged with all replicas."""
        if self._workers.count == 1:
            super()._log_devices(workers)

    def _warn_of_other_processes(self) -> None:
        """Do nothing, since this strategy knows the other processes."""

    # ------------------------------------------------------------------ who there is

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas gradients are summed over: those of all workers."""
        count: int = self._replicas
        return assumed_replicas() or count

    @property
    def sharing(self) -> tuple[int, int, int]:
        """How many share a batch, the first one of this process, and how many it runs."""
        return self._replicas, self.first_replica, len(self._devices)

    @property
    def goes_on(self) -> bool:
        """Whether steps are taken again where workers die in them."""
        return self._workers.on_failure != "raise"

    @property
    def _is_alone(self) -> bool:
        """Whether this worker has all replicas. Dead workers have some until `reform`."""
        return len(self._replica_counts) == 1

    @property
    def workers(self) -> Workers:
        """The workers, as MPI connects them."""
        return self._workers

    @property
    def cluster_resolver(self) -> WorkerResolver:
        """What says which worker this is, and which there are."""
        return WorkerResolver(self._workers)

    def worker_times(self) -> tuple[float, ...]:
        """Return how long each worker took for its own work, in seconds, by rank.

        It is the time between sums over workers, without the waiting in them, since this was called
        the last time. All workers call it. Where one takes twice as long as the others over 100
        sums, as 100 steps of `fit` have, a warning names it.

        Example:
            >>> import mirrored as mr
            >>> mr.distribute.MultiWorkerMirroredStrategy().worker_times()
            (0.0,)
        """
        across = self._cross_device_ops
        return tuple(across.times.take()) if isinstance(across, AcrossWorkers) else (0.0,)

    def grow(self, count: int) -> None:
        """Let new processes of this program join as workers, at the next step.

        All workers call it, such as in a callback. The new processes run on the host of the first
        worker, and get the state of the run as those do that take the place of a dead worker.

        Args:
            count: How many.

        Raises:
            ValueError: The strategy has not `on_worker_failure="replace"`, or `count` is no number.
            WorkerError: Other workers ask for another number.
        """
        check_count("count", count, least=1)
        self._workers.grow(count)

    def release(self, rank: int) -> None:
        """End the process of a worker; the others take the next step with its replicas.

        All workers call it, such as in a callback. In the process that ends it raises SystemExit.

        Args:
            rank: The number of the worker.

        Raises:
            ValueError: There is no such worker, fewer than `min_workers` would be left, or the
                strategy has `on_worker_failure="raise"`.
            WorkerError: Other workers name another one.
        """
        self._workers.release(rank)

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with; see `Strategy`."""
        return {
            "cluster_resolver": self._given_resolver,
            "communication_options": self._options,
            "replicas": self._replicas_of_all,
            "on_worker_failure": self._on_worker_failure,
            "min_workers": self._min_workers,
        }

    # ------------------------------------------------------------------ variables

    def _created(self, next_creator: Callable[..., Variable], kwargs: dict[str, Any]) -> Variable:
        variable = super()._created(next_creator, kwargs)
        if self._workers.count > 1 and not isinstance(variable, SyncOnReadVariable):
            self._unsent.append(variable)
        self._variables[id(variable)] = variable
        is_reduced = variable.aggregation is not VariableAggregation.NONE
        may_die = self.goes_on and not self._is_alone
        if isinstance(variable, SyncOnReadVariable) and may_die and is_reduced:
            variable.keep()
        return variable

    def own_variables(self) -> list[Any]:
        """Return the variables of this strategy, in the order in which they were made."""
        return [*self._variables.values()]

    def on_read_variables(self) -> list[SyncOnReadVariable]:
        """Return those of which each replica has its own value."""
        return [state for state in self.own_variables() if isinstance(state, SyncOnReadVariable)]

    def _keep_counts(self) -> None:
        """Give all workers what replicas have written to variables of their own; see `Strategy`."""
        if self._is_alone or not self.goes_on:
            return
        written = [state for state in self.on_read_variables() if state.pop_written()]
        for dtype in dict.fromkeys(state.dtype for state in written):
            alike = [state for state in written if state.dtype == dtype]
            parts = []
            for replica in range(self.local_replicas):
                with only(), self.replica_scope(replica):
                    own = [state.copies[replica].read_value() for state in alike]
                    rows = [ops.reshape(value, (1, value.size)) for value in own]
                    parts.append(ops.concat(rows, axis=1))
            of_all, start = self.gather_parts(parts, 0, self._replica_counts)[0], 0
            for state in alike:
                kept, stop = state.kept, start + state.size
                if kept is not None:
                    with only(), devices.device(kept.device):
                        kept.assign(ops.reshape(of_all[:, start:stop], kept.shape))
                start = stop

    def _send_variables(self) -> None:
        """Give variables that are new the first worker's values.

        Raises:
            WorkerError: The workers have made different ones.
        """
        if not self._unsent or self.generation < 0 or active_recorder() is not None:
            return
        context = get_replica_context()
        if context is not None and context.strategy is self:
            return
        new, self._unsent = self._unsent, []
        copies: list[Any] = [copy for created in new for copy in created.copies[:1]]  # type: ignore[attr-defined]
        specs = [f"{part.name} {tuple(part.shape)} {part.dtype.name}" for part in copies]
        self.check_alike({"variables": specs}, "the variables of a scope")
        arrays = [np.array(part.numpy(), order="C") for part in copies]
        sent = [block.reshape(-1).view(np.uint8) for block in arrays]  # MPI knows no float16.
        self._workers.broadcast(sent, "the variables of a scope")
        if not self._workers.is_chief:
            for variable, array in zip(new, arrays, strict=True):
                for copy in variable.copies:  # type: ignore[attr-defined]
                    copy.assign(array)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """Enter the strategy: variables that are made inside have a copy on every replica.

        All workers enter it: what was made since the last time gets the first worker's values.
        """
        self._send_variables()
        with super().scope():
            yield self

    # ------------------------------------------------------------------ input

    def _distributed(self, dataset: Any) -> DistributedDataset:
        """Return a dataset that is shared by rows, or this worker's own under AutoShardPolicy.OFF.

        Of its own a worker cuts each batch into a part for each replica of all workers, and each
        of its replicas gets one in every step.
        """
        if self._is_alone:
            return super()._distributed(dataset)
        if not is_own(dataset):
            return SharedDataset(self, dataset, cut)
        self._require_shared_data()
        return self._own(lambda: dataset, self._replicas)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> DistributedDataset:
        """Return a dataset from which each replica gets a separate batch in every step.

        The function is called on each worker, and told which one it is. Where a worker's dataset
        ends before the others', its replicas get empty batches. With
        `on_worker_failure="continue"` it is called again for the next pass over the data where
        workers have died; what these had left of the running pass is lost.

        Args:
            dataset_fn: From an `InputContext` to a dataset of batches for one replica.
            options: Accepted for compatibility.

        Raises:
            TypeError: It is no function, or what it returns cannot be iterated over.
            ValueError: The dataset's elements have no batch axis, or the strategy has
                `on_worker_failure="replace"`.
        """
        self._require_shared_data()

        def from_function() -> DistributedDataset:
            workers = self._workers
            context = InputContext(workers.count, workers.rank, self._replicas)
            return distributed_from_function(self, dataset_fn, context)

        return from_function() if self._is_alone else self._own(lambda: from_function().source)

    def _own(self, make: Callable[[], Any], parts: int = 1) -> WorkerDataset:
        """Return a dataset of this worker's own; its arguments are those of `WorkerDataset`."""
        dataset = WorkerDataset(self, make, parts)
        self._own_datasets.add(dataset)
        return dataset

    def _require_shared_data(self) -> None:
        """Raise ValueError where a new process would not have the data of a worker."""
        if self.replaces_workers:
            raise ValueError(
                'With on_worker_failure="replace" all workers have the same dataset, so that a '
                "new process has the rows of the one whose place it takes. Received: a dataset of "
                "each worker, from `distribute_datasets_from_function` or with "
                "`AutoShardPolicy.OFF`. Pass the whole dataset, under `AutoShardPolicy.AUTO` or "
                '`DATA`; or use on_worker_failure="continue".'
            )

    # ------------------------------------------------------------------ reductions

    def sum_step(
        self, variables: Sequence[Variable], gradients: Sequence[Any], statistics: Any
    ) -> tuple[Any, Any]:
        """Return the sums of gradients and of statistics, which go over the workers together.

        To meet takes longer than to send a little more.
        """
        if self._is_alone:
            return super().sum_step(variables, gradients, statistics)
        own = {i: gradients[i] for i in packing_order(variables) if gradients[i] is not None}
        specs = [select(0, gradient).spec for gradient in own.values()]
        across = self._cross_device_ops
        first = isinstance(across, AcrossWorkers) and across.sums_meanwhile(specs)
        # In one vector the statistics are last, so that gradients begin where cache lines do.
        summands = [statistics, *own.values()] if first else [*own.values(), statistics]
        replicas = by_replica(self._all_reduced(ReduceOp.SUM, summands), self.local_replicas)
        numbers = {i: place + first for place, i in enumerate(own)}
        sums = [replica.renumbered(numbers) for replica in replicas]
        return Mirrored(sums), Mirrored([replica[0 if first else len(own)] for replica in replicas])

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any:
        """Return the sum or mean of a value over the replicas of all workers; see `Strategy`."""

        def of_replicas(leaf: Any) -> Any:
            copied = isinstance(leaf, Variable) and self.owns(leaf)
            whole = not copied and not isinstance(leaf, DistributedValues | SyncOnReadVariable)
            return PerReplica([leaf] * self.local_replicas) if whole else leaf

        if ReduceOp.of(reduce_op) is ReduceOp.MEAN and self.local_replicas > 1:
            value = _nest.map_structure(of_replicas, value)
        return super().reduce(reduce_op, value, axis)

    def _rows_along(self, axis: int, parts: Sequence[Tensor]) -> Any:
        own = super()._rows_along(axis, parts)
        if self._is_alone:
            return own
        with devices.device(parts[0]._device):
            total = self._over_workers(ops.constant(own, ops.int64), "the length of an axis")
            return ops.cast(total, parts[0].dtype)

    def _over_workers(self, tensor: Tensor, what: str) -> Tensor:
        across = self._cross_device_ops
        return across.over_workers(tensor, what) if isinstance(across, AcrossWorkers) else tensor

    def of_first_replica(self, value: Tensor) -> Tensor:
        """Return the value that the first replica of all has, on every worker.

        Args:
            value: That of this worker's first replica.
        """
        with only(), devices.device(value._device):
            own = value if self._workers.is_chief else _nothing(value.shape, value.dtype)
            return self._over_workers(own, OF_FIRST)

    def of_each_worker(self, value: Any, what: str) -> list[Any]:
        """Return a small object of each worker, by rank; all workers call it.

        Args:
            value: That of this worker.
            what: What errors call it.
        """
        return self._workers.gather(value, what)

    def check_alike(self, facts: Facts, what: str) -> None:
        """Raise WorkerError where workers differ in what has to be the same on all of them.

        Args:
            facts: By what errors call it: lines that say what this worker has.
            what: What they are about to do with it.
        """
        check_alike(self._workers, facts, what)

    def check_first(self, graph: Graph, name: str) -> None:
        """Raise WorkerError where workers have recorded other functions, if it sums over workers.

        Args:
            graph: What this worker has recorded.
            name: The function's name.
        """
        if self._workers.count > 1:
            check_function(self._workers, graph, name)

    def join_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return what the replicas of all workers have made, one row behind the other.

        Args:
            rows: What this worker's have made, on the host.
        """
        self._workers.require(self.generation, "rows that were made")
        if self._is_alone:
            return rows
        return np.concatenate(self._workers.gather_arrays(rows, "rows that were made"))

    def gather_parts(
        self, parts: list[Tensor], axis: int, sizes: Sequence[int] | None = None
    ) -> tuple[Tensor, int]:
        """Return the tensors of all workers' replicas joined, and where this worker's begin.

        Args:
            parts: The tensors of this worker's replicas.
            axis: The axis.
            sizes: How long each worker's part is; None: they are compared.
        """
        own, _ = super().gather_parts(parts, axis)
        if self._is_alone:
            return own, 0
        along = axis % own.ndim
        sizes = sizes or self._sizes_along(parts, own, along)
        before, after = sum(sizes[: self._rank]), sum(sizes[self._rank + 1 :])
        if not any(sizes):
            return own, 0

        with only(), devices.device(own._device):
            numbers = ops.cast(own, ops.int8) if own.dtype == bool_ else own
            beside = [
                _nothing((*own.shape[:along], size, *own.shape[along + 1 :]), numbers.dtype)
                for size in (before, after)
            ]
            placed = ops.concat([beside[0], numbers, beside[1]], axis=along)
            return ops.cast(self._over_workers(placed, GATHERED), own.dtype), before

    def _sizes_along(self, parts: list[Tensor], own: Tensor, axis: int) -> list[int]:
        """Return how long each worker's part of what is gathered is."""
        batch = global_batch()
        if batch is not None and axis == 0:
            first, here = self.first_replica, self.local_replicas
            if [part.shape[0] for part in parts] == [*batch.sizes[first : first + here]]:
                sizes = iter(batch.sizes)
                return [sum(next(sizes) for _ in range(count)) for count in self._replica_counts]
        if active_recorder() is not None:
            raise OperatorNotAllowedInGraphError(
                "The sizes of tensors that several workers gather are known only in the step, "
                "not when a function is recorded. Received: a gather of tensors of shapes "
                f"{[part.shape for part in parts]} in one. Gather outside of mr.function, or in a "
                "step that `fit` runs, along the examples."
            )
        kind = own.dtype.name, own.shape[:axis], own.shape[axis + 1 :]
        by_worker = self._workers.gather((own.shape[axis], kind), "the sizes of gathered values")
        if any(other != kind for _, other in by_worker):
            raise InvalidArgumentError(
                "Workers can gather only tensors of the same dtype, whose sizes may differ only "
                f"along one axis. Received: along axis {axis}, by worker, {by_worker}."
            )
        return [size for size, _ in by_worker]


def that_go_on() -> list[MultiWorkerMirroredStrategy]:
    """Return the strategies that go on without workers that die, in the order they were made."""
    return [strategy for strategy in [*_strategies.values()] if strategy.goes_on]


def reform_all() -> None:
    """Share the work of all strategies out again, where workers have died."""
    for strategy in [*_strategies.values()]:
        strategy.reform()


def _nothing(shape: Sequence[int], dtype: DType) -> Tensor:
    """Return what leaves a value as it is that another worker adds to it, also a negative zero."""
    zeros: Tensor = ops.zeros(shape, dtype)
    return -zeros if dtype in FLOATS else zeros


def _own_replicas(workers: Workers, names: Sequence[Any] | None, replicas: int) -> int:
    """Return how many replicas of all this worker has: consecutive ones, as its devices are."""
    counts = workers.gather(len(resolve(names)), "the number of devices")
    if replicas < sum(counts):
        raise ValueError(
            "`replicas` must be at least the number of devices of all workers. Received: "
            f"replicas={replicas} and {sum(counts)} devices, by worker {counts}. Use fewer devices."
        )
    before = sum(counts[: workers.rank])
    return sum(split_sizes(replicas, sum(counts))[before : before + counts[workers.rank]])
