"""State that every test starts from: no devices configured, fixed seeds, fresh names."""

from collections.abc import Callable, Iterator

import pytest

import mirrored as mr
from mirrored import devices, layers, ops


@pytest.fixture(autouse=True)
def clean_state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget devices, seeds, names and settings before and after each test."""
    for name in ("CUDA_VISIBLE_DEVICES", "MIRRORED_SIMULATED_GPUS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", "MIRRORED_FORCE_GPU_ALLOW_GROWTH"):
        monkeypatch.delenv(name, raising=False)
    _reset()
    yield
    _reset()


def _reset() -> None:
    devices.reset()
    layers.reset_names()
    ops.set_floatx("float32")
    ops.set_seed(20)


@pytest.fixture
def simulate() -> Callable[..., list[mr.config.LogicalDevice]]:
    """Return ``simulate(count, memory_limit=None)``: that many simulated GPUs, initialised."""

    def make(count: int, memory_limit: float | None = None) -> list[mr.config.LogicalDevice]:
        mr.config.experimental.set_simulated_gpus(count, memory_limit=memory_limit)
        return mr.config.list_logical_devices("GPU")

    return make
