"""Platforms that are registered: what is trained on their devices is what the CPU computes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mirrored as mr
from mirrored import backends
from mirrored.backends import Hardware, HostBackend, Platform
from mirrored.devices import logical_devices
from mirrored.distribute.cross_device_ops import choose_cross_device_ops
from tests.support.apart_backend import ApartBackend, OwnMemory
from tests.support.queued_backend import Queued, QueuedBackend


class QueuedApart(Platform):
    """Two devices with streams, each with memory of its own."""

    def hardware(self) -> Sequence[Hardware]:
        return [
            Hardware("GPU", i, "queue", lambda _, i=i: _with_memory(QueuedBackend, i))
            for i in range(2)
        ]


def _with_memory(base: Any, memory: int) -> Any:
    return type("QueuedApart", (base,), {"memory": memory})()


# Each has two GPUs, which are to train as simulated ones do.
PLATFORMS = [
    pytest.param(Queued(), id="shared memory, streams"),
    pytest.param(OwnMemory(), id="own memory, no streams"),
    pytest.param(QueuedApart(), id="own memory, streams", marks=pytest.mark.slow),
]


@contextmanager
def _registered(platform: Platform) -> Iterator[None]:
    mr.config.experimental.reset_devices()
    backends.register(platform)
    try:
        yield
    finally:
        mr.config.experimental.reset_devices()
        backends.unregister(platform)


def _trained() -> list[NDArray[Any]]:
    mr.random.set_seed(3)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(22, 5)).astype("float32"), rng.integers(0, 3, 22)
    strategy = mr.MirroredStrategy()
    assert [device.type for device in strategy.devices] == ["GPU", "GPU"]
    dense, normalization = mr.layers.Dense, mr.layers.BatchNormalization()
    with strategy.scope():
        model = mr.Sequential([dense(8), mr.layers.Dropout(0.3), normalization, dense(3)])
        loss = mr.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
    logs = model.fit(x, y, batch_size=8, verbose=0).history
    model.compile("sgd", loss, run_eagerly=True)
    model.fit(x[:5], y[:5], batch_size=4, verbose=0)
    return [*model.get_weights(), model.predict(x, verbose=0), *map(np.array, logs.values())]


@pytest.fixture(scope="module")
def expected() -> list[NDArray[Any]]:
    mr.config.experimental.reset_devices()
    mr.config.experimental.set_simulated_gpus(2)
    return _trained()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_registered_platform_trains_as_the_host(
    platform: Platform, expected: list[NDArray[Any]]
) -> None:
    with _registered(platform):
        trained = _trained()
    for value, wanted in zip(trained, expected, strict=True):
        np.testing.assert_array_equal(value, wanted)


class Mapped(Platform):
    """Two devices that compute at once in the host's memory."""

    def hardware(self) -> Sequence[Hardware]:
        return [Hardware("GPU", i, "mapped", lambda _: HostBackend()) for i in range(2)]


@pytest.mark.parametrize(
    ("platform", "why"),
    [
        (Mapped(), "The GPUs in `mr.distribute.Strategy` are in host memory"),
        (OwnMemory(), "NCCL cannot be used: ApartBackend does not connect devices"),
    ],
)
def test_sums_go_to_one_device_where_nothing_connects_them(
    caplog: pytest.LogCaptureFixture, platform: Platform, why: str
) -> None:
    caplog.set_level("DEBUG", "mirrored")
    with _registered(platform):
        collectives = choose_cross_device_ops(logical_devices("GPU"))
    assert type(collectives) is mr.distribute.ReductionToOneDevice
    assert f"{why}, not using nccl allreduce" in caplog.text


def test_what_a_queue_has_not_computed_is_waited_for() -> None:
    with _registered(Queued()), mr.device("GPU:1"):
        x = mr.constant([1.0, 2.0]) * 3.0
        backend: Any = x._device.backend
        event = backend.record()
        assert not backend.is_done(event)
        assert np.from_dlpack(x).tolist() == [3.0, 6.0]
        assert backend.is_done(event)


def test_a_platform_is_asked_for_what_it_has_by_default() -> None:
    with _registered(Queued()):
        assert [device.name for device in backends.probe()][1:] == ["queue", "queue"]
        backends.set_deterministic()  # They are.
    assert [device.device_type for device in backends.probe()] == ["CPU"]
    assert not [*Platform().report(())]
    with pytest.raises(NotImplementedError):
        Platform().hardware()


def test_what_does_not_connect_devices_says_so() -> None:
    first, second = QueuedBackend(), ApartBackend()
    why = "NCCL cannot be used: QueuedBackend does not connect devices."
    assert first.why_not_connected([second]) == why
    for ask in (first.new_key, lambda: first.connect([first, second])):
        with pytest.raises(mr.errors.DeviceUnavailableError, match=why):
            ask()
    assert not first.reads(second)
    with pytest.raises(NotImplementedError, match="ApartBackend fuses no ops"):
        second.fused_kernel(None)  # type: ignore[arg-type]


def test_packages_above_know_no_hardware() -> None:
    """What serves a device is asked of the registry alone."""
    root = Path(mr.__file__).parent
    files = [path for path in root.rglob("*.py") if root / "backends" not in path.parents]
    assert len(files) > 100
    assert [path for path in files if "backends.cuda" in path.read_text()] == []
