"""Prepares examples/ for the gallery: sphinx-gallery wants titles, which --help should not show."""

import ast
from pathlib import Path

HEADER = """Examples
========

Run one in a checkout: ``python examples/digits.py --gpus 8``. ``--help`` shows its options. The
tests run all of them.
"""


def prepare(examples: Path, folder: Path) -> str:
    """Copy the examples with titles, and return the folder of the copies.

    Args:
        examples: The folder of the examples.
        folder: Where the copies are written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"GALLERY_HEADER.rst": HEADER}
    for path in examples.glob("*.py"):
        code = path.read_text("utf-8")
        docstring = ast.get_docstring(ast.parse(code), clean=False) or ""
        title = path.stem.replace("_", " ").capitalize()
        texts[path.name] = code.replace(docstring, f"{title}\n{'=' * len(title)}\n\n{docstring}", 1)
    for name, text in texts.items():
        file = folder / name
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
    return str(folder)
