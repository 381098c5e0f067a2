"""The notebooks run from top to bottom, and their stored outputs are small and of such a run."""

import json
import re
from pathlib import Path
from typing import Any

import notebooks
import numpy as np
import pytest
import tensorflow_replicas
from case_table import cases

import mirrored as mr

_FILES = [notebooks.FOLDER / f"{name}.ipynb" for name in notebooks.NAMES]


def outputs(notebook: Any) -> list[list[str]]:
    """Return the kinds of output of each cell of code; streams may come in several pieces."""
    return [
        sorted({output["output_type"] for output in cell["outputs"]})
        for cell in notebook["cells"]
        if "outputs" in cell
    ]


def test_all_notebooks_are_named() -> None:
    assert sorted(notebooks.FOLDER.glob("*.ipynb")) == sorted(_FILES)


@cases("path", _FILES, ids=lambda path: path.stem)
def test_stored_outputs_are_small_and_whole(path: Path) -> None:
    text = path.read_text()
    notebook = json.loads(text)
    assert len(text) < 100_000
    counts = [cell["execution_count"] for cell in notebook["cells"] if "outputs" in cell]
    assert counts == list(range(1, len(counts) + 1))
    assert "widget" not in text
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if output["output_type"] == "error":
                assert cell["metadata"] == {"tags": ["raises-exception"]}
                shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(output["traceback"]))
                assert len(re.findall("^Cell In", shown, re.MULTILINE)) == 1
                assert "/" not in shown.partition("Error: ")[0]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.docs if name == "first-steps" else pytest.mark.long)
        for name in notebooks.NAMES
    ],
)
@pytest.mark.filterwarnings("ignore::Warning:zmq", "ignore::DeprecationWarning")
def test_a_notebook_runs_and_shows_what_is_stored(name: str) -> None:
    stored = json.loads((notebooks.FOLDER / f"{name}.ipynb").read_text())
    assert outputs(notebooks.executed(name)) == outputs(stored)


def test_training_is_that_of_tensorflow_on_any_number_of_replicas() -> None:
    """The figures of TensorFlow that the notebook shows are for the training that it does."""
    mr.config.experimental.set_simulated_gpus(8)
    theirs = json.loads(tensorflow_replicas.FILE.read_text())
    code = (notebooks.FOLDER / "n-equals-one.ipynb").read_text()
    assert "size=(503, 16)" in code
    assert "batch_size=96, epochs=10, shuffle=False" in code
    one, weights = tensorflow_replicas.train(mr, ["GPU:0"])
    np.testing.assert_allclose(one, theirs["loss"]["1"], rtol=1e-6)
    for count in (2, 4, 8):
        loss, others = tensorflow_replicas.train(mr, [f"GPU:{i}" for i in range(count)])
        np.testing.assert_allclose(loss, one, rtol=1e-6)
        assert tensorflow_replicas.largest_difference(others, weights) < 1e-6
        assert theirs["weights_differ_by"][str(count)] > 1e-3
