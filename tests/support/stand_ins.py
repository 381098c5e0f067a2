"""What stands in for a card, so that the tests that need one can be tried without it.

The variable MIRRORED_GPU_CHECK names it: "simulated" for a simulated GPU, "emulated" for the
emulated CUDA, which is slow and runs every line of the backend.
"""

import os

import mirrored as mr

VARIABLE = "MIRRORED_GPU_CHECK"
KINDS = ("simulated", "emulated")
MEMORY = 4 << 30  # Bytes of an emulated card.


def wanted() -> str:
    """Return which one is asked for, an empty string for the card itself.

    Raises:
        ValueError: There is none of this name.
    """
    kind = os.environ.get(VARIABLE, "")
    if kind and kind not in KINDS:
        raise ValueError(f"{VARIABLE} is one of {', '.join(KINDS)}, or not set. Received: {kind!r}")
    return kind


def install() -> None:
    """Put the one that is asked for in the card's place, in this process and for good."""
    kind = wanted()
    if kind == "simulated":
        mr.config.experimental.set_simulated_gpus(1)
    if kind == "emulated":
        import emulated_cuda

        from mirrored.backends.cuda import blas, nccl, nvml, toolkit

        emulator = emulated_cuda.Emulator(emulated_cuda.cards(1, MEMORY), 0)
        # Each of them is looked up as its module's attribute whenever it is used.
        for module, name, made in (
            (toolkit, "toolkit", emulator.cupy),
            (nvml, "load", emulator.nvml),
            (blas, "load", emulator.cublas),
            (nccl, "load", emulator.nccl),
        ):
            setattr(module, name, lambda made=made: made)
