"""The strategy that keeps a copy of every variable on each of its devices.

What it shares with the others, running and reducing, is the strategy module's.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from mirrored import devices
from mirrored._logging import logger
from mirrored._numbers import check_count
from mirrored.backends.product_settings import available_threads
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices import Device, LogicalDevice
from mirrored.distribute.context import get_replica_context
from mirrored.distribute.cross_device_ops import (
    CommunicationOptions,
    CrossDeviceOps,
    choose_cross_device_ops,
)
from mirrored.distribute.distributed_variables import DistributedVariable, MirroredVariable
from mirrored.distribute.global_batch import assumed_replicas
from mirrored.distribute.on_read_variables import SyncOnReadVariable
from mirrored.distribute.replica_attributes import replica_variables
from mirrored.distribute.sharding import split_sizes
from mirrored.distribute.strategy import Strategy
from mirrored.distribute.strategy_base import ON_NCCL_FAILURE
from mirrored.errors import InvalidArgumentError
from mirrored.ops.hooks import only
from mirrored.ops.spec import FLOATS
from mirrored.program.executor import EXECUTORS
from mirrored.variables import Variable, VariableAggregation, VariableSynchronization

# Launchers of MPI set one of these.
_LAUNCHED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")


class MirroredStrategy(Strategy):
    """Trains one model on several devices: each has a copy of every variable.

    A batch is split over the replicas, their gradients are summed, and the sum updates every
    copy, so the copies stay equal and the result is that of one device on the whole batch.

    Results differ from those of one device by rounding, which depends on the number of replicas.
    With `replicas` that number is fixed, whatever the number of devices: the same training on one,
    three or eight devices of one kind ends in the same bits.

    Args:
        devices: The replicas' devices, as names or logical devices; None or an empty list:
            every logical GPU, or the CPU where there is none.
        cross_device_ops: The collectives to use; None: those that fit the devices, which the log
            names with the reason.
        executor: Who runs recorded steps on the host: "threads" (a thread per replica, or on one
            device a thread per part of the batch, each with one BLAS thread), "serial" (one thread
            for all) or "auto", which chooses by the work of a step: one device computes large
            convolutions in parts. The choice changes the last bits of results.
        communication_options: The hints for all collectives that are given none, such as the size
            of buckets and the deadline of an all-reduce between GPUs.
        on_nccl_failure: What is done where NCCL is to sum between GPUs and they cannot be
            connected, or fail the test of known sums before the first step: "raise" raises
            CollectiveError or DeviceUnavailableError; "fallback" logs a warning with the reason,
            and uses the collectives that fit without NCCL.
        deterministic: Let NCCL add in the same order in every run, so that two runs on the same
            devices give the same bits. It costs NCCL its fastest algorithms on some machines, and
            holds for the whole process from then on: make the strategy before GPUs are connected.
            On the host and on one card it changes nothing: two runs give the same bits anyway.
        replicas: The number of replicas, from the number of devices to 1,024; None: one per
            device. Replicas of one device share its copy of variables, and run one after another
            or on as many threads as the host has cores. Sums over replicas have an order that
            depends on their number alone, and each matrix product on the host uses one thread, so
            results have the same bits on any number of devices. `num_replicas_in_sync` is this
            number, and `devices` has the device of each replica.

    Raises:
        ValueError: A device is named twice or its name cannot be parsed, an option is unknown, or
            `replicas` is out of range or given with `cross_device_ops` or `deterministic`.
        InvalidArgumentError: A device does not exist; the message lists those that do.
        RuntimeError: `deterministic` comes too late: GPUs are connected in this process already.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> strategy = mr.MirroredStrategy()
        >>> with strategy.scope():
        ...     v = mr.Variable(1.0)
        >>> strategy.num_replicas_in_sync, len(strategy.experimental_local_results(v))
        (2, 2)
        >>> strategy = mr.MirroredStrategy(replicas=3)
        >>> [device.name for device in strategy.devices]
        ['/device:GPU:0', '/device:GPU:0', '/device:GPU:1']
    """

    def __init__(
        self,
        devices: Sequence[str | LogicalDevice] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
        *,
        executor: str = "auto",
        communication_options: CommunicationOptions | None = None,
        on_nccl_failure: str = "raise",
        deterministic: bool = False,
        replicas: int | None = None,
    ) -> None:
        """Look the devices up, which initialises them."""
        _check_options(
            cross_device_ops, executor, communication_options, on_nccl_failure, deterministic
        )
        if replicas is not None:
            check_replica_count(replicas, cross_device_ops, deterministic=deterministic)
        self._variable_devices = self._devices = resolve(devices)
        self._fixed_replicas = replicas
        self._given_ops = cross_device_ops
        self._copy_numbers: Sequence[int] = range(len(self._devices))
        if replicas is not None:
            from mirrored.distribute.cross_device_ops.tree import TreeReduction  # Few need it.

            cross_device_ops = TreeReduction()
            self._share_devices(replicas, executor)
        if cross_device_ops is None:
            cross_device_ops = choose_cross_device_ops(self._devices)
        cross_device_ops.check_devices(self._devices)
        if deterministic:
            cross_device_ops.make_deterministic(self._devices)
        super().__init__(cross_device_ops, executor, communication_options, on_nccl_failure)
        self._deterministic = deterministic
        self._warn_of_other_processes()
        self._log_devices()

    def _share_devices(self, replicas: int, executor: str) -> None:
        """Let several replicas live on each device, and several on each thread of the host."""
        devices = self._variable_devices
        if replicas < len(devices):
            names = tuple(device.full_name for device in devices)
            raise ValueError(
                "`replicas` must be at least the number of devices. Received: "
                f"replicas={replicas} and {len(devices)} devices, {names}. Name fewer devices."
            )
        self.lanes = self._copy_numbers = _blocks(replicas, len(devices))
        self._devices = tuple(devices[copy] for copy in self._copy_numbers)
        if not any(is_offloaded(device.backend) for device in devices):
            threads = 1 if executor == "serial" else min(available_threads(), replicas)
            self.lanes = _blocks(replicas, threads)

    def _log_devices(self, workers: str = "") -> None:
        """Log the devices of this process.

        Args:
            workers: Further text, about the replicas of other processes.
        """
        names = tuple(device.full_name for device in self._variable_devices)
        fixed = f", and {self._fixed_replicas} replicas" if self._fixed_replicas else ""
        logger.info("Using %s with devices %s%s%s", type(self).__name__, names, fixed, workers)

    def _warn_of_other_processes(self) -> None:
        """Warn where a launcher started other processes too, which this strategy does not know."""
        if not any(name in os.environ for name in _LAUNCHED):
            return
        from mirrored.workers.launch import launch  # Most programs are started alone.

        launched = launch()
        if launched is not None and launched.processes != 1:
            logger.warning(
                "MirroredStrategy trains a separate model in each of the %sprocesses that %s "
                "started. Use mr.distribute.MultiWorkerMirroredStrategy(), which trains one "
                "model in all of them.",
                "" if launched.processes is None else f"{launched.processes} ",
                launched.launcher,
            )

    @property
    def devices(self) -> tuple[Device, ...]:
        """The logical device of each replica."""
        return self._devices

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas gradients are summed over."""
        return assumed_replicas() or len(self._devices)

    @property
    def local_replicas(self) -> int:
        """How many of them this process runs: those of `devices`."""
        return len(self._devices)

    @property
    def variable_devices(self) -> tuple[Device, ...]:
        """The devices of the copies of variables."""
        return self._variable_devices

    @property
    def copy_numbers(self) -> Sequence[int]:
        """For each replica of this process the number of the copy of variables that it uses."""
        return self._copy_numbers

    @property
    def sharing(self) -> tuple[int, int, int]:
        """How many share a batch, the first one of this process, and how many it runs."""
        count = len(self._devices)
        return count, 0, count

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with; see `Strategy`."""
        return {
            "devices": [device.full_name for device in self._variable_devices],
            "cross_device_ops": self._given_ops,
            "executor": self.executor,
            "communication_options": self._options,
            "on_nccl_failure": self._on_nccl_failure,
            "deterministic": self._deterministic,
            "replicas": self._fixed_replicas,
        }

    def owns(self, variable: Variable) -> bool:
        """Return whether a variable was made in this strategy's scope."""
        return isinstance(variable, DistributedVariable) and variable.strategy is self

    def create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        """Return a variable that is made in this strategy's scope; see `Strategy`."""
        context = get_replica_context()
        if context is None:
            return self._created(next_creator, kwargs)
        return replica_variables().made_by(
            context._number,
            kwargs["name"],
            lambda: self._created(next_creator, kwargs),
        )

    def _created(self, next_creator: Callable[..., Variable], kwargs: dict[str, Any]) -> Variable:
        """Return a variable with a copy on each replica."""
        mode = kwargs["synchronization"]
        if mode is VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with mr.distribute "
                "strategy. Please change the `synchronization` for variable: "
                f"{kwargs['name']}"
            )
        on_read = mode is VariableSynchronization.ON_READ
        if not on_read:
            kwargs["synchronization"] = VariableSynchronization.ON_WRITE
        copies: list[Any] = []
        with only():
            for i, device in enumerate(self._devices if on_read else self.variable_devices):
                with devices.device(device):
                    if i:
                        # The value is computed once: random ones would differ.
                        kwargs["initial_value"] = copies[0].read_value()
                        devices.log_placement("Identity", device)  # The copy to the device.
                    name = f"{kwargs['name'] or 'Variable'}/replica_{i}" if i else kwargs["name"]
                    copies.append(next_creator(**{**kwargs, "name": name}))
                _check_mean(copies[0])
        return (SyncOnReadVariable if on_read else MirroredVariable)(self, copies)


def resolve(names: Sequence[str | LogicalDevice] | None) -> tuple[Device, ...]:
    """Return the devices of a strategy.

    Args:
        names: Their names, or devices; none: every logical GPU, or the CPU.

    Raises:
        ValueError: A device is named twice or its name cannot be parsed.
        InvalidArgumentError: A device does not exist.
    """
    if isinstance(names, str | LogicalDevice):
        names = [names]
    if names is not None and not isinstance(names, list | tuple):
        raise ValueError(
            f"`devices` must be a list of names or logical devices. Received: {names!r}. Write it "
            "as ['GPU:0', 'GPU:1'], or leave it out for all GPUs."
        )
    if not names:
        return devices.logical_devices("GPU") or devices.logical_devices("CPU")[:1]
    try:
        resolved = tuple(devices.get_device(name) for name in names)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{error} [MirroredStrategy(devices={list(names)!r})]") from None
    if len(set(resolved)) < len(resolved):
        raise ValueError(
            f"No duplicates allowed in `devices` argument: {tuple(d.full_name for d in resolved)}"
        )
    return resolved


def _check_options(
    cross_device_ops: Any, executor: Any, options: Any, on_nccl_failure: Any, deterministic: Any
) -> None:
    if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
        raise ValueError(
            "`cross_device_ops` must be a CrossDeviceOps, such as ReductionToOneDevice(). "
            f"Received: {cross_device_ops!r}"
        )
    if executor not in EXECUTORS:
        raise ValueError(f"`executor` must be one of {EXECUTORS}. Received: executor={executor!r}")
    if options is not None and not isinstance(options, CommunicationOptions):
        raise ValueError(
            "`communication_options` must be a mr.distribute.experimental.CommunicationOptions. "
            f"Received: {options!r}"
        )
    if on_nccl_failure not in ON_NCCL_FAILURE:
        raise ValueError(
            f"`on_nccl_failure` must be one of {ON_NCCL_FAILURE}. Received: "
            f"on_nccl_failure={on_nccl_failure!r}"
        )
    if not isinstance(deterministic, bool):
        raise ValueError(
            f"`deterministic` must be True or False. Received: deterministic={deterministic!r}"
        )


_MOST_REPLICAS = 1024


def check_replica_count(
    replicas: Any, cross_device_ops: Any = None, *, deterministic: bool = False
) -> None:
    """Raise ValueError where replicas cannot be N, or cannot be with other arguments.

    Args:
        replicas: The number.
        cross_device_ops: The collectives.
        deterministic: Whether NCCL is to add in one order.
    """
    if check_count("replicas", replicas, least=1) > _MOST_REPLICAS:
        raise ValueError(
            f"`replicas` must be at most {_MOST_REPLICAS}. Received: replicas={replicas!r}"
        )
    if cross_device_ops is not None:
        raise ValueError(
            "With `replicas` sums over replicas have a fixed order, and collectives choose their "
            f"own. Received: replicas={replicas!r} and cross_device_ops={cross_device_ops!r}. "
            "Leave out one of the two."
        )
    if deterministic:
        raise ValueError(
            "`deterministic` is about the order of NCCL's sums, and with `replicas` NCCL sums "
            f"nothing. Received: replicas={replicas!r} and deterministic=True. Leave out "
            "`deterministic`: two runs give the same bits."
        )


def _blocks(replicas: int, count: int) -> list[int]:
    """Return the block of each replica, given the number of blocks of consecutive ones."""
    sizes = split_sizes(replicas, count)
    return [block for block, size in enumerate(sizes) for _ in range(size)]


def _check_mean(variable: Variable) -> None:
    if variable.aggregation is VariableAggregation.MEAN and variable.dtype not in FLOATS:
        raise ValueError(
            "creating distributed mr.Variable with aggregation=MEAN and a non-floating dtype is "
            "not supported, please use a different aggregation or dtype. Received: the variable "
            f"{variable.name} of dtype {variable.dtype.name}."
        )
