"""What stands in for a card, so that the tests that need one can be tried without it.

The variable MIRRORED_GPU_CHECK names it: "simulated" for a simulated GPU, "emulated" for the
emulated CUDA, which is slow and runs every line of the backend. As a program this is
`python -m mirrored` on it.
"""

import os
import sys
from typing import Any

import mirrored as mr

VARIABLE = "MIRRORED_GPU_CHECK"
CARDS = "MIRRORED_GPU_CHECK_CARDS"  # How many there are; one where it is not set.
KINDS = ("simulated", "emulated")
MEMORY = 4 << 30  # Bytes of an emulated card.

_installed: Any = None  # The emulated machine.


def wanted() -> str:
    """Return which one is asked for, an empty string for the card itself.

    Raises:
        ValueError: There is none of this name.
    """
    kind = os.environ.get(VARIABLE, "")
    if kind and kind not in KINDS:
        raise ValueError(f"{VARIABLE} is one of {', '.join(KINDS)}, or not set. Received: {kind!r}")
    return kind


def install(*, compile_all: bool = True) -> None:
    """Put the one that is asked for in the card's place, in this process and for good.

    The self-test of NCCL, which has a process of its own, gets it as well.

    Args:
        compile_all: Whether all kernels are compiled with the first one, or those alone that run.
    """
    kind, count = wanted(), int(os.environ.get(CARDS) or 1)
    if kind == "simulated":
        mr.config.experimental.set_simulated_gpus(count)
    if kind == "emulated":
        _install_cuda(count, compile_all)


def machine() -> Any:
    """Return the emulated machine, None where something else is there."""
    return _installed


def delay(stream: Any, seconds: float) -> bool:
    """Let an emulated stream stand still for some seconds before it goes on.

    Args:
        stream: As CuPy has it.
        seconds: From now on.

    Returns:
        Whether it does: a real one has to be kept busy instead.
    """
    if _installed is None:
        return False
    from emulated_cuda.queues import Delay

    with _installed.lock:
        _installed.queue(stream.ptr).actions.append(Delay(seconds))
    return True


def _install_cuda(count: int, compile_all: bool) -> None:
    global _installed
    import emulated_cuda
    from kernel_sources import all_sources

    from mirrored.backends import selftest
    from mirrored.backends.cuda import blas, compiling, graphs, nccl, nvml, solver, toolkit
    from mirrored.backends.cuda.compiling import OPTIONS

    os.environ[compiling.FOLDER] = ""  # A real card could not use what is compiled here.
    for each in all_sources() if compile_all else ():  # In one go.
        emulated_cuda.asked_for(each.code, OPTIONS)
    _installed = emulated_cuda.Emulator(emulated_cuda.cards(count, MEMORY), 0)
    # Each of them is looked up as its module's attribute whenever it is used.
    for module, name, made in (
        (toolkit, "toolkit", _installed.cupy),
        (nvml, "load", _installed.nvml),
        (blas, "load", _installed.cublas),
        (solver, "load", _installed.cusolver),
        (graphs, "load_driver", _installed.driver),
        (nccl, "load", _installed.nccl),
    ):
        setattr(module, name, lambda made=made: made)
    vars(selftest)["_PROGRAM"] = f"import stand_ins; stand_ins.install(); {selftest._PROGRAM}"


if __name__ == "__main__":
    from mirrored.__main__ import main

    install()
    sys.exit(main())
