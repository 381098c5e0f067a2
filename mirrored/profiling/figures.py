"""Draws the memory of devices, where variables are, the cost of replicas, and steps of traces."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirrored._drawing import (
    BLUE,
    BROWN,
    COLORS,
    GREEN,
    GREY,
    INK,
    LIMIT,
    ORANGE,
    PINK,
    VIOLET,
    Axes,
    Figure,
    label_ends,
    legend,
    picture,
    styled,
)
from mirrored._naming import shortened
from mirrored.backends import MEGABYTE
from mirrored.devices import Device
from mirrored.distribute.variable_memory import megabytes

if TYPE_CHECKING:
    from mirrored.profiling.memory import DeviceMemory
    from mirrored.profiling.timeline import Slice

_MEMORY_COLORS = {
    "weights": BLUE,
    "optimizer": PINK,
    "other arrays": GREY,
    "gradients": ORANGE,
    "intermediate values": GREEN,
    "batch": BROWN,
}


@styled
def draw_memory(devices: Mapping[str, "DeviceMemory"]) -> Figure:
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
        _draw_device_memory(axes, title, devices[names[0]])
    return figure


def _labels(memory: "DeviceMemory") -> dict[str, str]:
    peaks = {kind: values[memory.at_peak] for kind, values in memory.kinds.items() if values}
    least = sum(peaks.values()) / 200  # Less than a line is wide.
    return {kind: f"{kind} {megabytes(size)}" for kind, size in peaks.items() if size > least}


def _draw_device_memory(axes: Axes, title: str, memory: "DeviceMemory") -> None:
    shown, labels, below = _labels(memory), [], 0.0
    x = range(len(memory.ops) + 1)
    bands = [[*memory.kinds[kind], memory.kinds[kind][-1]] for kind in shown]
    scaled = [[nbytes / MEGABYTE for nbytes in band] for band in bands]
    colors = [_MEMORY_COLORS[kind] for kind in shown]
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
    names = shortened((name for name, _ in memory.largest[:2]), 20)
    sizes = [megabytes(nbytes) for _, nbytes in memory.largest[:2]]
    largest = ", ".join(map(" ".join, zip(names, sizes, strict=True)))
    where = f"kernels of a step, peak at {memory.ops[memory.at_peak]}"
    axes.set_xlabel(f"{where}\nlargest: {largest}", loc="left")
    label_ends(axes, labels)


@styled
def draw_placement(devices: Mapping[Device, Mapping[str, int]]) -> Figure:
    """Return a figure with a bar for each device.

    Args:
        devices: For each device the bytes by part of the model.
    """
    names = list(dict.fromkeys(name for parts in devices.values() for name in parts))
    colors = dict(zip(names, COLORS, strict=False)) | {"other layers": INK, "optimizer": GREY}
    figure, (axes,) = picture(1, 8.0, 0.9 + 0.42 * len(devices))
    ends, bars = [], {}
    for row, (device, parts) in enumerate(devices.items()):
        begin = 0.0
        for name, nbytes in parts.items():
            width = nbytes / MEGABYTE
            bars[name] = axes.barh(row, width, 0.6, begin, color=colors[name], alpha=0.8)
            begin += width
        limit = device.pool.limit
        ends.append(begin if limit is None else limit / MEGABYTE)
        text = megabytes(begin * MEGABYTE)
        if limit is not None:
            axes.plot([ends[-1]] * 2, [row - 0.4, row + 0.4], color=LIMIT)
            text += f" of {megabytes(limit)}"
        axes.text(ends[-1], row, f"  {text}", va="center")
    axes.set_yticks(range(len(devices)), [device.short_name for device in devices])
    axes.invert_yaxis()
    axes.set(xlabel="MB; the red lines are limits", xlim=(0, max(ends) * 1.02))
    legend(axes, {name: bars[name] for name in names}, columns=4)
    return figure


@styled
def draw_replica_cost(times: Mapping[str, Mapping[int, float]]) -> Figure:
    """Return a figure with a line for each model.

    Args:
        times: The time of a step by number of replicas, for each model.
    """
    names = shortened(times)
    longest = max(map(len, names))
    height = max(3.6, 0.8 + 0.27 * len(names))  # A label needs a line.
    figure, (axes,) = picture(1, 6.0 + 0.08 * max(0, longest - 14), height)
    labels = []
    for i, (name, own) in enumerate(zip(names, times.values(), strict=True)):
        counts = sorted(own)
        ratios = np.array([own[count] / own[1] for count in counts])
        color, line = COLORS[i % 8], ("-", "--", "-.", ":")[i // 8 % 4]
        axes.plot(counts, ratios, line, marker="os^DvP*X"[i % 8], markersize=5, color=color)
        labels.append((float(ratios[-1]), f"{name}: {ratios[-1]:.2f} times", color))
    counts = sorted({count for own in times.values() for count in own})
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.axhline(1, color=INK, linestyle=":", linewidth=1)
    axes.set(xlabel="replicas", ylabel="time of a step, one replica = 1")
    axes.set_ylim(bottom=0)
    label_ends(axes, labels)
    return figure


_KIND_COLORS = {
    "matrix products": BLUE,
    "other kernels": GREEN,
    "all-reduce": ORANGE,
    "copies": PINK,
    "dataset": VIOLET,
    "waiting": GREY,
}
_PRODUCTS = ("MatMul", "Conv2D", "Conv3D")  # Parts of the names of kernels that multiply matrices.
_KINDS = {"collective": "all-reduce", "transfer": "copies", "data": "dataset", "wait": "waiting"}
_LETTER = 0.01  # The part of the picture's width that a letter needs.
_THIN = 0.0005  # What is thinner cannot be seen.


@styled
def draw_timeline(rows: Mapping[str, Sequence["Slice"]], begin: float) -> Figure:
    """Return a figure with a row for each replica.

    Args:
        rows: The slices of each row.
        begin: When the step begins, in microseconds.
    """
    figure, (axes,) = picture(1, 9.0, 1.1 + 0.5 * len(rows))
    bars: dict[str, Any] = {}
    end = max(piece.start + piece.duration for pieces in rows.values() for piece in pieces)
    scale, unit = (1000, "ms") if end - begin >= 1000 else (1, "µs")
    whole = max(end - begin, 0.001) / scale
    thin = _THIN * whole
    for y, pieces in enumerate(rows.values()):
        by_kind: dict[str, list[Any]] = {}
        for piece in pieces:
            start, width = (piece.start - begin) / scale, piece.duration / scale
            spans = by_kind.setdefault(_kind_of(piece), [])
            if spans and start - sum(spans[-1]) < thin:  # Fewer shapes, which look the same.
                spans[-1][1] = start + width - spans[-1][0]
            else:
                spans.append([start, width])
            if width > _LETTER * len(piece.name) * whole:
                middle = start + width / 2
                axes.text(middle, y, piece.name, ha="center", va="center", color="white", size=8)
        for kind, spans in by_kind.items():
            look: Any = {"facecolor": _KIND_COLORS[kind], "linewidth": 0}
            if kind == "waiting":
                look["hatch"] = "////"
            bars[kind] = axes.broken_barh(spans, (y - 0.35, 0.7), **look)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set(xlabel=f"{unit} from the beginning of the step", xlim=(0, whole))
    kinds = [kind for kind in _KIND_COLORS if kind in bars]
    legend(axes, {kind: bars[kind] for kind in kinds}, columns=len(kinds))
    return figure


def _kind_of(piece: "Slice") -> str:
    is_product = any(name in piece.name for name in _PRODUCTS)
    kernel = "matrix products" if is_product else "other kernels"
    return _KINDS.get(piece.kind, kernel)
