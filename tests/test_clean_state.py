"""What a test leaves behind does not reach the next one."""

import os

import numpy as np
import pytest

import mirrored as mr
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.backends.cuda import nccl_settings, nvml

SETTINGS = {
    "MIRRORED_SIMULATED_GPUS": "3",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    MULTI_RANK: "1",
    **dict.fromkeys(nccl_settings.SETTINGS, "1"),
}
drawn: set[float] = set()


@pytest.mark.parametrize("time", ["once", "again"])
def test_each_test_starts_afresh(time: str) -> None:
    assert not SETTINGS.keys() & os.environ.keys()
    assert nccl_settings._read is None
    assert not os.path.exists(nvml.DRIVER)
    assert mr.config.list_physical_devices("GPU") == []
    assert mr.config.get_soft_device_placement()
    assert not mr.distribute.has_strategy()
    assert mr.layers.Dense(1).name == "dense"
    assert mr.layers.Dense(1).dtype == np.float32
    drawn.add(float(mr.random.uniform(())))
    assert len(drawn) == 1

    mr.config.experimental.reset_devices()
    os.environ.update(SETTINGS)
    nccl_settings._read = frozenset()
    nvml.DRIVER = __file__
    mr.config.set_soft_device_placement(False)
    mr.keras.backend.set_floatx("float64")
    mr.distribute.experimental_set_strategy(mr.MirroredStrategy())
