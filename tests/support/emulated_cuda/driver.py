"""The part of CUDA's driver that is asked through ctypes."""

from __future__ import annotations

from ctypes import c_void_p

from emulated_cuda.faults import INVALID_CONTEXT, INVALID_VALUE, EmulatorError
from emulated_cuda.foreign import Library
from emulated_cuda.machine import Machine
from emulated_cuda.runtime import Runtime


def emulated_driver(machine: Machine) -> Library:
    """Return what stands in for the library, as ctypes gives it."""
    runtime = Runtime(machine)

    def query(event: int | None) -> int:
        if not machine.current.bound:  # The driver makes no context of its own accord.
            return INVALID_CONTEXT
        try:
            return runtime.eventQuery(event or 0)
        except EmulatorError as error:  # Nothing is raised through C.
            machine.failures.append(error)
            return INVALID_VALUE

    return Library({"cuEventQuery": ([c_void_p], query)})
