"""Where an iterator over a dataset is, as numbers that a checkpoint can hold.

What a pipeline makes follows from its iteration, so the iteration and the number of elements that
were taken are enough: an iterator that goes on from there makes those elements again, and drops
them.
"""

import itertools
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from mirrored.data.failures import Succeeding
from mirrored.data.rng import Iteration
from mirrored.data.row_transforms import gathered
from mirrored.data.spec import Elements
from mirrored.data.transform import Transform, external_of


@dataclass(slots=True)
class Position:
    """Where an iterator is.

    Attributes:
        taken: How many elements were taken.
        iteration: The iteration; None: it has not begun.
    """

    taken: int = 0
    iteration: Iteration | None = None


def elements_from(transform: Transform, position: Position) -> Elements:
    """Yield the elements that come after a position; what begins an iteration notes it there.

    It begins when the first is asked for: an iterator that nobody takes from does not count.
    """
    begin = position.taken
    if position.iteration is None:
        position.iteration = transform.begin()
    slices = transform.batched_slices
    if begin and slices is not None:  # Of what was taken only the numbers of rows are read.
        yield from gathered(transform, slices, position.iteration, begin)
        return
    with closing(transform.open(position.iteration)) as elements:
        for _ in itertools.islice(elements, begin):
            pass
        yield from elements


def elements_of(transform: Transform) -> Succeeding:
    """Return an iterator of all elements as read-only arrays, for our own use; to be closed."""
    return Succeeding(elements_from(transform, Position()))


def words_of(transform: Transform, position: Position) -> tuple[int, ...]:
    """Return a position as numbers from 0 to 2**64 - 1, as many for each position in a pipeline.

    Raises:
        ValueError: Something in the pipeline has a state that is not known here.
    """
    external = external_of(transform)
    if external is not None:
        raise ValueError(
            f"The position of an iterator over a dataset with `{external}` cannot be saved: only "
            "Python knows where the generator is, and what it would give if it was called again. "
            "Save the number of elements in a variable and use `skip`, or make the dataset of "
            "arrays."
        )
    iteration = position.iteration
    numbers = [0, 0, 0] * sum(stage.rng is not None for stage in _all(transform))
    if iteration is not None:
        numbers = [*itertools.chain.from_iterable(_draws(transform, iteration))]
    return (_kind(transform), position.taken, iteration is not None, *numbers)


def position_of(transform: Transform, words: Sequence[int]) -> Position:
    """Return the position that `words_of` gave for a pipeline of the same transforms.

    Raises:
        ValueError: It was another pipeline.
    """
    kind, taken, has_begun, *numbers = words
    if has_begun > 1 or taken > sys.maxsize:
        raise ValueError(f"No iterator has the position {list(words)}. The file is not sound.")
    if kind != _kind(transform):
        names = [type(stage).__name__ for stage in _all(transform)]
        raise ValueError(
            "The iterator was saved over a dataset that was made by other methods. Received: a "
            f"position for an iterator over one of {names}. Make the dataset as it was made then."
        )
    if not has_begun:
        return Position()
    return Position(taken, _iteration(transform, iter(numbers)))


def go_on_after(transform: Transform, iteration: Iteration) -> None:
    """Let the next iterations over a pipeline be those that come after one."""
    if transform.rng is not None:
        transform.rng.go_on_after(iteration.number)
    for source, inner in zip(transform.sources, iteration.sources, strict=True):
        go_on_after(source, inner)


def _all(transform: Transform) -> Iterator[Transform]:
    yield transform
    for source in transform.sources:
        yield from _all(source)


def _kind(transform: Transform) -> int:
    """Return a number that other pipelines hardly have."""
    parts = [
        f"{type(stage).__name__} {len(stage.sources)} {stage.rng is not None}"
        for stage in _all(transform)
    ]
    return zlib.crc32(" ".join(parts).encode())


def _draws(transform: Transform, iteration: Iteration) -> Iterator[tuple[int, int, int]]:
    if transform.rng is not None:
        yield iteration.number, iteration.seed or 0, iteration.base or 0
    for source, inner in zip(transform.sources, iteration.sources, strict=True):
        yield from _draws(source, inner)


def _iteration(transform: Transform, numbers: Iterator[int]) -> Iteration:
    number, seed, base = 0, None, None
    if transform.rng is not None:
        number, seed, base = next(numbers), next(numbers), next(numbers)
    sources = tuple([_iteration(source, numbers) for source in transform.sources])
    return Iteration(number, sources, seed=seed, base=base)
