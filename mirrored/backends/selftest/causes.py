"""Likely causes of late or wrong NCCL sums, with the settings that confirm them.

Causes and settings are those of NCCL's documentation; which comes first follows from the symptom.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from mirrored.backends.cuda import nccl_settings
from mirrored.backends.selftest.sums import Symptom

# https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/, of version 2.32: the page "Environment
# Variables", and of "Troubleshooting" the pages on GPUs, on shared memory and on diagnostics.


@dataclass(frozen=True, slots=True)
class _Cause:
    """One thing that may be wrong.

    Attributes:
        problem: What is wrong, in a sentence.
        remedy: What to try.
        setting: The variable that keeps NCCL from what fails, with its value; None: there is none.
        signs: What NCCL or the system says where it is this, as a regular expression.
        rank: How likely it is for each symptom, 0 first.
    """

    problem: str
    remedy: str
    setting: tuple[str, str] | None
    signs: re.Pattern[str]
    rank: dict[Symptom, int]


def _signs(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_CAUSES = (
    _Cause(
        problem="PCI access control services (ACS) or an IOMMU send what goes from card to card by "
        "way of the processor, where it is late or lost.",
        remedy="Try NCCL_P2P_DISABLE=1. If that helps, switch ACS, and VT-d or AMD-Vi, off in the "
        "BIOS (`sudo lspci -vvv | grep ACSCtl` shows `SrcValid+` where ACS is on), since the way "
        "around them is slow.",
        setting=("NCCL_P2P_DISABLE", "1"),
        signs=_signs(r"\bp2p\b", r"peer.{0,20}access", r"\bXid\b", r"\bIOMMU\b"),
        rank={Symptom.WRONG: 0, Symptom.TIMEOUT: 0, Symptom.CRASH: 2, Symptom.ERROR: 3},
    ),
    _Cause(
        problem="NVLink SHARP (NVLS), by which NVSwitch adds, is there and does not work: often "
        "the Fabric Manager was started again and the cards were not reset.",
        remedy="Try NCCL_NVLS_ENABLE=0. If that helps, reset the cards, or restart the machine.",
        setting=("NCCL_NVLS_ENABLE", "0"),
        signs=_signs("nvls", "multicast", "fabric.?manager", "NVLink SHARP"),
        rank={Symptom.WRONG: 1, Symptom.TIMEOUT: 1, Symptom.CRASH: 3, Symptom.ERROR: 2},
    ),
    _Cause(
        problem="Shared memory (/dev/shm) is too small, as in a container with its usual 64 MB.",
        remedy="Start the container with `--shm-size=1g --ulimit memlock=-1`, or `--ipc=host`; or "
        "try NCCL_SHM_DISABLE=1.",
        setting=("NCCL_SHM_DISABLE", "1"),
        signs=_signs(r"\bshm\b", "/dev/shm", "shared memory", "no space left", "SIGBUS"),
        rank={Symptom.WRONG: 3, Symptom.TIMEOUT: 2, Symptom.CRASH: 0, Symptom.ERROR: 1},
    ),
    _Cause(
        problem="The versions of the driver, CUDA and NCCL do not fit together.",
        remedy="`python -m mirrored devices` prints them. Use an NCCL for the CUDA version that "
        "CuPy is for, and a driver that is at least as new.",
        setting=None,
        signs=_signs("driver version", "no kernel image", "undefined symbol"),
        rank={Symptom.WRONG: 2, Symptom.TIMEOUT: 3, Symptom.CRASH: 1, Symptom.ERROR: 0},
    ),
    _Cause(
        problem="The card has too little memory for a second process, since the first has taken "
        "nearly all of it.",
        remedy="Set MIRRORED_FORCE_GPU_ALLOW_GROWTH=true, or memory limits, or leave the test out "
        "by MIRRORED_NCCL_SELFTEST=0.",
        setting=None,
        signs=_signs("out of memory", "OutOfPoolMemory", "too little memory"),
        rank={Symptom.WRONG: 9, Symptom.TIMEOUT: 9, Symptom.CRASH: 4, Symptom.ERROR: 4},
    ),
    _Cause(
        problem="The card is in a mode in which one process has it for itself "
        "(`nvidia-smi -q -d COMPUTE`), and the test is another one.",
        remedy="Leave the test out by MIRRORED_NCCL_SELFTEST=0.",
        setting=None,
        signs=_signs("all CUDA-capable devices are busy", "DevicesUnavailable", "exclusive"),
        rank={Symptom.WRONG: 9, Symptom.TIMEOUT: 9, Symptom.CRASH: 5, Symptom.ERROR: 5},
    ),
)


def likely_causes(symptom: Symptom, said: str) -> list[str]:
    """Return what may be the matter, each with what to try, the likeliest first.

    What NCCL says comes before what the symptom tells. A cause that a setting of this process's
    environment rules out is left out.

    Args:
        symptom: What was seen.
        said: What NCCL and the system wrote.

    Example:
        >>> print(likely_causes(Symptom.CRASH, "ended by SIGBUS")[0])
        Shared memory (/dev/shm) is too small, as in a container with its usual 64 MB. Start ...
    """
    left = (cause for cause in _CAUSES if not _ruled_out(cause))
    ranked = sorted(left, key=lambda cause: (not cause.signs.search(said), cause.rank[symptom]))
    return [f"{cause.problem} {cause.remedy}" for cause in ranked]


def settings_in_force() -> Iterable[tuple[str, str]]:
    """Return the variables that decide what NCCL does, in order, with those of its files."""
    prefixes = ("NCCL_", "MIRRORED_NCCL_", "CUDA_")
    settings = {**nccl_settings.in_files(), **os.environ}
    return sorted(item for item in settings.items() if item[0].startswith(prefixes))


def _ruled_out(cause: _Cause) -> bool:
    return (
        cause.setting is not None
        and dict(settings_in_force()).get(cause.setting[0]) == cause.setting[1]
    )
