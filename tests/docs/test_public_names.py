"""The reference refuses public names that it cannot describe, and describes each object once."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import mirrored as mr

PATH = Path(__file__).resolve().parents[2] / "docs" / "_ext" / "public_names.py"


@pytest.fixture(scope="module")
def extension() -> Any:
    spec = importlib.util.spec_from_file_location("public_names", PATH)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.docs  # It loads every public name.
def test_a_name_without_a_docstring_is_an_error(
    extension: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension.PublicNames().check()
    monkeypatch.setattr(mr.reduce_sum, "__doc__", None)
    monkeypatch.setattr(mr.layers.Layer.build, "__doc__", None)
    with pytest.raises(extension.Undocumented) as error:
        extension.PublicNames().check()
    assert str(error.value).splitlines() == [
        "mirrored.layers.Layer.build has no docstring",
        "mirrored.math.reduce_sum has no docstring",
        "mirrored.reduce_sum has no docstring",
    ]


@pytest.mark.docs
def test_an_object_is_described_once(extension: Any) -> None:
    names = extension.PublicNames()
    dense, error = mr.keras.layers.Dense, mr.losses.mse
    assert names.home("mirrored.keras.layers.Dense", dense) == "mirrored.layers.Dense"
    home = names.home("mirrored.keras.losses.mse", error)
    assert home == "mirrored.keras.losses.mean_squared_error"
    assert list(names.members(mr.Sequential)) == ["add", "pop"]
    assert "fit" in names.members(mr.Model)


@pytest.mark.docs
def test_names_of_tensorflow_1_are_described(extension: Any) -> None:
    names = extension.PublicNames()
    homes = {name: entry.home for name, entry in names.all.items() if ".compat.v1" in name}
    assert homes["mirrored.compat.v1.Session"] == "mirrored.compat.v1.Session"
    assert homes["mirrored.compat.v1.train.Saver"] == "mirrored.compat.v1.train.Saver"
    assert homes["mirrored.compat.v1.math.add"] == "mirrored.compat.v1.add"  # Wraps the same one.
    assert names.home("mirrored.math.add", mr.math.add) == "mirrored.add"
    assert "mirrored.compat.v1.losses.Callable" not in homes  # Only imported.


def test_types_are_described_by_their_module(extension: Any) -> None:
    text = extension.documentation("mirrored.types.ShapeLike", mr.types.ShapeLike)
    assert text == "the sizes of all axes, or one size for a single axis."
