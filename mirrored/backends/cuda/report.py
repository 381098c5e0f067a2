"""Describes the driver, the packages and the libraries that cards are used with.

It is a part of what `python -m mirrored devices` prints, and `python -m mirrored fingerprint`.
"""

import contextlib
from collections.abc import Iterable
from functools import cache
from importlib import metadata

from mirrored.backends.cuda import blas, nccl, nvml, solver, toolkit
from mirrored.errors import DeviceUnavailableError

# What an optional part does, and the distributions that bring it.
_OPTIONAL = (
    ("CuPy", "arrays on GPUs", ("cupy-cuda12x", "cupy-cuda13x", "cupy")),
    ("CUDA runtime", "for NVRTC", ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")),
    ("NVRTC", "compiles kernels", ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")),
    ("cuBLAS", "matrix products", ("nvidia-cublas-cu12", "nvidia-cublas")),
    ("cuSOLVER", "decompositions", ("nvidia-cusolver-cu12", "nvidia-cusolver")),
    ("NCCL", "sums across GPUs", ("nvidia-nccl-cu12", "nvidia-nccl-cu13")),
)

_CUPY_OF = {"cupy-cuda12x": 12, "cupy-cuda13x": 13}


def describe_installation(used: bool) -> Iterable[str]:
    """Yield what there is, and what is missing.

    Args:
        used: Whether this process uses cards, so that libraries may be loaded.
    """
    survey = nvml.survey()
    yield "NVIDIA driver"
    yield f"  {_driver(survey)}"
    if len(survey.cards) > 1:
        yield "Peer access: which card reads the memory of which"
        yield from _peers(nvml.peer_access())
    yield "Packages for real GPUs"
    yield from _packages(survey.cuda)
    if used:
        yield "Libraries that the GPUs are used with"
        yield from (f"  {name} {text}" if name else f"  {text}" for name, text in _libraries())


@cache  # Checkpoints ask again and again, and a driver may take long to answer.
def fingerprint(names: tuple[str, ...]) -> dict[str, str]:
    """Return by name what the bits of results on cards depend on.

    Args:
        names: The names of the cards that are used.
    """
    return {
        "GPU": ", ".join(sorted(set(names))),
        "NVIDIA driver": nvml.survey().driver or "version unknown",
        **{name: version for name, version in _libraries() if name},
    }


def _driver(survey: nvml.Survey) -> str:
    if survey.problem is not None:
        return survey.problem
    if survey.cuda is None:
        return "none found: GPUs need one, from https://www.nvidia.com/drivers"
    cards = f"{len(survey.cards)} card{'' if len(survey.cards) == 1 else 's'}"
    newest = ".".join(map(str, survey.cuda))
    return f"{survey.driver or 'version unknown'}, for CUDA up to {newest}, {cards}"


def _peers(matrix: list[list[bool]] | None) -> Iterable[str]:
    """Yield a row a card, numbered as `nvidia-smi` does."""
    if matrix is None:
        yield "  unknown: NVML does not say"
        return
    yield "       " + "".join(f"{owner:>4}" for owner in range(len(matrix)))
    for reader, row in enumerate(matrix):
        said = ("yes" if connected else "no" for connected in row)
        yield f"  {reader:>4} " + "".join(f"{word:>4}" for word in said)


def _packages(cuda: tuple[int, int] | None) -> Iterable[str]:
    """Yield which of the optional distributions there are, and how to install the others."""
    missing = False
    major = None if cuda is None else cuda[0]
    for name, purpose, distributions in _OPTIONAL:
        versions = []
        for distribution in distributions:
            with contextlib.suppress(metadata.PackageNotFoundError):
                versions.append(f"{distribution} {metadata.version(distribution)}")
                # Another CuPy beside the one that is there would break both.
                major = _CUPY_OF.get(distribution, major)
        missing = missing or not versions
        yield f"  {name} ({purpose}): {', '.join(versions) or 'not installed'}"
    if missing:
        yield "  To install what is missing:"
        for number in (12, 13) if major is None else (major,):
            driver = "" if major is not None else f"CUDA {number}: "
            yield f"    {driver}{toolkit.install_command(number)}"


def _libraries() -> Iterable[tuple[str, str]]:
    """Yield the names and versions of what is loaded for GPUs; without a name, what is missing.

    It starts CUDA, and takes no memory there.
    """
    try:
        cupy = toolkit.toolkit()
    except DeviceUnavailableError as error:
        yield "", str(error)
        return
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    yield "CuPy", cupy.__version__
    yield "CUDA runtime", f"{runtime // 1000}.{runtime % 1000 // 10}"
    yield "NVRTC", ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    for name, library in (("cuBLAS", blas), ("cuSOLVER", solver), ("NCCL", nccl)):
        try:
            yield name, library.version(library.load())
        except DeviceUnavailableError as error:
            yield "", str(error)
