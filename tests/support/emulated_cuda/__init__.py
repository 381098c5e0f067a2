"""CUDA, CuPy, NVIDIA's libraries and NVML in host memory, so that the CUDA backend needs no GPU.

It is stricter than a GPU: work runs late and in any allowed order, fresh memory is NaN, arguments
are held to their types, and memory beside arrays is watched.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from emulated_cuda.cards import Card as Card
from emulated_cuda.cards import cards as cards
from emulated_cuda.compiler import asked_for as asked_for
from emulated_cuda.cublas import emulated_cublas
from emulated_cuda.cupy_module import module
from emulated_cuda.cusolver import emulated_cusolver
from emulated_cuda.driver import emulated_driver
from emulated_cuda.faults import EmulatorError as EmulatorError
from emulated_cuda.machine import Machine
from emulated_cuda.nccl import EmulatedNccl
from emulated_cuda.nvml import EmulatedNvml


class Emulator(Machine):
    """A machine with the libraries that reach it.

    Args:
        cards: The cards, in the order of their numbers.
        seed: Says in which order work runs.
    """

    @cached_property
    def cupy(self) -> Any:
        """What stands in for the module `cupy`."""
        return module(self)

    @cached_property
    def cublas(self) -> Any:
        """What stands in for the library of cuBLAS, as ctypes gives it."""
        return emulated_cublas(self)

    @cached_property
    def cusolver(self) -> Any:
        """What stands in for the library of cuSOLVER, as ctypes gives it."""
        return emulated_cusolver(self)

    @cached_property
    def driver(self) -> Any:
        """What stands in for the driver's library, as ctypes gives it."""
        return emulated_driver(self)

    @cached_property
    def nccl(self) -> EmulatedNccl:
        """What stands in for the library of NCCL, as ctypes gives it."""
        return EmulatedNccl(self)

    @cached_property
    def nvml(self) -> Any:
        """What stands in for the module `pynvml`."""
        return EmulatedNvml(self.cards)
