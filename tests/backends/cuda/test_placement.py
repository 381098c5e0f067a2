"""Ops and the kernels that there are for a card: each has one, and without it runs on the CPU."""

from collections.abc import Callable
from typing import Any

import pytest

import mirrored as mr
from mirrored.backends.cuda.cuda_backend import CudaBackend
from mirrored.ops.dispatch import has_kernel
from mirrored.ops.op import OPS


def test_every_op_has_a_kernel_for_cards(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    backend = mr.devices.get_device("GPU:0").backend
    lacking = {name for name, op in OPS.items() if not has_kernel(op, backend)}
    assert lacking == {name for name, op in OPS.items() if "GPU" not in op.devices}


def test_an_op_without_a_kernel_runs_on_the_cpu(
    emulated_cuda: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated_cuda()
    kernels = {name: kernel for name, kernel in CudaBackend.kernels.items() if name != "Exp"}
    monkeypatch.setattr(CudaBackend, "kernels", kernels)
    x = mr.constant([0.0, 0.0])
    assert x.device.endswith("GPU:0")
    y = mr.exp(x)
    assert y.device.endswith("CPU:0")
    assert (y + x).device.endswith("GPU:0")
    step = mr.function(lambda x: mr.exp(x) + x)
    assert step(x).numpy().tolist() == [1.0, 1.0]
    mr.config.set_soft_device_placement(False)
    with mr.device("GPU:0"), pytest.raises(RuntimeError, match="Exp"):
        mr.exp(x)
