"""The process that measures one kind of all-reduces, and the steps of small networks with them.

It prints a line of JSON for each finding as soon as it is known, so that a hang costs the rest.
"""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import mirrored as mr
from benchmarks.gpu.contenders.mirrored_ import Resident
from benchmarks.gpu.workloads import WORKLOADS
from mirrored import devices, distribute
from mirrored.distribute import bandwidth

MEGABYTES = 2048  # Of a virtual GPU.
WARM_STEPS, STEPS = 5, 200


def say(**facts: Any) -> None:
    """Print what was found."""
    print(json.dumps(facts), flush=True)


def place(parts: Sequence[int], simulated: bool) -> list[str]:
    """Make so many virtual GPUs of each card, and return their names."""
    if simulated:
        mr.config.experimental.set_simulated_gpus(sum(parts))
    else:
        part = mr.config.LogicalDeviceConfiguration(memory_limit=MEGABYTES)
        for card, count in zip(mr.config.list_physical_devices("GPU"), parts, strict=False):
            if count > 1:
                mr.config.set_logical_device_configuration(card, [part] * count)
    return [f"GPU:{number}" for number in range(sum(parts))]


def microseconds(workload: str, names: list[str], collective: Any) -> float:
    """Return what a step of a workload takes, its batch split over devices."""
    session = Resident(WORKLOADS[workload], "float32", names, collective)
    session.run(WARM_STEPS)
    started = time.perf_counter()
    session.run(STEPS)
    return (time.perf_counter() - started) * 1e6 / STEPS


def main(asked: dict[str, Any]) -> None:
    """Measure what is asked for.

    Args:
        asked: The name of the collectives, the replicas of each card, the sizes in bytes, the
            workloads whose steps are timed, and whether GPUs are simulated.
    """
    names = place(asked["parts"], asked["simulated"])
    summing = [devices.get_device(name) for name in names]
    collective = getattr(distribute, asked["collective"])()
    why = bandwidth.why_no_nccl(summing) if asked["collective"] == "NcclAllReduce" else None
    if why is not None:
        say(problem=why)
        return
    rows = 0
    for row in bandwidth.measure(summing, collective, asked["sizes"]):
        say(row=dataclasses.asdict(row))
        rows += 1
    if rows < len(asked["sizes"]):
        say(problem=f"a device has too little memory for {asked['sizes'][rows]} bytes")
    for workload in asked["steps"]:
        say(step={workload: microseconds(workload, names, collective)})


if __name__ == "__main__":
    try:
        main(json.loads(sys.argv[1]))
    except Exception as error:
        text = str(error).partition("\n")[0]
        say(problem=f"{type(error).__name__}: {text}")
        os._exit(1)  # What has failed may keep an ordinary end waiting.
