"""Draws what the model says: the efficiency of each network over the number of cards."""

from pathlib import Path

from benchmarks.scaling.assumptions import COUNTS, MODELS, NETWORKS
from benchmarks.scaling.curves import efficiency


def draw(path: Path) -> Path | None:
    """Draw a panel for each network; return the file, or None where matplotlib is missing."""
    try:
        from mirrored._drawing import label_ends, picture, plt, styled
    except ImportError:
        return None

    @styled
    def drawn() -> None:
        figure, panels = picture(len(MODELS), 4.6, 3.2, columns=2)
        for axes, (name, workload) in zip(panels, MODELS.items(), strict=True):
            ends = []
            for (title, gigabits), marker in zip(NETWORKS.items(), "v^so", strict=True):
                values = [100 * efficiency(workload, cards, gigabits) for cards in COUNTS]
                (line,) = axes.plot(COUNTS, values, marker=marker, markersize=4)
                ends.append((values[-1], title, line.get_color()))
            axes.set_xscale("log", base=2)
            axes.set(title=f"{name}, batch {workload.batch} per card", ylim=(0, 105))
            axes.set_xticks(COUNTS[::2], [f"{count:,}" for count in COUNTS[::2]])
            axes.set(xlabel="cards, 8 per host", ylabel="efficiency, % of one card")
            axes.grid(axis="y")
            label_ends(axes, ends)
        figure.suptitle("A model, not a measurement: float32 by TF32 units of H100")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)

    # Neither random names nor a date: the same figures give the same file.
    with plt.rc_context({"svg.hashsalt": "mirrored"}):
        drawn()
    return path
