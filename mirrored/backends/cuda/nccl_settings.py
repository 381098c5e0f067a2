"""The environment variables that NCCL reads, once per process.

Variables that users have set, there or in NCCL's files, stay as they are; what comes too late is
told, not lost.
"""

import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from mirrored.backends.communication.connection import MULTI_RANK

# The variables are those of https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html.
_FEWEST_CHANNELS, _MOST_CHANNELS = "NCCL_MIN_CTAS", "NCCL_MAX_CTAS"
# The channels that a sum is cut over where their number has to be fixed. It is our choice, and was
# never measured: few enough for the cards to compute meanwhile, enough for several NVLinks.
_CHANNELS = "16"
_CHANNELS_OF_SEVERAL = "2"  # NCCL's advice where several ranks share a card.

_FOR_SEVERAL = {
    "NCCL_MULTI_RANK_GPU_ENABLE": "1",
    _MOST_CHANNELS: _CHANNELS_OF_SEVERAL,
    "NCCL_NVLS_ENABLE": "0",
}
# "Ring" is for all functions, and all versions know it; "allreduce:ring" is for those from 2.24 on.
_FOR_SAME_BITS = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_NVLS_ENABLE": "0"}

# All that is ever set here.
SETTINGS = tuple(sorted({*_FOR_SEVERAL, *_FOR_SAME_BITS, _FEWEST_CHANNELS, _MOST_CHANNELS}))

_lock = threading.Lock()
# Those of SETTINGS that were set when NCCL read them; None: it has not read them yet.
_read: frozenset[str] | None = None


# The file that NCCL reads besides the user's own, and the variable that names that one.
_SYSTEM_FILE, _USER_FILE = Path("/etc/nccl.conf"), "NCCL_CONF_FILE"
_BLOCKING = "NCCL_COMM_BLOCKING"
# What C's `strtoll`, by which NCCL reads numbers, takes for one; all else is 0 to it.
_NUMBER = re.compile(r"\s*[+-]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


def in_files() -> Mapping[str, str]:
    """Return the variables of NCCL's files; it puts them into the environment, where unset."""
    named = os.environ.get(_USER_FILE)
    user = [Path(named)] if named else [home / ".nccl.conf" for home in _homes()]
    settings: dict[str, str] = {}
    for file in (*user, _SYSTEM_FILE):
        try:
            lines = file.read_text(errors="replace").split("\n")
        except OSError:
            continue
        for line in lines:
            name, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                settings.setdefault(name, value)
    return settings


def _homes() -> list[Path]:
    """Return where NCCL takes the user's home to be, whatever HOME says; nothing: it has none."""
    try:
        import pwd  # There is none on Windows, and it is seldom needed.

        return [Path(pwd.getpwuid(os.getuid()).pw_dir)]
    except (ImportError, KeyError):
        return []


def why_not_blocking() -> str | None:
    """Return why NCCL would not wait until cards are connected, in a sentence; None: it would."""
    setting = os.environ.get(_BLOCKING)
    value, where = (in_files().get(_BLOCKING), "NCCL's file") if setting is None else (setting, "")
    if not value or not _is_zero(value):
        return None
    return (
        f"NCCL cannot be used: with {_BLOCKING}={value.strip()} its calls return before they are "
        f"done. Received it from {where or 'the environment'}. Remove it there."
    )


def _is_zero(value: str) -> bool:
    """Return whether NCCL reads 0, as it does where there is no number, such as in 'false'."""
    match = _NUMBER.match(value)
    return match is None or not match[1].lower().replace("x", "").strip("0")


def set_deterministic() -> None:
    """Let NCCL add in an order that depends on the cards and on the arrays' sizes alone.

    Sums then have the same bits in every run on one machine. They may take longer: by rings alone,
    in one protocol, on a fixed number of channels, without the adders of NVLink switches. Variables
    of the environment that are set already stay as they are.

    Raises:
        RuntimeError: NCCL is in use with other settings, and does not read them again.
    """
    wanted = {**_FOR_SAME_BITS, **_fixed_channels()}
    late = _put(wanted)
    if late:
        raise RuntimeError(
            "Deterministic sums must be requested before GPUs are connected for the first "
            f"time, since NCCL reads its settings once. Received: {late} after that. Ask for them "
            "at the start of the program, or set these variables before it."
        )


def why_not_several() -> str | None:
    """Return why NCCL would not take several ranks on a card, in a sentence; None: it would."""
    if not are_several_asked_for():
        return f"Sum the devices of one card first; for tests, {MULTI_RANK}=1 allows it"
    with _lock:
        late = _late(_FOR_SEVERAL)
    if late:
        return (
            f"It was in use before, and did not read {late}. Connect these devices first, or set "
            "these variables before the program"
        )
    return None


def are_several_asked_for() -> bool:
    """Return whether the environment asks for several ranks on a card."""
    return os.environ.get(MULTI_RANK) == "1"


def allow_several() -> None:
    """Let NCCL take several ranks on a card, where `why_not_several` says nothing."""
    _put(_FOR_SEVERAL)


def note_that_they_are_read() -> None:
    """Note that NCCL reads the environment now, if it has not before."""
    global _read
    with _lock:
        if _read is None:
            settings = in_files()
            _read = frozenset(name for name in SETTINGS if name in os.environ or name in settings)


def _fixed_channels() -> Mapping[str, str]:
    """Return settings that fix the number of channels: at the one that is asked for, if any."""
    otherwise = _CHANNELS_OF_SEVERAL if are_several_asked_for() else _CHANNELS
    settings = {**in_files(), **os.environ}
    asked = settings.get(_MOST_CHANNELS) or settings.get(_FEWEST_CHANNELS)
    return dict.fromkeys((_FEWEST_CHANNELS, _MOST_CHANNELS), asked or otherwise)


def _put(settings: Mapping[str, str]) -> str:
    """Put settings into the environment, where users have not; return those that are too late."""
    with _lock:
        if _read is None:
            file_settings = in_files()
            for name, value in settings.items():
                if name not in file_settings:
                    os.environ.setdefault(name, value)
        return _late(settings)


def _late(settings: Mapping[str, str]) -> str:
    if _read is None:
        return ""
    return ", ".join(f"{name}={value}" for name, value in settings.items() if name not in _read)
