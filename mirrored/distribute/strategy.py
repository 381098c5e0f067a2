"""Strategies: on which devices a model is trained, and what a variable made for them is.

A strategy's scope makes variables with a copy on every replica, and `run` calls a function on all.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload
from weakref import WeakKeyDictionary

from mirrored import _nest, _overrides
from mirrored._absent import absent_members
from mirrored._contexts import Within
from mirrored._reprs import made_with
from mirrored._types import late_type
from mirrored.backends.product_settings import one_thread
from mirrored.devices import hold_devices
from mirrored.distribute.context import check_cross_replica, enter, has_strategy, strategy_in_force
from mirrored.distribute.cross_device_ops import CommunicationOptions, CrossDeviceOps
from mirrored.distribute.distributed_variables import DistributedVariable
from mirrored.distribute.global_batch import global_batch
from mirrored.distribute.input import (
    DistributedDataset,
    InputContext,
    ValueContext,
    distributed_from_function,
)
from mirrored.distribute.per_replica import (
    DistributedValues,
    PerReplica,
    check_parts,
    regroup,
    select,
)
from mirrored.distribute.replicas import run_replicas
from mirrored.distribute.sharding import cut
from mirrored.distribute.strategy_base import StrategyBase
from mirrored.errors import DevicesResetError, InvalidArgumentError
from mirrored.ops.hooks import active_recorder
from mirrored.ops.rng_state import ShardPosition
from mirrored.ops.tensor import Operators
from mirrored.program import Function, ThreadPool, functions_run_eagerly
from mirrored.variables import Variable
from mirrored.variables.device_variable import Undone
from mirrored.variables.variable import creators_with

if TYPE_CHECKING:
    from mirrored.distribute.extended import StrategyExtended
else:
    StrategyExtended = late_type("mirrored.distribute.extended", "StrategyExtended")

_HERE = "/job:localhost/replica:0/task:0/device:"  # As all devices of a process begin.
# The public members of TensorFlow's strategies that these have.
_SHOWN = {
    "cluster_resolver",
    "distribute_datasets_from_function",
    "experimental_distribute_dataset",
    "experimental_distribute_values_from_function",
    "experimental_local_results",
    "extended",
    "gather",
    "num_replicas_in_sync",
    "reduce",
    "run",
    "scope",
}

# For type checkers: what a replica may return as one value.
_Value = TypeVar("_Value", bound=Operators | float)

# What `run` gives a function.
_Args = tuple[Any, ...] | list[Any]
_Kwargs = dict[str, Any] | None

# Strategies that were pickled, each with what tells it from others made alike.
_tokens: "WeakKeyDictionary[Strategy, str]" = WeakKeyDictionary()


@absent_members("tf.distribute.Strategy")
class Strategy(StrategyBase, _overrides.Subclassable):
    """What all strategies have in common. Use `MirroredStrategy`.

    Args:
        cross_device_ops: The collectives to use.
        executor: Who runs recorded steps; see `MirroredStrategy`, as for the others.
        options: The hints for collectives that are given none.
        on_nccl_failure: "raise" or "fallback".
    """

    __overrides__ = _overrides.STRATEGY

    def __init__(
        self,
        cross_device_ops: CrossDeviceOps,
        executor: str = "auto",
        options: CommunicationOptions | None = None,
        on_nccl_failure: str = "raise",
    ) -> None:
        super().__init__(cross_device_ops, options, on_nccl_failure)
        self._executor = executor
        self._thread_pool: ThreadPool | None = None
        hold_devices(self)

    def __repr__(self) -> str:
        try:
            arguments = self.arguments()
        except TypeError:  # A subclass of a user's own does not say.
            arguments = {}
        return made_with(self, arguments).replace(_HERE, "")

    def _repr_html_(self) -> str | None:
        from mirrored.distribute.variable_memory import html_of

        with contextlib.suppress(DevicesResetError):
            return html_of(self)
        return None

    def __dir__(self) -> list[str]:
        """Return what TensorFlow's strategies have too, and what a subclass adds."""
        classes = [base for base in type(self).__mro__ if base.__module__.startswith("mirrored.")]
        own = {name for base in classes for name in vars(base)} - _SHOWN
        return [name for name in super().__dir__() if name.startswith("_") or name not in own]

    def __copy__(self) -> "Strategy":
        return self

    def __deepcopy__(self, memo: Any) -> "Strategy":
        return self  # A copy of what it has made is of the same strategy.

    def __reduce__(self) -> Any:
        token = _tokens.setdefault(self, os.urandom(16).hex())
        return _restored, (type(self), self.arguments(), token)

    def arguments(self) -> dict[str, Any]:
        """Return what another process makes the same strategy with, devices as their names.

        Raises:
            TypeError: The class does not say.
        """
        raise TypeError(
            f"A {type(self).__name__} cannot be pickled, because its constructor arguments are "
            "not known. Define `arguments`, which returns the constructor arguments by name."
        )

    @property
    def executor(self) -> str:
        """Who runs recorded steps: "threads", "serial" or "auto"."""
        return self._executor

    def thread_pool(self, threads: int) -> ThreadPool:
        """Return the threads that run recorded steps, which start with the first of them.

        They belong to the strategy, so that one model after the other does not start new ones.
        """
        if self._thread_pool is None or self._thread_pool.size != threads:
            self.__end_threads()
            self._thread_pool = ThreadPool(threads)
        return self._thread_pool

    def lose_devices(self) -> None:
        """End the threads of recorded steps: the devices that they work for are about to go."""
        self.__end_threads()

    def __end_threads(self) -> None:
        if self._thread_pool is not None:
            pool, self._thread_pool = self._thread_pool, None
            pool.close()

    def close(self) -> None:
        """End the threads that recorded steps were run by, and disconnect GPUs from each other.

        The next use of the strategy starts the threads and connects the devices again. The threads
        also end when the strategy is collected, and both end when the interpreter exits.

        Example:
            >>> import mirrored as mr
            >>> mr.MirroredStrategy(["CPU:0"]).close()
        """
        self.__end_threads()
        self._cross_device_ops.close()

    @property
    def extended(self) -> "StrategyExtended":
        """Further methods, for custom training loops and optimizers."""
        from mirrored.distribute.extended import StrategyExtended  # Few programs need it.

        return StrategyExtended(self)

    @contextlib.contextmanager
    def scope(self) -> Iterator["Strategy"]:
        """Enter the strategy: variables that are made inside have a copy on every replica.

        Raises:
            RuntimeError: Another strategy is in force, or a replica is running.
            DevicesResetError: Its devices are gone.
        """
        current = strategy_in_force()
        if has_strategy():
            if current is not self:
                raise RuntimeError(
                    f"Mixing different mr.distribute.Strategy objects: {current} is not {self}. "
                    "Leave the scope of the first strategy before."
                )
            check_cross_replica(
                "A strategy's scope, `fit`, `evaluate` and `predict` need the cross-replica "
                "context. Received: a call inside a replica, from the function that strategy.run "
                "calls. Make the call outside it."
            )
        self.require_devices()
        # Entered again, it must not mirror twice.
        entered = current is self
        creator = contextlib.nullcontext() if entered else creators_with(self.create_variable)
        with enter(self, None), creator:
            if not self.lanes or entered:
                yield self
                return
            with Within(one_thread, True):
                yield self

    def create_variable(self, next_creator: Callable[..., Variable], **kwargs: Any) -> Variable:
        """Return a variable that is made in this strategy's scope.

        Args:
            next_creator: What makes a variable otherwise.
            **kwargs: The arguments of `Variable`.
        """
        return next_creator(**kwargs)

    @overload
    def run(
        self, fn: Callable[..., None], args: _Args = (), kwargs: _Kwargs = None, options: Any = None
    ) -> None: ...

    @overload
    def run(
        self,
        fn: Callable[..., _Value],
        args: _Args = (),
        kwargs: _Kwargs = None,
        options: Any = None,
    ) -> _Value | PerReplica: ...

    @overload
    def run(
        self, fn: Callable[..., Any], args: _Args = (), kwargs: _Kwargs = None, options: Any = None
    ) -> Any: ...

    def run(
        self, fn: Callable[..., Any], args: _Args = (), kwargs: _Kwargs = None, options: Any = None
    ) -> Any:
        """Call `fn` once a replica, on that replica's device, and return what it returns.

        Args:
            fn: The function.
            args: Its positional arguments; per-replica values are taken apart.
            kwargs: Its keyword arguments, likewise.
            options: Accepted for compatibility; there is nothing to choose.

        Returns:
            A structure of per-replica values; of plain ones where there is one replica.

        Raises:
            ValueError: `args` is no list or tuple, or the replicas return different structures.
            RuntimeError: The replicas made different numbers of merge calls, or this is called
                in a replica's context.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> float(strategy.run(lambda x: x + 1.0, args=(mr.constant(1.0),)))
            2.0
        """
        if not isinstance(args, list | tuple):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}")
        if not callable(fn):
            raise TypeError(f"`fn` must be callable. Received: {fn!r}")
        check_cross_replica(
            "strategy.run must be called in the cross-replica context. Received: a call inside a "
            "replica, from the function that another run calls. Call the function directly."
        )
        kwargs = kwargs or {}
        recorder = active_recorder()
        recorded = Function.behind(fn)
        if recorder is not None:
            recorder.run_by(self)
        elif recorded is not None and not functions_run_eagerly():
            # Recorded as a whole, so that its replicas can meet and run side by side.
            function, bound = recorded
            return function.under(self, self.run)(*bound, *args, **kwargs)
        count = self.local_replicas
        check_parts((args, kwargs), count)
        # A recorder writes at its end; op by op, writes before a device is full are taken back.
        whole = contextlib.nullcontext() if recorder is not None else Undone().after_failure()
        with self.scope(), whole:
            results = run_replicas(
                self,
                fn,
                [(tuple(select(i, list(args))), select(i, kwargs)) for i in range(count)],
                _positions(self, (args, kwargs)),
            )
            self._keep_counts()
        return regroup(results) if count > 1 else results[0]

    def _keep_counts(self) -> None:
        """Keep what replicas have written to variables of their own, where workers may die."""

    def check_replicas(self, variables: Any = None, *, step: int | None = None) -> None:
        """Compare the copies of mirrored variables, and raise an error if one has other bits.

        Copies part if one of them is assigned alone, or if a device computes wrong. Every copy is
        compared with the others of this process, and by hashes with those of other workers, which
        all make this call and all raise the error. Variables without copies, and those that are
        aggregated on reads, are left out. `mr.callbacks.CheckReplicas` does this in `fit`.

        `mr.debugging.compare_replicas` answers another question: whether a step on several
        replicas computes what it computes on one device.

        Args:
            variables: A variable, or a structure of variables; None: all mirrored variables that
                were created in this strategy's scope and are in use.
            step: The number of the step, which the error names.

        Raises:
            ReplicasDifferError: Copies differ. The error names the first such variable, the
                replicas, and the step.
            TypeError: Something in the structure is no variable.
            ValueError: A variable belongs to another strategy.
            RuntimeError: The call is made inside a replica or a recorded function.
            WorkerError: The workers compare different variables.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(3)
            >>> strategy = mr.MirroredStrategy()
            >>> with strategy.scope():
            ...     v = mr.Variable([1.0, 2.0], name="v")
            >>> strategy.check_replicas()
            >>> _ = strategy.experimental_local_results(v)[1].assign([1.0, 2.5])
            >>> try:
            ...     strategy.check_replicas(step=7)
            ... except mr.errors.ReplicasDifferError as error:
            ...     error.variable, error.replicas, error.devices, error.step
            ('v:0', (1,), ('GPU:1',), 7)
        """
        from mirrored.distribute.replica_check import check_context, compare_copies

        check_context()
        with self.scope():
            compare_copies(self, variables, step)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the parts of a per-replica value, by replica; always a tuple.

        A structure of per-replica values gives one structure a replica.

        Example:
            >>> import mirrored as mr
            >>> mr.MirroredStrategy(["CPU:0"]).experimental_local_results(3)
            (3,)
        """
        if isinstance(value, list | tuple | dict):
            return tuple(
                _nest.map_structure(functools.partial(_local_part, self, replica), value)
                for replica in range(self.local_replicas)
            )
        if isinstance(value, DistributedValues):
            return value.values
        return value.by_replica if isinstance(value, DistributedVariable) else (value,)

    def experimental_distribute_dataset(
        self, dataset: Any, options: Any = None
    ) -> DistributedDataset:
        """Return a dataset whose global batches are cut into a part for each replica.

        Parts differ by at most one example, the larger ones first; where there are fewer examples
        than replicas, the last parts are empty.

        Args:
            dataset: A `mr.data.Dataset` of global batches, or another iterable of them.
            options: Accepted for compatibility; batches are brought to the devices as they are
                asked for.

        Raises:
            TypeError: It cannot be iterated over.
            ValueError: Its elements have no batch axis.

        Example:
            >>> import mirrored as mr
            >>> strategy = mr.MirroredStrategy(["CPU:0"])
            >>> batches = strategy.experimental_distribute_dataset([[[1.0], [2.0]], [[3.0]]])
            >>> [float(strategy.run(mr.reduce_sum, args=(x,))) for x in batches]
            [3.0, 3.0]
        """
        return self._distributed(dataset)

    def _distributed(self, dataset: Any) -> DistributedDataset:
        return DistributedDataset(self, dataset, cut)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> DistributedDataset:
        """Return a dataset from which each replica gets a separate batch in every step.

        Where the dataset ends in the middle of a step, the replicas left get empty batches.

        Args:
            dataset_fn: From an `InputContext` to a dataset of batches for one replica.
            options: Accepted for compatibility.

        Raises:
            TypeError: It is no function, or what it returns cannot be iterated over.
            ValueError: The dataset's elements have no batch axis.
        """
        context = InputContext(num_replicas_in_sync=self.num_replicas_in_sync)
        return distributed_from_function(self, dataset_fn, context)

    def experimental_distribute_values_from_function(
        self, value_fn: Callable[[ValueContext], Any]
    ) -> Any:
        """Return a value for each replica, made by a function.

        Args:
            value_fn: From a `ValueContext` to the replica's value, or a structure of values.

        Raises:
            TypeError: It is no function.
            ValueError: The structures differ between replicas.

        Example:
            >>> import mirrored as mr
            >>> mr.config.experimental.set_simulated_gpus(2)
            >>> strategy = mr.MirroredStrategy()
            >>> strategy.experimental_distribute_values_from_function(
            ...     lambda context: context.replica_id_in_sync_group
            ... )
            PerReplica:{
              0: 0,
              1: 1
            }
        """
        if not callable(value_fn):
            raise TypeError(
                f"`value_fn` must be a function of a ValueContext. Received: {value_fn!r}"
            )
        count, first, here = self.sharing
        values = [value_fn(ValueContext(first + i, count)) for i in range(here)]
        return regroup(values, always_wrap=True) if here > 1 else values[0]


def _positions(strategy: Strategy, structure: Any) -> list[ShardPosition]:
    """Return the place of each local replica's arguments in the batch that they are cut from."""
    run, (count, _, here) = object(), strategy.sharing
    for leaf in _nest.flatten(structure):
        if isinstance(leaf, PerReplica) and leaf.first_examples is not None:
            starts = leaf.first_examples
            sizes = [len(part) for part in leaf.values]
            batch = starts[-1] + sizes[-1] if leaf.examples is None else leaf.examples
            step = global_batch()
            return [
                ShardPosition(
                    *(run, i, start, size, batch, count),
                    None if step is None else functools.partial(step.draws_by_example, i),
                )
                for i, (start, size) in enumerate(zip(starts, sizes, strict=True))
            ]
    return [ShardPosition(run, i, replicas=count) for i in range(here)]


def _local_part(strategy: Strategy, replica: int, leaf: Any) -> Any:
    parts = strategy.experimental_local_results(leaf)
    return parts[replica] if len(parts) > 1 else parts[0]


def _restored(kind: type[Strategy], arguments: dict[str, Any], token: str) -> Strategy:
    """Return the strategy itself where it is there, or the one in force where that is alike.

    What was of one strategy before is of one strategy afterwards, though it comes by several ways.
    """
    candidates = [candidate for candidate, known in _tokens.items() if known == token]
    in_force = get_strategy()
    if type(in_force) is kind and in_force.arguments() == arguments:
        candidates.insert(0, in_force)
    for strategy in candidates:
        if not any(device.is_gone for device in strategy.devices):
            return strategy
    try:
        strategy = kind(**arguments)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"A {kind.__name__} was pickled, and this process does not have its devices. Set up "
            "devices with these names before loading it. For simulated GPUs call "
            "mr.config.experimental.set_simulated_gpus, after reset_devices() if other devices "
            f"are in use. {error}"
        ) from None
    _tokens[strategy] = token
    return strategy


def get_strategy() -> Strategy:
    """Return the strategy in force: that of the innermost scope, else the default one.

    Example:
        >>> import mirrored as mr
        >>> strategy = mr.MirroredStrategy(["CPU:0"])
        >>> with strategy.scope():
        ...     mr.distribute.get_strategy() is strategy
        True
    """
    return cast(Strategy, strategy_in_force())
