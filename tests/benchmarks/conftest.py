"""Makes `benchmarks` importable, which is not installed, and a stub to stand in for a contender."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# By its path: the checkout on sys.path would come before the installed package.
if "benchmarks" not in sys.modules:
    spec = importlib.util.spec_from_file_location("benchmarks", ROOT / "benchmarks" / "__init__.py")
    if spec is None or spec.loader is None:
        raise ImportError("benchmarks/__init__.py cannot be loaded")
    package = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks"] = package
    spec.loader.exec_module(package)

STUB = """
import json, os, sys, time
print("a library says hello")
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    BODY
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def stub(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return ``stub(body)``: the command of a process that makes `answer` out of `request`."""

    def make(body: str) -> list[str]:
        script = tmp_path / "stub.py"
        script.write_text(STUB.replace("BODY", body))
        return [sys.executable, str(script)]

    return make
