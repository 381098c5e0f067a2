"""The program whose types mypy checks, in .ci/run, does run."""

import importlib.util
from pathlib import Path

import numpy as np

PROGRAM = Path(__file__).parent / "user_program.py"


def test_the_program_runs(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("user_program", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert np.isfinite(program.main(tmp_path))
    assert program.doubled(np.ones(2, np.float32)).numpy().tolist() == [2.0, 2.0]
