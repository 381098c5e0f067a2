"""``python -m mirrored``: what it prints, and how it refuses what it does not know."""

import os
import subprocess
import sys
from importlib import metadata

import pytest
import threadpoolctl

from mirrored import __main__ as command
from mirrored import devices
from mirrored.devices import LogicalDeviceConfiguration

FULL = "/job:localhost/replica:0/task:0/device:"


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    assert command.main(["devices"]) == 0
    return capsys.readouterr().out


def test_devices_and_limits(capsys: pytest.CaptureFixture[str]) -> None:
    devices.set_simulated_gpus(2, memory_limit=2048)
    first, _ = devices.list_physical_devices("GPU")
    parts = [LogicalDeviceConfiguration(512), LogicalDeviceConfiguration(1024)]
    devices.set_logical_device_configuration(first, parts)
    lines = printed(capsys).splitlines()
    physical = lines.index("Physical devices")
    logical = lines.index("Logical devices")
    assert lines[physical + 1].startswith("  /physical_device:CPU:0  host CPU (")
    assert lines[physical + 2 : logical] == [
        "  /physical_device:GPU:0  simulated GPU (host memory)",
        "  /physical_device:GPU:1  simulated GPU (host memory)",
    ]
    assert lines[logical + 1 : logical + 5] == [
        f"  {FULL}CPU:0  no memory limit, on /physical_device:CPU:0",
        f"  {FULL}GPU:0  512 MB, on /physical_device:GPU:0",
        f"  {FULL}GPU:1  1024 MB, on /physical_device:GPU:0",
        f"  {FULL}GPU:2  2048 MB, on /physical_device:GPU:1",
    ]


def test_the_blas_with_its_kernel_and_threads(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        {"user_api": "openmp", "internal_api": "openmp", "version": None, "num_threads": 9},
        {
            "user_api": "blas",
            "internal_api": "openblas",
            "version": "0.3.31",
            "architecture": "Haswell",
            "num_threads": 3,
        },
        {"user_api": "blas", "internal_api": "mkl", "version": "2024.1", "num_threads": 4},
    ]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: found)
    lines = printed(capsys).splitlines()
    blas = lines.index("BLAS")
    assert lines[blas + 1 : blas + 3] == [
        "  openblas 0.3.31, kernel Haswell, 3 threads",
        "  mkl 2024.1, kernel unknown, 4 threads",
    ]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", list)
    assert "  the one inside NumPy" in printed(capsys)


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({}, ["CuPy (arrays on real GPUs): not installed", "NCCL (sums across real GPUs): not"]),
        ({"cupy-cuda12x": "14.0.1"}, ["CuPy (arrays on real GPUs): cupy-cuda12x 14.0.1"]),
        (
            {"cupy-cuda12x": "14.0.1", "cupy-cuda13x": "14.0.2"},
            ["CuPy (arrays on real GPUs): cupy-cuda12x 14.0.1, cupy-cuda13x 14.0.2"],
        ),
        ({"nvidia-nccl-cu13": "2.32"}, ["NCCL (sums across real GPUs): nvidia-nccl-cu13 2.32"]),
    ],
)
def test_optional_parts(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    installed: dict[str, str],
    expected: list[str],
) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    text = printed(capsys)
    for line in expected:
        assert line in text
    missing = 2 - len({name.split("-")[0] for name in installed})
    assert text.count("pip install 'mirrored[cuda12]'") == missing
    assert text.count("pip install 'mirrored[cuda13]'") == missing


def test_a_malformed_environment_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "four")
    with pytest.raises(SystemExit) as end:
        command.main(["devices"])
    out, err = capsys.readouterr()
    assert end.value.code == 2
    assert out == ""
    assert err.startswith("The environment variable MIRRORED_SIMULATED_GPUS must be a number")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["device"], "invalid choice: 'device'"),
        ([], "the following arguments are required: command"),
        (["devices", "--all"], "unrecognized arguments: --all"),
    ],
)
def test_unknown_commands(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_as_a_program() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _RUN_AND_LIST_CUPY],
        env={**os.environ, "MIRRORED_SIMULATED_GPUS": "2", "CUDA_VISIBLE_DEVICES": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"  {FULL}GPU:0  no memory limit, on /physical_device:GPU:0\n" in finished.stdout
    assert "GPU:1" not in finished.stdout
    assert "name: simulated GPU (host memory)\n" in finished.stderr
    assert finished.stdout.endswith("cupy imported: False\n")


# As `python -m mirrored devices`, and then whether CuPy was imported on the way.
_RUN_AND_LIST_CUPY = """
import runpy, sys
sys.argv = ["mirrored", "devices"]
try:
    runpy.run_module("mirrored", run_name="__main__", alter_sys=True)
except SystemExit as end:
    if end.code:
        raise
print("cupy imported:", "cupy" in sys.modules)
"""
