"""What the tests of collectives share: values that lie on several devices, and lines of the log."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import mirrored as mr
from mirrored import ops
from mirrored.backends import selftest
from mirrored.backends.cuda import nccl_settings
from mirrored.distribute.cross_device_ops import connections

_PASSED = selftest.Outcome(0, json.dumps({"found": []}), "", 0.1)


def _spread(values: Sequence[Any], kind: str = "GPU") -> list[ops.Tensor]:
    tensors = []
    for i, value in enumerate(values):
        with mr.device(f"{kind}:{i}"):
            tensors.append(mr.constant(value))
    return tensors


@pytest.fixture
def spread() -> Callable[..., list[ops.Tensor]]:
    """Return ``spread(values, kind="GPU")``: tensors, each on the device of its number."""
    return _spread


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    """Return ``lines(start, level)``: the log's lines up to a level, without warnings."""
    caplog.set_level("DEBUG", "mirrored")

    def find(start: str, level: str = "DEBUG") -> list[str]:
        levels = {"INFO"} if level == "INFO" else {"INFO", "DEBUG"}
        records = [each for each in caplog.records if each.levelname in levels]
        return [each.getMessage() for each in records if each.getMessage().startswith(start)]

    return find


@pytest.fixture
def cards(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Any]]:
    """Return ``cards(*split, seed=0)``: emulated cards, each as so many logical GPUs.

    The self-test, whose process has no such cards, passes. At the end the cards are disconnected.
    """
    monkeypatch.setattr(selftest, "run_child", lambda *_: _PASSED)
    selftest.forget()
    # As in a process in which NCCL was not used yet. What is set for it is taken back.
    monkeypatch.setattr(nccl_settings, "_read", None)
    for name in nccl_settings.SETTINGS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def install(*split: int, seed: int = 0) -> Any:
        emulator = emulated_cuda(cards=len(split), seed=seed)
        monkeypatch.delenv(connections.SELFTEST, raising=False)
        for card, parts in zip(mr.config.list_physical_devices("GPU"), split, strict=True):
            mr.config.set_logical_device_configuration(
                card, [mr.config.LogicalDeviceConfiguration(memory_limit=256)] * parts
            )
        return emulator

    yield install
    for by_ranks in connections._known.values():
        for each in by_ranks.values():
            each.close()
    selftest.forget()
