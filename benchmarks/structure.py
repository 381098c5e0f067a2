"""What a reader has to read: files, lines, and what a first and a second `fit` call.

`python -m benchmarks.structure` prints the figures that docs/architecture.md has. They depend on
the code, and hardly on the machine. That files make no circles, `lint-imports` holds.
"""

import argparse
import ast
import io
import sys
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LIBRARY = ("mirrored", "layers", "optim")
_TESTS = ("tests",)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=4, help="simulated GPUs (default 4)")
    options = parser.parse_args()
    for name, folders in (("library", _LIBRARY), ("tests", _TESTS)):
        sources = list(_sources(folders))
        code, docstrings = map(sum, zip(*(count_lines(each) for each in sources), strict=True))
        print(f"{name}: {len(sources)} files, {code} lines of code, {docstrings} of docstrings")
    for which, calls in zip(("first", "second"), fits(options.gpus), strict=True):
        files = {file for file, _ in calls}
        print(
            f"{which} fit of a step, {options.gpus} GPUs: {sum(calls.values())} Python calls of "
            f"{len(calls)} functions in {len(files)} files"
        )


def _sources(folders: Iterable[str]) -> Iterable[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path


# ---------------------------------------------------------------------------- lines


def count_lines(path: Path) -> tuple[int, int]:
    """Return how many lines of a file have code, and how many are of docstrings."""
    text = path.read_text()
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - documented), len(documented)


# ---------------------------------------------------------------------------- calls


def fits(gpus: int) -> list[Counter[tuple[str, str]]]:
    """Return how often each function of the library is called by a first and by a second `fit`."""
    import numpy as np

    import mirrored as mr

    mr.config.experimental.set_simulated_gpus(gpus)
    x = np.arange(64, dtype=np.float32).reshape(-1, 1)
    with mr.distribute.MirroredStrategy().scope():
        model = mr.keras.Sequential([mr.keras.layers.Dense(1, input_shape=(1,))])
        model.compile(loss="mse", optimizer="sgd")
    return [_calls(lambda: model.fit(x, x, batch_size=64, verbose=0)) for _ in range(2)]


def _calls(work: Callable[[], Any]) -> Counter[tuple[str, str]]:
    import mirrored

    calls: Counter[tuple[str, str]] = Counter()
    package = f"{Path(mirrored.__file__).parent}/"

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            code = frame.f_code
            calls[str(Path(code.co_filename)), code.co_qualname] += 1

    threading.setprofile(note)  # Replicas have threads, which take turns.
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return calls


if __name__ == "__main__":
    main()
