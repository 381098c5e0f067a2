"""Checkpoints as users meet them: paths, partial files, refusals; failures change nothing."""

import errno
import gc
import itertools
import logging
import os
import shutil
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from safetensors.numpy import load_file

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.ops.random import global_state
from mirrored.training.files import checkpoint as checkpoint_module
from mirrored.training.files.checkpoint import Saved, latest_checkpoint, latest_in, saved_in

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = X[:, :1]
Bits = Callable[[Any], list[Any]]


def make_model(dropout: float = 0.5) -> mr.Model:
    model = mr.Sequential(
        [mr.layers.Input(shape=(3,)), mr.layers.Dropout(dropout), mr.layers.Dense(1)]
    )
    model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
    return model


@pytest.fixture
def trained(strategy: mr.MirroredStrategy) -> mr.Model:
    """Return a model that has taken a step, and so has slots."""
    with strategy.scope():
        model = make_model()
    model.fit(X, Y, batch_size=4, verbose=0)
    return model


def state(model: mr.Model) -> list[Any]:
    local = model.distribute_strategy.experimental_local_results
    variables = [*model.weights, *model.optimizer.variables]
    return [copy.numpy() for variable in variables for copy in local(variable)]


# ---------------------------------------------------------------------------- files


def test_paths_and_the_counter(tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    prefix = tmp_path / "new" / "folder" / "ckpt"
    assert [checkpoint.save(prefix) for _ in range(2)] == [f"{prefix}-1", f"{prefix}-2"]
    assert checkpoint.save(str(prefix), number=7) == f"{prefix}-7"
    assert checkpoint.write(prefix) == str(prefix)
    assert sorted(os.listdir(prefix.parent)) == ["ckpt", "ckpt-1", "ckpt-2", "ckpt-7"]
    assert int(checkpoint.save_counter) == 3
    checkpoint.restore(f"{prefix}-2").assert_consumed()
    assert int(checkpoint.save_counter) == 2
    assert checkpoint.save(prefix) == f"{prefix}-3"


@cases("path", [b"ck", 3, None], ids=repr)
@cases("use", ["save", "write", "restore", "latest_checkpoint"])
def test_what_is_no_path(use: str, path: Any) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    call = getattr(checkpoint, use, None) or mr.train.latest_checkpoint
    if use == "restore" and path is None:  # As of a folder without checkpoints.
        call(path)
        return
    with pytest.raises(TypeError, match=r"needs a path\. Received: .* a Path\."):
        call(path)
    assert int(checkpoint.save_counter) == 0


@pytest.mark.parametrize("prefix", ["", "run/"])
def test_a_prefix_without_a_name(
    prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`latest_checkpoint` would not find "-1"."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=rf"Received: '{prefix}'\. Add .* '{prefix}ckpt'"):
        mr.train.Checkpoint(epoch=mr.Variable(0)).save(prefix)
    assert list(tmp_path.iterdir()) == []


def test_what_nothing_matches_is_not_read(tmp_path: Path) -> None:
    """Nor is what does not fit: the header alone tells."""
    large = mr.Variable(np.zeros(1_000_000, np.float32))
    path = mr.train.Checkpoint(small=mr.Variable(1), large=large).write(tmp_path / "c")
    small, other = mr.Variable(0), mr.Variable(np.zeros(3, np.float32))
    tracemalloc.start()
    try:
        mr.train.Checkpoint(small=small).restore(path).expect_partial()
        with pytest.raises(WeightsFileError, match=r"has shape \(1000000,\)"):
            mr.train.Checkpoint(small=small, large=other).restore(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert int(small) == 1


def test_a_path_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    assert checkpoint.save("ckpt") == "ckpt-1"
    checkpoint.read("ckpt-1").assert_consumed()


def test_names_in_the_file(trained: mr.Model, tmp_path: Path) -> None:
    """They follow from places: not from layers' names, nor from the number of replicas."""
    epoch = mr.Variable(3, name="whatever")
    path = mr.train.Checkpoint(net=trained, epoch=epoch).save(tmp_path / "ckpt")
    tensors = load_file(path)
    assert sorted(tensors) == [
        "epoch",
        "global_random_state",
        "net.optimizer/iterations",
        "net.optimizer/learning_rate",
        "net.optimizer/slots/net/2.dense.bias/momentum",
        "net.optimizer/slots/net/2.dense.kernel/momentum",
        "net/1.dropout.seed_generator",
        "net/2.dense.bias",
        "net/2.dense.kernel",
        "save_counter",
    ]
    assert tensors["epoch"] == 3
    assert tensors["net.optimizer/iterations"] == 1
    assert tensors["save_counter"] == 1


@pytest.mark.parametrize("every", [211, pytest.param(1, marks=pytest.mark.long)])
def test_a_flipped_bit_changes_nothing(
    every: int, trained: mr.Model, tmp_path: Path, bits: Bits
) -> None:
    """A sample of all bits, or all."""
    checkpoint = mr.train.Checkpoint(model=trained)
    path = Path(checkpoint.save(tmp_path / "ckpt"))
    trained.fit(X, Y, verbose=0)
    before, drawn = bits(state(trained)), global_state()
    data = path.read_bytes()
    for position in range(0, 8 * len(data), every):  # A prime: all bits of a byte have their turn.
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        with pytest.raises(WeightsFileError):
            checkpoint.restore(path)
    assert bits(state(trained)) == before
    assert global_state() == drawn


# ---------------------------------------------------------------------------- partial files


@pytest.fixture
def two(tmp_path: Path) -> str:
    """Return the path of a checkpoint of the variables `a` = 1 and `b` = 2."""
    return mr.train.Checkpoint(a=mr.Variable(1), b=mr.Variable(2)).save(tmp_path / "ckpt")


def test_nothing_to_restore() -> None:
    """What scripts do with the latest checkpoint of a folder that has none yet."""
    a = mr.Variable(5)
    status = mr.train.Checkpoint(a=a, net=mr.Sequential([mr.layers.Dense(1)])).restore(None)
    for ask in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match=r"^No checkpoint specified \(save_path=None\)"):
            ask()
    assert status.expect_partial() is status
    assert int(a) == 5


def test_a_file_with_more(two: str) -> None:
    a = mr.Variable(5)
    status = mr.train.Checkpoint(a=a).restore(two)
    assert int(a) == 1
    assert status.assert_existing_objects_matched() is status
    with pytest.raises(AssertionError, match=r"^Unresolved object in checkpoint .*ckpt-1': b\."):
        status.assert_consumed()


def test_a_file_with_less(two: str) -> None:
    c, b = mr.Variable(5), mr.Variable(6)
    status = mr.train.Checkpoint(b=b, c=c, a=mr.Variable(0)).restore(two)
    assert (int(b), int(c)) == (2, 5)
    for ask in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
            ask()
    status.expect_partial()


SILENT: dict[str, Callable[[Any], Any]] = {
    "expect_partial": lambda status: status.expect_partial(),
    "assert_existing_objects_matched": lambda status: status.assert_existing_objects_matched(),
}


@pytest.mark.parametrize("ask", SILENT.values(), ids=SILENT)
def test_no_warning_where_somebody_asked(
    ask: Callable[[Any], Any], two: str, caplog: pytest.LogCaptureFixture
) -> None:
    ask(mr.train.Checkpoint(a=mr.Variable(0)).restore(two))
    gc.collect()
    assert caplog.messages == []


def test_a_warning_where_nobody_asked(two: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "mirrored")
    mr.train.Checkpoint(a=mr.Variable(0), c=mr.Variable(0)).restore(two)
    gc.collect()
    assert [message.split(" ", 3)[3] for message in caplog.messages] == [
        "has no values for c, which keep their values. Call `expect_partial()` on the result of "
        "`restore` if this is intended.",
        "has values that were not restored: b. Call `expect_partial()` on the result of "
        "`restore` if this is intended.",
    ]


@pytest.mark.behaviour("fingerprint")
@pytest.mark.parametrize(
    ("saved", "replicas", "lines"),
    [
        ({}, None, 0),
        ({"BLAS": "openblas 0.3, kernel Prescott", "NumPy": "1.0"}, None, 1),
        ({"BLAS threads": "99"}, None, 1),
        ({"BLAS threads": "99"}, 2, 0),  # Products use one thread.
    ],
)
def test_a_line_where_bits_may_differ(
    saved: dict[str, str],
    replicas: int | None,
    lines: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with mr.MirroredStrategy(replicas=replicas).scope():
        checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    caplog.set_level(logging.INFO, "mirrored")
    caplog.clear()
    with monkeypatch.context() as elsewhere:
        facts = {**checkpoint_module.fingerprint([]), **saved}
        elsewhere.setattr(checkpoint_module, "fingerprint", lambda _: facts)
        path = checkpoint.write(tmp_path / "ckpt")
    checkpoint.restore(path)
    assert len(caplog.messages) == lines
    logged = [f"{name} was {fact}" in caplog.text for name, fact in saved.items()]
    assert logged == [lines == 1] * len(saved)


def test_nothing_is_said_of_a_file_without_a_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = mr.Variable(3)
    checkpoint = mr.train.Checkpoint(epoch=epoch)
    with monkeypatch.context() as older:
        older.setattr(checkpoint_module, "FINGERPRINT", "another key")
        path = checkpoint.write(tmp_path / "ckpt")
    epoch.assign(0)
    caplog.set_level(logging.INFO, "mirrored")
    caplog.clear()
    checkpoint.restore(path).assert_consumed()
    assert (int(epoch), caplog.messages) == (3, [])


def test_no_warning_of_a_file_that_fits(two: str, caplog: pytest.LogCaptureFixture) -> None:
    mr.train.Checkpoint(a=mr.Variable(0), b=mr.Variable(0)).restore(two)
    gc.collect()
    assert caplog.messages == []


# ---------------------------------------------------------------------------- refusals


@cases("name", ["_epoch", "save", "restore", "save_counter", "__class__"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(ValueError, match=f"nor be an existing attribute. Received: '{name}'"):
        mr.train.Checkpoint(**{name: mr.Variable(0)})


def test_values_are_attributes(tmp_path: Path) -> None:
    """Those that are assigned later are saved too."""
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    checkpoint.epoch.assign_add(2)
    checkpoint.best = mr.Variable(0.5)
    path = checkpoint.save(tmp_path / "ckpt")
    checkpoint.epoch.assign(7)
    checkpoint.best.assign(0.0)
    checkpoint.restore(path).assert_consumed()
    assert (int(checkpoint.epoch), float(checkpoint.best)) == (2, 0.5)
    checkpoint.best = 0.7
    with pytest.raises(ValueError, match=r"expecting best to be a trackable object, got 0\.7"):
        checkpoint.save(tmp_path / "ckpt")
    assert os.listdir(tmp_path) == ["ckpt-1"]


def test_inside_a_replica(trained: mr.Model, tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(model=trained)
    path = checkpoint.save(tmp_path / "ckpt")
    uses: dict[str, Callable[[], Any]] = {
        "saved": lambda: checkpoint.save(tmp_path / "ckpt"),
        "restored": lambda: checkpoint.restore(path),
    }
    for done, use in uses.items():
        with pytest.raises(RuntimeError, match=f"is {done} in the cross-replica context"):
            trained.distribute_strategy.run(use)
        with pytest.raises(RuntimeError, match=f"is {done} by Python, and a recorded function"):
            mr.function(use)()
    assert os.listdir(tmp_path) == ["ckpt-1"]
    assert int(checkpoint.save_counter) == 1


def test_weights_and_checkpoints_are_told_apart(trained: mr.Model, tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(model=trained)
    checkpoint.write(tmp_path / "c")
    trained.save_weights(tmp_path / "w")
    with pytest.raises(WeightsFileError, match=r"w' is no checkpoint\. .*kind 'weights'"):
        checkpoint.restore(tmp_path / "w")
    with pytest.raises(WeightsFileError, match=r"c' is no weights file\. .*kind 'checkpoint'"):
        trained.load_weights(tmp_path / "c")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="ckpt-9"):
        mr.train.Checkpoint(a=mr.Variable(0)).restore(tmp_path / "ckpt-9")


def fail(*args: Any, **kwargs: Any) -> None:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("call", ["fsync", "replace", "open", "makedirs"])
def test_a_write_that_fails(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The older file, the folder and the counter stay as they are, and the next call works."""
    checkpoint = mr.train.Checkpoint(a=mr.Variable(1))
    path = Path(checkpoint.save(tmp_path / "ckpt"))
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="Input/output error"):
            checkpoint.save(tmp_path / "ckpt")
        with pytest.raises(OSError, match="Input/output error"):
            checkpoint.write(path)
    assert os.listdir(tmp_path) == ["ckpt-1"]
    assert path.read_bytes() == before
    assert int(checkpoint.save_counter) == 1
    assert checkpoint.save(tmp_path / "ckpt") == str(tmp_path / "ckpt-2")


# ---------------------------------------------------------------------------- the rest


def test_an_open_tape_sees_nothing_of_it(trained: mr.Model, tmp_path: Path) -> None:
    weight = trained.trainable_weights[0]
    checkpoint = mr.train.Checkpoint(model=trained)
    with mr.GradientTape() as tape:
        path = checkpoint.save(tmp_path / "ckpt")
        checkpoint.restore(path)
    assert tape.gradient(mr.constant(1.0), weight) is None
    assert tape.watched_variables() == ()


@pytest.mark.slow
def test_memory_stays_flat(trained: mr.Model, tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(model=trained)

    def used() -> int:
        gc.collect()
        info = mr.config.experimental.get_memory_info
        return sum(info(each)["current"] for each in mr.config.list_logical_devices())

    def cycle(times: int) -> int:
        for _ in range(times):
            checkpoint.restore(checkpoint.write(tmp_path / "c")).assert_consumed()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        cycle(10)
        device = used()
        # Interpreter and NumPy keep some freed pieces: so many cycles that they have all they keep.
        # A set of tensors that stayed would take kilobytes in each.
        sizes = itertools.pairwise(cycle(10) for _ in range(30))
        assert any(after - before < 10 * 200 for before, after in sizes)
    finally:
        tracemalloc.stop()
    assert used() == device


@pytest.fixture
def checkpoint() -> mr.train.Checkpoint:
    return mr.train.Checkpoint(epoch=mr.Variable(0))


def test_none(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert latest_checkpoint(tmp_path / "missing") is None
    assert latest_checkpoint(tmp_path) is None
    checkpoint.write(tmp_path / "written-1")
    (tmp_path / "folder-2").mkdir()
    assert latest_checkpoint(tmp_path) is None
    assert caplog.messages == []


def test_the_order_is_that_of_saving(checkpoint: mr.train.Checkpoint, tmp_path: Path) -> None:
    """Neither that of names nor that of times, which a copy of the folder has lost."""
    saved = [checkpoint.save(tmp_path / "run" / name) for name in ("z", "a", *["m"] * 9)]
    assert saved[-1].endswith("m-11")
    assert [each.path for each in saved_in(tmp_path / "run")] == saved
    shutil.copytree(tmp_path / "run", tmp_path / "copy", copy_function=shutil.copyfile)
    assert latest_checkpoint(tmp_path / "copy") == str(tmp_path / "copy" / "m-11")


def test_two_threads_save_two_files(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins while the first has looked at the folder, and not written yet."""
    saved: list[str] = []
    other = threading.Thread(target=lambda: saved.append(checkpoint.save(tmp_path / "ckpt")))

    def looked(directory: str) -> list[Saved]:
        monkeypatch.undo()
        found = saved_in(directory)
        other.start()
        other.join(0.1)  # Where nothing held it back it would be done.
        return found

    monkeypatch.setattr(checkpoint_module, "saved_in", looked)
    saved.append(checkpoint.save(tmp_path / "ckpt"))
    other.join()
    assert [each.path for each in saved_in(tmp_path)] == sorted(saved)
    assert [Path(each).name for each in sorted(saved)] == ["ckpt-1", "ckpt-2"]
    assert int(checkpoint.save_counter) == 2


def test_a_new_run_in_the_folder_of_an_old_one(tmp_path: Path) -> None:
    for times in (3, 1):
        checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
        for _ in range(times):
            path = checkpoint.save(tmp_path / "ckpt")
    assert latest_checkpoint(tmp_path) == path == str(tmp_path / "ckpt-1")
    assert [each.number for each in saved_in(tmp_path)] == [2, 3, 1]


def test_spoilt_files_are_left_out(
    checkpoint: mr.train.Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = checkpoint.save(tmp_path / "ckpt")
    Path(checkpoint.save(tmp_path / "ckpt")).write_bytes(b"spoilt")
    assert checkpoint.save(tmp_path / "other") == str(tmp_path / "other-3")
    assert caplog.messages == []
    assert latest_in(tmp_path, "ckpt") == path
    (message,) = caplog.messages
    assert "Skipped a file in a folder of checkpoints. The checkpoint" in message
    assert "ckpt-2' is truncated" in message


def test_an_optimizer_alone(tmp_path: Path) -> None:
    def make() -> mr.Model:
        model = mr.Sequential([mr.layers.Input((2,)), mr.layers.Dense(2)])
        model.compile("adam", "mse")
        return model

    x = np.ones((4, 2))
    trained, built, bare = make(), make(), make()
    trained.fit(x, x, verbose=0)
    path = mr.train.Checkpoint(optimizer=trained.optimizer).save(tmp_path / "alone")
    built.optimizer.build(built.trainable_variables)
    mr.train.Checkpoint(optimizer=built.optimizer).restore(path).assert_consumed()
    for one, other in zip(trained.optimizer.variables, built.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    with pytest.raises(ValueError, match="unexpected 'optimizer/alone/0/momentum'"):
        mr.train.Checkpoint(optimizer=bare.optimizer).restore(path)
    assert int(bare.optimizer.iterations) == 0
