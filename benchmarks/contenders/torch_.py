"""PyTorch: an eager loop with all cores on one device, DistributedDataParallel on several.

There each replica is a process with one thread; the first starts the others and hands them each
request, so that all run the same lines.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from benchmarks.contenders import protocol
from benchmarks.workloads import (
    ADAM_EPSILON,
    BETAS,
    NORM_EPSILON,
    UNEVEN,
    WORKLOADS,
    Array,
    Layer,
    Workload,
    initial_weights,
)


class Torch:
    """A module and its optimizer, on this process' replica.

    Args:
        workload: What is trained.
        replicas: How many processes there are.
        rank: Which of them this is.
        rendezvous: A file at which they meet.
    """

    def __init__(self, workload: Workload, replicas: int, rank: int, rendezvous: str) -> None:
        """Meet the other replicas, and build the module with the initial weights."""
        self.workload, self.replicas, self.rank = workload, replicas, rank
        torch.set_num_threads((os.cpu_count() or 1) if replicas == 1 else 1)
        self._module: Any = build_module(workload)
        self._trained: Any = self._module
        if replicas > 1:
            if any(name == "lo" for _, name in socket.if_nameindex()):
                os.environ["GLOO_SOCKET_IFNAME"] = "lo"
            torch.distributed.init_process_group(
                "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=replicas
            )
            self._trained = DistributedDataParallel(self._module, gradient_as_bucket_view=True)
        self._optimizer = make_optimizer(workload, self._module)
        mean_square, entropy = torch.nn.MSELoss(), torch.nn.CrossEntropyLoss()
        self._loss = mean_square if workload.loss == "mse" else entropy
        self._generator = torch.Generator().manual_seed(0)

    def load(self, x: Array, y: Array) -> Any:
        """Return tensors; CrossEntropyLoss takes labels of int64."""
        targets = torch.from_numpy(y)
        return torch.from_numpy(x), targets if self.workload.loss == "mse" else targets.long()

    def fit(self, data: Any, epochs: int, *, shuffle: bool) -> list[float]:
        """Train, and return the loss of each epoch: the mean over all replicas."""
        x, y = data
        losses = []
        for _ in range(epochs):
            total, count = torch.zeros(()), 0
            for rows in self._batches(x, shuffle):
                self._optimizer.zero_grad()
                loss = self._loss(self._trained(x[rows]), y[rows])
                loss.backward()
                self._optimizer.step()
                total += loss.detach() * len(rows)
                count += len(rows)
            mean = total / count
            if self.replicas > 1:
                torch.distributed.all_reduce(mean)
                mean /= self.replicas
            losses.append(mean.item())
        return losses

    def _batches(self, x: Any, shuffle: bool) -> Any:
        """Yield the indices of this replica's part of each batch."""
        size = self.workload.batch
        if self.workload is UNEVEN and self.replicas > 1:
            # What PyTorch gives for data that do not divide: it repeats examples.
            sampler = DistributedSampler(x, self.replicas, self.rank, shuffle=False)
            yield from torch.tensor(list(sampler)).split(-(-size // self.replicas))
            return
        order = torch.randperm(len(x), generator=self._generator)
        for batch in (order if shuffle else torch.arange(len(x))).split(size):
            yield batch.tensor_split(self.replicas)[self.rank]

    def weights(self) -> list[Array]:
        """Return kernel and bias of each dense layer; PyTorch keeps kernels transposed."""
        return [parameter.detach().numpy().T for parameter in self._module.parameters()]


class Permuted(torch.nn.Module):
    """Axes in another order, as a view.

    Args:
        order: The inputs' axes.
    """

    def __init__(self, *order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: Any) -> Any:
        """Return the view."""
        return x.permute(self.order)


def build_module(workload: Workload) -> Any:
    """Return the layers, with the initial weights.

    Images keep their channels last in memory, which is faster here than PyTorch's own order.
    """
    activation = torch.nn.ReLU if workload.activation == "relu" else torch.nn.Tanh
    modules: list[Any] = [Permuted(0, 3, 1, 2)] if workload.image else []
    weights = [torch.from_numpy(array) for array in initial_weights(workload)]
    layers, images = workload.layers, bool(workload.image)
    for index, layer in enumerate(layers):
        kernel, bias = weights[2 * index : 2 * index + 2]
        if images and not layer.convolves:
            modules += [Permuted(0, 2, 3, 1), torch.nn.Flatten()]
            images = False
        weighted = weighted_module(workload, layer)
        with torch.no_grad():
            weighted.weight.copy_(kernel.permute(3, 2, 0, 1) if layer.convolves else kernel.T)
            weighted.bias.copy_(bias)
        modules.append(weighted)
        if index == len(layers) - 1:
            break
        if workload.normalized:
            # Of each replica by itself: SyncBatchNorm is for GPUs alone.
            norm = torch.nn.BatchNorm2d if layer.convolves else torch.nn.BatchNorm1d
            modules.append(norm(layer.outputs, eps=NORM_EPSILON, momentum=0.01))
        modules.append(activation())
        if layer.pooled:
            modules.append(torch.nn.MaxPool2d(2))
    return torch.nn.Sequential(*modules)


def weighted_module(workload: Workload, layer: Layer) -> Any:
    """Return a layer's module, with weights of PyTorch's own."""
    if not layer.convolves:
        return torch.nn.Linear(layer.inputs, layer.outputs)
    module = torch.nn.Conv2d(layer.kernel[2], layer.outputs, 3, padding=workload.padding)
    return module.to(memory_format=torch.channels_last)


def make_optimizer(workload: Workload, module: Any) -> Any:
    """Return a workload's optimizer, in PyTorch's fastest form."""
    parameters, rate = module.parameters(), workload.learning_rate
    if workload.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=rate, betas=BETAS, eps=ADAM_EPSILON, fused=True)
    return torch.optim.SGD(parameters, lr=rate, momentum=workload.momentum, fused=True)


def facts() -> dict[str, Any]:
    """Return the version, the BLAS and the threads of a process."""
    found = re.search(r"\bBLAS_INFO=(\w+)", torch.__config__.show())
    capability = torch.backends.cpu.get_cpu_capability()
    return {
        "version": torch.__version__,
        "blas": f"{found[1] if found else 'unknown'}, kernel {capability}, "
        f"{torch.get_num_threads()} threads a process",
    }


def start_others(arguments: Any, rendezvous: str) -> list["subprocess.Popen[str]"]:
    """Start the processes of the other replicas, which read their requests from a pipe."""
    return [
        subprocess.Popen(
            [
                *(sys.executable, "-u", __file__, "--workload", arguments.workload),
                *("--replicas", str(arguments.replicas)),
                *("--rank", str(rank), "--rendezvous", rendezvous),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(1, arguments.replicas)
    ]


def main() -> None:
    """Answer the driver, or follow the first replica."""
    arguments = protocol.parse_arguments()
    answers = protocol.keep_stdout()
    rendezvous = arguments.rendezvous or str(Path(tempfile.mkdtemp()) / "rendezvous")
    others = [] if arguments.rank else start_others(arguments, rendezvous)

    def make(workload: Workload, replicas: int) -> Torch:
        return Torch(workload, replicas, arguments.rank, rendezvous)

    def forward(line: str) -> None:
        for other in others if line else ():  # They hear of the end when this process has ended.
            print(line, end="", file=other.stdin, flush=True)

    workload = WORKLOADS[arguments.workload]
    contender = protocol.Contender(workload, arguments.replicas, make, facts)
    protocol.serve(contender, answers, forward)


if __name__ == "__main__":
    main()
