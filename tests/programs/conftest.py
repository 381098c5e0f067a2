"""Runs a TensorFlow user's script: its text in a file, a process of its own, simulated GPUs.

What it prints and what it logs are looked at line by line.
"""

import os
import platform
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import forked_programs
import pytest

FULL = "/job:localhost/replica:0/task:0/device:"


class Done(NamedTuple):
    """What a program left behind.

    Attributes:
        out: The lines that it printed.
        log: Those of standard error, with the size of the host's memory left out.
    """

    out: list[str]
    log: list[str]


RunProgram = Callable[..., Done]


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Return ``run_program(text, *arguments, gpus=0, **environment)``; it must not fail."""

    def run(text: str, *arguments: object, gpus: int = 0, **environment: str) -> Done:
        assert text.count("import mirrored as tf\n") == 1
        program = tmp_path / "program.py"
        program.write_text(text)
        settings = {"MIRRORED_SIMULATED_GPUS": str(gpus), "MIRRORED_LOG_LEVEL": "DEBUG"}
        variables = os.environ | settings | environment
        done = forked_programs.run_program(
            program,
            arguments,
            folder=tmp_path,
            environment=variables,
            strict=True,
            torn_down=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        log = re.sub(r" \(the host has \d+ MB\)", "", done.stderr)
        return Done(done.stdout.splitlines(), log.splitlines())

    return run


@pytest.fixture
def created() -> Callable[..., list[str]]:
    """Return ``created(*gpus)``: the log of making the CPU and these GPUs.

    A GPU is the number of its physical one, or that and its limit in MB.
    """

    def lines(*gpus: int | tuple[int, int]) -> list[str]:
        made = [_created("CPU:0", "CPU:0", f"host CPU ({platform.machine()})", None)]
        for number, gpu in enumerate(gpus):
            physical, limit = gpu if isinstance(gpu, tuple) else (gpu, None)
            name = "simulated GPU (host memory)"
            made.append(_created(f"GPU:{number}", f"GPU:{physical}", name, limit))
        return made

    return lines


def _created(logical: str, physical: str, name: str, limit: int | None) -> str:
    memory = "no memory limit" if limit is None else f"{limit} MB memory"
    return (
        f"Created logical device {FULL}{logical} with {memory} -> physical device: "
        f"/physical_device:{physical}, name: {name}"
    )


@pytest.fixture
def executing() -> Callable[..., list[str]]:
    """Return ``executing("MatMul GPU:0", ...)``: the placement log of these ops."""

    def lines(*ops: str) -> list[str]:
        pairs = [op.split() for op in ops]
        return [f"Executing op {name} in device {FULL}{device}" for name, device in pairs]

    return lines
