"""Tests that need a GPU: skipped as a whole where there is none.

Devices are frozen once they are used, so most of these run functions of `scenarios/` in processes
of their own. To try the tests themselves, `stand_ins` can put something in the card's place.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stand_ins

import mirrored as mr
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.cuda import nccl as installed
from mirrored.distribute.cross_device_ops.connections import SELFTEST
from mirrored.errors import DeviceUnavailableError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Seconds for a process; on a card the slowest is expected to take a tenth of it.
LIMIT = 900.0 if stand_ins.wanted() else 120.0
LAST_LINES = 25
EMULATED_CARDS = 4

Results = dict[str, Any]
Scenario = Callable[..., Results]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip this folder where there is no GPU, or what a simulated one cannot pass."""
    files = {path for path in {item.path for item in items} if path.is_relative_to(HERE)}
    own = [item for item in items if item.path in files]
    if not own:
        return
    for item in own:  # What CuPy warns of while it is imported, in the first test, is its own.
        item.add_marker(pytest.mark.filterwarnings("default:::cupy"))
    if stand_ins.wanted() == "simulated":
        own = [item for item in own if item.get_closest_marker("cuda")]
        reason = "needs CUDA, which a simulated GPU is not"
    elif stand_ins.wanted() or mr.test.is_gpu_available(cuda_only=True):
        return
    else:
        reason = "no GPU was found, for this test and the others of its file"
        first = {item.path: item for item in reversed(own)}  # One of a file stands for all.
        items[:] = [item for item in items if first.get(item.path, item) is item]
        own = list(first.values())
    for item in own:
        item.add_marker(pytest.mark.skip(reason=reason))


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of tests that a simulated GPU cannot pass."""
    config.addinivalue_line("markers", "cuda: needs CUDA, real or emulated")


@pytest.fixture(autouse=True)
def clean_state(clean_names: None) -> None:
    """Let devices stay as they are from test to test."""


@pytest.fixture(scope="session")
def stand_in() -> str:
    """Return what stands in for the card, an empty string where it is there."""
    return stand_ins.wanted()


@pytest.fixture(scope="module")
def card() -> Iterator[str]:
    """Return the name of the GPU, ready for use in this process."""
    stand_ins.install()
    gpu = mr.config.list_physical_devices("GPU")[0]
    mr.config.experimental.set_memory_growth(gpu, True)
    mr.config.experimental.enable_tensor_float_32_execution(False)
    mr.config.list_logical_devices()
    yield "GPU:0"
    mr.config.experimental.enable_tensor_float_32_execution(True)
    mr.devices.reset_devices()


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """Return ``scenario("module.function", **arguments)``: what it returns, from a new process.

    ``environment`` adds variables to those of this process.
    """
    count = 0

    def run(name: str, environment: Mapping[str, str] | None = None, **arguments: Any) -> Results:
        nonlocal count
        count += 1
        return run_scenario(name, arguments, tmp_path / f"{count}.npz", environment)

    return run


@pytest.fixture(scope="session")
def nccl() -> None:
    """Skip where NCCL is not installed."""
    if not stand_ins.wanted():
        try:
            installed.load()
        except DeviceUnavailableError as error:
            pytest.skip(str(error))


@pytest.fixture(scope="session")
def cards() -> int:
    """Return how many cards there are, or may be where they are emulated."""
    if stand_ins.wanted():
        return EMULATED_CARDS
    return len(mr.config.list_physical_devices("GPU"))


@pytest.fixture(scope="session")
def ranks_of_a_card(
    nccl: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], Mapping[str, str]]:
    """Return ``ranks_of_a_card(count)``: the environment in which NCCL has many ranks on one card.

    The self-test has tried that, in a process with a deadline; where it failed the test is skipped.
    """
    path = tmp_path_factory.mktemp("ranks") / "tried.npz"
    environment = {MULTI_RANK: "1", SELFTEST: ""}
    reasons = run_scenario("collectives.tried", {"counts": [2, 4]}, path, environment)

    def environment_of(count: int) -> Mapping[str, str]:
        reason = str(reasons["2"] or (reasons["4"] if count > 2 else ""))
        if reason:
            pytest.skip(f"{count} ranks on one card: {reason}")
        return {MULTI_RANK: "1", SELFTEST: "0"}

    return environment_of


@pytest.fixture(scope="session")
def uneven() -> list[dict[str, Any]]:
    """Return what is trained by several replicas: arguments of `training.train_one`.

    Uneven shards, a batch smaller than the number of replicas, and a last batch of one example.
    """
    sizes = ((32, 128, False), (30, 91, False), (3, 10, False), (7, 23, True))
    common = {"sizes": (7, 16, 16, 5), "epochs": 3, "activation": "tanh", "shuffle": True}
    return [
        {
            **common,
            **{"batch": batch, "examples": examples, "eagerly": eagerly},
            **{"floatx": floatx, "optimizer": optimizer},
        }
        for batch, examples, eagerly in sizes
        for floatx, optimizer in (("float32", "sgd"), ("float64", "adam"))
    ]


@pytest.fixture(scope="module")
def as_one_gpu(
    uneven: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Results], None]:
    """Return ``as_one_gpu(results)``: hold what `uneven` left on several to what it leaves on one.

    Tolerances are those of `test_training`, for its reasons.
    """
    path = tmp_path_factory.mktemp("one") / "one.npz"
    arguments = {"parts": [1], "cases": uneven, "kind": "reference"}
    tolerances = {"float32": 2e-5, "float64": 1e-9}

    @functools.cache  # Only once it is needed: tests may be skipped.
    def on_one() -> Results:
        return run_scenario("collectives.train", arguments, path)

    def compare(results: Results) -> None:
        wanted = on_one()
        assert results.keys() == wanted.keys()
        for name in results.keys() - {"connected"}:
            tolerance = tolerances[uneven[int(name.partition("/")[0])]["floatx"]]
            scale = max(1.0, float(np.abs(wanted[name]).max()))
            np.testing.assert_allclose(
                results[name], wanted[name], 0, tolerance * scale, err_msg=name
            )

    return compare


@pytest.fixture
def python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Return ``python(arguments)``: this Python, run from the root of the checkout."""
    return run_python


def run_scenario(
    name: str,
    arguments: Mapping[str, Any],
    path: Path,
    environment: Mapping[str, str] | None = None,
) -> Results:
    """Return what a function of a module of `scenarios/` returns, from a new process."""
    module, _, function = name.partition(".")
    ended = run_python(
        [HERE / "scenarios" / "run.py", module, function, json.dumps(arguments), path],
        environment,
    )
    if ended.returncode:
        pytest.fail(f"{name} ended with status {ended.returncode}:\n{last_lines(ended)}")
    with np.load(path) as stored:
        return {each: value[()] for each, value in stored.items()}


def run_python(
    arguments: list[Any], environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run this Python in the root of the checkout, within the limit."""
    variables = {**os.environ, "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true", **(environment or {})}
    try:
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired as expired:
        output = expired.stderr or b""
        text = output if isinstance(output, str) else output.decode(errors="replace")
        pytest.fail(f"not ended after {LIMIT:g} s:\n" + "\n".join(text.splitlines()[-LAST_LINES:]))


def last_lines(ended: "subprocess.CompletedProcess[str]") -> str:
    """Return the end of what a process wrote to its standard error."""
    return "\n".join(ended.stderr.splitlines()[-LAST_LINES:])
