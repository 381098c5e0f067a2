"""Draws the memory of devices during a step."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mirrored._drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LIMIT,
    ORANGE,
    PINK,
    Axes,
    Figure,
    label_ends,
    picture,
    styled,
)
from mirrored.backends import MEGABYTE
from mirrored.distribute.variable_memory import megabytes

if TYPE_CHECKING:
    from mirrored.profiling.memory import DeviceMemory

_COLORS = {
    "weights": BLUE,
    "optimizer": PINK,
    "other arrays": GREY,
    "gradients": ORANGE,
    "intermediate values": GREEN,
    "batch": "#8a7a00",
}


@styled
def draw(devices: Mapping[str, "DeviceMemory"]) -> Figure:
    """Return a figure with a plot for each device; equal ones share a plot.

    Args:
        devices: What is in the memory of each device.
    """
    alike: dict[Any, list[str]] = {}
    for name, memory in devices.items():
        alike.setdefault(repr((_labels(memory), memory.limit)), []).append(name)
    figure, plots = picture(len(alike), 5.5, 3.4, columns=2)
    for axes, names in zip(plots, alike.values(), strict=True):
        title = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}, each"
        _draw_device(axes, title, devices[names[0]])
    return figure


def _labels(memory: "DeviceMemory") -> dict[str, str]:
    peaks = {kind: values[memory.at_peak] for kind, values in memory.kinds.items() if values}
    least = sum(peaks.values()) / 200  # Less than a line is wide.
    return {kind: f"{kind} {megabytes(size)}" for kind, size in peaks.items() if size > least}


def _draw_device(axes: Axes, title: str, memory: "DeviceMemory") -> None:
    shown, labels, below = _labels(memory), [], 0.0
    x = range(len(memory.ops) + 1)
    bands = [[*memory.kinds[kind], memory.kinds[kind][-1]] for kind in shown]
    scaled = [[nbytes / MEGABYTE for nbytes in band] for band in bands]
    colors = [_COLORS[kind] for kind in shown]
    axes.stackplot(x, scaled, colors=colors, alpha=0.8, step="post", linewidth=0)
    for kind, band, color in zip(shown, scaled, colors, strict=True):
        labels.append((below + band[memory.at_peak] / 2, shown[kind], color))
        below += band[memory.at_peak]
    axes.axvline(memory.at_peak + 0.5, color=INK, linestyle=":", linewidth=1)
    room = ""
    if memory.limit is not None:
        axes.axhline(memory.limit / MEGABYTE, color=LIMIT)
        labels.append((memory.limit / MEGABYTE, "limit", LIMIT))
        room = f" of {megabytes(memory.limit)}".replace(" MB", "")
    axes.set_ylim(0, max(memory.reserved, memory.limit or 0) / MEGABYTE * 1.05)
    axes.set_xlim(0, len(memory.ops))
    axes.set(title=f"{title}: {memory.reserved / MEGABYTE:.1f}{room} MB", ylabel="MB")
    largest = ", ".join(f"{name} {megabytes(nbytes)}" for name, nbytes in memory.largest[:2])
    where = f"kernels of a step, peak at {memory.ops[memory.at_peak]}"
    axes.set_xlabel(f"{where}\nlargest: {largest}", loc="left")
    label_ends(axes, labels)
