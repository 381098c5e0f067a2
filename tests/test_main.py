"""The program ``mirrored``: what it prints, its JSON, its errors and its exit statuses."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import threadpoolctl
from case_table import cases

import mirrored as mr
from mirrored import devices
from mirrored._commands import check_sums
from mirrored._commands import command_line as command
from mirrored._commands.check_sums import size_in_bytes
from mirrored._commands.command_line import EXIT_STATUSES
from mirrored.backends import selftest
from mirrored.backends.cuda import blas, nccl, nvml, report, solver, toolkit
from mirrored.devices import LogicalDeviceConfiguration
from mirrored.devices.device_registry import registry
from mirrored.distribute import CrossDeviceOps, ReductionToOneDevice, bandwidth
from mirrored.distribute.cross_device_ops.connections import connection
from mirrored.errors import CollectiveError, DeviceLostError, DeviceUnavailableError
from mirrored.workers.worker import Workers

FULL = "/job:localhost/replica:0/task:0/device:"
CARDS = (
    nvml.Card(0, "NVIDIA H200", "GPU-beef", "0000:3b:00.0", (9, 0), 150 << 30),
    nvml.Card(1, "Tesla T4", "GPU-bead", "0000:af:00.0", (7, 5), 15 << 30),
)


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
    assert lines[physical + 1].startswith("  CPU:0  host CPU (")
    assert lines[physical + 2 : logical] == [
        "  GPU:0  simulated GPU (host memory)",
        "  GPU:1  simulated GPU (host memory)",
    ]
    assert lines[logical + 1 : logical + 5] == [
        "  CPU:0  no memory limit, on physical device CPU:0",
        "  GPU:0  512 MB, on physical device GPU:0",
        "  GPU:1  1024 MB, on physical device GPU:0",
        "  GPU:2  2048 MB, on physical device GPU:1",
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


def test_the_fingerprint(capsys: pytest.CaptureFixture[str]) -> None:
    devices.set_simulated_gpus(2)
    assert command.main(["fingerprint"]) == 0
    lines = capsys.readouterr().out
    assert command.main(["fingerprint", "--json"]) == 0
    (worker,) = json.loads(capsys.readouterr().out)["workers"]
    facts = worker["fingerprint"]
    assert (worker["worker"], facts["mirrored"]) == (0, mr.__version__)
    words = " ".join(f"{name}: {fact}" for name, fact in facts.items()).split()
    assert lines.split() == words  # Long lines are wrapped.
    assert not registry.initialised


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The distributions that are installed, with their versions: none until a test adds some."""
    found: dict[str, str] = {}

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, "version", version)
    return found


ALL = {
    "cupy-cuda12x": "14.0.1",
    "nvidia-cuda-runtime-cu12": "12.9.79",
    "nvidia-cuda-nvrtc-cu12": "12.9.86",
    "nvidia-cublas-cu12": "12.9.1.4",
    "nvidia-cusolver-cu12": "11.7.5",
    "nvidia-nccl-cu12": "2.32",
}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({}, ["CuPy (arrays on GPUs): not installed", "NCCL (sums across GPUs): not installed"]),
        (
            {"cupy-cuda12x": "14.0.1", "cupy-cuda13x": "14.0.2"},
            ["CuPy (arrays on GPUs): cupy-cuda12x 14.0.1, cupy-cuda13x 14.0.2"],
        ),
        ({"cupy-cuda12x": "14.0.1"}, ["CuPy (arrays on GPUs): cupy-cuda12x 14.0.1"]),
        (
            {"nvidia-cublas": "13.1", "nvidia-nccl-cu13": "2.32"},
            [
                "cuBLAS (matrix products): nvidia-cublas 13.1",
                "NCCL (sums across GPUs): nvidia-nccl-cu13 2.32",
            ],
        ),
        (
            ALL,
            ["CUDA runtime (for NVRTC): nvidia-cuda-runtime-cu12 12.9.79", "-nvrtc-cu12 12.9.86"],
        ),
    ],
)
@pytest.mark.parametrize("cuda", [None, (12, 4), (13, 0)])
def test_packages(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    installed: dict[str, str],
    there: dict[str, str],
    expected: list[str],
    cuda: tuple[int, int] | None,
) -> None:
    """One line says how to install what is missing: for the driver, or for any."""
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cuda=cuda))
    installed.update(there)
    text = printed(capsys)
    for line in expected:
        assert line in text
    # That of CuPy where there is one: with two neither works.
    installed_for = [major for major in (13, 12) if f"cupy-cuda{major}x" in there]
    majors = installed_for[:1] or ([12, 13] if cuda is None else [cuda[0]])
    for major in (12, 13):
        wanted = there is not ALL and major in majors
        assert text.count(f"pip install '.[cuda{major}]'") == wanted


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (nvml.Survey(), "none found: GPUs need one, from https://www.nvidia.com/drivers"),
        (nvml.Survey((), "580.95", (13, 0)), "580.95, for CUDA up to 13.0, 0 cards"),
        (nvml.Survey(CARDS[:1], None, (12, 4)), "version unknown, for CUDA up to 12.4, 1 card"),
        (nvml.Survey(problem="No GPU is used: a reason."), "No GPU is used: a reason."),
    ],
)
def test_the_driver(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    found: nvml.Survey,
    line: str,
) -> None:
    devices.set_simulated_gpus(1)
    monkeypatch.setattr(nvml, "survey", lambda: found)
    lines = printed(capsys).splitlines()
    assert lines[lines.index("NVIDIA driver") + 1] == f"  {line}"
    assert not any(line.startswith(("Peer", "Libraries")) for line in lines)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cards, of which the first reads the memory of the second."""
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(CARDS, "580.95.05", (13, 0)))
    monkeypatch.setattr(nvml, "peer_access", lambda: [[True, True], [False, True]])


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CuPy, and the libraries that it works with."""
    cuda = SimpleNamespace(
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 12090),
        nvrtc=SimpleNamespace(getVersion=lambda: (12, 8)),
    )
    module = SimpleNamespace(__version__="14.2.0", cuda=cuda)
    monkeypatch.setattr(toolkit, "toolkit", lambda: module)
    for library, version in ((blas, "12.9.1"), (solver, "11.7.5"), (nccl, "2.27.3")):
        monkeypatch.setattr(library, "load", lambda: None)
        monkeypatch.setattr(library, "version", lambda library, version=version: version)


@pytest.mark.usefixtures("cards", "cupy")
def test_real_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys).splitlines()
    physical = lines.index("Physical devices")
    assert lines[physical + 2 : physical + 4] == [
        "  GPU:0  NVIDIA H200, compute capability 9.0, at 0000:3b:00.0",
        "  GPU:1  Tesla T4, compute capability 7.5, at 0000:af:00.0",
    ]
    logical = lines.index("Logical devices")
    assert lines[logical + 2] == "  GPU:0  153600 MB, on physical device GPU:0"
    driver = lines.index("NVIDIA driver")
    assert lines[driver + 1 : driver + 6] == [
        "  580.95.05, for CUDA up to 13.0, 2 cards",
        "Peer access: which card reads the memory of which",
        "          0   1",
        "     0  yes yes",
        "     1   no yes",
    ]
    libraries = lines.index("Libraries that the GPUs are used with")
    assert lines[libraries + 1 :] == [
        "  CuPy 14.2.0",
        "  CUDA runtime 12.9",
        "  NVRTC 12.8",
        "  cuBLAS 12.9.1",
        "  cuSOLVER 11.7.5",
        "  NCCL 2.27.3",
    ]


@pytest.mark.usefixtures("cards", "cupy")
@pytest.mark.parametrize("visible", [0, 1, 2])
def test_the_fingerprint_of_cards(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, visible: int
) -> None:
    monkeypatch.setattr(report, "fingerprint", report.fingerprint.__wrapped__)
    physical = devices.list_physical_devices()
    devices.set_visible_devices(physical[: 1 + visible])
    assert command.main(["fingerprint", "--json"]) == 0
    (worker,) = json.loads(capsys.readouterr().out)["workers"]
    shown = {name: fact for name, fact in worker["fingerprint"].items() if name in OF_CARDS}
    names = ["NVIDIA H200", "Tesla T4"][:visible]
    assert shown == ({**OF_CARDS, "GPU": ", ".join(names)} if names else {})
    assert not registry.initialised


OF_CARDS = {
    "GPU": "",
    "NVIDIA driver": "580.95.05",
    "CuPy": "14.2.0",
    "CUDA runtime": "12.9",
    "NVRTC": "12.8",
    "cuBLAS": "12.9.1",
    "cuSOLVER": "11.7.5",
    "NCCL": "2.27.3",
}


@pytest.mark.usefixtures("cards", "cupy")
def test_libraries_that_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise DeviceUnavailableError("no library: a command")

    monkeypatch.setattr(blas, "load", missing)
    monkeypatch.setattr(solver, "load", missing)
    monkeypatch.setattr(nccl, "load", missing)
    monkeypatch.setattr(nvml, "peer_access", lambda: None)
    lines = printed(capsys).splitlines()
    assert lines[-3:] == ["  no library: a command"] * 3
    assert "  unknown: NVML does not say" in lines
    monkeypatch.setattr(toolkit, "toolkit", missing)
    assert printed(capsys).splitlines()[-1] == "  no library: a command"


def test_a_malformed_environment_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIRRORED_SIMULATED_GPUS", "four")
    assert command.main(["devices"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mirrored: The environment variable MIRRORED_SIMULATED_GPUS must be a")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["devices"], ["selftest", "--sizes", "1K"], ["run", "-m", "this"]]
)
def test_a_malformed_level_of_the_log_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("MIRRORED_LOG_LEVEL", "xx")
    assert command.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("mirrored: The environment variable MIRRORED_LOG_LEVEL must be a level")
    assert err.endswith(" Received: 'xx'. Set it as in MIRRORED_LOG_LEVEL=INFO, or unset it.\n")
    assert err.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Only Linux has this file.")
@pytest.mark.parametrize("arguments", [["devices"], ["devices", "--json"], ["--version"]])
@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("closed", "mirrored: Standard output is closed.\n"),
        ("full", "mirrored: Standard output cannot be written: No space left on device.\n"),
        ("unread", ""),  # As after `mirrored devices | head`.
    ],
)
def test_an_output_that_cannot_be_written_is_a_status(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    error: str,
    arguments: list[str],
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full, open(writer, "w") as unread:
        streams = {"closed": None, "full": full, "unread": unread}
        monkeypatch.setattr(sys, "stdout", streams[output])
        try:
            status: Any = command.main(arguments)
        except SystemExit as end:
            status = end.code
    assert status == 1
    assert capsys.readouterr().err == error


def test_errors_are_text_where_no_json_can_be_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert command.main(["devices", "--all", "--json"]) == 2
    assert "mirrored: unrecognized arguments: --all\n" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert command.main(["devices", "--all"]) == 2


def test_no_progress_is_shown_without_a_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.set_simulated_gpus(2)
    monkeypatch.setattr(sys, "stderr", None)
    status, lines = measured(capsys, "--sizes", "1K")
    assert status == 0
    assert len(rows(lines)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["device"], "invalid choice: 'device'"),
        ([], "a command is missing"),
        (["devices", "--all"], "unrecognized arguments: --all"),
    ],
)
def test_unknown_commands(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert command.main(arguments) == 2
    assert message in capsys.readouterr().err


_TWO_OF_WHICH_ONE_IS_VISIBLE = {
    "MIRRORED_SIMULATED_GPUS": "2",
    "CUDA_VISIBLE_DEVICES": "1",
    "MIRRORED_LOG_LEVEL": "DEBUG",
}


@pytest.mark.slow
def test_as_a_program() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _RUN_AND_LIST_CUPY],
        env={**os.environ, **_TWO_OF_WHICH_ONE_IS_VISIBLE},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "  GPU:0  no memory limit, on physical device GPU:0\n" in finished.stdout
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


# ---------------------------------------------------------------------- selftest

REFERENCE = ReductionToOneDevice()


class OffByOne(CrossDeviceOps):
    """Adds one to every element of its sums."""

    def reduce_implementation(
        self, reduce_op: Any, values: Any, destination: Any, options: Any
    ) -> Any:
        return REFERENCE.reduce_implementation(reduce_op, values, destination, options) + 1.0


def measured(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """Return the status of a self-test, and what it printed."""
    status = command.main(["selftest", *arguments])
    return status, capsys.readouterr().out.splitlines()


def rows(lines: list[str]) -> list[tuple[str, str, str]]:
    """Return name, bytes and number of wrong elements of each row of the table."""
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["collective", "bytes"])
    table = [line.split() for line in lines[start + 1 :]]
    return [(row[0], row[1], row[-1]) for row in table if len(row) == 6 and row[-1].isdecimal()]


@pytest.mark.parametrize(("gpus", "kind", "count"), [(0, "CPU", 2), (1, "GPU", 2), (3, "GPU", 3)])
def test_sums_on_the_host(
    capsys: pytest.CaptureFixture[str], gpus: int, kind: str, count: int
) -> None:
    """One device is split into two: a lone one has nothing to sum."""
    devices.set_simulated_gpus(gpus)
    status, lines = measured(capsys, "--sizes", "1K", "2048")
    assert status == 0
    assert lines[0] == "Devices"
    names = [line.split()[0] for line in lines[1 : count + 1]]
    assert names == [f"{kind}:{number}" for number in range(count)]
    assert lines[count + 1 : count + 4] == [
        "Self-test of NCCL",
        "  Not run. NCCL sums only between GPUs that are not simulated.",
        f"All-reduces of float32, summed over {count} devices; algbw and busbw in GB/s",
    ]
    assert rows(lines) == [
        (name, nbytes, "0")
        for name in ("ReductionToOneDevice", "HierarchicalCopyAllReduce")
        for nbytes in ("1024", "2048")
    ]


def test_the_sizes_of_quick(capsys: pytest.CaptureFixture[str]) -> None:
    """They are the default."""
    assert command._parse(["selftest", "--quick"]).quick
    _, lines = measured(capsys)
    assert [nbytes for _, nbytes, _ in rows(lines)] == ["1024", "65536", "4194304"] * 2


def test_wrong_sums_are_said_and_are_the_status(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth, "collectives", lambda used: [OffByOne(), REFERENCE])
    status, lines = measured(capsys, "--sizes", "1K")
    assert status == 1
    assert rows(lines) == [("OffByOne", "1024", "512"), ("ReductionToOneDevice", "1024", "0")]
    assert lines[-1] == "  Some sums are wrong: see #wrong. Do not train on these devices."


@pytest.mark.parametrize("limit", [None, 1])
def test_what_does_not_fit_is_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    """By what is known beforehand, or else by what a device refuses."""
    devices.set_simulated_gpus(2, memory_limit=1)
    if limit is None:
        monkeypatch.setattr(bandwidth, "largest_size", lambda used: None)
    status, lines = measured(capsys, "--sizes", "1K", "1M")
    assert status == 0
    assert [nbytes for _, nbytes, _ in rows(lines)] == ["1024"] * 2
    said = "Sizes above 174762 bytes were left out" if limit else "ended before 1048576 bytes"
    assert said in "\n".join(lines)


@pytest.mark.parametrize("workers", [None, Workers()])
def test_no_sum_that_fits_is_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, workers: Any
) -> None:
    devices.set_simulated_gpus(2, memory_limit=1)
    monkeypatch.setattr(check_sums, "launched_workers", lambda: workers)
    status, lines = measured(capsys, "--sizes", "9999G")
    assert status == 1
    assert "  No sum was tested. Choose smaller sizes with --sizes." in lines
    assert "were left out: there is too little memory." in "\n".join(lines)


@pytest.fixture
def two_cards(emulated_cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two emulated cards; what they are called when their self-test is asked for."""
    asked: list[str] = []
    emulated_cuda(cards=2)
    monkeypatch.setattr(selftest, "require", lambda ranks, names: asked.extend(names))
    yield asked
    connection(devices.logical_devices("GPU")).close()


def test_cards(capsys: pytest.CaptureFixture[str], two_cards: list[str]) -> None:
    status, lines = measured(capsys, "--sizes", "1K")
    assert status == 0
    assert two_cards[:2] == [f"{FULL}GPU:0", f"{FULL}GPU:1"]
    assert "  Passed: sums of float32, float64 and int32, small and large, were right." in lines
    assert rows(lines)[-1] == ("NcclAllReduce", "1024", "0")


def test_a_self_test_that_fails(
    capsys: pytest.CaptureFixture[str],
    two_cards: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other collectives are measured all the same."""

    def fail(ranks: Any, names: Any) -> None:
        raise CollectiveError("It found wrong sums.\nReceived: many.")

    monkeypatch.setattr(selftest, "require", fail)
    status, lines = measured(capsys, "--sizes", "1K")
    assert status == 1
    start = lines.index("Self-test of NCCL")
    assert lines[start + 1 : start + 3] == ["  Failed. It found wrong sums.", "  Received: many."]
    names = [name for name, _, _ in rows(lines)]
    assert names == ["ReductionToOneDevice", "HierarchicalCopyAllReduce"]


@pytest.mark.parametrize("kind", [CollectiveError, DeviceLostError, DeviceUnavailableError])
def test_a_measurement_that_fails(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception],
) -> None:
    def fail(*args: Any, **options: Any) -> Iterator[Any]:
        raise kind("a reason")
        yield

    monkeypatch.setattr(bandwidth, "measure", fail)
    status, lines = measured(capsys, "--sizes", "1K")
    assert status == 1
    assert "  ReductionToOneDevice failed. a reason" in lines


@cases(
    ("text", "expected"),
    [("512", 512), ("1K", 1024), ("64k", 65536), ("4MB", 4 << 20), ("1G", 1 << 30)],
)
def test_sizes(text: str, expected: int) -> None:
    assert size_in_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "0", "K", "1.5M", "1T", "-4", "4 M"])
def test_sizes_that_are_none(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert command.main(["selftest", f"--sizes={text}"]) == 2
    assert "a size must be like 512, 64K, 4M or 1G, not " in capsys.readouterr().err


def test_progress_is_shown_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar counts what is timed, and names the size."""
    devices.set_simulated_gpus(2)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    command.main(["selftest", "--sizes", "2048"])
    printed = capsys.readouterr()
    shares = re.findall(r"ReductionToOneDevice: +(\d+)%\|", printed.err)
    assert {"0", "100"} <= set(shares)
    assert ", 2048 bytes" in printed.err
    assert "ReductionToOneDevice: " not in printed.out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mirrored {mr.__version__}\n"


# ---------------------------------------------------------------------- JSON, help and statuses

PAGE = (Path(__file__).parents[1] / "docs" / "reference" / "command-line.md").read_text()


def parsed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Return the JSON object that a command prints, and check its first fields."""
    status = command.main([*arguments, "--json"])
    fields: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (fields.pop("status"), fields.pop("version")) == (status, mr.__version__)
    return fields


def names_of(fields: Any, prefix: str = "") -> set[str]:
    """Return the names of the fields that the page has in its table."""
    if isinstance(fields, list):
        return set().union(*(names_of(item, f"{prefix}[]") for item in fields))
    if not isinstance(fields, dict) or prefix in FREE_FIELDS:
        return set()
    start = f"{prefix}." if prefix else ""
    return set().union(*({f"{start}{k}"} | names_of(v, f"{start}{k}") for k, v in fields.items()))


# Objects that one row of the page describes.
FREE_FIELDS = {
    "workers[].physical_devices[]",
    "workers[].logical_devices[]",
    "workers[].libraries",
    "workers[].fingerprint",
    "nccl",
}


def test_the_fields_of_the_json_are_those_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    devices.set_simulated_gpus(2, memory_limit=1)
    shown = parsed(capsys, "devices")
    (worker,) = shown["workers"]
    assert worker["physical_devices"][1] == {
        "name": "/physical_device:GPU:0",
        "description": "simulated GPU (host memory)",
    }
    assert worker["logical_devices"][1] == {
        "name": f"{FULL}GPU:0",
        "memory_limit": 1 << 20,
        "physical_device": "/physical_device:GPU:0",
    }
    assert len(worker["libraries"]["NVIDIA driver"]) == 1
    checked = parsed(capsys, "selftest", "--sizes", "1K", "1M")
    assert checked["nccl"]["passed"] is None
    assert [(row["nbytes"], row["wrong"]) for row in checked["sums"]] == [(1024, 0)] * 2
    assert checked["notes"][0].startswith("Sizes above 174762 bytes were left out")
    failed = parsed(capsys, "selftest", "--sizes", "none")
    rows_of_page = set(re.findall(r"^\| `([a-z_.\[\]]+)` \| (?:all|`)", PAGE, re.MULTILINE))
    facts = parsed(capsys, "fingerprint")
    names = set().union(*map(names_of, (shown, facts, checked, failed)))
    assert names | {"status", "version"} == rows_of_page


@pytest.mark.parametrize(
    ("arguments", "name", "error"),
    [
        ([], None, "a command is missing"),
        (["device"], None, "invalid choice: 'device'"),
        (["devices", "--all"], "devices", "unrecognized arguments: --all"),
        (["run", "-m", "no_such_package.train"], "run", "There is no module 'no_such_package"),
    ],
)
def test_errors_as_json(
    capsys: pytest.CaptureFixture[str], arguments: list[str], name: str | None, error: str
) -> None:
    place = arguments.index("-m") if "-m" in arguments else len(arguments)
    assert command.main([*arguments[:place], "--json", *arguments[place:]]) == 2
    out, err = capsys.readouterr()
    fields = json.loads(out)
    assert (fields["command"], fields["status"], err) == (name, 2, "")
    assert error in fields["error"]


def test_a_collective_that_is_not_available(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable() -> None:
        raise DeviceUnavailableError("GPU:0 is gone.")

    monkeypatch.setattr(nvml, "survey", unavailable)
    assert command.main(["devices"]) == 3
    assert capsys.readouterr().err == "mirrored: GPU:0 is gone.\n"


def test_the_exit_statuses_of_the_page() -> None:
    table = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert {int(status): meaning for status, meaning in table} == EXIT_STATUSES


@pytest.mark.parametrize("words", [[], *([name] for name in command.COMMANDS)])
def test_help_fits_and_its_examples_can_be_parsed(
    capsys: pytest.CaptureFixture[str], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        command.main([*words, "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert end.value.code == 0
    assert max(map(len, lines)) <= 80
    examples = lines[lines.index("examples:") + 1 :]
    examples = [line for line in examples if re.match(r" +(mirrored|mpiexec) ", line)]
    assert examples
    for line in examples:
        words = shlex.split(re.split(r" {2,}", line.strip())[0])
        assert command._parse(words[words.index("mirrored") + 1 :]).command in command.COMMANDS
    if words == []:
        assert all(str(status) in "\n".join(lines) for status in EXIT_STATUSES)


def test_output_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = "No GPU is used: " + "a long reason, " * 20 + "x" * 90
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(problem=problem))
    devices.set_simulated_gpus(2, memory_limit=1)
    assert command.main(["devices"]) == 0
    assert command.main(["selftest", "--sizes", "1K", "1M"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "x" * 90 not in line]
    assert max(map(len, lines)) <= 80
    assert sum("a long reason" in line for line in lines) > 1


def test_every_command_and_option_is_on_the_page() -> None:
    for name, row in command.COMMANDS.items():
        assert f"| `mirrored {name}` | {row.summary} |" in PAGE
    for option in ("--json", "--version", "--help", "--quick", "--full", "--sizes", "run -m "):
        assert option in PAGE
