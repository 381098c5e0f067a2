"""A streamed step with a clock around each kernel, for while somebody measures.

The host waits for each, so that a clock shows the kernel's own time and its launch, and no more.
"""

from collections.abc import Sequence
from itertools import groupby
from time import perf_counter_ns

from mirrored.devices import Device
from mirrored.devices.timing import ALL_REPLICAS, Observer, Work, kernel_work, short_name
from mirrored.program.calls import Call
from mirrored.program.graph import JOINT, Node
from mirrored.program.streamed.steps import AllReduce, BoundLaunch, Steps


def run_observed(steps: Steps, device: Device, observer: Observer) -> None:
    """Run a step kernel by kernel, and tell of each how long it took.

    Args:
        steps: The step.
        device: A device of the program, for what belongs to no node.
        observer: Who measures.
    """
    for launches in steps.stages:
        for launch in launches:
            if launch.all_reduce is not None:
                _sum(steps, launch.all_reduce, observer)
            for _, calls in groupby(launch.calls, key=lambda call: id(call.node)):
                _run(launch, list(calls), device, observer)


def _run(launch: BoundLaunch, calls: Sequence[Call], device: Device, observer: Observer) -> None:
    launch.backend.synchronize()
    start = perf_counter_ns()
    for call in calls:
        if launch.between:
            call.run()
        else:
            launch.backend.run(call.run)
    launch.backend.synchronize()
    node = calls[0].node
    lane = None if node is None else node.lane
    replica = ALL_REPLICAS if lane == JOINT else lane
    observer.add(_work_of(node, device), replica, start, perf_counter_ns())


def _sum(steps: Steps, all_reduce: AllReduce, observer: Observer) -> None:
    for backend in steps.backends:
        backend.synchronize()
    start = perf_counter_ns()
    for stream, event in all_reduce.start():
        stream.wait_on_host(event)
    end = perf_counter_ns()
    for node in all_reduce.collective.nodes:
        nbytes = node.output.nbytes
        device = short_name(node.device)
        work = Work("AllReduce", "collective", node.op.name, device, nbytes, nbytes)
        observer.add(work, ALL_REPLICAS, start, end)


def _work_of(node: Node | None, device: Device) -> Work:
    if node is None:
        return Work("CheckNumerics", "compute", "CheckNumerics", short_name(device))
    nbytes = sum(value.nbytes for value in node.inputs)
    sources = [value.device for value in node.inputs]
    return kernel_work(node.op.name, sources, node.device, nbytes, node.output.nbytes)
