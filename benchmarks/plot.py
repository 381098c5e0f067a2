"""Draws how fast steps are next to the fastest other library, where matplotlib is installed.

The report is complete without the picture. `python -m benchmarks.plot FIGURES.json` draws it again
from the figures that a run stored.
"""

import json
import sys
from pathlib import Path

from benchmarks.environments import BY_NAME, MIRRORED, PEERS, TORCH
from benchmarks.results import Report, Series
from benchmarks.workloads import TIMED

LONGEST = 4  # Longer bars end here; their numbers say how long they are.
SAME = 0.985  # From here to its inverse two speeds are called the same.


def draw(report: Report, path: Path) -> Path | None:
    """Draw a panel for each number of replicas; return the file, or None without figures."""
    try:
        from mirrored._drawing import BLUE, INK, ORANGE, picture, plt, styled
    except ImportError:
        return None
    speeds = speeds_of(report)
    if not speeds:
        return None

    @styled
    def drawn() -> None:
        names = list(report.speed)
        figure, panels = picture(len(speeds), 5.5, 1.1 + 0.42 * len(names))
        for axes, (replicas, by_workload) in zip(panels, speeds.items(), strict=True):
            for row, name in enumerate(names):
                if name not in by_workload:
                    continue
                speed, peer = by_workload[name]
                color = BLUE if speed >= SAME else ORANGE
                axes.barh(row, min(speed, LONGEST), 0.6, color=color)
                if speed > LONGEST:  # A piece after a gap says that it goes on.
                    axes.barh(row, 0.15, 0.6, LONGEST + 0.1, color=color)
                end = speed if speed <= LONGEST else LONGEST + 0.25
                axes.text(max(end, 1) + 0.08, row, words_for(speed, peer), va="center")
            axes.axvline(1, color=INK, linewidth=1)
            axes.set_yticks(range(len(names)), [title_of(name) for name in names])
            axes.invert_yaxis()
            count = "one device" if replicas == 1 else f"{replicas} replicas"
            axes.set(
                title=f"{count}: speed; the fastest other library is 1", xlim=(0, LONGEST + 2.5)
            )
            axes.set_xticks(range(LONGEST + 1))
        for axes in panels[1:]:
            axes.set_yticklabels([])
        facts = report.machine
        figure.supxlabel(
            f"medians; {facts['processor']}, {facts['cores']} cores, {facts['date']}", fontsize=9
        )
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)

    # Neither random names nor a date: the same figures give the same file.
    with plt.rc_context({"svg.hashsalt": "mirrored"}):
        drawn()
    return path


def speeds_of(report: Report) -> dict[int, dict[str, tuple[float, str]]]:
    """Return how fast mirrored is relative to the fastest peer, and which that is.

    Args:
        report: The figures.
    """
    speeds: dict[int, dict[str, tuple[float, str]]] = {}
    for workload, rows in report.speed.items():
        for replicas in sorted({series.replicas for series in rows}):
            ours = report.median(workload, MIRRORED.name, replicas)
            medians = {p.name: report.median(workload, p.name, replicas) for p in PEERS}
            if replicas > 1 and workload in TIMED and TIMED[workload].normalized:
                del medians[TORCH.name]  # Its statistics are those of a process: another result.
            theirs = {name: median for name, median in medians.items() if median is not None}
            if ours is not None and theirs:
                fastest = min(theirs, key=theirs.__getitem__)
                speed = theirs[fastest] / ours
                speeds.setdefault(replicas, {})[workload] = speed, BY_NAME[fastest].title
    return speeds


def words_for(speed: float, peer: str) -> str:
    """Return what a bar says."""
    if SAME <= speed <= 1 / SAME:
        return f"as fast as {peer}"
    if speed < 1:
        return f"{100 * (1 - speed):.0f} % slower than {peer}"
    number = f"{speed:.1f}" if speed < 9.95 else f"{speed:.0f}"
    return f"{number} times as fast as {peer}"


def title_of(workload: str) -> str:
    """Return the sizes of a workload's network, or of its images and how many convolutions."""
    known = TIMED.get(workload)
    if known is None:
        return workload
    extra = ["Adam"] * (known.optimizer == "adam") + ["batch norm."] * known.normalized
    sizes = known.network
    if known.image:
        convolutions = sum(layer.convolves for layer in known.layers)
        sizes = f"{sizes.partition('-')[0]}, {convolutions} convolutions"
    return ", ".join([sizes, *extra])


def stored(figures: Path) -> Report:
    """Return a report of the steps in a file that `Report.figures` was stored in."""
    data = json.loads(figures.read_text())
    report = Report(data["machine"], 2, 1)
    for step in data["steps"]:
        samples = [] if step["median_us"] is None else [step["median_us"]]
        series = Series(step["contender"], step["replicas"], samples)
        report.speed.setdefault(step["workload"], []).append(series)
    return report


if __name__ == "__main__":
    source = Path(sys.argv[1])
    draw(stored(source), source.with_suffix(".svg"))
