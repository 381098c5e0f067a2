"""What is found on a machine, without using any of it."""

import os

import pytest

from mirrored import backends
from mirrored.backends.cuda import nvml

CARDS = [
    nvml.Card(0, "NVIDIA H200", "GPU-beef", "0000:3b:00.0", (9, 0), 150 << 30),
    nvml.Card(1, "Tesla T4", "GPU-bead", "0000:af:00.0", (7, 5), None),
]


@pytest.fixture(autouse=True)
def cards(monkeypatch: pytest.MonkeyPatch) -> list[nvml.Card]:
    """The cards of the machine, none until a test adds some."""
    found: list[nvml.Card] = []
    monkeypatch.setattr(nvml, "survey", lambda: nvml.Survey(cards=tuple(found)))
    return found


def test_without_simulation_and_cards_there_is_only_the_cpu() -> None:
    assert [found.device_type for found in backends.probe()] == ["CPU"]


@pytest.mark.behaviour("device-details")
def test_real_gpus_come_after_the_cpu(cards: list[nvml.Card]) -> None:
    cards += CARDS
    cpu, first, second = backends.probe()
    assert cpu.device_type == "CPU"
    assert [(gpu.device_type, gpu.ordinal, gpu.simulated) for gpu in (first, second)] == [
        ("GPU", 0, False),
        ("GPU", 1, False),
    ]
    assert (first.name, first.memory) == ("NVIDIA H200", 150 << 30)
    assert (second.name, second.memory) == ("Tesla T4", None)
    assert first.details == {
        "device_name": "NVIDIA H200",
        "compute_capability": (9, 0),
        "pci_bus_id": "0000:3b:00.0",
        "uuid": "GPU-beef",
    }


def test_each_logical_device_of_a_card_has_a_backend_of_its_own(cards: list[nvml.Card]) -> None:
    cards += CARDS
    gpu = backends.probe()[1]
    first, second = gpu.open_backend(None), gpu.open_backend(None)
    assert first is not second
    assert first.memory == second.memory
    assert not first.host_readable


@pytest.mark.parametrize(
    ("setting", "names"),
    [("1", ["Tesla T4"]), ("GPU-bead,GPU-bee", ["Tesla T4", "NVIDIA H200"]), ("-1", [])],
)
def test_cuda_visible_devices_selects_among_real_gpus(
    monkeypatch: pytest.MonkeyPatch, cards: list[nvml.Card], setting: str, names: list[str]
) -> None:
    cards += CARDS
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert [found.name for found in backends.probe()[1:]] == names


def test_simulated_gpus_replace_real_ones(cards: list[nvml.Card]) -> None:
    cards += CARDS
    (gpu,) = backends.probe(simulated_gpus=1)[1:]
    assert gpu.simulated


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
