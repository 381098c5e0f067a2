"""The navigation of a page, made of that of the start page: links, and what is current."""

import runpy
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "docs" / "_ext" / "navigation.py"
TREE = (
    '<ul><li class="toctree-l1"><a class="reference internal" href="a/index.html">A</a><ul>'
    '<li class="toctree-l2"><a class="reference internal" href="a/b.html">B</a></li></ul></li>'
    '<li class="toctree-l1"><a class="reference external" href="https://c.org">C</a></li></ul>'
)


@pytest.mark.docs
def test_a_page_is_current_and_what_is_around_it() -> None:
    tree_of = runpy.run_path(str(PATH))["tree_of"]
    assert tree_of(TREE, "index", "index.html") == TREE
    assert tree_of(TREE, "a/b", "a/b.html") == (
        '<ul class="current"><li class="toctree-l1 current"><a class="reference internal" '
        'href="../a/index.html">A</a><ul class="current"><li class="toctree-l2 current"><a '
        'class="current reference internal" href="#">B</a></li></ul></li>'
        '<li class="toctree-l1"><a class="reference external" href="https://c.org">C</a></li></ul>'
    )
