"""The pictures of docs/howto/pictures.md, drawn by the page's own code.

`python tests/support/page_pictures.py` draws them all again.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs/howto/pictures.md"
FOLDER = PAGE.parent / "pictures"


def draw(folder: Path) -> None:
    """Run the page's code in a folder, where it writes its pictures.

    Args:
        folder: The folder.
    """
    import matplotlib as mpl

    # The same figures give the same file.
    settings: Any = {"svg.hashsalt": "mirrored", "backend": "agg"}
    space: dict[str, Any] = {}
    with mpl.rc_context(settings), contextlib.chdir(folder):
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), space)


if __name__ == "__main__":
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # The files have no other date.
    FOLDER.mkdir(exist_ok=True)
    draw(FOLDER)
    (FOLDER / "trace.json").unlink()
