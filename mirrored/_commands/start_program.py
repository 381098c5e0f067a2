"""``mirrored run``: runs a program as one worker of several, which end together.

All workers are connected before the program begins, so that one that fails ends the others,
wherever they are.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.util import find_spec, module_from_spec
from types import CodeType, ModuleType
from typing import Any

from mirrored._commands.command_line import WRONG_USE, CommandError, Result, Say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("-m", dest="is_module", action="store_true", help="PROGRAM is a module")
    parser.add_argument("program", metavar="PROGRAM", help="a file, or with -m a module")
    rest = parser.add_argument(
        "arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="arguments of the program"
    )
    rest.required = False  # For the text of an error.


def execute(options: argparse.Namespace, say: Say) -> Result:
    """Connect the workers; the program of the result runs as `python` would run it.

    Args:
        options: The parsed arguments.
        say: Unused: the program alone prints.
    """
    from mirrored.workers import connect

    workers = connect()

    def program() -> None:
        try:
            _run(options.program, options.is_module, options.arguments)
        except SystemExit as end:
            if end.code not in (None, 0):
                workers.failed(end)
            raise
        except BaseException as error:
            workers.failed(error)
            raise

    return Result(program=program)


def _run(program: str, is_module: bool, arguments: list[str]) -> None:
    before = sys.path[:]
    if not sys.flags.safe_path:
        del sys.path[0]  # The folder of the program `mirrored`.
    try:
        main, code = _module(program) if is_module else _file(program)
    except CommandError:
        sys.path[:] = before
        raise
    sys.argv[:] = [str(main.__file__) if is_module else program, *arguments]
    main.__name__ = "__main__"
    sys.modules["__main__"] = main  # It stays there, as for the functions of `atexit`.
    exec(code, vars(main))


def _module(name: str) -> tuple[ModuleType, CodeType]:
    """Return a module that was not run yet, and its code."""
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name += ".__main__"  # It is run for a package.
        spec = _spec(name)
    if spec is None:
        raise CommandError(WRONG_USE, f"There is no module {name!r}.")
    return _loaded(spec)


def _loaded(spec: ModuleSpec) -> tuple[ModuleType, CodeType]:
    code = getattr(spec.loader, "get_code", lambda name: None)(spec.name)
    if code is None:
        raise CommandError(WRONG_USE, f"The module {spec.name!r} has no Python code.")
    return module_from_spec(spec), code


def _spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module, whose package is imported; None if there is none."""
    package = name.rpartition(".")[0]
    if not all(name.split(".")) or name == "__main__":  # That one is this program.
        return None
    try:
        if package:
            importlib.import_module(package)
    except ModuleNotFoundError as error:
        if f"{package}.".startswith(f"{error.name}."):
            return None
        raise  # Code of the package imports another module, which is missing.
    try:
        return find_spec(name)
    except (ImportError, ValueError):  # `package` is a module; a module has no spec.
        return None


def _file(program: str) -> tuple[ModuleType, CodeType]:
    """Return the module of a file, a folder or an archive that was not run yet, and its code."""
    path = os.path.join(os.getcwd(), program)
    importer = pkgutil.get_importer(path)  # Of a folder or an archive.
    spec = importer.find_spec("__main__") if importer is not None else None
    if spec is not None:
        sys.path.insert(0, path)
        return _loaded(spec)
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    main = ModuleType("__main__")
    loader = (SourcelessFileLoader if path.endswith(".pyc") else SourceFileLoader)("__main__", path)
    main.__file__, main.__loader__ = path, loader
    vars(main)["__cached__"] = None
    try:
        contents = loader.get_data(path)
    except PermissionError as error:
        text = f"The file {program!r} cannot be read: {error.strerror}."
        raise CommandError(WRONG_USE, text) from None
    except OSError:
        text = f"There is no file {program!r}. The current folder is {os.getcwd()!r}."
        raise CommandError(WRONG_USE, text) from None
    if isinstance(loader, SourceFileLoader):
        return main, loader.source_to_code(contents, path)
    code: Any = loader.get_code("__main__")
    return main, code
