"""Resets the devices of a process, as tests do, and notifies everything bound to them.

What holds on to devices above this package, as threads, programs and iterators do, registers here,
so that nothing of it outlives them.
"""

import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

from mirrored.backends import Pool, product_settings
from mirrored.backends.stream_backend import is_offloaded
from mirrored.devices.configuration import set_device_policy
from mirrored.devices.device_registry import registry
from mirrored.devices.logical_device import Device
from mirrored.devices.placement import (
    in_device_scope,
    set_log_device_placement,
    set_soft_device_placement,
)
from mirrored.errors import DeviceLostError


class Holder(Protocol):
    """Something that keeps threads, memory or work of devices for later."""

    def lose_devices(self) -> None:
        """End and forget them; the devices are about to go."""


_holders: WeakSet[Holder] = WeakSet()
_reasons: list[Callable[[], str | None]] = [
    lambda: "a `with mr.device(...)` block" if in_device_scope() else None
]
_emptiers: list[Callable[[Sequence[Pool]], None]] = []


def hold_devices(holder: Holder) -> None:
    """Have an object told when the devices go; it is kept weakly."""
    _holders.add(holder)


def refuse_reset_where(reason: Callable[[], str | None]) -> None:
    """Let a function say what is in the way of a reset, as in "a running fit"; None: nothing."""
    _reasons.append(reason)


def empty_with(empty: Callable[[Sequence[Pool]], None]) -> None:
    """Name what takes the memory of lost pools from tensors that outlive their devices."""
    _emptiers.append(empty)


def reset_devices() -> None:
    """End all devices and forget how they were configured, so that they can be set up again.

    It is for tests, and for notebooks whose first cell set up the wrong devices. Physical devices
    are looked for again, and all that ``mr.config`` settles is as in a fresh process: visible and
    logical devices, memory growth, simulated GPUs, placement and its log, TensorFloat-32. A
    strategy that ``experimental_set_strategy`` put in force is not any more. The seed of random
    numbers, the names of layers and the default float stay as they are.

    Tensors, variables, models, optimizers, metrics, strategies and iterators that were made before
    raise ``DevicesResetError`` from then on, also where a tensor is only read; their memory is
    given back, even where something refers to them. A `mr.function` forgets what it recorded, and
    is recorded again. Threads of strategies and of datasets end, and GPUs are disconnected from
    each other.

    No other thread may be computing meanwhile.

    Raises:
        RuntimeError: The call is made inside ``device()``, a strategy's scope, a replica, or a
            function that is being recorded, or while a model runs; nothing is changed then.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2)
        >>> old = mr.constant(1.0)
        >>> mr.config.experimental.reset_devices()
        >>> mr.config.experimental.set_simulated_gpus(4)
        >>> len(mr.config.list_logical_devices("GPU"))
        4
        >>> old
        <mr.Tensor: shape=(), dtype=float32, numpy=<gone with its device>>
    """
    for ask in reversed(_reasons):  # A fit is in a scope, and a replica in `device`.
        reason = ask()
        if reason is not None:
            raise RuntimeError(
                "Devices cannot be set up again while they are in use. Received: a call of "
                f"reset_devices() inside {reason}. Call it outside."
            )

    from mirrored.backends.communication import connection  # Most machines never need it.

    holders = [holder.lose_devices for holder in list(_holders)]
    _call_all([_end_devices, connection.close_all, *holders])


def _call_all(calls: list[Callable[[], None]]) -> None:
    """Make all calls, the last one first, also where one raises, as a user's generator may."""
    while calls:
        try:
            calls.pop()()
        except BaseException:
            _call_all(calls)
            raise


def _end_devices() -> None:
    _give_back(registry.clear())
    set_soft_device_placement(True)
    set_log_device_placement(False)
    set_device_policy(None)
    product_settings.allow_tensor_float_32(True)


def _give_back(gone: Sequence[Device]) -> None:
    """Give the memory of devices back, and whatever else they hold."""
    streamed = any(is_offloaded(device.backend) for device in gone)
    pools = [device.pool for device in gone]
    for device in gone:
        device.end()
    with suppress(DeviceLostError):  # Such a card gives nothing back before the process ends.
        if any(pool.current for pool in pools):
            for empty in _emptiers:
                empty(pools)
        if streamed:
            gc.collect()  # Streams, handles and workspaces are part of reference cycles.
        for pool in pools:
            pool.close()
