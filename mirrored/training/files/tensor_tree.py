"""A tree of (path, array) behind all files of weights: names, comparisons, checksums, damage.

Safetensors files, HDF5 files and checkpoints are readers and writers of such a tree. Names do not
depend on how a model was put together: any model of the same layers gives them.
"""

import contextlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mirrored._files import special_kind
from mirrored._naming import free_name
from mirrored._types import PathLike
from mirrored.errors import WeightsFileError
from mirrored.layers.layer import Layer, own_weights
from mirrored.optim import Optimizer
from mirrored.variables import Variable

Item = TypeVar("Item")
Spec = tuple[tuple[int, ...], str]  # A shape and the name of a dtype.
Specs = dict[str, Spec]
Expected = Mapping[str, tuple[tuple[int, ...], Any]]

_PIECE = 1 << 22
_LISTED = 5  # Problems named in one error: enough to see the pattern, few enough to read.
_LONGEST = 300  # Letters of one of them: whoever made a file may have made up long names.


# ---------------------------------------------------------------------------- names


def named_weights(layers: Iterable[Layer]) -> dict[str, Variable]:
    """Return the weights, each once, under names that another layer of the same parts gives.

    Args:
        layers: The layer and all inside it, as `walk` yields them.
    """
    return named_by_place(
        (f"{place(index, inner)}.{leaf_name(variable)}", variable)
        for index, inner in enumerate(layers)
        for variable in own_weights(inner)
    )


def place(index: int, layer: object) -> str:
    """Return the beginning of the names that belong to a layer."""
    return f"{index}.{type(layer).__name__.lower()}"


def leaf_name(variable: Variable) -> str:
    """Return a variable's own name, without those of the layer or optimizer that it is in."""
    return variable.name.removesuffix(":0").rpartition("/")[2]


def named_by_place(pairs: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    """Return things by name, each once; a name that is taken gets a number."""
    named: dict[str, Item] = {}
    seen: set[int] = set()
    for name, item in pairs:
        if id(item) in seen:  # Shared with a layer before.
            continue
        seen.add(id(item))
        named[free_name(name, named)] = item  # A layer may give two of its weights one name.
    return named


# ---------------------------------------------------------------------------- values


def little_endian(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array's bytes in the order of files: rows first, little-endian."""
    data = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return data.reshape(-1).view(np.uint8)


def checksum(array: NDArray[Any], description: str = "") -> int:
    """Return a checksum of an array's values and of a description."""
    return zlib.crc32(little_endian(array).data, zlib.crc32(description.encode()))


def as_integers(words: Sequence[int]) -> NDArray[np.int64]:
    """Return numbers from 0 to 2**64 - 1 as files hold them: in int64, with the same bits."""
    return np.array(words, np.uint64).view(np.int64)


def as_words(integers: NDArray[Any]) -> list[int]:
    """Return the numbers from 0 to 2**64 - 1 that int64 holds."""
    words: list[int] = integers.view(np.uint64).tolist()
    return words


# ---------------------------------------------------------------------------- files


@contextlib.contextmanager
def opened(path: str, noun: str) -> Iterator[IO[bytes]]:
    """Open a regular file to read it.

    Args:
        path: The file.
        noun: What messages call it.

    Raises:
        WeightsFileError: It is no regular file.
    """
    special = special_kind(path)
    if special is not None:  # To open a FIFO might wait for ever.
        where = "a file in it" if special == "a folder" else "a file"
        raise WeightsFileError(f"The {noun} {path!r} is {special}. Pass the path of {where}.")
    with open(path, "rb") as file:
        yield file


def damaged(noun: str, problem: str, otherwise: str = "") -> WeightsFileError:
    """Return the error about a file whose contents are not as they were written.

    Args:
        noun: What messages call the file, with its name.
        problem: What the file is, and why.
        otherwise: What else to do.
    """
    return WeightsFileError(f"{noun} is {problem}. Restore the file from another copy{otherwise}.")


def differences(specs: Specs, expected: Expected, owner: str) -> list[str]:
    """Return the differences between a file's tensors and the expected ones.

    Args:
        specs: The file's.
        expected: Those that are wanted.
        owner: What messages call the owner of these.
    """
    problems = [f"no {key!r}" for key in expected if key not in specs]
    problems += [f"unexpected {key!r}" for key in sorted(specs) if key not in expected]
    for key in specs.keys() & expected.keys():
        (shape, dtype), (wanted, wanted_dtype) = specs[key], expected[key]
        if shape != tuple(wanted):
            problems.append(f"{key!r} has shape {shape}, the {owner}'s has {tuple(wanted)}")
        if dtype != np.dtype(wanted_dtype).name:
            problems.append(f"{key!r} is {dtype}, the {owner}'s is {np.dtype(wanted_dtype)}")
    return problems


def raise_differences(noun: str, problems: Sequence[str], owner: str) -> None:
    """Raise WeightsFileError where there are differences."""
    if problems:
        listed = "; ".join(problem[:_LONGEST] for problem in problems[:_LISTED])
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise WeightsFileError(
            f"{noun} belongs to another {owner}: {listed}{more}. Build the {owner} as it was when "
            "the file was saved."
        )


@contextlib.contextmanager
def slots_undone_on_failure(optimizers: Iterable[Any]) -> Iterator[None]:
    """Within this context, an exception takes back the slots that optimizers get."""
    all_slots = [owner.slots for owner in optimizers if isinstance(owner, Optimizer)]
    known = [(slots, slots.snapshot()) for slots in all_slots]
    try:
        yield
    except BaseException:
        for slots, snapshot in known:
            slots.restore(snapshot)
        raise


def check_same_file(path: PathLike | None, owners: Iterable[Any], action: str) -> None:
    """Raise where workers would read other files, before anything changes.

    All of them call it. It says nothing where what is read for belongs to this process alone.

    Args:
        path: The file; None: there is none to read.
        owners: What is read for: those of models and variables count that workers share.
        action: What is done then, for errors.

    Raises:
        WorkerError: One has no such file, or it has other bytes there.
    """
    for owner in owners:
        strategy = getattr(owner, "distribute_strategy", None) or getattr(owner, "strategy", None)
        if strategy is not None and strategy.is_shared:
            strategy.check_alike({"files": [_fingerprint(path)]}, action)
            return


def _fingerprint(path: PathLike | None) -> str:
    if path is None:
        return "no file"
    check = size = 0
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                check, size = zlib.crc32(piece, check), size + len(piece)
    except (OSError, TypeError, ValueError) as error:
        return f"a file that cannot be read ({type(error).__name__})"
    return f"a file of {size} bytes (check {check:08x})"
