"""A training program runs without the functions that other systems lack.

The library was tried on Linux alone: this takes away what it would miss elsewhere.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import builtins, mmap, os, sys

SYSTEM = {system!r}
if SYSTEM == "Windows":
    for name in ("fcntl", "grp", "pwd", "resource", "termios"):
        sys.modules[name] = None
    lacks = "fork register_at_fork statvfs sysconf fchmod fchown killpg getuid geteuid getpgid"
    for name in lacks.split():
        delattr(os, name)
    for name in [name for name in dir(mmap) if name.startswith(("MADV_", "MAP_"))]:
        delattr(mmap, name)
del os.sched_getaffinity
if hasattr(mmap, "MADV_HUGEPAGE"):
    del mmap.MADV_HUGEPAGE
plain_open = builtins.open

def open_elsewhere(file, *args, **options):
    threadpoolctl_reads = "/proc/self/maps"  # It has code of its own for each system.
    if str(file).startswith(("/proc", "/sys", "/dev/shm")) and file != threadpoolctl_reads:
        raise FileNotFoundError(file)
    return plain_open(file, *args, **options)

builtins.open = open_elsewhere

import numpy as np
import mirrored as mr

mr.config.experimental.set_simulated_gpus(2)
with mr.MirroredStrategy().scope():
    model = mr.Sequential([mr.layers.Input((600,)), mr.layers.Dense(2000), mr.layers.Dense(1)])
    model.compile("adam", "mse")
x = np.ones((70, 600), np.float32)
dataset = mr.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32)
history = model.fit(dataset, epochs=2, verbose=0)
assert history.history["loss"][1] < history.history["loss"][0]
for _ in range(2):
    model.save_weights("weights.safetensors")
model.load_weights("weights.safetensors")
with mr.profiler.trace("trace.json"):
    model.predict(x, verbose=0)
assert sorted(os.listdir()) == ["program.py", "trace.json", "weights.safetensors"], os.listdir()
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["macOS", "Windows"])
def test_a_program_without_what_another_system_lacks(tmp_path: Path, system: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("{system!r}", repr(system)))
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
