"""What a figure was measured on: card, driver, versions, clock and date.

The library's own probe says which card it is; nvidia-smi, where it is there, says how it is.
"""

import datetime
import importlib.metadata
import platform
import shutil
import subprocess
from collections.abc import Iterable

import mirrored as mr

# What is there for sure where the library can be used on a GPU, then what may be there.
_NEEDED = ("numpy", "pytest", "tqdm", "threadpoolctl", "safetensors")
_OPTIONAL = {
    "hypothesis": (("hypothesis",), "not needed here"),
    "ml_dtypes": (("ml_dtypes", "ml-dtypes"), "no tests of bfloat16"),
    "NCCL": (("nvidia-nccl-cu12", "nvidia-nccl-cu13"), "no tests and no figures of it"),
    "nvmath": (("nvmath-python",), "not needed here"),
    "PyTorch": (("torch",), "not compared with"),
    "JAX": (("jax",), "not compared with"),
}
_CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")
_FACTS = ("clocks.sm", "clocks.max.sm", "clocks.mem", "temperature.gpu", "power.draw")
_SECONDS = 20.0


def gpu(simulated: bool) -> dict[str, object] | None:
    """Return what the library knows of the first GPU, or None where it finds none.

    Args:
        simulated: Whether a simulated GPU stands in for a card.
    """
    if simulated:
        mr.config.experimental.set_simulated_gpus(1)
    elif not mr.test.is_gpu_available(cuda_only=True):
        return None
    return mr.config.experimental.get_device_details(mr.config.list_physical_devices("GPU")[0])


def cards(simulated: bool) -> int:
    """Return how many cards there are; those that are simulated count as one.

    Args:
        simulated: Whether a simulated GPU stands in for a card.
    """
    return 1 if simulated else len(mr.config.list_physical_devices("GPU"))


def describe(details: dict[str, object]) -> dict[str, str]:
    """Return card, versions and date by their names.

    Args:
        details: What `gpu` returned.
    """
    card = address(details)
    capability = details.get("compute_capability")
    known = ".".join(map(str, capability)) if isinstance(capability, tuple) else "none"
    return {
        "card": f"{details['device_name']}, compute capability {known}",
        "driver": _smi(card, ["driver_version"]) or "unknown",
        "memory of the card": _smi(card, ["memory.total"]) or "unknown",
        "clock before": clock(card),
        "CuPy": installed(_CUPY) or "not installed",
        **{name: installed([name]) or "not installed" for name in _NEEDED},
        **{
            name: found for name, (package, _) in _OPTIONAL.items() if (found := installed(package))
        },
        "mirrored": mr.__version__,
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "date": datetime.date.today().isoformat(),
    }


def missing() -> dict[str, str]:
    """Return the optional parts that are not installed, and what goes without them."""
    return {
        name: without
        for name, (package, without) in _OPTIONAL.items()
        if installed(package) is None
    }


def installed(distributions: Iterable[str]) -> str | None:
    """Return the first of these that is installed, with its version."""
    for name in distributions:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def address(details: dict[str, object]) -> str:
    """Return what nvidia-smi calls a card: its PCI bus id, or 0 where that is not known."""
    return str(details.get("pci_bus_id", "0"))


def clock(card: str) -> str:
    """Return a card's clocks, temperature and power now, where they can be told."""
    found = _smi(card, _FACTS)
    if found is None:
        return "unknown"
    values = [part.strip() for part in found.split(",")]
    names = ("SM", "SM at most", "memory", "temperature", "power")
    return ", ".join(f"{name} {value}" for name, value in zip(names, values, strict=True))


def _smi(card: str, names: Iterable[str]) -> str | None:
    """Return facts of a card from nvidia-smi, or None where it does not say."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    command = [program, "-i", card, f"--query-gpu={','.join(names)}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.strip().splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None
