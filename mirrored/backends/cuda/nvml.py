"""Lists the cards through NVML, without starting CUDA.

Starting CUDA would take memory on the cards, and would break processes that are forked afterwards.
"""

import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from mirrored._logging import logger

DRIVER = "libcuda.so.1"
NVML = "libnvidia-ml.so.1"

# How long a child process may take to list the cards. The driver takes seconds to wake many cards.
_DEADLINE_S = 60

_NOT_SUPPORTED, _NO_DRIVER, _MISMATCH = 3, 9, 18  # NVML's.
_NO_DEVICE = 100  # CUDA's.
_READ_OF_A_PEER = 0  # Which kind of access is asked for; the status is 0 where there is.


@dataclass(frozen=True, slots=True)
class Card:
    """A physical GPU.

    Attributes:
        index: Its number, by PCI bus id, as ``nvidia-smi`` shows it.
        name: As in 'NVIDIA H200'.
        uuid: As in 'GPU-8932f937-d72c-4106-c12f-20bd9faed9f6'.
        pci_bus_id: As in '0000:01:00.0', in lower case.
        compute_capability: As in (9, 0).
        memory: Its memory in bytes; None where it has none of its own.
    """

    index: int
    name: str
    uuid: str
    pci_bus_id: str
    compute_capability: tuple[int, int]
    memory: int | None


class Survey(NamedTuple):
    """What the driver says.

    Attributes:
        cards: The cards, hidden ones included.
        driver: Its version, None where it does not say.
        cuda: The newest version of CUDA that it runs, as in (13, 0); None where it does not say.
        problem: What is wrong, and what to do; None where nothing is.
    """

    cards: tuple[Card, ...] = ()
    driver: str | None = None
    cuda: tuple[int, int] | None = None
    problem: str | None = None


class _Refused(Exception):
    """The driver answered with a status that is not success."""

    def __init__(self, function: str, status: int) -> None:
        super().__init__(function, status)
        self.function = function
        self.status = status


def cards() -> list[Card]:
    """Return the cards of this machine, hidden ones included; a warning says what is wrong."""
    result = survey()
    if result.problem is not None:
        logger.warning("%s", result.problem)
    return list(result.cards)


def survey() -> Survey:
    """Return the cards and what the driver says of itself. It touches no card."""
    library = load()
    if library is not None:
        try:
            return _survey(library)
        except _Refused as refused:
            return Survey(problem=_explain(refused))
    return _ask_a_child() if _can_load(DRIVER) else Survey()


def peer_access() -> list[list[bool]] | None:
    """Return whether each card, by row, can read the memory of each; None: NVML does not say."""
    library = load()
    if library is None:
        return None
    try:
        with _started(library):
            handles = _handles(library)
            return [[a is b or _reads(library, a, b) for b in handles] for a in handles]
    except _Refused:
        return None


def load() -> Any:
    """Return the module ``pynvml``; None where it, NVML or a driver for CUDA is not there."""
    # A container may have NVML alone, without what computes: its cards cannot be used. Where there
    # is no driver this takes 0.1 ms.
    if not (_can_load(DRIVER) and _can_load(NVML)):
        return None
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


def _can_load(name: str) -> bool:
    try:
        ctypes.CDLL(name)  # Loads it, and starts nothing.
    except OSError:
        return False
    return True


def _survey(library: Any) -> Survey:
    with _started(library):
        driver = _ask(library, "nvmlSystemGetDriverVersion")
        cuda = _ask(library, "nvmlSystemGetCudaDriverVersion_v2")
        listed = tuple(_card(library, i, handle) for i, handle in enumerate(_handles(library)))
        return Survey(listed, driver, _version(cuda))


@contextmanager
def _started(library: Any) -> Iterator[None]:
    _ask(library, "nvmlInit")
    try:
        yield
    finally:
        with suppress(library.NVMLError):
            library.nvmlShutdown()


def _handles(library: Any) -> list[Any]:
    count = _ask(library, "nvmlDeviceGetCount")
    return [_ask(library, "nvmlDeviceGetHandleByIndex", index) for index in range(count)]


def _card(library: Any, index: int, handle: Any) -> Card:
    pci = _ask(library, "nvmlDeviceGetPciInfo", handle)
    return Card(
        index=index,
        name=_ask(library, "nvmlDeviceGetName", handle),
        uuid=_ask(library, "nvmlDeviceGetUUID", handle),
        pci_bus_id=f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0",
        compute_capability=_ask(library, "nvmlDeviceGetCudaComputeCapability", handle),
        memory=_memory(library, handle),
    )


def _memory(library: Any, handle: Any) -> int | None:
    try:
        return int(_ask(library, "nvmlDeviceGetMemoryInfo", handle).total)
    except _Refused as refused:
        if refused.status == _NOT_SUPPORTED:  # A card that shares the host's memory.
            return None
        raise


def _reads(library: Any, reader: Any, owner: Any) -> bool:
    status: int = _ask(library, "nvmlDeviceGetP2PStatus", reader, owner, _READ_OF_A_PEER)
    return status == 0


def _ask(library: Any, function: str, *args: Any) -> Any:
    try:
        return getattr(library, function)(*args)
    except library.NVMLError as error:
        raise _Refused(function, error.value) from None


def _explain(refused: _Refused) -> str | None:
    if refused.status == _NO_DRIVER:  # Libraries without a card, as in many container images.
        return None
    if refused.status == _MISMATCH:
        return (
            "No GPU is used: the NVIDIA driver that is loaded is of another version than its "
            "libraries, as after an upgrade. Restart the machine."
        )
    return (
        f"No GPU is used: the NVIDIA driver answered {refused.function} with error "
        f"{refused.status}. `nvidia-smi` says more."
    )


def _version(number: int) -> tuple[int, int]:
    return number // 1000, number % 1000 // 10


# Some containers bring CUDA's driver without NVML, and pynvml may be missing. The driver lists its
# cards only once it is started, so that is done in a process of its own: it breaks none that are
# forked from this one.
_CHILD = """
import ctypes, json, sys

cuda = ctypes.CDLL(sys.argv[1])


def ask(name, *args):
    status = getattr(cuda, name)(*args)
    if status:
        print(json.dumps({"function": name, "status": status}))
        sys.exit()


def number(name, *args, kind=ctypes.c_int):
    out = kind()
    ask(name, ctypes.byref(out), *args)
    return out.value


def card(index):
    device = ctypes.c_int(number("cuDeviceGet", ctypes.c_int(index)))
    name, bus, uuid = (ctypes.create_string_buffer(size) for size in (256, 32, 16))
    ask("cuDeviceGetName", name, ctypes.c_int(256), device)
    ask("cuDeviceGetPCIBusId", bus, ctypes.c_int(32), device)
    ask("cuDeviceGetUuid", uuid, device)
    digits = uuid.raw.hex()
    ends = (0, 8, 12, 16, 20, 32)
    return {
        "index": index,
        "name": name.value.decode(errors="replace"),
        "uuid": "GPU-" + "-".join(digits[a:b] for a, b in zip(ends, ends[1:])),
        "pci_bus_id": bus.value.decode().lower(),
        "compute_capability": [
            number("cuDeviceGetAttribute", ctypes.c_int(which), device) for which in (75, 76)
        ],
        "memory": number("cuDeviceTotalMem_v2", device, kind=ctypes.c_size_t),
    }


ask("cuInit", ctypes.c_uint(0))
cards = [card(index) for index in range(number("cuDeviceGetCount"))]
print(json.dumps({"cuda": number("cuDriverGetVersion"), "cards": cards}))
"""


def _ask_a_child() -> Survey:
    import json  # Both are slow to import, and needed here only.
    import subprocess

    environment = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    environment.pop("CUDA_VISIBLE_DEVICES", None)  # All are listed; the caller chooses among them.
    try:
        finished = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, DRIVER],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=True,
        )
        said = json.loads(finished.stdout)
    except subprocess.TimeoutExpired:
        return Survey(problem=_no_answer(f"gave no answer within {_DEADLINE_S} s"))
    except subprocess.CalledProcessError as error:
        return Survey(problem=_no_answer(f"ended with status {error.returncode}"))
    except (OSError, ValueError) as error:
        return Survey(problem=_no_answer(f"failed: {error}"))
    if "status" in said:
        nothing = said["status"] == _NO_DEVICE
        problem = None if nothing else _explain(_Refused(said["function"], said["status"]))
        return Survey(problem=problem)
    listed = tuple(
        Card(**{**card, "compute_capability": tuple(card["compute_capability"])})
        for card in said["cards"]
    )
    return Survey(listed, None, _version(said["cuda"]))


def _no_answer(why: str) -> str:
    return (
        f"No GPU is used: {NVML}, or Python's package nvidia-ml-py, is not there, and the process "
        f"that asked {DRIVER} for the cards {why}. Install the driver's NVML and nvidia-ml-py; "
        "for a container, add `utility` to NVIDIA_DRIVER_CAPABILITIES."
    )
