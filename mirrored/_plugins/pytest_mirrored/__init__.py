"""Simulated GPUs for tests: the fixture and the marker ``simulated_gpus``, for pytest.

It is installed beside the package and not in it, since pytest loads it in every run of its
environment: it imports nothing of mirrored before a test asks for GPUs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mirrored.devices import LogicalDevice

_MARKER = "simulated_gpus"
_FIXTURE = "_simulated_gpus_of_marker"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, for ``--markers`` and ``--strict-markers``."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(count, memory_limit=None): run the test with `count` simulated GPUs, each "
        "with `memory_limit` MB; devices are reset before and after the test.",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a test that is marked its devices, before all other fixtures that it asks for."""
    if item.get_closest_marker(_MARKER) is None:
        return
    names = getattr(item, "fixturenames", None)
    if names is None:
        raise pytest.UsageError(
            f"The marker {_MARKER} needs a test that has fixtures. Got: {item!r}"
        )
    if _FIXTURE not in names:
        item.fixturenames = [_FIXTURE, *names]  # type: ignore[attr-defined]


@pytest.fixture
def simulated_gpus() -> Iterator[Callable[..., list[LogicalDevice]]]:
    """Return ``simulated_gpus(count, memory_limit=None)``, which sets up the devices again.

    It returns the GPUs, which it initialises. Every call ends the devices before it, and the test's
    end those of the last one: see ``mr.config.experimental.reset_devices``.
    """
    called = False

    def make(count: int, memory_limit: float | None = None) -> list[LogicalDevice]:
        nonlocal called
        called = True
        _set_up(count, memory_limit)
        from mirrored.devices import list_logical_devices

        return list_logical_devices("GPU")

    yield make
    if called:
        _reset()


@pytest.fixture(name=_FIXTURE)
def _of_marker(request: pytest.FixtureRequest) -> Iterator[None]:
    marker = request.node.get_closest_marker(_MARKER)
    try:
        arguments = inspect.signature(_set_up).bind(*marker.args, **marker.kwargs)
    except TypeError as error:
        raise pytest.UsageError(
            f"Mark a test with @pytest.mark.{_MARKER}(count, memory_limit=None): {error}. "
            f"Received: {marker}"
        ) from None
    _set_up(*arguments.args, **arguments.kwargs)
    yield
    _reset()


def _set_up(count: int, memory_limit: float | None = None) -> None:
    from mirrored.devices import set_simulated_gpus

    _reset()
    set_simulated_gpus(count, memory_limit)


def _reset() -> None:
    from mirrored.devices import reset_devices

    reset_devices()
