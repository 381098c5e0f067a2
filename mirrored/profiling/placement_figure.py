"""Draws the memory of variables by device."""

from collections.abc import Mapping

from mirrored._drawing import COLORS, GREY, INK, LIMIT, Figure, picture, styled
from mirrored.backends import MEGABYTE
from mirrored.devices import Device
from mirrored.distribute.variable_memory import megabytes, short_name


@styled
def draw(devices: Mapping[Device, Mapping[str, int]]) -> Figure:
    """Return a figure with a bar for each device.

    Args:
        devices: For each device the bytes by part of the model.
    """
    names = list(dict.fromkeys(name for parts in devices.values() for name in parts))
    colors = dict(zip(names, [*COLORS, "#8a7a00", "#5f6fb5", INK], strict=False)) | {
        "optimizer": GREY
    }
    figure, (axes,) = picture(1, 8.0, 0.9 + 0.42 * len(devices))
    ends = []
    for row, (device, parts) in enumerate(devices.items()):
        begin = 0.0
        for name, nbytes in parts.items():
            width = nbytes / MEGABYTE
            axes.barh(row, width, 0.6, begin, color=colors[name], label=name, alpha=0.8)
            begin += width
        limit = device.pool.limit
        ends.append(begin if limit is None else limit / MEGABYTE)
        text = megabytes(begin * MEGABYTE)
        if limit is not None:
            axes.plot([ends[-1]] * 2, [row - 0.4, row + 0.4], color=LIMIT)
            text += f" of {megabytes(limit)}"
        axes.text(ends[-1], row, f"  {text}", va="center")
    axes.set_yticks(range(len(devices)), [short_name(device) for device in devices])
    axes.invert_yaxis()
    axes.set(xlabel="MB; the red lines are limits", xlim=(0, max(ends) * 1.02))
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    axes.legend(
        *(handles.values(), handles.keys()), loc="lower left", bbox_to_anchor=(0, 1), ncols=4
    )
    return figure
