"""The card as a device: listed without being touched, named in errors, hidden, described."""

from typing import Any

import pytest
import stand_ins


def test_listing_and_configuring_touch_nothing(scenario: Any) -> None:
    found = scenario("devices.listed")
    assert found["names"][0] == "/physical_device:GPU:0"
    assert list(found["logical"][:2]) == ["/device:GPU:0", "/device:GPU:1"]
    assert not found["context"]
    assert not found["cupy"]


@pytest.mark.cuda
def test_details(scenario: Any) -> None:
    found = scenario("devices.listed")
    major, _ = found["capability"]
    assert major >= 7
    assert "simulated" not in str(found["name"])


@pytest.mark.cuda
def test_a_thread_that_is_new_to_cuda_asks_the_card(scenario: Any) -> None:
    assert scenario("devices.asked_by_a_thread")["told"].tolist() == [True]


@pytest.mark.cuda
def test_a_card_that_nobody_uses_gets_no_context(scenario: Any, cards: int) -> None:
    if cards < 2:
        pytest.skip("needs several cards")
    found = scenario("devices.alone", {stand_ins.CARDS: str(cards)})
    assert found["answers"].tolist() == [1000.0] * 4
    assert not found["context"]


def test_a_child_that_is_forked_after_listing_computes(scenario: Any) -> None:
    found = scenario("devices.forked")
    assert found["cards"] >= 1
    assert found["status"] == 0
    assert str(found["answer"]).startswith("1000.0 ")
    assert str(found["answer"]).endswith("GPU:0")


def test_hidden_cards(scenario: Any) -> None:
    found = scenario("devices.hidden", {"CUDA_VISIBLE_DEVICES": ""})
    assert found["gpus"] == 0
    assert str(found["device"]).endswith("CPU:0")
    assert str(scenario("devices.hidden")["device"]).endswith("GPU:0")


def test_devices_that_do_not_exist(scenario: Any) -> None:
    found = scenario("devices.misnamed")
    assert found.keys() == {"device", "strategy", "twice", "memory", "late", "total"}
    assert "GPU:7 unknown device" in str(found["device"])
    for name in ("strategy", "memory"):
        assert "GPU:7" in str(found[name])
    assert "duplicates" in str(found["twice"])
    assert "cannot be modified after being initialized" in str(found["late"])
    assert found["total"] == 7.0


def test_the_command_that_lists_devices(python: Any, stand_in: str) -> None:
    environment = {"MIRRORED_SIMULATED_GPUS": "1"} if stand_in else {}
    ended = python(["-m", "mirrored", "devices"], environment)
    assert ended.returncode == 0, ended.stderr
    assert "  GPU:0  " in ended.stdout
    if not stand_in:
        for part in ("driver", "CuPy", "cuBLAS"):
            assert part in ended.stdout
