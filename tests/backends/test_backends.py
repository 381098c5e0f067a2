"""What is found on a machine, without using any of it."""

import os

import pytest

from mirrored import backends


def test_without_simulation_there_is_only_the_cpu() -> None:
    assert [found.device_type for found in backends.probe()] == ["CPU"]


def test_simulated_gpus_come_after_the_cpu_and_say_so() -> None:
    cpu, *gpus = backends.probe(simulated_gpus=3, memory_limit=1 << 20)
    assert (cpu.device_type, cpu.simulated, cpu.memory, dict(cpu.details)) == (
        "CPU",
        False,
        None,
        {},
    )
    assert [gpu.ordinal for gpu in gpus] == [0, 1, 2]
    for gpu in gpus:
        assert gpu.device_type == "GPU"
        assert gpu.simulated
        assert gpu.memory == 1 << 20
        assert gpu.name == "simulated GPU (host memory)"
        assert gpu.details == {"device_name": "simulated GPU (host memory)", "simulated": True}


def test_cuda_visible_devices_selects_among_simulated_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,0")
    assert [found.ordinal for found in backends.probe(simulated_gpus=4)[1:]] == [2, 0]


def test_host_memory_is_plausible() -> None:
    memory = backends.host_memory()
    assert memory is not None
    assert memory > 64 << 20


def test_host_memory_where_the_host_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", refuse)
    assert backends.host_memory() is None
