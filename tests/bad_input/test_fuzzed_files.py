"""Files that are damaged at random: documented errors, little memory, no crash and no hang."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fuzzed_readers import FORMATS, Reader

pytestmark = pytest.mark.forks
COUNTS = {"safetensors": 80, "checkpoint": 40}  # Others take longer.
SECONDS = float(os.environ.get("MIRRORED_FUZZ_SECONDS", "3600")) / len(FORMATS)


def run_in_copy(act: Callable[[], None]) -> int:
    """Run something in a copy of this process, and return the exit status; negative: a signal."""
    child = os.fork()
    if not child:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it needs copies of this process")
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    reader, rng, latest = Reader(name), np.random.default_rng(7), tmp_path / "latest"

    def act() -> None:
        reader.read(reader.whole)
        assert reader.read_count == 1
        reader.read(reader.format.layout.pack(reader.parts), fits=True)
        assert reader.read_count == 2
        for _ in range(COUNTS.get(name, 15)):
            data, fits = reader.damaged(rng)
            latest.write_bytes(data)  # What to look at if this ends the process.
            signal.alarm(20)
            reader.read(data, fits)

    assert run_in_copy(act) == 0, latest.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_for_an_hour(name: str, tmp_path: Path) -> None:
    """By coverage where `atheris` is installed, else at random."""
    if importlib.util.find_spec("atheris") is not None:
        program = Path(__file__).parent.parent / "support" / "fuzzed_readers.py"
        command = [sys.executable, str(program), name, str(int(SECONDS)), str(tmp_path / "corpus")]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=SECONDS + 600)
        return
    reader, rng, until = Reader(name), np.random.default_rng(8), time.monotonic() + SECONDS
    latest = tmp_path / "latest"

    def act() -> None:
        while time.monotonic() < until:
            data, fits = reader.damaged(rng)
            latest.write_bytes(data)
            signal.alarm(20)
            reader.read(data, fits)

    assert run_in_copy(act) == 0, latest.read_bytes()
