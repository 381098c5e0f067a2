"""State that every test starts from: no devices configured, fixed seeds, fresh names."""

import faulthandler
import functools
import gc
import itertools
import logging
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

# BLAS's threads wait for each other longer than the small products of tests take. Tests of their
# number set it themselves.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
# Few tests compile ops for the host. With MIRRORED_TEST_COMPILED all do, whatever their size.
os.environ["MIRRORED_CC"] = "cc" if "MIRRORED_TEST_COMPILED" in os.environ else ""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

import mirrored as mr
from mirrored import devices, layers, ops
from mirrored._threads import join_all
from mirrored.backends import host_compiling
from mirrored.backends.communication import connection
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.communication.in_flight import RESERVE
from mirrored.backends.cuda import nccl_settings, nvml
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, Program, ThreadPool, compiled_groups

_done = itertools.count(1)
# Kernels of ops that few tests use, and large ones of a dtype that few use.
_SELDOM = re.compile(
    "(prod|min|argmin|matrices) |(sparse )?cross-entropy of float64|max.* of float64"
)
_SETTINGS = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "MIRRORED_SIMULATED_GPUS",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "MIRRORED_FORCE_GPU_ALLOW_GROWTH",
        *nccl_settings.SETTINGS,
        MULTI_RANK,
    }
)
_FREEZE_EVERY = 3  # Tests with emulated cards collect garbage twice each.


def _compile_now() -> None:
    host_compiling.compile_in_background()
    assert not join_all(host_compiling._state.threads, 60.0)


def _compile_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compiled_groups, "COMPILED_FROM", 1)
    patch.setattr(compiled_groups.CompiledGroups, "compile", lambda _: _compile_now())


if os.environ["MIRRORED_CC"]:
    _compile_all(pytest.MonkeyPatch())

# A test that fails shows where in the library it did.
mr.debugging.disable_traceback_filtering()

# Tests look which threads are left, and those that are parked stay until the process ends.
RESERVE.needed = False

# Where each test looks for cards there is no driver, which the linker need not be asked for.
_NO_DRIVER = "/no-driver.so"
_can_load = nvml._can_load
nvml._can_load = lambda name: name != _NO_DRIVER and _can_load(name)


def pytest_configure() -> None:
    """Log what users see who configure nothing, which pytest's own handlers else say it is not."""
    logging.getLogger().setLevel(logging.INFO)
    # A shell's command in the background ignores Ctrl-C, and tests would wait for theirs for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # Nearly all that is made while tests are collected stays.
    with suppress(ModuleNotFoundError):  # The check of a GPU does without it.
        from hypothesis import settings

        # Searches by chance look at the same examples in each run, and take any time.
        settings.register_profile("seeded", derandomize=True, deadline=None, max_examples=25)
        settings.load_profile("seeded")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("forks") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep all that is loaded by now out of garbage collections, of which the tests make many."""
    _reset()  # The first test starts as all others do.
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000)  # More often than every few tests they find little.
    # Else the conftest.py of a test's folder are looked for at each of its 25 hooks.
    session.gethookproxy = functools.cache(session.gethookproxy)  # type: ignore[method-assign]


def pytest_runtest_logfinish() -> None:
    """Keep pytest's reports out too, and out of what devices look through when they end."""
    if next(_done) % _FREEZE_EVERY == 0:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def clean_state() -> Iterator[None]:
    """Forget devices, seeds, names and settings after each test, for the next one."""
    yield from _clean()


@pytest.fixture(scope="module")
def clean_module() -> Iterator[None]:
    """Do so after a file instead, whose own `clean_state` lets devices stay."""
    yield from _clean()


def _clean() -> Iterator[None]:
    of_the_run, driver = _take_settings(), nvml.DRIVER
    # Real cards, where there are any, are for `tests/gpu`.
    nvml.DRIVER = _NO_DRIVER
    nccl_settings._read = None
    yield
    _reset()
    nvml.DRIVER = driver
    nccl_settings._read = None
    _take_settings()
    os.environ.update(of_the_run)


def _take_settings() -> dict[str, str]:
    """Take the settings out of the environment that tests make, and return what they were."""
    return {name: os.environ.pop(name) for name in _SETTINGS if name in os.environ}


def _reset() -> None:
    devices.reset_devices()
    _reset_names()


def _reset_names() -> None:
    layers.reset_names()
    ops.set_floatx("float32")
    ops.set_image_data_format("channels_last")
    ops.set_seed(20)


@pytest.fixture
def reset() -> Callable[[], None]:
    """Return what forgets devices, seeds and names in the middle of a test."""
    return _reset


@pytest.fixture
def clean_names() -> None:
    """Forget names and seeds alone, where devices stay as they are from test to test."""
    _reset_names()


@pytest.fixture
def simulate() -> Callable[..., list[mr.config.LogicalDevice]]:
    """Return ``simulate(count, memory_limit=None)``: that many simulated GPUs, initialised."""

    def make(count: int, memory_limit: float | None = None) -> list[mr.config.LogicalDevice]:
        mr.config.experimental.set_simulated_gpus(count, memory_limit=memory_limit)
        return mr.config.list_logical_devices("GPU")

    return make


@pytest.fixture
def at_tanh(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Return ``at_tanh(call, act)``: at that call of the hyperbolic tangent, counted from now on.

    Programs that are made later make the call whenever they are replayed, on whichever thread.
    """
    tanh, numbers, acts = np.tanh, itertools.count(), {}

    def counting(x: np.ndarray, out: np.ndarray) -> None:
        tanh(x, out)
        acts.get(next(numbers), lambda: None)()

    def arm(call: int, act: Callable[[], None]) -> None:
        acts[call] = act
        monkeypatch.setattr(np, "tanh", counting)

    return arm


@pytest.fixture
def python_interrupts() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also in a run that `&` or `nohup` started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use one thread: their number changes bits, and eager calls use all."""
    with _thread_pools().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _thread_pools() -> ThreadpoolController:
    """Return what sets the threads of BLAS, which is looked for once."""
    return ThreadpoolController()


@pytest.fixture
def no_deadlock() -> Iterator[None]:
    """End the whole run, with every thread's stack, where a test hangs."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


class Recorded:
    """A function of tensors as a program of its own.

    Args:
        function: From tensors to tensors, in a list.
        like: Arrays of the shapes and dtypes of the arguments.
        replicas: The replica that each argument belongs to; None: the first one.
        threads: How many threads run it.
    """

    def __init__(
        self,
        function: Callable[..., Sequence[ops.Tensor]],
        like: Sequence[np.ndarray],
        replicas: Sequence[int] | None = None,
        threads: int = 1,
    ) -> None:
        recorder, device = GraphRecorder(), devices.get_device("CPU:0")
        inputs = [
            recorder.input(ops.TensorSpec(array.shape, array.dtype), device, replica)
            for array, replica in zip(like, replicas or [0] * len(like), strict=True)
        ]
        with recorded_by(recorder):
            outputs = function(*inputs)
        self.graph = recorder.finish(outputs)
        self.program = Program(self.graph, threads)
        self.pool = ThreadPool(threads)

    def __call__(self, *arrays: np.ndarray, steps: int = 1) -> list[np.ndarray]:
        """Run it and return what it computed."""
        for target, array in zip(self.program.inputs, arrays, strict=True):
            target[...] = array
        self.program.run(steps, pool=self.pool)
        return [output.copy() for output in self.program.outputs]


@pytest.fixture
def record() -> Iterator[Callable[..., Recorded]]:
    """Return what records functions; see `Recorded`."""
    made: list[Recorded] = []

    def record(*args: Any, **options: Any) -> Recorded:
        made.append(Recorded(*args, **options))
        return made[-1]

    yield record
    for each in made:
        each.pool.close()


def _bits(arrays: Sequence[Any]) -> list[Any]:
    """Return all that can differ between arrays, in a form that shows in a failure."""
    return [
        (each.shape, each.dtype, _canonical(each).tobytes()) for each in map(np.asarray, arrays)
    ]


def _canonical(array: np.ndarray) -> np.ndarray:
    """Give all NaN one sign: that of a result hangs on which operand a processor looks at first."""
    if array.dtype.kind != "f":
        return array
    return np.where(np.isnan(array), array.dtype.type(np.nan), array)


@pytest.fixture
def bits() -> Callable[[Sequence[Any]], list[Any]]:
    """Return ``bits(arrays)``: shapes, dtypes and bytes, the signs of zeros included."""
    return _bits


@pytest.fixture(scope="session")
def compiled_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of what tests compile for the host, each text once per run."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture
def compiled(
    monkeypatch: pytest.MonkeyPatch, compiled_before: Path
) -> dict[str, host_compiling.HostKernel]:
    """Let ops of any size be compiled for the host before they run; return what is, by its text."""
    if which("cc") is None:
        pytest.skip("There is no C compiler.")
    monkeypatch.delenv("MIRRORED_CC", raising=False)
    monkeypatch.setenv("MIRRORED_KERNEL_CACHE", str(compiled_before))
    monkeypatch.setattr(host_compiling, "_state", host_compiling._State())
    _compile_all(monkeypatch)
    return host_compiling._state.kernels


@functools.cache
def _ask_for_all_kernels() -> None:
    """Have kernels compiled in one go with the first that runs, and keep them and CuPy."""
    from emulated_cuda import asked_for
    from kernel_sources import all_sources

    from mirrored.backends.cuda.compiling import OPTIONS

    for each in all_sources():
        if _SELDOM.match(each.name) is None:
            asked_for(each.code, OPTIONS)
    gc.collect()
    gc.freeze()


@pytest.fixture
def emulated_cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return ``emulated_cuda(*, cards=1, memory=1 << 30, seed=0, growth=True)``: CUDA, installed.

    It stands in the place of CuPy, NVML, cuBLAS, cuSOLVER and NCCL. ``cards`` is how many cards of
    ``memory`` bytes there are, or a list of the emulator's own; ``seed`` says in which order work
    runs. With ``growth`` memory is taken as it is used, which is quicker than all at once; without,
    as the configuration says. At the end all work has to have run well, and inside its arrays, and
    all communicators have to have ended.
    """
    pytest.importorskip("cupy")
    if which("g++") is None:
        pytest.skip("No g++ is here to compile kernels for the emulated cards.")
    import emulated_cuda

    from mirrored.backends.cuda import blas, graphs, nccl, solver, toolkit

    _ask_for_all_kernels()
    made = []

    def install(
        *, cards: Any = 1, memory: int = 1 << 30, seed: int = 0, growth: bool = True
    ) -> Any:
        if isinstance(cards, int):
            cards = emulated_cuda.cards(cards, memory)
        emulator = emulated_cuda.Emulator(cards, seed)
        made.append(emulator)
        if growth:
            monkeypatch.setenv("MIRRORED_FORCE_GPU_ALLOW_GROWTH", "true")
        monkeypatch.setattr(toolkit, "toolkit", lambda: emulator.cupy)
        monkeypatch.setattr(nvml, "load", lambda: emulator.nvml)
        monkeypatch.setattr(blas, "load", lambda: emulator.cublas)
        monkeypatch.setattr(solver, "load", lambda: emulator.cusolver)
        monkeypatch.setattr(graphs, "load_driver", lambda: emulator.driver)
        monkeypatch.setattr(nccl, "load", lambda: emulator.nccl)
        monkeypatch.setenv("MIRRORED_NCCL_SELFTEST", "0")  # Its process has no such cards.
        monkeypatch.setenv("MIRRORED_KERNEL_CACHE", "")  # A real card could not use its kernels.
        _reset()  # Devices are looked for anew.
        return emulator

    yield install
    connection.close_all()
    _reset()
    if any("nccl" in vars(emulator) or emulator.counts["graphs"] for emulator in made):
        # Recorded programs with sums are told when any sum fails, of later cards too; graphs that
        # go ask the driver, which has to be that of their own cards.
        gc.collect()
    for emulator in made:
        emulator.finish()


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return what functions of `worker_programs` return on two workers, by name: one launch."""
    from worker_tasks import run_tasks

    return run_tasks(tmp_path_factory.mktemp("workers"))


@pytest.fixture(scope="session")
def three_workers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return the same of three workers on two hosts, for slow tests."""
    from worker_tasks import run_tasks_of_three

    return run_tasks_of_three(tmp_path_factory.mktemp("workers"))
