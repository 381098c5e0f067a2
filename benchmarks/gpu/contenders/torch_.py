"""PyTorch on the GPU: an eager step, and the same step captured in a CUDA graph.

bfloat16 is autocast over weights of float32, the way that its documentation teaches.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))
import torch

from benchmarks.gpu.contenders import protocol
from benchmarks.gpu.workloads import starting_point
from benchmarks.workloads import Array, Workload

WARM_UP = 3  # Before a capture, on a stream of its own, as the documentation asks for.


class Eager:
    """A module, its optimizer and a batch.

    Args:
        workload: What is trained.
        precision: "float32", "tf32" or "bfloat16".
        device: "cuda" or "cpu".
    """

    def __init__(self, workload: Workload, precision: str, device: str) -> None:
        """Build the module with the initial weights."""
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        self._device, self._bfloat16 = device, precision == "bfloat16"
        self._initial, x, y = starting_point(workload)
        self._module: Any = build_module(self._initial).to(device)
        self._optimizer = torch.optim.SGD(
            self._module.parameters(), lr=workload.learning_rate, fused=True
        )
        self._loss = torch.nn.CrossEntropyLoss()
        self._x = torch.from_numpy(x).to(device)
        self._y = torch.from_numpy(y).long().to(device)

    def step(self) -> Any:
        """Take a step; return its loss, which may not be there yet."""
        self._optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self._device, torch.bfloat16, enabled=self._bfloat16):
            loss = self._loss(self._module(self._x), self._y)
        loss.backward()
        self._optimizer.step()
        return loss.detach()

    def losses(self, steps: int) -> list[float]:
        """Return the loss of each step."""
        return [float(self.step()) for _ in range(steps)]

    def run(self, steps: int) -> int:
        """Take steps, and wait for the device."""
        for _ in range(steps):
            self.step()
        if self._device == "cuda":
            torch.cuda.synchronize()
        return steps


class Graph(Eager):
    """The step as one launch of a CUDA graph; arguments as `Eager`'s."""

    def __init__(self, workload: Workload, precision: str, device: str) -> None:
        """Warm up, capture a step, and bring the initial weights back."""
        super().__init__(workload, precision, device)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                super().step()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._captured = super().step()
        load(self._module, self._initial)

    def step(self) -> Any:
        """Launch the graph."""
        self._graph.replay()
        return self._captured


def build_module(weights: list[Array]) -> Any:
    """Return the layers with these weights, ReLU between them."""
    layers: list[Any] = []
    for kernel in weights[::2]:
        layers += [torch.nn.Linear(*kernel.shape), torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1])
    load(module, weights)
    return module


def load(module: Any, weights: list[Array]) -> None:
    """Write weights into the module's own tensors; PyTorch keeps kernels transposed."""
    with torch.no_grad():
        for parameter, weight in zip(module.parameters(), weights, strict=True):
            parameter.copy_(torch.from_numpy(weight.T))


def facts() -> dict[str, Any]:
    """Return the version, and that of CUDA which it was built for."""
    return {"version": torch.__version__, "CUDA": torch.version.cuda or "none"}


def main() -> None:
    """Answer the driver."""
    device = protocol.parse_arguments().device
    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("this PyTorch finds no CUDA device")

    def make(workload: Workload, precision: str, mode: str) -> protocol.Session:
        return (Graph if mode == "graph" else Eager)(workload, precision, device)

    protocol.run(make, facts)


if __name__ == "__main__":
    main()
