"""Workers that die in a run leave what one device leaves: weights, history, files and outputs."""

import os
import pickle
import random
import re
import signal
import subprocess
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import stand_ins
from dying_workers import KINDS, PLACES, Death, Killer

import mirrored as mr
from mirrored.backends.communication.connection import MULTI_RANK
from mirrored.distribute.cross_device_ops.connections import SELFTEST

_ROOT = Path(__file__).parents[1]
_ENVIRONMENT = _ROOT / ".venv-openmpi"  # `.ci/run deaths` makes it.
_SHARED = Path("/dev/shm")
_ON_A_CARD = MULTI_RANK in os.environ  # As tests/gpu asks for.
_TWO_HOSTS = Path(__file__).parent / "support" / "two_hosts.sh"

pytestmark = [
    pytest.mark.skipif(
        not (_ENVIRONMENT / "bin" / "mpiexec").exists(),
        reason=f"needs Open MPI in {_ENVIRONMENT.name}: run `.ci/run deaths`",
    )
]


@cache
def expected(kind: str, replicas: int | None) -> dict[str, Any]:
    """Return what one device leaves."""
    before = mr.keras.backend.floatx()
    mr.keras.backend.set_floatx("float64")
    try:
        with TemporaryDirectory() as folder:
            strategy = mr.MirroredStrategy(["CPU:0"], replicas=replicas)
            return KINDS[kind](strategy, Path(folder), Killer(None))
    finally:
        mr.keras.backend.set_floatx(before)


def launch(
    count: int,
    runs: list[tuple[str, int | None, list[Death]]],
    folder: Path,
    hosts: str = "",
    policy: str = "continue",
    least: int = 1,
    cards: int = 0,
) -> str:
    """Return stderr of workers of which some die; compare what they leave with one device.

    Args:
        count: The number of workers.
        runs: What they do, for how many replicas, and who dies when.
        folder: Where they write.
        hosts: Whether pairs of them pretend to be on another host: "yes" or nothing; "two": they
            are on two hosts, of which each has its own network and shared memory.
        policy: Their `on_worker_failure`.
        least: Their `min_workers`; if more than 1, the job fails.
        cards: The number of emulated cards that NCCL connects, or ranks on a real one; 0: they
            compute on CPUs.
    """
    (folder / "runs").write_bytes(pickle.dumps((policy, least, runs)))
    shared = shared_files()
    program = Path(__file__).parent / "support" / "dying_workers.py"
    start = [_ENVIRONMENT / "bin" / "mpiexec", "--with-ft", "ulfm", "-n", count]
    if hosts == "two":
        places = ["--host", "hosta:2,hostb:2", "--prtemca", "plm_ssh_agent", _TWO_HOSTS]
        start = [_TWO_HOSTS, *start, *places]
    else:
        start.append("--oversubscribe")
    done = subprocess.run(
        [*map(str, start), _ENVIRONMENT / "bin" / "python", "-m", "mirrored.run", program, folder],
        env={
            **os.environ,
            "PYTHONPATH": f"{_ROOT}:{program.parent}",
            "OPENBLAS_NUM_THREADS": "1",
            "PRETEND_HOSTS": hosts.removeprefix("two"),
            **(card_settings(cards, folder) if cards else {}),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode == 0) == (least == 1), done.stdout + done.stderr
    dead = {death.rank for *_, deaths in runs for death in deaths}
    ended = {rank for rank in range(count) if (folder / f"worker{rank}").exists()}
    left = set(range(count)) - dead
    # After some seconds a worker may have ended before it dies.
    assert left <= ended if runs[-1][2][0].place == "timer" else left == ended, done.stderr
    for path in folder.glob("worker*"):
        results = pickle.loads(path.read_bytes())
        for (kind, replicas, deaths), result in zip(runs, results, strict=True):
            if least > 1:
                assert isinstance(result, mr.errors.WorkerError)
                assert result.reason == "workers died"
                assert re.match(
                    rf"Worker 0 on host \S+ died\. .* `min_workers` is {least}", str(result)
                )
                continue
            compare(result, kind, replicas, f"{path.name} of {kind} after {deaths}")
    assert not {path for path in shared_files() - shared if not is_mapped(path)}
    return done.stderr


def card_settings(cards: int, folder: Path) -> dict[str, str]:
    """Return the environment of workers that share cards."""
    emulated = {stand_ins.VARIABLE: "emulated", stand_ins.CARDS: str(cards)}
    return {
        "EMULATED_NCCL": str(folder),
        "MIRRORED_FORCE_GPU_ALLOW_GROWTH": "true",
        SELFTEST: "0",
        **({MULTI_RANK: "1"} if _ON_A_CARD else emulated),
    }


def shared_files() -> set[Path]:
    """Return the files of memory that the processes of Open MPI share."""
    return {
        path for pattern in ("sm_segment.*", "mirrored_shm_*") for path in _SHARED.glob(pattern)
    }


def is_mapped(path: Path) -> bool:
    """Return whether a process uses a file, such as one of another job."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            if str(path) in maps.read_text("utf-8"):
                return True
    return False


def compare(result: dict[str, Any], kind: str, replicas: int | None, who: str) -> None:
    wanted = expected(kind, replicas)
    steps = result.pop("steps")
    if "_new" in who:  # It has seen the last ones.
        assert steps
        steps = [*wanted["steps"][: -len(steps)], *steps]
    assert steps == (
        pytest.approx(wanted["steps"]) if kind in ("loop", "off") else wanted["steps"]
    ), who
    assert result.keys() == wanted.keys() - {"steps"}, who
    for name, value in result.items():
        if replicas is None:
            atol = 1e-9 if _ON_A_CARD else 1e-12  # A card has its own tanh.
            np.testing.assert_allclose(value, wanted[name], rtol=0, atol=atol, err_msg=who)
        else:  # The same bits.
            np.testing.assert_array_equal(value, wanted[name], err_msg=f"{name}, {who}")


# Three of four workers die in each run, one after another: worker 0 is always among them. (A file
# replaces another on the first worker that is left.)
_ORDERS = ((0, 2, 1), (0, 1, 3), (1, 0, 3), (2, 3, 0))


@pytest.mark.openmpi
@pytest.mark.behaviour("worker-deaths")
@pytest.mark.parametrize("job", range(4))
def test_a_death_at_each_place_leaves_what_one_device_leaves(job: int, tmp_path: Path) -> None:
    deaths = [
        Death(rank, place, 3 if "sum" in place or "callback" in place else 0)
        for rank, place in zip(_ORDERS[job], PLACES[job::4], strict=True)
    ]
    launch(4, [("fit", 8 if job % 2 else None, deaths)], tmp_path)


@pytest.mark.openmpi
def test_signals_end_one_worker_and_loops_take_a_step_again(tmp_path: Path) -> None:
    """A loop has two sums, of which the second comes after the update; some steps are eager."""
    runs = [
        ("fit", None, [Death(1, "in a callback", 4, by=signal.SIGTERM)]),
        ("loop", None, [Death(0, "with a sum that others lack", 6)]),
        ("loop", 8, [Death(3, "in a gather", 25, by=signal.SIGSTOP)]),
    ]
    launch(4, runs, tmp_path)


@pytest.mark.openmpi
def test_what_replicas_of_a_dead_worker_counted_stays(tmp_path: Path) -> None:
    """Metrics of each replica, recorded and op by op, with fixed replicas and without."""
    runs = [
        ("count", None, [Death(2, "before a sum", 40)]),
        ("count", 8, [Death(0, "with a sum that others lack", 16)]),
    ]
    launch(3, runs, tmp_path)


@pytest.mark.openmpi
def test_others_train_on_what_is_left_of_data_of_their_own(tmp_path: Path) -> None:
    runs = [
        ("own", None, [Death(1, "in a callback")]),
        ("off", None, [Death(2, "before a sum", 2)]),
    ]
    errors = launch(3, runs, tmp_path)
    assert errors.count("had left of datasets of their own is lost") == 2, errors


@pytest.mark.openmpi
def test_with_too_few_workers_left_all_raise(tmp_path: Path) -> None:
    launch(3, [("loop", None, [Death(0, "in a callback", 4)])], tmp_path, least=3)


@pytest.mark.openmpi
def test_new_processes_take_the_places_of_workers_that_die(tmp_path: Path) -> None:
    """One dies in the middle of an epoch, and the first one later, between sum and update."""
    deaths = [Death(2, "in a callback", 3), Death(0, "between sum and update", 12)]
    errors = launch(3, [("fit", 8, deaths)], tmp_path, policy="replace")
    assert errors.count("1 worker(s) joined") == 2, errors
    assert len([*tmp_path.glob("worker_new*")]) == 2, errors


@pytest.mark.openmpi
def test_new_processes_join_loops_and_count_as_the_others(tmp_path: Path) -> None:
    """They join a loop of recorded and eager steps, which have data of their own, and a fit."""
    for kind, death in (
        ("loop", Death(0, "in a callback", 5)),
        ("count", Death(1, "in a callback", 3)),
    ):
        (tmp_path / kind).mkdir()
        errors = launch(2, [(kind, 8, [death])], tmp_path / kind, policy="replace")
        assert errors.count("1 worker(s) joined") == 1, errors


@pytest.mark.openmpi
def test_workers_die_while_new_processes_start_and_meet_them(tmp_path: Path) -> None:
    deaths = [
        Death(3, "in a callback", 1),
        Death(0, "while a new process starts"),
        Death(1, "before it meets a new process"),
    ]
    errors = launch(4, [("fit", 8, deaths)], tmp_path, policy="replace")
    assert errors.count("3 worker(s) joined") == 1, errors
    assert len([*tmp_path.glob("worker_new*")]) == 3, errors


@pytest.mark.openmpi
def test_a_worker_joins_and_the_first_one_is_released(tmp_path: Path) -> None:
    released = Death(0, "released")
    errors = launch(2, [("resize", 8, [released])], tmp_path, policy="replace")
    assert errors.count("1 worker(s) joined") == 1, errors
    assert errors.count("was released. 2 worker(s) go on") == 1, errors
    assert len([*tmp_path.glob("worker_new*")]) == 1, errors


@pytest.mark.openmpi
def test_cards_that_nccl_connects_go_on(tmp_path: Path) -> None:
    """One dies in a sum of NCCL, and the first one when all know that a sum is done."""
    pytest.importorskip("cupy")
    runs = [
        ("fit", None, [Death(1, "in a sum of cards", 7)]),
        ("loop", None, [Death(0, "between sum and update", 9)]),
    ]
    launch(3, runs, tmp_path, cards=3)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(130))
def test_deaths_at_random_moments_leave_what_one_device_leaves(seed: int, tmp_path: Path) -> None:
    draws = random.Random(seed)
    count = draws.randint(2, 4)
    ranks = draws.sample(range(count), max(1, count - draws.choice([1, 1, 2])))
    replicas = draws.choice([8, None])
    kind = draws.choice(["fit", "count", "loop"])
    longest = 0.4 if kind == "fit" else 0.25
    deaths = [Death(rank, "timer", draws.random() * longest) for rank in ranks]
    hosts = draws.choice(["", "yes"])
    if seed % 2:
        launch(count, [(kind, replicas, deaths)], tmp_path, policy="replace")
    else:
        launch(count, [(kind, replicas, [death]) for death in deaths], tmp_path, hosts)


@pytest.mark.long
@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(
            [
                ("fit", 8, [Death(1, "between sum and update", 3)]),
                ("fit", None, [Death(0, "in a callback", 3)]),
                ("loop", 8, [Death(2, "before a sum", 6)]),
            ],
            id="one by one",
        ),
        pytest.param(
            [("fit", 8, [Death(rank, "in a callback", 5) for rank in (2, 3)])], id="all of a host"
        ),
        pytest.param([("loop", 8, [Death(3, "in a gather", 25, signal.SIGSTOP)])], id="a hang"),
    ],
)
def test_deaths_on_two_hosts_leave_what_one_device_leaves(runs: Any, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], check=False).returncode:
        pytest.skip("needs namespaces, which this user may not create")
    launch(4, runs, tmp_path, "two")
