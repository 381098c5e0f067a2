"""The notebooks of docs/notebooks: runs them from top to bottom.

`python tests/support/notebooks.py` runs all of them, and stores their outputs.
"""

import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "docs/notebooks"
NAMES = ("first-steps", "eight-gpus", "n-equals-one")


def executed(name: str) -> Any:
    """Return a notebook with the outputs of a run, in which no error but an expected one is raised.

    Args:
        name: The name of its file, without the ending.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    kept = dict(notebook.metadata)
    # Its kernel is this Python, whether or not one is registered with Jupyter.
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable
    env = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1]), "MIRRORED_LOG_LEVEL": "WARNING"}
    client.execute(env=env)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # Times.
    notebook.metadata = nbformat.from_dict(kept)
    return notebook


if __name__ == "__main__":
    import nbformat

    for name in sys.argv[1:] or NAMES:
        nbformat.write(executed(name), FOLDER / f"{name}.ipynb")
