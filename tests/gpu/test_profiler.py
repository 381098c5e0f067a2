"""A trace of steps on the GPU can be read, names the device's work, and changes no result."""

import json
from typing import Any

import pytest


@pytest.mark.parametrize("gpus", [1, 2])
def test_trace(gpus: int, scenario: Any) -> None:
    found = scenario("training.trace", gpus=gpus)
    events = json.loads(str(found["trace"]))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert slices
    assert all(event["dur"] >= 0 for event in slices)
    rows = [str(event["args"].get("name")) for event in events if event["ph"] == "M"]
    for index in range(gpus):
        assert any(f"GPU:{index}" in row for row in rows), rows
    assert "Compute" in str(found["summary"])
    case = {"sizes": (16, 32, 4), "batch": 32, "examples": 128, "epochs": 2}
    plain = scenario("training.train", cases=[case], gpus=gpus, megabytes=512)
    for name, value in plain.items():
        assert value.tobytes() == found[name.partition("/")[2]].tobytes(), name
