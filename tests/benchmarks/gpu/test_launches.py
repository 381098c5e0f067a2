"""The table of launches in docs/gpu.md: what a recorded step asks an emulated card for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu.contenders.mirrored_ import Resident
from benchmarks.gpu.workloads import WORKLOADS
from mirrored.layers import policy

PAGE = Path(__file__).parents[3] / "docs" / "gpu.md"


def in_table(workload: str, precision: str) -> tuple[int, int]:
    """Return how many products and how many other kernels the page says that a step has."""
    row = re.search(
        rf"^\|.*`{workload}`.*?\| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE
    )
    assert row is not None
    products, others, narrow = map(int, row.groups())
    return products, narrow if precision == "bfloat16" else others


@pytest.mark.parametrize(
    ("workload", "precision"),
    [
        *(("digits", "float32"), ("digits", "bfloat16")),
        pytest.param("mnist", "float32", marks=pytest.mark.slow),
    ],
)
def test_a_step_is_one_graph_of_so_many_kernels(
    workload: str,
    precision: str,
    emulated_cuda: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy, "_global", [])  # It sets the policy, which ends with the test.
    emulator = emulated_cuda()
    resident = Resident(WORKLOADS[workload], precision)
    for _ in range(2):  # Launched kernel by kernel, and captured.
        resident.run(1)
    asked: list[list[str]] = []
    launch_graph, launch = emulator.enqueue_graph, emulator.enqueue

    def noted_graph(queue: Any, nodes: Any, previous: Any) -> Any:
        asked.append([node.label for node in nodes])
        return launch_graph(queue, nodes, previous)

    def noted(queue: Any, label: str, *args: Any) -> None:
        asked.append([label])
        launch(queue, label, *args)

    monkeypatch.setattr(emulator, "enqueue_graph", noted_graph)
    monkeypatch.setattr(emulator, "enqueue", noted)
    resident.run(1)
    (labels, *rest) = asked
    assert rest == [["copy"]]  # The loss that the last call returns, which is read.
    products = labels.count("product")
    assert (products, len(labels) - products) == in_table(workload, precision)
