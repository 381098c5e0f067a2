"""Prepares examples/ for the gallery: adds titles, which --help should not show, and thumbnails."""

import ast
from pathlib import Path

HEADER = """Examples
========

Run one in a checkout: ``python examples/digits.py --gpus 8``. ``--help`` shows its options. Some
need ``pip install ".[examples]"``. The tests run all of them.
"""


PICTURES = Path(__file__).resolve().parents[1] / "_static/examples"


def prepare(examples: Path, folder: Path) -> str:
    """Copy the examples with titles and thumbnails, and return the folder of the copies.

    Args:
        examples: The folder of the examples; each has a picture in `PICTURES`.
        folder: Where the copies are written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"GALLERY_HEADER.rst": HEADER}
    for path in examples.glob("*.py"):
        code = path.read_text("utf-8")
        docstring = ast.get_docstring(ast.parse(code), clean=False) or ""
        title = path.stem.replace("_", " ").capitalize()
        (picture,) = PICTURES.glob(f"{path.stem}.*")
        shown = f".. image:: /_static/examples/{picture.name}\n   :alt: What {path.name} shows\n"
        shown += "   :width: 480px\n"
        texts[path.name] = (
            code.replace(
                docstring, f"{title}\n{'=' * len(title)}\n\n{docstring.rstrip()}\n\n{shown}", 1
            )
            + f"\n# sphinx_gallery_thumbnail_path = '_static/examples/{picture.name}'\n"
        )
    for name, text in texts.items():
        file = folder / name
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
    return str(folder)
