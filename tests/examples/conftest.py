"""Runs an example as a user does: in a process of its own, from a folder somewhere else."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

RunExample = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_example(tmp_path: Path) -> RunExample:
    """Return ``run_example(name, *arguments, fails=False, **environment)``."""

    def run(
        name: str, *arguments: object, fails: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name), *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        assert "Warning" not in done.stderr
        return done

    return run
