"""What a recorded step is made of, in lines that are the same on all workers of one program."""

import platform
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirrored.ops.spec import TensorSpec
from mirrored.program import Trace
from mirrored.program.graph import Node
from mirrored.training.model_steps import SteppedNetwork
from mirrored.training.own_steps import optimizers_of
from mirrored.version import VERSION

_PLAIN = (bool, int, float, str, type(None))


def facts_of(
    model: SteppedNetwork, trace: Trace, size: int, specs: tuple[TensorSpec, ...], rows: int
) -> dict[str, list[str]]:
    """Return what the step of a worker is made of.

    Args:
        model: The model.
        trace: The recorded step.
        size: How many examples the global batch has.
        specs: The shapes and dtypes of an example's arrays.
        rows: How many examples the worker's first replica has. Workers are compared in their
            operations where they have as many.
    """
    nodes = [node for node in trace.graph.nodes if not node.op.random]
    return {
        "versions": [f"mirrored {VERSION}, NumPy {np.__version__}, {platform.python_version()}"],
        "batches": [f"{size} examples", *(f"{each.dtype.name} {each.shape}" for each in specs)],
        "variables": [
            f"{each.name} {tuple(each.shape)} {each.dtype.name} trainable={each.trainable}"
            for each in model.variables
        ],
        "settings of optimizers": list(_settings(model)),
        "sums": [str(node.output.spec) for node in nodes if node.op.ordered],
        f"operations on {rows} examples": list(_first_operations(nodes)),
    }


def _settings(model: SteppedNetwork) -> Iterator[str]:
    for optimizer in optimizers_of(model):
        for each in optimizer.within:
            settings = {k: v for k, v in vars(each).items() if isinstance(v, _PLAIN)}
            yield f"{type(each).__name__} {sorted(settings.items(), key=repr)}"


def _first_operations(nodes: list[Node]) -> Iterator[str]:
    """Yield what the first replica computes before values are joined.

    What they are joined with, and what is done then, hangs on which replicas are beside it.
    """
    for node in nodes:
        if node.op.ordered or node.op.name == "ConcatV2":
            return
        if node.replica == 0:
            attrs = {name: value for name, value in node.attrs.items() if _is_plain(value)}
            yield f"{node.op.name} {node.output.spec} {sorted(attrs.items())}"


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(map(_is_plain, value)))
