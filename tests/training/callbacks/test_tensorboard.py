"""What `TensorBoard` writes: the names, steps and values of Keras 3.15.1, seen in its own runs."""

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_runs import VALIDATED, Run, X, Y, made
from case_table import cases
from event_files import written

import mirrored as mr

BATCHES = [(1.0721, 1), (1.4053, 2), (1.1417, 3), (0.4463, 4), (0.6098, 5), (0.4992, 6)]
EPOCHS = [(1.1417, 0), (0.4992, 1)]
FOUND = [(0.5068, 0), (0.2998, 1)]


def values(folder: Path) -> dict[str, list[tuple[Any, int]]]:
    """Return values and steps of what was written, by name."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for tag, step, _, value in written(folder):
        found.setdefault(tag, []).append((value, step))
    return found


def train(strategy: mr.MirroredStrategy, board: Any, *more: Any, **options: Any) -> mr.Model:
    with strategy.scope():
        model = made(mr.keras, Run("", model={"metrics": ["mse"]}))
    model.fit(
        X,
        Y,
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
        callbacks=[board, *more],
        **options,
    )
    return model


def check(found: Any, expected: list[tuple[float, int]]) -> None:
    assert [step for _, step in found] == [step for _, step in expected]
    np.testing.assert_allclose(
        [value for value, _ in found], [value for value, _ in expected], atol=1e-4
    )


@pytest.mark.behaviour("tensorboard")
def test_epochs_batches_and_weights(strategy: mr.MirroredStrategy, tmp_path: Path) -> None:
    board = mr.callbacks.TensorBoard(
        tmp_path, histogram_freq=2, write_steps_per_second=True, update_freq=2
    )
    model = train(strategy, board, **VALIDATED)
    trained, found = values(tmp_path / "train"), values(tmp_path / "validation")
    for name in ("loss", "mse"):
        check(trained.pop(f"batch_{name}"), BATCHES[1::2])
        check(trained.pop(f"epoch_{name}"), EPOCHS)
        check(found.pop(f"epoch_{name}"), FOUND)
        by_steps = [(value, 3 * epoch + 3) for value, epoch in FOUND]
        check(found.pop(f"evaluation_{name}_vs_iterations"), by_steps)
    assert found == {}
    check(trained.pop("epoch_learning_rate"), [(0.1, 0), (0.1, 1)])
    for name, steps in (("batch", [2, 4, 6]), ("epoch", [0, 1])):
        speeds = trained.pop(f"{name}_steps_per_second")
        assert [step for _, step in speeds] == steps
        assert min(speed for speed, _ in speeds) > 0
    for layer in model.layers:
        for weight in layer.weights:
            name = f"{model.name}/{weight.name.removesuffix(':0')}/histogram"
            ((ranges, step),) = trained.pop(name)
            assert step == 0
            assert sum(count for _, _, count in ranges) == weight.size
    assert trained == {}


def test_a_second_call_has_files_of_its_own(strategy: mr.MirroredStrategy, tmp_path: Path) -> None:
    board = mr.callbacks.TensorBoard(tmp_path / "logs")
    model = train(strategy, board)
    assert list(values(tmp_path / "logs" / "train")) == [
        "epoch_loss",
        "epoch_mse",
        "epoch_learning_rate",
    ]
    model.evaluate(X, Y, verbose=0, callbacks=[board])
    assert list(values(tmp_path / "logs" / "validation")) == [
        "evaluation_loss_vs_iterations",
        "evaluation_mse_vs_iterations",
    ]
    model.fit(X, Y, verbose=0, callbacks=[board])
    assert len(os.listdir(tmp_path / "logs" / "train")) == 2
    assert pickle.loads(pickle.dumps(board)).log_dir == str(tmp_path / "logs")


@pytest.mark.behaviour("tensorboard")
def test_an_error_closes_the_files(strategy: mr.MirroredStrategy, tmp_path: Path) -> None:
    class Breaks(mr.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            writers.extend(board._writers.values())
            raise KeyError("mine")

    writers: list[Any] = []
    board = mr.callbacks.TensorBoard(tmp_path)
    with pytest.raises(KeyError, match="mine"):
        train(strategy, board, Breaks())
    (writer,) = writers
    with pytest.raises(RuntimeError, match="already closed"):
        writer.add(0, "x", np.float32(0.0), "scalars", None)
    check(values(tmp_path / "train")["epoch_loss"], EPOCHS[:1])


# The frequency, and how many of 12 steps run between two looks.
@cases(("frequency", "steps"), [("epoch", 12), ("batch", 1), (1, 1), (8, 4), (12, 12), (24, 12)])
def test_steps_are_cut_where_it_writes_alone(frequency: Any, steps: int) -> None:
    board = mr.callbacks.TensorBoard(update_freq=frequency)
    board.set_params({"steps": 12})
    assert [board.steps_between(kind, 12) for kind in ("train", "test")] == [steps, 12]
    board.set_params({"steps": None})
    assert board.steps_between("train", 12) == (12 if frequency == "epoch" else 1)


@pytest.mark.behaviour("tensorboard")
@cases(
    ("options", "text"),
    [
        ({"write_images": True}, "`write_images` is not provided"),
        ({"profile_batch": (1, 2)}, r"profile_batch=\(1, 2\)\. Use `mr\.profiler\.trace`"),
        ({"embeddings_freq": 1}, "`embeddings_freq` is not provided"),
        ({"embeddings_metadata": {"a": "b"}}, "`embeddings_metadata` is not provided"),
        ({"update_freq": "steps"}, "`update_freq` must be an integer of 1 or more"),
        ({"histogram_freq": -1}, "`histogram_freq` must be an integer of 0 or more"),
    ],
)
def test_what_is_refused(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        mr.callbacks.TensorBoard(**options)


def test_without_the_package(
    strategy: mr.MirroredStrategy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "mirrored.training.event_file", raising=False)
    board, steps = mr.callbacks.TensorBoard(tmp_path / "logs"), []
    counts = mr.callbacks.LambdaCallback(on_train_batch_begin=lambda *_: steps.append(1))
    with pytest.raises(ImportError, match=r"tensorboardX.* install mirrored's extra `tensorboard`"):
        train(strategy, board, counts)
    assert steps == []
