"""Draws what the model says: the efficiency of each network over the number of cards."""

from pathlib import Path

from benchmarks.scaling.assumptions import COUNTS, MODELS, NETWORKS
from benchmarks.scaling.curves import efficiency


def draw(path: Path) -> Path | None:
    """Draw a panel for each network; return the file, or None where matplotlib is missing."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return None
    # Neither random names nor a date: the same figures give the same file.
    with rc_context({"svg.hashsalt": "mirrored"}):
        picture = Figure(figsize=(2.9 * len(MODELS), 3.8), layout="constrained")
        panels = picture.subplots(1, len(MODELS), sharex=True, sharey=True)
        for axes, (name, workload) in zip(panels, MODELS.items(), strict=True):
            for (title, gigabits), marker in zip(NETWORKS.items(), "v^so", strict=True):
                values = [100 * efficiency(workload, cards, gigabits) for cards in COUNTS]
                axes.plot(COUNTS, values, marker=marker, markersize=4, label=title)
            axes.set_xscale("log", base=2)
            axes.set(title=f"{name}, batch {workload.batch} a card", xlabel="cards, 8 in a host")
            axes.set_xticks(COUNTS[::2], [f"{each:,}" for each in COUNTS[::2]], fontsize="small")
            axes.set_ylim(0, 105)
            axes.grid(alpha=0.3)
        panels[0].set_ylabel("efficiency, % of one card")
        handles, labels = panels[0].get_legend_handles_labels()
        picture.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        picture.suptitle("A model, not a measurement: float32 by TF32 units of H100")
        picture.savefig(path, metadata={"Date": None})
    return path
