"""The picture of a step's memory, by device.

The memory plan of a recorded step says exactly which values exist while each kernel runs.
"""

import gc
from collections.abc import Iterator
from typing import NamedTuple

from mirrored._arguments import explained
from mirrored._types import Figure
from mirrored.devices import Device
from mirrored.devices.logical_device import in_order
from mirrored.distribute.variable_memory import bytes_by_device
from mirrored.program import Trace
from mirrored.program.dataflow import SHARED, Graph, Node, Value
from mirrored.program.memory_planner import Block, MemoryPlan
from mirrored.training.model import Model

_FIXED = ("weights", "optimizer", "other arrays")  # They are there before the step and after it.
_KINDS = (*_FIXED, "gradients", "intermediate values", "batch")


class DeviceMemory(NamedTuple):
    """What is in the memory of a device while each kernel of a step runs.

    Attributes:
        ops: The names of the device's kernels, in order.
        kinds: The bytes at each kernel, by kind of content.
        at_peak: The number of the kernel with most bytes.
        largest: The largest values of the step at that time, each with its bytes.
        reserved: The bytes with what the step allocates, at least as many as its values have.
        limit: The device's limit; None: it has none.
    """

    ops: list[str]
    kinds: dict[str, list[int]]
    at_peak: int
    largest: list[tuple[str, int]]
    reserved: int
    limit: int | None


@explained
def plot_memory(model: Model) -> "Figure":
    """Return a figure of the memory that a step of `fit` takes, by device.

    There is one plot per device; devices with the same contents share one. It shows what is in
    memory while each kernel of the step runs, the limit of the device, and at the right how many
    bytes of what there are at the peak. Of several recorded steps the one that takes most memory is
    shown. The plan of the step says what is where, so the figure needs no other run.

    Args:
        model: A model that was trained by `fit`, with recorded steps.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: No step of the model was recorded.

    Example:
        >>> import mirrored as mr
        >>> mr.config.experimental.set_simulated_gpus(2, memory_limit=16)
        >>> with mr.MirroredStrategy().scope():
        ...     model = mr.Sequential([mr.layers.Dense(512, "relu"), mr.layers.Dense(1)])
        ...     model.compile("adam", "mse")
        >>> history = model.fit(mr.ones((64, 256)), mr.ones((64, 1)), verbose=0)
        >>> figure = mr.profiler.plot_memory(model)
        >>> [axes.get_title("left") for axes in figure.axes]
        ['GPU:0: 2.5 of 16.0 MB', 'GPU:1: 2.1 of 16.0 MB']
    """
    from mirrored.profiling.figures import draw_memory

    gc.collect()  # As devices do before they are out of memory: cycles of deleted models take none.
    steps = [memory_by_device(model, trace) for trace in model.__state__.traces]
    if not any(steps):
        raise ValueError(
            f"No step of the model {model.name!r} was recorded, so there is no memory plan to "
            "show. Call `fit` first, without `run_eagerly`."
        )
    memory = max(steps, key=lambda step: sum(content.reserved for content in step.values()))
    return draw_memory({device.short_name: content for device, content in memory.items()})


def memory_by_device(model: Model, trace: Trace) -> dict[Device, DeviceMemory]:
    """Return what is in the memory of each device during a recorded step.

    Args:
        model: The model, whose variables are there too.
        trace: The step; one that never ran has no plan.
    """
    planned = trace.memory_plan()
    if planned is None:
        return {}
    graph, schedule, plan = planned
    nodes = list(schedule.nodes())
    weights = bytes_by_device(model.variables)
    slots = bytes_by_device(getattr(model.optimizer, "variables", ()))
    blocks = _blocks(plan, graph)
    memory = {}
    for device in in_order({block.device for block, _, _ in blocks}):
        own = [(block, kind, name) for block, kind, name in blocks if block.device is device]
        places = [i for i, node in enumerate(nodes) if node.device is device]
        kinds = {kind: [0] * len(places) for kind in _KINDS}
        others = device.pool.current - weights[device] - slots[device]
        for kind, nbytes in zip(_FIXED, (weights[device], slots[device], others), strict=True):
            kinds[kind] = [max(nbytes, 0)] * len(places)
        for block, kind, _ in own:
            for i, place in enumerate(places):
                if block.start <= place <= block.end:
                    kinds[kind][i] += block.nbytes
        totals = [sum(column) for column in zip(*kinds.values(), strict=True)]
        at_peak = max(range(len(places)), key=totals.__getitem__, default=0)
        alive = [
            (name, block.nbytes)
            for block, _, name in own
            if places and block.start <= places[at_peak] <= block.end
        ]
        sizes = [size for (owner, _), size in plan.arenas.items() if owner is device]
        memory[device] = DeviceMemory(
            [nodes[place].op.name for place in places],
            kinds,
            at_peak,
            sorted(alive, key=lambda item: -item[1])[:3],
            device.pool.current + sum(sizes) + len(sizes) * plan.alignment,
            device.pool.limit,
        )
    return memory


def _gradients(graph: Graph) -> Iterator[Value]:
    """Yield what the update of the variables reads of each replica's results."""
    for node in graph.nodes:
        if node.updates or (node.replica == SHARED and len(node.inputs) > 1):
            for value in node.inputs:
                maker = value.base.node
                if maker is not None and not maker.updates and value.size > 1:
                    yield value.base


def _blocks(plan: MemoryPlan, graph: Graph) -> list[tuple[Block, str, str]]:
    """Return the pieces of memory, each with the kind and the name of its largest value."""
    gradients = set(_gradients(graph))
    content: dict[int, tuple[Block, str, str]] = {}
    for value, block in sorted(plan.blocks.items(), key=lambda item: item[0].nbytes):
        root = block.root
        if root.storage is None:
            kind = "intermediate values"
            if value in gradients or content.get(id(root), (0, ""))[1] == "gradients":
                kind = "gradients"
            elif value in graph.inputs:
                kind = "batch"
            name = _op_name(value.node) if kind == "intermediate values" else kind
            content[id(root)] = root, kind, f"{name} {value.spec.shape}"
    for node, pairs in plan.scratch.items():
        for _, block in pairs:
            content[id(block)] = block, "intermediate values", f"workspace of {node.op.name}"
    for (_, value), block in plan.registers.items():
        content[id(block)] = block, "intermediate values", f"{_op_name(value.node)} in pieces"
    return list(content.values())


def _op_name(node: Node | None) -> str:
    return "constant" if node is None else node.op.name
