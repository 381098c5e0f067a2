"""Files between Keras itself and this library, in both directions, with the optimizers' state."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mirrored as mr
from tests.support import keras_models

# Keras' NumPy backend needs jax. Neither is imported here.
missing = [name for name in ("jax", "keras") if importlib.util.find_spec(name) is None]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing), reason=f"without {missing}")]


def assert_same(ours: Any, theirs: Any) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        for part in ("outputs", "state"):
            for mine, its in zip(ours[name][part], theirs[name][part], strict=True):
                np.testing.assert_allclose(mine, its, rtol=5e-5, atol=1e-5, err_msg=name)


def test_files_go_both_ways(tmp_path: Path) -> None:
    """Outputs are the same, and after one more step they still are, and so is all state."""
    mr.random.set_seed(0)
    models = keras_models.cases(mr.keras)
    keras_models.save(models, tmp_path / "ours")
    script = Path(keras_models.__file__).with_name("keras_exchange.py")
    subprocess.run([sys.executable, script, tmp_path], check=True, timeout=300)
    found = json.loads((tmp_path / "found.json").read_text())
    assert_same(keras_models.come_of(models), found["ours"])
    theirs = keras_models.load(mr.keras, tmp_path / "theirs")
    assert_same(keras_models.come_of(theirs), found["theirs"])
