"""Workers change nothing but the time: any layout of replicas over them equals one replica."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launching import launch, needs_mpi
from replica_cases import Case, check_alike, train
from worker_loops import WAYS, run

import mirrored as mr

TOLERANCES = {"float64": 1e-12, "float32": 1e-5}
# Uneven, tiny and empty shards: with 4 replicas, a batch of 1 leaves most workers without examples.
SIZES = [(21, 8), (1, 32), (7, 7), (2, 1), (13, 5)]
OPTIMIZERS = ["sgd", "momentum", "nesterov", "decay", "adam"]
CLIPPINGS = [None, "clipnorm", "clipvalue", "global_clipnorm"]
LOSSES = ["mse", "sparse", "categorical", "binary", "function"]


def cases(count: int) -> list[tuple[Case, str]]:
    """Return so many cases; each option is in some of them with each size."""
    rng = np.random.default_rng(19)
    chosen = []
    for i, (examples, batch_size) in zip(range(count), itertools.cycle(SIZES), strict=False):
        of, flag = (
            lambda options: options[rng.integers(len(options))],
            lambda: bool(rng.integers(2)),
        )
        case = Case(
            replicas=4,
            examples=examples,
            batch_size=batch_size,
            optimizer=of(OPTIMIZERS),
            clipping=of(CLIPPINGS),
            loss=of(LOSSES),
            weighted=flag(),
            regularized=flag(),
            dropout=of([0.0, 0.3]),
            activation=of(["tanh", "relu", "sigmoid"]),
            validate=flag(),
            shuffle=flag(),
            seed=int(rng.integers(1 << 20)),
        )
        chosen.append((case, "float32" if i % 4 == 3 else "float64"))
    return chosen


def check_same(found: Sequence[dict[str, Any]]) -> None:
    """Fail unless all workers have the same bits."""
    for worker in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(worker[name], value, err_msg=name)


def check(
    layout: Sequence[int],
    chosen: Sequence[tuple[Case, str]],
    names: Sequence[str],
    folder: Path,
    hosts: str | None = None,
) -> None:
    """Fail unless all workers of a layout have the same bits, and they are what one replica has.

    Of cases of `fit`, and of ways of training.
    """
    given = list(chosen), list(names)
    found: list[tuple[Any, Any]] = launch("trained", layout, given, folder, hosts=hosts)
    for i, (case, floatx) in enumerate(chosen):
        check_same([cases[i] for cases, _ in found])
        check_alike(train(case, 1, floatx), found[0][0][i], TOLERANCES[floatx])
    for name in names:
        check_same([ways[name] for _, ways in found])
        check_alike(run(WAYS[name], 1, mr.MirroredStrategy), found[0][1][name], 1e-12)


@needs_mpi
def test_workers_equal_one_replica(tmp_path: Path) -> None:
    check((1, 2), cases(len(SIZES)), ["own step", "loop"], tmp_path)


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("layout", [(4,), (2, 2), (1, 1, 1, 1), (1, 2, 1)], ids=str)
def test_any_layout_of_workers_equals_one_replica(layout: tuple[int, ...], tmp_path: Path) -> None:
    check(layout, cases(48), [], tmp_path)


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "hosts"),
    [((2, 2), None), ((1, 1, 1, 1), None), ((1, 2, 1), "a,b"), ((2, 2), "a,b")],
    ids=str,
)
def test_every_way_of_training(layout: tuple[int, ...], hosts: str | None, tmp_path: Path) -> None:
    check(layout, [], list(WAYS), tmp_path, hosts)
