"""What tests run on a worker of one replica and one of two, in one launch for all of these tests.

The cases of training are so few that each two values of two options meet in one of them.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launching import launch
from replica_cases import Case
from worker_datasets import OTHERS, SOME
from worker_loops import WAYS as ALL_WAYS

LAYOUT = (1, 2)
LAYOUT_OF_THREE = (1, 2, 1)  # Of slow tests, on two hosts.
WAYS = ("own step", "loop")  # Of those in `worker_loops`, what is tried in every run.
OTHER_WAYS = tuple(way for way in ALL_WAYS if way not in WAYS)  # Slow tests try these.
# Uneven, tiny and empty shards: with 4 replicas, a batch of 1 leaves most workers without examples.
SIZES = [(21, 8), (1, 32), (7, 7), (2, 1), (13, 5)]
QUICK = 3  # As many cases are tried in every run, and all by slow tests.
OPTIONS: Mapping[str, Sequence[Any]] = {
    "sizes": SIZES,
    "optimizer": ["sgd", "momentum", "nesterov", "decay", "adam"],
    "loss": ["mse", "sparse", "categorical", "binary", "function"],
    "clipping": [None, "clipnorm", "clipvalue", "global_clipnorm"],
    "activation": ["tanh", "relu", "sigmoid"],
    "floatx": ["float64", "float32"],
    "weighted": [False, True],
    "regularized": [False, True],
    "dropout": [0.0, 0.3],
    "validate": [False, True],
    "shuffle": [False, True],
}
# Programs of which one worker's differs so, and what both hear of it.
DIFFERING: Sequence[tuple[dict[str, Any], str, str]] = [
    ({"momentum": 0.25}, "different settings of optimizers", "SGD.momentum = 0.25 on worker 1"),
    (
        {"activation": "relu"},
        "different settings of layers",
        "Dense.activation = 'relu' on worker 1",
    ),
    ({"units": 5}, "different variables", "(2, 5)"),
    ({"batch_size": 2}, "different batches", "2 examples"),
    ({"momentum": 0.75, "eagerly": True}, "different settings of optimizers", "0.75"),
    (
        {"value": 0.5},
        "for the first batch of an epoch to train, different values of variables",
        "bias",
    ),
    (
        {"rate": 0.5},
        "for the first batch of an epoch to train, different settings",
        "learning_rate = 0.5",
    ),
    ({"loss": 3.0}, "for the step that trains, different operations on 2 examples", "float32(3.0)"),
    (
        {"function": "sin"},
        "the function 'step', different operations on inputs of shapes [(2,)]",
        "Sin",
    ),
    ({"batches": 2}, "for the first batch of a dataset, different batches", "4 examples (check"),
    ({"order": 3}, "nothing", "nothing"),
    ({"alike": "of the first"}, "nothing", "nothing"),
    ({}, "nothing", "nothing"),
]
_LINES = 5  # A prime, as many as the longest option has values, and as there are such options.


def pairs_of(choice: Mapping[str, Any]) -> set[Any]:
    """Return what is chosen, two and two."""
    return set(itertools.combinations(choice.items(), 2))


def choices() -> list[dict[str, Any]]:
    """Return a value of each option, so often that each two values of two options meet.

    Of the long options each is a Latin square's, of the others that which brings most new pairs.
    """
    long = {name: values for name, values in OPTIONS.items() if len(values) > 2}
    flags = {name: values for name, values in OPTIONS.items() if len(values) == 2}
    met: set[Any] = set()
    found = []
    for row, column in itertools.product(range(_LINES), repeat=2):
        numbers = column, *((row + column * factor) % _LINES for factor in range(1, len(long)))
        square = {
            name: values[number % len(values)]
            for (name, values), number in zip(long.items(), numbers, strict=True)
        }
        candidates = (
            square | dict(zip(flags, chosen, strict=True))
            for chosen in itertools.product(*flags.values())
        )
        found.append(max(candidates, key=lambda choice: len(pairs_of(choice) - met)))
        met |= pairs_of(found[-1])
    return found


@functools.cache
def cases() -> list[tuple[Case, str]]:
    """Return cases with their dtypes of floats; the first few have each of the sizes."""
    found = []
    for seed, choice in enumerate(choices()):
        (examples, batch_size), floatx = choice.pop("sizes"), choice.pop("floatx")
        case = Case(replicas=4, examples=examples, batch_size=batch_size, seed=seed, **choice)
        found.append((case, floatx))
    return found


def run_tasks(folder: Path) -> dict[str, list[Any]]:
    """Return what each task of `LAYOUT` returned, by its function's name: a result a worker."""
    written = folder / "written"
    written.mkdir()
    tasks = {
        "trained": (cases()[:QUICK], WAYS),
        "fixed": (cases()[:2], ["loop"]),
        "filed": written,
        "inputs": 6,
        "fitted_on_own": SOME,
        "diverged": 4,
        "verified": 4 << 20,
        # After the last of these the workers are no longer connected: in calls that differ.
        "differing": [*(case for case, _, _ in DIFFERING), {"rows": 4}],
    }
    return _run(tasks, LAYOUT, folder, None)


def run_tasks_of_three(folder: Path) -> dict[str, list[Any]]:
    """Return what each task of `LAYOUT_OF_THREE` returned, as `run_tasks` does."""
    tasks = {
        "trained": (cases()[QUICK : len(SIZES)], OTHER_WAYS),
        "fixed": (cases()[2:4], ["own step"]),
        "meanwhile": (cases()[24:], WAYS),
        "fitted_on_own": OTHERS,
        "verified": 16,
    }
    return _run(tasks, LAYOUT_OF_THREE, folder, "a,b")


def _run(
    tasks: Mapping[str, Any], layout: Sequence[int], folder: Path, hosts: str | None
) -> dict[str, list[Any]]:
    return dict(zip(tasks, launch(list(tasks.items()), layout, folder, hosts=hosts), strict=True))
