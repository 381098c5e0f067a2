"""The programs of `tests/programs/guides`, Keras' and TensorFlow 1's: what they give, for any `tf`.

The numbers in the JSON files of the folders' names are TensorFlow 2.21's with Keras 3.15, on one
device. Where it is installed, `python tests/support/guides.py` writes them anew, or
those of the folders that it is given.
"""

import inspect
import json
import runpy
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDERS = ("guides", "keras_guides", "tensorflow1", "tutorials")
PROGRAMS = Path(__file__).parents[1] / "programs"
Part = Callable[[Any], Any]


@cache
def parts(folder: str) -> dict[str, Part]:
    """Return the functions of a folder's guides that take the library, by guide and name."""
    return {
        f"{path.stem}: {name.replace('_', ' ')}": value
        for path in sorted((PROGRAMS / folder).glob("*.py"))
        for name, value in runpy.run_path(str(path)).items()
        if inspect.isfunction(value)
        and name[0] != "_"
        and [*inspect.signature(value).parameters] == ["tf"]
    }


@cache
def expected(folder: str) -> dict[str, Any]:
    """Return what TensorFlow's programs told, by guide and name."""
    numbers: dict[str, Any] = json.loads(_file(folder).read_text("utf-8"))
    return numbers


def told(value: Any) -> Any:
    """Return a value as JSON has it: numbers with their dtype and shape, names as they are."""
    if isinstance(value, Mapping):
        return {str(key): told(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [told(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    array = np.asarray(value)
    values = [repr(float(each)) for each in array.ravel()]
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}


def error_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, list[str]]:
    """Return the names of the class of the error that a call raises, and of its bases."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return {"error": [each.__name__ for each in type(error).__mro__]}
    return {"error": []}


def as_run(part: Part, library: Any, folder: str) -> Any:
    """Return what a function gives for a library; those of TensorFlow 1 have a graph each."""
    if folder != "tensorflow1":
        return part(library)
    v1 = library.compat.v1
    with v1.Graph().as_default():
        return part(v1)


def _file(folder: str) -> Path:
    return Path(__file__).with_name(f"{folder}.json")


def main() -> None:
    """Write TensorFlow's numbers."""
    import tensorflow

    for folder in sys.argv[1:] or FOLDERS:
        if folder == "tensorflow1":
            tensorflow.compat.v1.disable_v2_behavior()
        said = {}
        for name, part in parts(folder).items():
            try:
                said[name] = told(as_run(part, tensorflow, folder))
            except Exception as error:
                error.add_note(f"It was {name}.")
                raise
        _file(folder).write_text(json.dumps(said, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
