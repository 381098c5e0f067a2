"""How much there is to read, and how much Python a `fit` runs: figures, and a limit for each.

`python -m benchmarks.structure` prints them next to the limits in pyproject.toml, and ends with
status 1 where one of the library is exceeded: tests may grow. They depend on the code, and hardly
on the machine.
"""

import argparse
import ast
import functools
import gc
import io
import re
import sys
import threading
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_LIBRARY = ("mirrored", "layers", "optim")
_TESTS = ("tests",)
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# Words that hide what a name is of.
PRIVATE_WORDS = frozenset(("each", "found", "given", "made", "told"))
_WORDS = re.compile(rf"(?<![a-z])(?:{'|'.join(sorted(PRIVATE_WORDS))})(?![a-z])")


def main() -> None:
    """Print the figures next to their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=4, help="number of simulated GPUs (default: 4)")
    options = parser.parse_args()
    _print_packages()
    figures = figures_of(options.gpus)
    limits = limits_of(ROOT / "pyproject.toml")
    print(f"\n{'figure':<28}{'now':>9}{'limit':>9}{'change':>9}")
    for name, value in figures.items():
        limit = limits[name]
        print(f"{name:<28}{value:>9}{limit:>9}{value - limit:>+9}")
    exceeded = [
        name
        for name, value in figures.items()
        if value > limits[name] and not name.startswith("test ")
    ]
    if exceeded:
        sys.exit(
            f"{', '.join(exceeded)}: more than pyproject.toml allows. Make the change smaller, or "
            "take something else away."
        )


def figures_of(gpus: int) -> dict[str, int]:
    """Return all figures that have a limit, by name.

    Args:
        gpus: How many simulated GPUs the fits run on.
    """
    library, tests = list(sources(_LIBRARY)), list(sources(_TESTS))
    first, second = fits(gpus)
    return {
        "library code lines": sum(count_lines(path)[0] for path in library),
        "library files": len(library),
        "test code lines": sum(count_lines(path)[0] for path in tests),
        "private words": sum(len(private_words(path)) for path in library),
        "calls of a first fit": first.calls.total(),
        "calls of a second fit": second.calls.total(),
        "calls upward in a first fit": first.upward,
    }


def limits_of(pyproject: Path) -> dict[str, int]:
    """Return the limits of the figures, by their names."""
    limits = tomllib.loads(pyproject.read_text())["tool"]["mirrored"]["limits"]
    return {name.replace("-", " "): limit for name, limit in limits.items()}


def sources(folders: Iterable[str]) -> Iterator[Path]:
    """Yield the Python files in some folders of the repository, each once."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path


def _print_packages() -> None:
    rows: dict[str, list[int]] = {}
    for path in (*sources(_LIBRARY), *sources(_TESTS)):
        parts = path.relative_to(ROOT).parts
        package = "/".join(parts[: 2 if parts[0] == "mirrored" and len(parts) > 2 else 1])
        row = rows.setdefault(package, [0, 0, 0])
        for index, count in enumerate((*count_lines(path), 1)):
            row[index] += count
    print(f"{'package':<28}{'code':>9}{'docs':>9}{'files':>9}")
    for package, row in rows.items():
        print(f"{package:<28}" + "".join(f"{count:>9}" for count in row))


# ---------------------------------------------------------------------------- lines and words


def count_lines(path: Path) -> tuple[int, int]:
    """Return how many lines of a file have code, and how many are of docstrings."""
    return len(_lines(path)[0]), len(_lines(path)[1])


def private_words(path: Path) -> list[str]:
    """Return the identifiers of a file, its own name included, that are one of `PRIVATE_WORDS`.

    An identifier counts wherever it is bound: as a variable, an argument, a function or a class.
    """
    text = path.read_text()
    rows = text.split("\n")
    bound: Iterable[str] = ()
    if any(_WORDS.search(rows[number - 1]) for number in _lines(path)[0]):  # To walk takes long.
        bound = _bound_names(ast.parse(text))
    return [name for name in (path.stem, *bound) if name.strip("_") in PRIVATE_WORDS]


@functools.cache
def _lines(path: Path) -> tuple[set[int], set[int]]:
    """Return the numbers of the lines that have code, and of those of docstrings."""
    text = path.read_text()
    documented: set[int] = set()
    for node in _documented_nodes(ast.parse(text)):
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    return _code_lines(text, documented), documented


def _documented_nodes(node: ast.AST) -> Iterator[_Documented]:
    """Yield the module, the classes and the functions; it looks into statements alone."""
    if isinstance(node, _Documented):
        yield node
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for statement in getattr(node, field, ()):
            yield from _documented_nodes(statement)


def _bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, _Documented) and not isinstance(node, ast.Module):
            yield node.name


def _code_lines(text: str, documented: set[int]) -> set[int]:
    rest = {
        number: line.strip()
        for number, line in enumerate(text.split("\n"), 1)
        if number not in documented
    }
    if not any('"""' in line or "'''" in line for line in rest.values()):
        return {number for number, line in rest.items() if line and line[0] != "#"}
    lines: set[int] = set()  # A blank line of a string is code: tokens tell, and take long.
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent and token.type != tokenize.ENDMARKER:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return lines - documented


# ---------------------------------------------------------------------------- calls


class Fit(NamedTuple):
    """What a `fit` called.

    Attributes:
        calls: How often each function of the library was called, by its file and name.
        upward: How often a package called one above it, up to the first product of matrices.
    """

    calls: Counter[tuple[str, str]]
    upward: int


def fits(gpus: int) -> list[Fit]:
    """Return what a first and a second `fit` call, of a step of one layer."""
    import numpy as np

    import mirrored as mr

    mr.config.experimental.set_simulated_gpus(gpus)
    x = np.arange(64, dtype=np.float32).reshape(-1, 1)
    with mr.distribute.MirroredStrategy().scope():
        model = mr.keras.Sequential([mr.keras.layers.Dense(1, input_shape=(1,))])
        model.compile(loss="mse", optimizer="sgd")
    return [_calls(lambda: model.fit(x, x, batch_size=64, verbose=0)) for _ in range(2)]


def packages() -> list[str]:
    """Return the packages from the lowest to the highest, as docs/architecture.md has them."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page.partition("\n## One batch")[0], re.MULTILINE)
    names = [re.findall(r"`(?:mirrored/)?(\w+)(?:/|\.py)?`", row) for row in rows]
    return [name for row in names for name in row]


def _calls(work: Callable[[], Any]) -> Fit:
    import mirrored
    from mirrored.ops.op import OPS

    calls: Counter[tuple[str, str]] = Counter()
    package = f"{Path(mirrored.__file__).parent}/"
    heights = {name: height for height, name in enumerate(packages())}
    product = getattr(OPS["MatMul"].kernel, "__code__", None)
    upward, before_product = 0, True

    def height(code: CodeType) -> int | None:
        if not code.co_filename.startswith(package):
            return None
        top = code.co_filename.removeprefix(package).partition("/")[0].removesuffix(".py")
        return heights.get(top)

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal upward, before_product
        if event != "call" or not frame.f_code.co_filename.startswith(package):
            return
        code = frame.f_code
        calls[str(Path(code.co_filename)), code.co_qualname] += 1
        before_product = before_product and code is not product
        if before_product and frame.f_back is not None:
            caller, called = height(frame.f_back.f_code), height(code)
            upward += caller is not None and called is not None and called > caller

    threading.setprofile(note)  # Replicas have threads, which take turns.
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return Fit(calls, upward)


if __name__ == "__main__":
    gc.disable()  # Collections would look through the syntax trees of all files again and again.
    main()
