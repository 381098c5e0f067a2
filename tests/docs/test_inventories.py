"""The inventories of Python and NumPy: names that pages use, with their pages."""

import importlib.util
import zlib
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINES = b"""\
numpy.load py:function 1 reference/load.html#$ -
numpy.save py:function 1 reference/save.html#$ -
int py:class 1 functions.html#$ -
open py:function 1 functions.html#$ -
load std:label -1 load.html#load A label
"""


@pytest.fixture(scope="module")
def inventories() -> Any:
    spec = importlib.util.spec_from_file_location("inventories", DOCS / "_ext" / "inventories.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_of_pages_are_kept(inventories: Any) -> None:
    page = "`np.load(open(path))` returns `x.numpy.save`, not an `int`."
    head = b"# Sphinx inventory version 2\n# Project: Some\n# Version: 1\n# Compressed.\n"
    text = inventories.cut(head + zlib.compress(LINES), inventories.names_in(page))
    assert text.splitlines() == [
        "# Sphinx inventory version 1",
        "# Project: Some",
        "# Version: 1",
        "int class functions.html",
        "numpy.load function reference/load.html",
    ]


def test_the_inventories_are_small_and_have_names_of_signatures(inventories: Any) -> None:
    texts = {
        site: (DOCS / "_inventories" / f"{site}.inv").read_text() for site in inventories.SITES
    }
    assert "\ncollections.abc.Callable class " in texts["python"]
    assert "\nnumpy.ndarray class " in texts["numpy"]
    assert max(map(len, texts.values())) < 10_000
