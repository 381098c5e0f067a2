"""Draws times of steps over the number of replicas."""

from collections.abc import Mapping

import numpy as np

from mirrored._drawing import COLORS, INK, Figure, label_ends, picture, styled


@styled
def draw(times: Mapping[str, Mapping[int, float]]) -> Figure:
    """Return a figure with a line for each model.

    Args:
        times: The time of a step by number of replicas, for each model.
    """
    figure, (axes,) = picture(1, 6.0, 3.6)
    labels = []
    for i, (name, own) in enumerate(times.items()):
        counts = sorted(own)
        ratios = np.array([own[count] / own[1] for count in counts])
        color = COLORS[i % len(COLORS)]
        axes.plot(counts, ratios, marker="os^D"[i % 4], markersize=5, color=color)
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
