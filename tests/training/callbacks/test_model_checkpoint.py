"""Which files `ModelCheckpoint` takes, before anything is trained."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from case_table import cases

import mirrored as mr

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a whole model in a file of weights": (
        {"filepath": "a.safetensors"},
        ValueError,
        r"must end in `\.keras` \(Keras model format\)\. Received: filepath=a\.safetensors",
    ),
    "weights in a file of models": (
        {"filepath": "a.keras", "save_weights_only": True},
        ValueError,
        r"must end in `\.safetensors` or `\.weights\.h5`",
    ),
    "old weights of Keras'": (
        {"filepath": "a.h5", "save_weights_only": True},
        ValueError,
        r"must end in `\.safetensors` or `\.weights\.h5`, .* Received: filepath=a\.h5",
    ),
    "no ending": ({"filepath": "a", "save_weights_only": True}, ValueError, "must end in"),
    "no path": ({"filepath": 3, "save_weights_only": True}, TypeError, "Received: 3"),
    "a field without a name": (
        {"filepath": "{}.safetensors", "save_weights_only": True},
        ValueError,
        "Fields of the filepath must be `epoch`",
    ),
    "a field with a number": (
        {"filepath": "{0}.safetensors", "save_weights_only": True},
        ValueError,
        "Fields of the filepath must be `epoch`",
    ),
    "half a field": (
        {"filepath": "{epoch.safetensors", "save_weights_only": True},
        ValueError,
        "cannot be formatted: expected '}'",
    ),
    "zero batches": (
        {"filepath": "a.safetensors", "save_weights_only": True, "save_freq": 0},
        ValueError,
        "Unrecognized save_freq: 0",
    ),
}


@pytest.mark.behaviour("checkpoint-files")
@cases(("options", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(options: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        mr.callbacks.ModelCheckpoint(**options)


def test_a_folder_in_the_place_of_the_file(make_line: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.mkdir()
    save = mr.callbacks.ModelCheckpoint(path, save_weights_only=True)
    with pytest.raises(IsADirectoryError, match="Please specify a non-directory filepath"):
        make_line().fit([[1.0]], [[1.0]], verbose=0, callbacks=[save])


def test_epochs_of_which_nobody_knows_how_long_they_are(make_line: Any, tmp_path: Path) -> None:
    def batches() -> Any:
        yield from [(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))] * 3

    spec = mr.TensorSpec((2, 1), mr.float32)
    data = mr.data.Dataset.from_generator(batches, output_signature=(spec, spec))
    save = mr.callbacks.ModelCheckpoint(
        tmp_path / "e{epoch}b{batch}.safetensors", save_weights_only=True, save_freq=2
    )
    make_line().fit(data, epochs=3, verbose=0, callbacks=[save])
    saved = sorted(path.stem for path in tmp_path.iterdir())
    assert saved == ["e1b2", "e2b1", "e2b3", "e3b2"]  # As where there are three steps.


# The frequency, and how many of 12 steps run between two looks.
BETWEEN = {"epoch": 12, 1: 1, 5: 1, 8: 4, 12: 12, 24: 12}


@cases(("frequency", "steps"), BETWEEN.items())
def test_steps_are_cut_where_it_may_save_alone(frequency: Any, steps: int) -> None:
    save = mr.callbacks.ModelCheckpoint(
        "a.safetensors", save_weights_only=True, save_freq=frequency
    )
    save.set_params({"steps": 12})
    assert save.steps_between("train", 12) == steps
    assert save.steps_between("test", 12) == 12
    both = mr.callbacks.CallbackList([save, mr.callbacks.History()])
    assert both.steps_between("train", 12) == steps
    save.set_params({"steps": None})
    assert save.steps_between("train", 12) == (12 if frequency == "epoch" else 1)


@pytest.mark.parametrize(
    ("path", "weights"), [("m.keras", False), ("m.weights.h5", True), ("m.safetensors", True)]
)
def test_without_h5py(path: str, weights: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    needed = nullcontext() if path == "m.safetensors" else pytest.raises(ImportError, match="h5py")
    with needed:
        mr.callbacks.ModelCheckpoint(path, save_weights_only=weights)
