"""All-reduces between virtual GPUs, ranks of one card, and cards, and steps that wait for them.

Each kind has a process of its own with a deadline: what hangs or fails leaves a line that says so.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu import parts
from benchmarks.gpu.parts import Deadline
from benchmarks.gpu.results import AllReduces, Results
from benchmarks.gpu.speed import NO_TIME, say
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops.connections import SELFTEST

PROGRAM = Path(__file__).resolve().parent / "all_reduces_process.py"
LIMIT = 20.0  # Seconds of a process, of which each is expected to take a quarter.
LIMIT_OF_ALL = 60.0
SIZES = [1 << 10 << 3 * step for step in range(7)]  # 1 KB to 256 MB.
QUICK_SIZES = SIZES[:5:2]
STEPS = ("digits", "mnist")


@dataclass(frozen=True)
class Kind:
    """What is measured in one process.

    Attributes:
        collective: The name of the collectives' class.
        parts: How many replicas each card has.
        ranks: Whether each of them is a rank of NCCL, also where several are on one card.
    """

    collective: str
    parts: tuple[int, ...]
    ranks: bool = False

    @property
    def where(self) -> str:
        """What it sums between, in words."""
        if len(self.parts) > 1:
            return f"{len(self.parts)} cards"
        return f"{self.parts[0]} {'ranks' if self.ranks else 'virtual GPUs'} of one card"


def kinds(cards: int) -> list[Kind]:
    """Return what can be measured with so many cards, what matters most first."""
    all_cards = (1,) * cards
    between = ("NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice")
    return [
        *(Kind(name, all_cards) for name in between if cards > 1),
        *(Kind("ReductionToOneDevice", (count,)) for count in (2, 4)),
        *(Kind("NcclAllReduce", (count,), ranks=True) for count in (2, 4)),
    ]


def measure(
    results: Results,
    found: Sequence[Kind],
    deadline: Deadline,
    written: Callable[[], None],
    *,
    quick: bool = False,
) -> None:
    """Measure all of these; call `written` whenever one is done.

    Args:
        results: Where rows go.
        found: The kinds.
        deadline: When all has to be over.
        written: Is called after each.
        quick: Few sizes and no steps.
    """
    for kind in found:
        say(f"  {kind.collective}, {kind.where}")
        left = deadline.left()
        made = AllReduces(kind.collective, kind.where, problem=None if left else NO_TIME)
        results.all_reduces.append(made)
        if left:
            sizes = QUICK_SIZES if quick else SIZES
            _measure(made, kind, min(LIMIT, left), sizes, () if quick else STEPS, results.simulated)
        if made.problem:
            say(f"    {made.problem}")
        written()


def _measure(
    made: AllReduces,
    kind: Kind,
    limit: float,
    sizes: Sequence[int],
    steps: Sequence[str],
    simulated: bool,
) -> None:
    """Measure one kind in its process, and note what it said and how it ended."""
    asked = {
        "collective": kind.collective,
        "parts": kind.parts,
        "sizes": sizes,
        "steps": steps,
        "simulated": simulated,
    }
    environment = {
        "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true",
        MULTI_RANK: "1" if kind.ranks else "",
        SELFTEST: "0",  # This process may hang or crash as well as that one.
        "PYTHONPATH": os.pathsep.join([str(parts.ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-P", PROGRAM, json.dumps(asked)]
    ended = parts.run(command, limit, environment)
    last = ""
    for line in ended.output.splitlines():
        try:
            said = json.loads(line)
        except json.JSONDecodeError:  # A line of a library, or one that was cut short.
            last = line
            continue
        if not isinstance(said, dict):
            continue
        if "row" in said:
            made.rows.append(said["row"])
        made.steps.update(said.get("step", {}))
        made.problem = said.get("problem", made.problem)
    if ended.status != 0 and made.problem is None:
        made.problem = f"{ended.how}: {last}" if last else ended.how
