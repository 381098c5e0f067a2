"""Programs of TensorFlow 1: placed on the card, computed there, within their part of its memory."""

from typing import Any

FULL = "/job:localhost/replica:0/task:0/device:"


def test_a_program(scenario: Any, stand_in: str) -> None:
    found = scenario("sessions.program")
    log = found["log"].tolist()
    card = "simulated" if stand_in == "simulated" else "name: "
    assert any(line.startswith(f"{FULL}GPU:0 -> device: 0, {card}") for line in log)
    assert f"MatMul: (MatMul): {FULL}GPU:0" in log
    assert f"PyFunc: (PyFunc): {FULL}CPU:0" in log
    # The product of 300 rows of uniform numbers: a quarter of 300 cubed, and a little more.
    assert 0.24 < found["total"] / 300**3 < 0.26
    assert found["rounded"].tolist() == [5.0, 8.0]
    assert found["after"] == 2.0
    assert found["fraction"] == 0.01
    assert f"{FULL}GPU:0" in str(found["error"])
    assert f"({int(found['limit'])} bytes)" in str(found["error"])
    assert "no supported kernel for GPU devices is available" in str(found["refused"])
