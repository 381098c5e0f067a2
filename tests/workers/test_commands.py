"""The program ``mirrored`` under a launcher: it looks at all workers, and one of them prints."""

import json
from pathlib import Path

import pytest
from ranks import run_ranks

PROGRAM = """
from mirrored._commands.command_line import main
assert main(["devices"]) == 0
assert main(["selftest", "--quick", "--sizes", "1K", "100K"]) == 0
print("JSON", flush=True)
assert main(["devices", "--json"]) == 0
"""


@pytest.mark.slow
def test_devices_and_selftest(tmp_path: Path) -> None:
    done = run_ranks(PROGRAM, tmp_path, 2, hosts=("a", "b"))
    assert done.status == 0, done.err
    text, _, report = done.out[0].partition("JSON\n")
    lines = text.splitlines()
    assert done.out[1] == "JSON\n"
    assert [line for line in lines if line.startswith("Worker ")] == [
        "Worker 0 of 2, on host a",
        "Worker 1 of 2, on host b",
    ]
    assert sum("  CPU:0  host CPU" in line for line in lines) == 2
    rows = [line.split() for line in lines if line.startswith("  Workers ")]
    assert [(row[1], row[-1]) for row in rows] == [("1024", "0"), ("102400", "0")]
    workers = json.loads(report)["workers"]
    assert [(worker["worker"], worker["host"]) for worker in workers] == [(0, "a"), (1, "b")]
