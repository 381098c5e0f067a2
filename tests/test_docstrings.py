"""Runs the examples in the docstrings of the installed package, those of a module as one test.

They run here, not through pytest's own collection, so that what is imported is what is installed.
"""

import doctest
import importlib
import inspect
import itertools
import linecache
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

import numpy as np
import pytest
from case_table import cases
from extras import IMPORT_MORE

import mirrored as mr

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def package_modules() -> Iterator[ModuleType]:
    """Yield every module of the package but the command line's and those in `IMPORT_MORE`."""
    yield mr
    for found in pkgutil.walk_packages(mr.__path__, "mirrored."):
        if not found.name.endswith("__main__") and found.name not in IMPORT_MORE:
            yield importlib.import_module(found.name)


def docstring_examples(modules: Iterable[ModuleType]) -> Iterator[doctest.DocTest]:
    """Yield the examples of each object once, in the module that defines it."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for module in modules:
        for test in finder.find(module, extraglobs={"mr": mr, "np": np}):
            if test.examples:
                yield test


EXAMPLES = list(docstring_examples(package_modules()))
MODULES = {
    name: list(examples)
    for name, examples in itertools.groupby(EXAMPLES, lambda example: example.globs["__name__"])
}


@cases("examples", MODULES.values(), ids=MODULES)
def test_examples(examples: list[doctest.DocTest], reset: Callable[[], None]) -> None:
    """Each starts from the state that a test starts from."""
    report: list[str] = []
    for example in examples:
        reset()
        linecache.clearcache()  # Each run looks whether the files of all lines there have changed.
        runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
        runner.run(example, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.slow
def test_examples_that_need_more_packages(reset: Callable[[], None]) -> None:
    modules = [importlib.import_module(name) for name in sorted(IMPORT_MORE)]
    examples = list(docstring_examples(modules))
    assert examples
    test_examples.__wrapped__(examples, reset)


def test_examples_are_found_in_every_part() -> None:
    """Guard against a finder that finds nothing, and so tests nothing."""
    parts = {example.name.split(".")[1] for example in EXAMPLES}
    assert {"devices", "distribute", "layers", "ops", "optim", "training"} <= parts


def test_every_module_says_why_it_exists() -> None:
    """Its first line is one sentence."""
    summaries = {
        module.__name__: inspect.cleandoc(module.__doc__ or "").partition("\n")[0]
        for module in package_modules()
    }
    assert [name for name, summary in summaries.items() if not summary.endswith(".")] == []
