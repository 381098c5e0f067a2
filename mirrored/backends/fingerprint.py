"""The facts that the bits of results depend on: libraries, the processor, cards and their driver.

No device is initialised, and reading the facts again takes microseconds.
"""

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np

from mirrored._logging import logger
from mirrored.backends import platforms
from mirrored.backends.backend import Hardware
from mirrored.backends.product_settings import available_threads
from mirrored.version import VERSION

_THREADS = "BLAS threads"
# What tells processors of one name apart, in Linux' words and in ours.
_PARTS = {"cpu family": "family", "model": "model"}


def fingerprint(used: Iterable[Hardware]) -> dict[str, str]:
    """Return the facts by name.

    Args:
        used: All devices of this process.

    Example:
        >>> fingerprint([])["mirrored"] == VERSION
        True
    """
    facts = {**_of_host(), _THREADS: str(available_threads())}
    for known in platforms():
        facts.update(known.fingerprint(used))
    return facts


def tell_differences(
    name: str, before: Mapping[str, Any], here: Mapping[str, str], *, any_threads: bool = False
) -> None:
    """Log a line if facts of a file differ from those of this process.

    Args:
        name: What the line calls the file.
        before: The facts where the file was saved; none are equal to all.
        here: The facts of this process.
        any_threads: Whether the number of the BLAS threads changes no bits.
    """
    names = [fact for fact in {**before, **here} if before.get(fact) != here.get(fact)]
    if any_threads and _THREADS in names:
        names.remove(_THREADS)
    if before and names:
        logger.info(
            "Training from %s may differ in the last bits from training where it was saved: %s.",
            name,
            "; ".join(
                f"{fact} was {before.get(fact, 'not there')!s:.200}, and is "
                f"{here.get(fact, 'not there')} here"
                for fact in names
            ),
        )


def blas_libraries() -> list[dict[str, Any]]:
    """Return what threadpoolctl says of each BLAS that is loaded."""
    from threadpoolctl import threadpool_info  # Slow to import, and not always needed.

    return [library for library in threadpool_info() if library["user_api"] == "blas"]


def blas_text(library: Mapping[str, Any]) -> str:
    """Return the name, the version and the kernel of a BLAS.

    Example:
        >>> blas_text({"internal_api": "mkl", "version": "2024.1"})
        'mkl 2024.1, kernel unknown'
    """
    kernel = library.get("architecture", "unknown")
    return f"{library['internal_api']} {library['version']}, kernel {kernel}"


def unknown_blas() -> str:
    """Return the text of a BLAS that threadpoolctl does not know."""
    return f"the one inside NumPy {np.__version__}, of unknown name"


def processor() -> str:
    """Return the processor's model, with its family where the system tells it."""
    facts: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip() and facts:  # The next core is alike.
                    break
                name, _, value = line.partition(":")
                facts.setdefault(name.strip(), value.strip())
    except OSError:
        pass
    model = facts.get("model name") or platform.processor() or platform.machine()
    parts = [f"{word} {facts[key]}" for key, word in _PARTS.items() if key in facts]
    return f"{model} ({', '.join(parts)})" if parts else model


@cache
def _of_host() -> dict[str, str]:
    features: Any = np.show_config(mode="dicts")
    libraries = blas_libraries()  # Behind NumPy's those of SciPy and of other packages.
    libraries.sort(key=lambda library: "numpy" not in library["filepath"])
    return {
        "mirrored": VERSION,
        "NumPy": np.__version__,
        "NumPy's CPU features": " ".join(features.get("SIMD Extensions", {}).get("found", ())),
        "C library": " ".join(filter(None, platform.libc_ver())) or platform.system(),
        "processor": processor(),
        "BLAS": blas_text(libraries[0]) if libraries else unknown_blas(),
    }
