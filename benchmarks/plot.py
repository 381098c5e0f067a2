"""Draws the medians of all contenders, where matplotlib is installed.

The report is complete without the picture.
"""

from pathlib import Path

from benchmarks.environments import BY_NAME
from benchmarks.results import Report

LONGEST = 1e7  # Microseconds. All panels have one axis, so that lengths mean the same in each.


def draw(report: Report, path: Path) -> Path | None:
    """Draw a panel for each workload; return the file, or None where there is nothing to draw."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return None
    if not report.speed:
        return None
    # Neither random names nor a date: the same figures give the same file.
    with rc_context({"svg.hashsalt": "mirrored"}):
        picture = Figure(figsize=(2 + 3.4 * len(report.speed), 4.2), layout="constrained")
        panels = picture.subplots(1, len(report.speed), squeeze=False, sharex=True, sharey=True)[0]
        every = [each for all_series in report.speed.values() for each in all_series]
        names = list(dict.fromkeys(each.contender for each in every))
        for axes, (name, all_series) in zip(panels, report.speed.items(), strict=True):
            counts = sorted({each.replicas for each in all_series})
            height = 0.8 / len(counts)
            for index, replicas in enumerate(counts):
                own = [each for each in all_series if each.replicas == replicas and each.samples]
                bars = axes.barh(
                    [names.index(each.contender) + index * height for each in own],
                    [each.median for each in own],
                    height,
                    label=f"{replicas} replica{'s' if replicas > 1 else ''}",
                )
                axes.bar_label(bars, fmt="{:,.0f}", padding=2, fontsize="small")
            axes.set_yticks(
                [i + (len(counts) - 1) * height / 2 for i in range(len(names))],
                [BY_NAME[each].title for each in names],
            )
            axes.set(xscale="log", xlim=(1, LONGEST), title=name, xlabel="us a step, median")
        panels[0].invert_yaxis()  # That of all panels.
        handles, labels = panels[0].get_legend_handles_labels()
        if handles:
            picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        facts = report.machine
        picture.suptitle(f"{facts['processor']}, {facts['cores']} cores, {facts['date']}")
        picture.savefig(path, metadata={"Date": None})
    return path
