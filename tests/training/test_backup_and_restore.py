"""A `fit` that something ended goes on in another process as if nothing had been."""

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr
from mirrored.errors import WeightsFileError
from mirrored.training import backup_and_restore
from mirrored.training.files.tensor_file import read_table

X = np.arange(12.0, dtype=np.float32)[:, np.newaxis] / 12
OPTIONS: dict[str, Any] = {"batch_size": 4, "epochs": 6, "verbose": 0, "shuffle": False}
C = mr.callbacks


@pytest.fixture
def make(strategy: mr.MirroredStrategy) -> Callable[[], mr.Model]:
    """Return a function that makes a model as a new process would."""

    def made() -> mr.Model:
        mr.layers.reset_names()
        mr.random.set_seed(3)
        with strategy.scope():
            layers = [mr.layers.Input(shape=(1,)), mr.layers.Dense(2), mr.layers.Dropout(0.5)]
            model = mr.Sequential([*layers, mr.layers.Dense(1)])
            model.compile(mr.optim.SGD(0.1, momentum=0.9, use_ema=True), "mse")
        return model

    return made


def ended(model: mr.Model, backup: C.BackupAndRestore, step: int) -> None:
    """Train until so many steps were begun, and fail."""
    steps = iter(range(99))

    def fail(*_: Any) -> None:
        if next(steps) == step:
            raise KeyError("ended")

    fails = C.LambdaCallback(on_train_batch_begin=fail)
    with pytest.raises(KeyError, match="ended"):
        model.fit(X, X, callbacks=[backup, fails], **OPTIONS)


@pytest.mark.behaviour("backup")
@pytest.mark.parametrize(("double", "step"), [(False, 7), (True, 1)])
def test_it_goes_on(double: bool, step: int, make: Callable[[], mr.Model], tmp_path: Path) -> None:
    whole, folder = make(), tmp_path / "backup"
    history = whole.fit(X, X, **OPTIONS)
    ended(make(), C.BackupAndRestore(folder, double_checkpoint=double), step)
    model = make()
    backup = C.BackupAndRestore(folder, double_checkpoint=double)
    resumed = model.fit(X, X, callbacks=[backup], **OPTIONS)
    assert (resumed.epoch, resumed.history) == (history.epoch, history.history)
    assert int(model.optimizer.iterations) == int(whole.optimizer.iterations)
    for one, other in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not folder.exists()
    assert model.fit(X, X, callbacks=[C.BackupAndRestore(folder)], **OPTIONS).epoch == [*range(6)]


@pytest.mark.behaviour("backup")
def test_a_run_that_has_ended_is_not_continued(
    make: Callable[[], mr.Model], tmp_path: Path
) -> None:
    model, backup = make(), C.BackupAndRestore(tmp_path / "backup", 2, delete_checkpoint=False)
    history = model.fit(X, X, callbacks=[backup], **{**OPTIONS, "epochs": 2})
    again = make().fit(X, X, callbacks=[backup], **{**OPTIONS, "epochs": 2})
    assert (again.epoch, again.history) == (history.epoch, history.history)
    longer = make()
    whole = make().fit(X, X, **OPTIONS)
    assert longer.fit(X, X, callbacks=[backup], **OPTIONS).history == whole.history
    assert int(longer.optimizer.iterations) == 18
    assert [backup.steps_between(kind, 12) for kind in ("train", "test")] == [2, 12]


# ---------------------------------------------------------------------------- all kinds of data

ROWS = np.random.default_rng(0).standard_normal((44, 3)).astype(np.float32)
TARGETS = ROWS[:, :1] * 2 + 0.1


class Shuffled(mr.keras.utils.PyDataset):
    """Batches whose order changes after every epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.order = np.arange(44)

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        rows = self.order[index * 8 : index * 8 + 8]
        return ROWS[rows], TARGETS[rows]

    def on_epoch_end(self) -> None:
        self.order = np.random.default_rng(int(self.order[0])).permutation(44)


def noisy(x: Any, y: Any) -> Any:
    return x + 0.1 * mr.random.normal((3,)), y


def elements() -> Any:
    yield from zip(ROWS, TARGETS, strict=True)


def generated() -> Any:
    while True:
        yield from ((ROWS[i : i + 8], TARGETS[i : i + 8]) for i in range(0, 44, 8))


def sliced(change: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: change(mr.data.Dataset.from_tensor_slices((ROWS, TARGETS)))


def from_generator() -> Any:
    specs = mr.TensorSpec((3,), "float32"), mr.TensorSpec((1,), "float32")
    dataset = mr.data.Dataset.from_generator(elements, output_signature=specs)
    return dataset.shuffle(20).batch(8)


def interleaved(dataset: Any) -> Any:
    def inner(x: Any, y: Any) -> Any:
        return mr.data.Dataset.from_tensor_slices((x, y))

    return dataset.batch(4).interleave(inner, cycle_length=3).shuffle(10).batch(8)


DATA: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "arrays": (lambda: ROWS, {"y": TARGETS, "batch_size": 8}),
    "in order": (lambda: ROWS, {"y": TARGETS, "batch_size": 8, "shuffle": False}),
    "steps": (lambda: ROWS, {"y": TARGETS, "batch_size": 8, "steps_per_epoch": 4}),
    "rows": (sliced(lambda dataset: dataset.shuffle(9).batch(8).repeat(2)), {}),
    "map": (sliced(lambda dataset: dataset.map(noisy).shuffle(9).batch(8).prefetch(2)), {}),
    "threads": (sliced(lambda dataset: dataset.map(noisy, 2).batch(8)), {}),
    "cache": (sliced(lambda dataset: dataset.map(noisy).cache().shuffle(44).batch(8)), {}),
    "interleave": (sliced(interleaved), {}),
    "repeat": (
        sliced(lambda dataset: dataset.repeat().map(noisy).shuffle(12).batch(8)),
        {"steps_per_epoch": 5},
    ),
    "PyDataset": (Shuffled, {"shuffle": True}),
    "generator": (generated, {"steps_per_epoch": 5}),
    "from_generator": (from_generator, {}),
    "validation": (
        lambda: ROWS,
        {
            "y": TARGETS,
            "batch_size": 8,
            "validation_data": sliced(lambda dataset: dataset.map(noisy).shuffle(9).batch(8)),
            "validation_steps": 2,
        },
    ),
    "stored": (None, {"batch_size": 8}),
}


def outcome(name: str, folder: Path, save_freq: Any, last_step: int) -> Any:
    """Train as a new process would; return all that a run leaves."""
    mr.layers.reset_names()
    mr.keras.utils.set_random_seed(5)
    steps = itertools.count(1)

    def draw(*_: Any) -> None:
        np.random.random(), random.random()
        if next(steps) == last_step:
            raise KeyError("ended")

    data, options = DATA[name]
    options = dict(options)
    if data is None:
        x, options["y"] = (stored(folder, part) for part in ("x", "y"))
    else:
        x = data()
    if "validation_data" in options:
        options["validation_data"] = options["validation_data"]()
    layers = [mr.layers.Dense(4), mr.layers.BatchNormalization(), mr.layers.Dropout(0.3)]
    model = mr.Sequential([mr.layers.Input(shape=(3,)), *layers, mr.layers.Dense(1)])
    model.compile(mr.optim.Adam(0.01), "mse", metrics=["mae"])
    callbacks = [
        C.BackupAndRestore(folder / f"backup {save_freq}", save_freq),
        C.EarlyStopping("loss", patience=1, restore_best_weights=True),
        C.ReduceLROnPlateau("loss", patience=1, min_delta=0.1),
        C.CSVLogger(folder / "log.csv"),
        C.LambdaCallback(on_train_batch_end=draw),
    ]
    history = model.fit(x, epochs=3, verbose=0, callbacks=callbacks, **options)
    weights = [value.numpy() for value in (*model.weights, *model.optimizer.variables)]
    drawn = np.random.random(), random.random(), float(mr.random.normal(()))
    log = (folder / "log.csv").read_text()
    return [weight.tobytes() for weight in weights], history.history, history.epoch, drawn, log


def stored(folder: Path, part: str) -> Any:
    """Return the rows in a file, of which a few at a time are read."""
    path = folder / f"{part}.npy"
    if not path.exists():
        np.save(path, ROWS if part == "x" else TARGETS)
    return np.load(path, mmap_mode="r")


@pytest.mark.behaviour("backup")
@pytest.mark.parametrize(
    ("name", "ends"),
    [
        *[(name, [(4, 9)]) for name in ("arrays", "steps", "map", "generator", "validation")],
        *[
            pytest.param(name, ends, marks=mark)
            for mark, ends in (
                (pytest.mark.slow, [(1, 6)]),
                (pytest.mark.long, [*itertools.product(["epoch", 1, 3, 5], range(1, 10))]),
            )
            for name in DATA
        ],
    ],
)
def test_it_continues_in_the_middle_of_an_epoch(
    name: str, ends: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirrored.data.stored._AT_ONCE", 300)
    monkeypatch.setattr("mirrored.data.stored._BLOCK", 64)
    whole = outcome(name, tmp_path, "epoch", 0)
    for save_freq, last_step in ends:
        with pytest.raises(KeyError, match="ended"):
            outcome(name, tmp_path, save_freq, last_step)
        assert outcome(name, tmp_path, save_freq, 0) == whole, (save_freq, last_step)


@pytest.mark.behaviour("backup")
@pytest.mark.parametrize("double", [False, True])
def test_a_spoilt_backup(double: bool, make: Callable[[], mr.Model], tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / "notes").write_text("mine")
    ended(make(), C.BackupAndRestore(folder, double_checkpoint=double), 7)
    last = folder / "latest"
    last.write_bytes(last.read_bytes()[:-9])
    model, backup = make(), C.BackupAndRestore(folder, double_checkpoint=double)
    if double:
        assert model.fit(X, X, callbacks=[backup], **OPTIONS).epoch == [*range(6)]
        assert int(model.optimizer.iterations) == 18
        assert os.listdir(folder) == ["notes"]  # What is not its own stays.
    else:
        with pytest.raises(WeightsFileError, match="truncated, corrupt") as caught:
            model.fit(X, X, callbacks=[backup], **OPTIONS)
        assert caught.value.__notes__ == [f"To begin at the first epoch, delete {str(folder)!r}."]
        assert int(model.optimizer.iterations) == 0


@cases(
    ("arguments", "error", "text"),
    [
        (("",), ValueError, "Empty `backup_dir` argument passed"),
        ((3,), TypeError, "Received: 3"),
        (("a", "steps"), ValueError, "save_freq=steps. Expected either 'epoch' or an integer"),
        (("a", False), ValueError, "save_freq=False"),
        (("a", 0), ValueError, "save_freq=0"),
    ],
)
def test_what_is_refused(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        C.BackupAndRestore(*arguments)


@cases(("frequency", "steps"), [("epoch", 12), (8, 4), (24, 12)])
def test_steps_are_cut_where_it_may_save_alone(frequency: Any, steps: int) -> None:
    backup = C.BackupAndRestore("a", frequency)
    backup.set_params({"steps": 12})
    assert [backup.steps_between(kind, 12) for kind in ("train", "test")] == [steps, 12]
    backup.set_params({"steps": None})
    assert backup.steps_between("train", 12) == (12 if frequency == "epoch" else 1)


def test_saves_keep_their_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over epochs, and after a run that was continued."""
    saved: list[int] = []
    write = C.BackupAndRestore._write

    def note(self: C.BackupAndRestore, fit: Any) -> None:
        saved.append(int(self.model.optimizer.iterations))
        write(self, fit)

    monkeypatch.setattr(C.BackupAndRestore, "_write", note)
    backup = C.BackupAndRestore(tmp_path / "backup", 5)

    def make() -> mr.Model:
        model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        model.compile("sgd", "mse")
        return model

    ended(make(), backup, 7)
    make().fit(X, X, callbacks=[backup], **OPTIONS)
    assert saved == [5, 10, 15]


# ---------------------------------------------------------------------------- bad input


@pytest.mark.behaviour("backup")
@cases(
    ("optimizer", "rows", "options", "save_freq"),
    [
        (mr.optim.Adam, X, {}, 2),
        (mr.optim.Adam, X, {}, "epoch"),
        (mr.optim.SGD, X + 1, {}, 2),
        (mr.optim.SGD, X + 1, {}, "epoch"),
        (mr.optim.SGD, X, {"batch_size": 3}, 2),
    ],
)
def test_a_backup_of_another_run(
    optimizer: Any, rows: Any, options: dict[str, Any], save_freq: Any, tmp_path: Path
) -> None:
    def make(optimizer: Any) -> mr.Model:
        model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        model.compile(optimizer, "mse")
        return model

    backup = C.BackupAndRestore(tmp_path / "backup", save_freq)
    ended(make(mr.optim.SGD(0.1)), backup, 4)
    model = make(optimizer(0.1))
    before = model.get_weights()
    with pytest.raises(WeightsFileError, match="another optimizer or other data"):
        model.fit(rows, X, callbacks=[backup], **{**OPTIONS, **options})
    assert int(model.optimizer.iterations) == 0
    assert [value.tolist() for value in before] == [w.tolist() for w in model.get_weights()]


@pytest.mark.parametrize(
    "change",
    [
        {"workers": []},
        {"arrays": "x"},
        {"epoch": None, "callbacks": {"History/0": {"history": {"$array": 9}}}},
        {"callbacks": {"History/0": 5}},
        {"means": {"examples": 4, "losses": [1.0]}},
    ],
)
def test_a_state_that_no_run_has(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its checksums fit: whoever made the file may have computed them."""

    def read(*arguments: Any) -> dict[str, Any]:
        return {**read_table(*arguments), **change}

    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    backup = C.BackupAndRestore(tmp_path / "backup", 2)
    ended(model, backup, 5)
    monkeypatch.setattr(backup_and_restore, "read_table", read)
    with pytest.raises(WeightsFileError, match="is of another run or corrupt"):
        model.fit(X, X, callbacks=[backup], **OPTIONS)
    assert int(model.optimizer.iterations) <= 5  # No step was taken.


def test_a_state_sets_what_callbacks_keep_alone() -> None:
    stops = C.EarlyStopping("loss")
    stops.load_state_dict({"wait": 2, "patience": 9})
    assert (stops.wait, stops.patience) == (2, 0)


def test_states_that_no_file_can_hold(tmp_path: Path) -> None:
    class Holds(C.Callback):
        def state_dict(self) -> dict[str, Any]:
            return {"model": self.model}

    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    callbacks = [Holds(), C.BackupAndRestore(tmp_path / "backup")]
    with pytest.raises(TypeError, match="numbers, strings, arrays"):
        model.fit(X, X, callbacks=callbacks, **OPTIONS)
    with pytest.raises(RuntimeError, match="outside `fit`"):
        C.BackupAndRestore(tmp_path / "backup").on_train_begin()


def test_a_callback_continues_with_its_own_state(tmp_path: Path) -> None:
    class Counts(C.Callback):
        def __init__(self, last: int) -> None:
            super().__init__()
            self.steps, self.last = 0, last

        def on_train_begin(self, logs: Any = None) -> None:
            self.steps = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.steps += 1
            if self.steps == self.last:
                raise KeyError("ended")

        def state_dict(self) -> dict[str, Any]:
            return {"steps": self.steps}

    model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
    model.compile("sgd", "mse")
    counts = Counts(8)
    backup = C.BackupAndRestore(tmp_path / "backup", 2, asynchronous=True)
    with pytest.raises(KeyError, match="ended"):
        model.fit(X, X, callbacks=[backup, counts], **OPTIONS)
    counts.last = 0
    model.fit(X, X, callbacks=[backup, counts], **OPTIONS)
    assert counts.steps == 18
    assert os.listdir(tmp_path) == []
