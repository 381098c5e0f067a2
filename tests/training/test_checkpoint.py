"""Checkpoints: what may be in them, what is told of a partial one, and that failures change nothing."""

import contextlib
import errno
import gc
import logging
import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import mirrored as mr
from mirrored.errors import WeightsFileError

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


@pytest.mark.parametrize("step", [1, 29])
def test_a_flipped_bit_changes_nothing(
    trained: mr.Model, step: int, tmp_path: Path, bits: Bits
) -> None:
    checkpoint = mr.train.Checkpoint(model=trained)
    path = Path(checkpoint.save(tmp_path / "ckpt"))
    trained.fit(X, Y, verbose=0)
    before, drawn = bits(state(trained)), mr.ops.random.global_state()
    data = path.read_bytes()
    for position in range(0, 8 * len(data), 211 * step):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        with pytest.raises(WeightsFileError):
            checkpoint.restore(path)
    assert bits(state(trained)) == before
    assert mr.ops.random.global_state() == drawn
