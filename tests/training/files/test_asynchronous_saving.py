"""Checkpoints that a thread writes: the values of one moment, and no error is lost or raised twice.

While `held` holds the thread, nothing that must not wait for it may take long.
"""

import errno
import os
import pickle
import signal
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases
from forked_programs import run_program

import mirrored as mr
from mirrored import _threads

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Y = X[:, :1]


@pytest.fixture
def model(simulate: Callable[..., Any]) -> mr.Model:
    """Return a model on two replicas, with slots, a random stream and means of its batches."""
    simulate(2)
    with mr.MirroredStrategy().scope():
        layers = [mr.layers.BatchNormalization(), mr.layers.Dropout(0.5), mr.layers.Dense(1)]
        model = mr.Sequential([mr.layers.Input((3,)), *layers])
        model.compile(mr.optim.SGD(0.1, momentum=0.9), "mse")
    model.fit(X, Y, batch_size=4, verbose=0)
    return model


class Held:
    """Holds threads that save before they read the values, or lets them fail before the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails = False
        self.come, self._go_on = threading.Event(), threading.Event()
        self._open, self._sync = os.open, os.fsync
        monkeypatch.setattr(os, "open", self._opened)
        monkeypatch.setattr(os, "fsync", self._synced)

    def _opened(self, *args: Any) -> int:
        if threading.current_thread().name == "mirrored-save":
            self.come.set()
            assert self._go_on.wait(30)
        return self._open(*args)

    def _synced(self, descriptor: int) -> None:
        if self.fails and threading.current_thread().name == "mirrored-save":
            raise OSError(errno.ENOSPC, "No space left on device")
        self._sync(descriptor)

    def let_go(self, *, fails: bool = False) -> None:
        """Let all threads go on, from now on too; or fail for want of space."""
        self.fails = fails
        self._go_on.set()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    holder = Held(monkeypatch)
    yield holder
    holder.let_go()


@pytest.mark.behaviour("asynchronous-save")
def test_the_values_are_those_of_the_call(model: mr.Model, tmp_path: Path, held: Held) -> None:
    """The file has the bytes that a synchronous save writes then, whatever is trained since."""
    checkpoint = mr.train.Checkpoint(model=model)
    expected = Path(checkpoint.write(tmp_path / "synchronous")).read_bytes()
    path = Path(checkpoint.write(tmp_path / "beside", asynchronous=True))
    assert held.come.wait(30)
    model.train_on_batch(X, Y)
    assert not path.exists()
    held.let_go()
    checkpoint.sync()
    assert path.read_bytes() == expected
    assert checkpoint.restore(path).assert_consumed()
    assert sorted(os.listdir(tmp_path)) == ["beside", "synchronous"]


def test_names_numbers_and_order(tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    manager = mr.train.CheckpointManager(checkpoint, tmp_path, 2)
    paths = [manager.save(asynchronous=number % 2 == 0) for number in range(5)]
    assert manager.latest_checkpoint == paths[-1] == f"{tmp_path}/ckpt-5"
    assert manager.checkpoints == paths[-2:]
    assert mr.train.latest_checkpoint(tmp_path) == paths[-1]
    assert int(checkpoint.save_counter) == 5
    checkpoint.restore(paths[-2]).assert_consumed()
    assert int(checkpoint.save_counter) == 4


def test_old_files_are_deleted_when_the_new_one_is_there(tmp_path: Path, held: Held) -> None:
    manager = mr.train.CheckpointManager(mr.train.Checkpoint(epoch=mr.Variable(0)), tmp_path, 1)
    manager.save()
    manager.save(asynchronous=True)
    assert held.come.wait(30)
    assert (tmp_path / "ckpt-1").exists()
    held.let_go()
    manager.sync()
    assert os.listdir(tmp_path) == ["ckpt-2"]


CALLS: dict[str, Callable[[mr.Model, mr.train.Checkpoint, Path], Any]] = {
    "train_on_batch": lambda model, checkpoint, folder: model.train_on_batch(X, Y),
    "fit": lambda model, checkpoint, folder: model.fit(X, Y, verbose=0),
    "a recorded function": lambda model, checkpoint, folder: mr.function(lambda: mr.ones(()))(),
    "apply_gradients": lambda model, checkpoint, folder: mr.optim.SGD().apply_gradients(
        [(mr.constant(1.0), checkpoint.weight)]
    ),
    "save": lambda model, checkpoint, folder: checkpoint.save(folder / "ckpt"),
    "another checkpoint's save": lambda model, checkpoint, folder: mr.train.Checkpoint().write(
        folder / "other", asynchronous=True
    ),
    "restore": lambda model, checkpoint, folder: checkpoint.restore(None),
    "sync": lambda model, checkpoint, folder: checkpoint.sync(),
}


@pytest.mark.behaviour("asynchronous-save")
@cases("call", CALLS.values(), ids=CALLS, clean=False)
def test_a_failure_is_raised_once(
    call: Callable[..., Any], model: mr.Model, held: Held, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("run")
    checkpoint = mr.train.Checkpoint(model=model, weight=mr.Variable(1.0))
    before = Path(checkpoint.save(folder / "ckpt")).read_bytes()
    held.let_go(fails=True)
    path = checkpoint.save(folder / "ckpt", asynchronous=True)
    assert mr.train.latest_checkpoint(folder) == f"{folder}/ckpt-1"  # It waits, and says so.
    iterations, weights = int(model.optimizer.iterations), model.get_weights()
    with pytest.raises(OSError, match=f"No space left on device: '{path}'") as caught:
        call(model, checkpoint, folder)
    assert caught.value.__notes__ == [f"An earlier call started the asynchronous save of {path!r}."]
    assert int(model.optimizer.iterations) == iterations
    assert all(map(np.array_equal, model.get_weights(), weights))
    assert int(checkpoint.save_counter) == 1
    assert os.listdir(folder) == ["ckpt-1"]
    assert (folder / "ckpt-1").read_bytes() == before
    assert _threads.failed == []
    held.let_go()
    call(model, checkpoint, folder)
    checkpoint.sync()


def test_steps_of_another_thread_do_not_raise_it(tmp_path: Path, held: Held) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    held.let_go(fails=True)
    thread = threading.Thread(target=lambda: checkpoint.write(tmp_path / "c", asynchronous=True))
    thread.start()
    thread.join()
    assert mr.train.latest_checkpoint(tmp_path) is None
    mr.function(lambda: mr.ones(()))()
    with pytest.raises(OSError, match="No space left"):
        checkpoint.sync()


@pytest.mark.parametrize("use", ["save", "write", "restore", "sync"])
def test_what_waits(use: str, tmp_path: Path, held: Held) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    first = checkpoint.save(tmp_path / "ckpt", asynchronous=True)
    assert held.come.wait(30)
    timer = threading.Timer(0.05, held.let_go)
    timer.start()
    arguments = {"sync": (), "restore": (first,)}.get(use, (tmp_path / "other",))
    getattr(checkpoint, use)(*arguments)
    assert os.path.exists(first)
    timer.join()


class Saves(mr.callbacks.Callback):
    """Saves asynchronously after the last batch, and fails then if it is to."""

    def __init__(self, checkpoint: mr.train.Checkpoint, path: Path, error: Any = None) -> None:
        super().__init__()
        self.checkpoint, self.path, self.error = checkpoint, path, error

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.checkpoint.write(self.path, asynchronous=True)
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("fails", [False, True], ids=["written", "not written"])
@pytest.mark.parametrize("first", [None, KeyError], ids=["fit ends", "fit fails"])
def test_the_end_of_fit(
    first: Any, fails: bool, model: mr.Model, tmp_path: Path, held: Held
) -> None:
    """It waits; where it raises something else, that has a note."""
    saves = Saves(mr.train.Checkpoint(model=model), tmp_path / "c", first)
    timer = threading.Timer(0.05, lambda: held.let_go(fails=fails))
    timer.start()
    if first is None and not fails:
        model.fit(X, Y, verbose=0, callbacks=[saves])
    else:
        with pytest.raises(OSError if first is None else KeyError) as caught:
            model.fit(X, Y, verbose=0, callbacks=[saves])
        notes = getattr(caught.value, "__notes__", [])
        text = "Another error was raised meanwhile: OSError: [Errno 28] No space left on device: "
        assert (f"{text}'{tmp_path}/c'" in notes) == (fails and first is not None)
    assert os.listdir(tmp_path) == ([] if fails else ["c"])
    timer.join()
    held.let_go()
    saves.checkpoint.sync()


FILES = {".keras": {}, ".weights.h5": {"save_weights_only": True}}
FILES[".safetensors"] = FILES[".weights.h5"]


@pytest.mark.parametrize("ending", FILES)
def test_the_callback(ending: str, model: mr.Model, tmp_path: Path, held: Held) -> None:
    """It saves after the third of four batches, and the thread waits for the end of the fourth."""

    class LetsGo(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            held.let_go()

    kinds = {"synchronous": False, "beside": True}
    saves = [
        mr.callbacks.ModelCheckpoint(
            tmp_path / f"{name}{ending}", save_freq=3, asynchronous=kind, **FILES[ending]
        )
        for name, kind in kinds.items()
    ]
    model.fit(X, Y, batch_size=1, verbose=0, callbacks=[*saves, LetsGo()])
    after = model.get_weights()
    assert sorted(os.listdir(tmp_path)) == [f"beside{ending}", f"synchronous{ending}"]
    loaded = []
    for name in kinds:
        if ending == ".keras":
            model = mr.keras.models.load_model(tmp_path / f"{name}{ending}")
        else:
            model.load_weights(tmp_path / f"{name}{ending}")
        variables = [*model.variables, *(model.optimizer.variables if ending == ".keras" else [])]
        loaded.append([variable.numpy() for variable in variables])
    assert all(map(np.array_equal, *loaded))
    assert not all(map(np.array_equal, loaded[0], after))
    assert "asynchronous=True" in repr(saves[1])
    assert pickle.loads(pickle.dumps(saves[1])).asynchronous


def test_the_callback_fails(model: mr.Model, tmp_path: Path, held: Held) -> None:
    """The next step raises it; what was best before is still the best."""
    save = mr.callbacks.ModelCheckpoint(
        tmp_path / "best.keras", "loss", save_best_only=True, mode="min", asynchronous=True
    )
    held.let_go()
    history = model.fit(X, Y, verbose=0, callbacks=[save]).history
    before = (tmp_path / "best.keras").read_bytes()
    held.let_go(fails=True)
    with pytest.raises(OSError, match=r"No space left on device: '.*best\.keras'"):
        model.fit(X, Y, epochs=20, verbose=0, callbacks=[save])
    assert [save.best] == history["loss"]
    assert os.listdir(tmp_path) == ["best.keras"]
    assert (tmp_path / "best.keras").read_bytes() == before


def test_a_synchronous_save_of_the_same_file_is_later(
    model: mr.Model, tmp_path: Path, held: Held
) -> None:
    path = tmp_path / "w.safetensors"
    save = mr.callbacks.ModelCheckpoint(path, save_weights_only=True, asynchronous=True)
    save.set_model(model)
    save.on_epoch_end(0)
    model.train_on_batch(X, Y)
    timer = threading.Timer(0.05, held.let_go)
    timer.start()
    model.save_weights(path)
    timer.join()
    weights = model.get_weights()
    model.load_weights(path)
    assert all(map(np.array_equal, weights, model.get_weights()))


class Assets(mr.layers.Layer):
    def call(self, x: Any) -> Any:
        return x

    def save_assets(self, folder: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        Path(folder, "words").write_text("a b")


def test_assets_are_written_at_once(tmp_path: Path) -> None:
    model = mr.Sequential([mr.layers.Input((1,)), Assets(), mr.layers.Dense(1)])
    save = mr.callbacks.ModelCheckpoint(tmp_path / "m.keras", asynchronous=True)
    save.set_model(model)
    save.on_epoch_end(0)
    with zipfile.ZipFile(tmp_path / "m.keras") as archive:
        assert "assets/layers/assets/words" in archive.namelist()


def test_memory_is_used_again(tmp_path: Path) -> None:
    """Ten tensors of 256 KB: a later save allocates not even one more."""
    values = [mr.Variable(mr.ones((256, 256))) for _ in range(10)]
    checkpoint = mr.train.Checkpoint(values=values)
    for _ in range(2):
        checkpoint.write(tmp_path / "c", asynchronous=True)
        checkpoint.sync()
    tracemalloc.start()
    try:
        for _ in range(3):
            checkpoint.write(tmp_path / "c", asynchronous=True)
            checkpoint.sync()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 256 << 10
    values[3] = mr.Variable(mr.ones((5,)))
    checkpoint.values = values
    checkpoint.restore(checkpoint.write(tmp_path / "c", asynchronous=True)).assert_consumed()


def interrupted_start(begins: bool) -> Callable[[threading.Thread], None]:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        if begins:
            start(thread)
        raise KeyboardInterrupt

    return interrupted


@pytest.mark.parametrize("begins", [False, True])
def test_an_interrupt_of_the_start(
    begins: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted_start(begins))
        with pytest.raises(KeyboardInterrupt):
            checkpoint.save(tmp_path / "ckpt", asynchronous=True)
    assert int(checkpoint.save_counter) == 0
    assert checkpoint.save(tmp_path / "ckpt", asynchronous=True) == f"{tmp_path}/ckpt-1"
    checkpoint.sync()
    assert os.listdir(tmp_path) == ["ckpt-1"]


def test_a_refused_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="A thread could not be started"):
            checkpoint.save(tmp_path / "ckpt", asynchronous=True)
    assert (int(checkpoint.save_counter), os.listdir(tmp_path)) == (0, [])
    checkpoint.save(tmp_path / "ckpt", asynchronous=True)
    checkpoint.sync()


def test_what_is_known_at_once_is_raised_at_once(tmp_path: Path) -> None:
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    with pytest.raises(IsADirectoryError, match="A checkpoint cannot replace a folder"):
        checkpoint.write(tmp_path, asynchronous=True)
    number = mr.Variable(1.0, dtype="bfloat16")
    with pytest.raises(ValueError, match="with dtype bfloat16"):
        mr.train.Checkpoint(number=number).write(tmp_path / "c", asynchronous=True)
    assert os.listdir(tmp_path) == []


def test_devices_are_reset_meanwhile(tmp_path: Path, held: Held) -> None:
    """The copies are the host's; only the counter is gone with its device."""
    checkpoint = mr.train.Checkpoint(values=mr.Variable([1.0, 2.0]))
    path = checkpoint.write(tmp_path / "c", asynchronous=True)
    assert held.come.wait(30)
    mr.config.experimental.reset_devices()
    held.let_go()
    again = mr.train.Checkpoint(values=mr.Variable([0.0, 0.0]))
    again.restore(path).assert_consumed()
    assert again.values.numpy().tolist() == [1.0, 2.0]


def test_a_failure_after_devices_were_reset(tmp_path: Path, held: Held) -> None:
    checkpoint = mr.train.Checkpoint(values=mr.Variable([1.0, 2.0]))
    checkpoint.save(tmp_path / "c", asynchronous=True)
    mr.config.experimental.reset_devices()
    held.let_go(fails=True)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.sync()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_process(tmp_path: Path, held: Held) -> None:
    """It has neither the thread nor what went wrong in it."""
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(0))
    path = checkpoint.write(tmp_path / "c", asynchronous=True)
    assert held.come.wait(30)
    child = os.fork()
    if not child:
        try:
            checkpoint.sync()
            held.let_go()
            checkpoint.write(tmp_path / "other", asynchronous=True)
            checkpoint.sync()
        finally:
            os._exit(0 if os.listdir(tmp_path) and (tmp_path / "other").exists() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    held.let_go()
    checkpoint.restore(path).assert_consumed()
    assert sorted(os.listdir(tmp_path)) == ["c", "other"]


@pytest.mark.usefixtures("python_interrupts")
def test_an_interrupt_of_the_wait(tmp_path: Path, held: Held) -> None:
    """Only the wait ends by it."""
    checkpoint = mr.train.Checkpoint(epoch=mr.Variable(3))
    path = checkpoint.write(tmp_path / "c", asynchronous=True)
    timer = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        checkpoint.sync()
    timer.join()
    assert os.listdir(tmp_path) == []
    held.let_go()
    checkpoint.restore(path).assert_consumed()


def test_values_of_a_card(emulated_cuda: Callable[..., Any], tmp_path: Path) -> None:
    emulated_cuda(cards=1)
    with mr.device("GPU:0"):
        value, empty = mr.Variable(np.arange(12.0).reshape(3, 4)), mr.Variable(np.zeros((0, 2)))
    checkpoint = mr.train.Checkpoint(value=value, empty=empty)
    for _ in range(2):
        value.assign_add(mr.ones_like(value))
        before = value.numpy()
        path = checkpoint.write(tmp_path / "c", asynchronous=True)
        value.assign(mr.zeros_like(value))
        checkpoint.restore(path).assert_consumed()
        np.testing.assert_array_equal(value.numpy(), before)


PROGRAM = """
import resource, sys
import mirrored as mr

checkpoint = mr.train.Checkpoint(value=mr.Variable(mr.ones((300, 100))))
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
checkpoint.write(sys.argv[1], asynchronous=True)
"""


@pytest.mark.parametrize("disk", ["free", "full"])
def test_the_end_of_a_program(disk: str, tmp_path: Path) -> None:
    """It waits for the file; or what went wrong is printed."""
    program, path = tmp_path / "program.py", tmp_path / "folder" / "c"
    program.write_text(PROGRAM)
    done = run_program(program, [path, disk], folder=tmp_path, environment=os.environ)
    assert done.returncode == 0
    if disk == "free":
        assert done.stderr == ""
        mr.train.Checkpoint(value=mr.Variable(mr.ones((300, 100)))).restore(path).assert_consumed()
    else:
        assert f"OSError: [Errno 27] File too large: '{path}'" in done.stderr
        assert os.listdir(path.parent) == []
