"""Ops and the kernels that there are for a card: those without one run on the CPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_matrices import MATRIX_ROWS

import mirrored as mr
from mirrored.backends.cuda.backend import CudaBackend
from mirrored.ops.op import OPS, has_kernel


def test_every_op_has_a_kernel_for_cards(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    backend = mr.devices.get_device("GPU:0").backend
    lacking = {name for name, op in OPS.items() if not has_kernel(op, backend)}
    hosts = {name for name, op in OPS.items() if "GPU" not in op.devices}
    assert not hosts & MATRIX_ROWS.keys()  # Simulated GPUs have these.
    assert lacking == hosts | MATRIX_ROWS.keys()


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


def test_matrices_are_taken_apart_on_the_cpu(emulated_cuda: Callable[..., Any]) -> None:
    emulated_cuda()
    x = mr.constant([[2.0, 0.0], [0.0, 4.0]])
    with mr.GradientTape() as tape:
        tape.watch(x)
        y = mr.linalg.inv(x)
    assert y.device.endswith("CPU:0")
    assert (y * 2.0).device.endswith("GPU:0")
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), -np.outer([0.5, 0.25], [0.5, 0.25]))
    step = mr.function(lambda x: mr.linalg.inv(x) @ x)
    np.testing.assert_allclose(step(x).numpy(), np.eye(2))
