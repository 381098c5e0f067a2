"""What the transforms of a dataset draw, so that every run of a program draws the same.

A thread that makes elements ahead is stopped at any time: nothing that it did may show later.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored.ops import SeedGenerator
from mirrored.ops.rng_state import (
    RngState,
    as_seed,
    current_rng_state,
    derived_seed,
    global_rng_state,
    new_seed,
)


class Iteration(NamedTuple):
    """Which of all iterations over a transform one is: what that draws in it follows from this.

    Without arguments it is the first one of a transform that has no source.

    Attributes:
        number: Which iterator over the transform it is of, counted from 0.
        sources: The iterations of the transforms that the transform takes elements from.
        passes: Where `repeat` is in it: the numbers of the passes, the outermost first.
        seed: What is drawn in it follows from; None: the seed that the transform has.
    """

    number: int = 0
    sources: "tuple[Iteration, ...]" = ()
    passes: tuple[int, ...] = ()
    seed: int | None = None

    def source(self, index: int = 0) -> "Iteration":
        """Return the iteration of a transform that elements are taken from, in the same pass."""
        return self.sources[index]._replace(passes=self.passes)

    def first(self) -> "Iteration":
        """Return what stands for every iteration of a transform that draws the same in each."""
        return Iteration(seed=self.seed)

    def in_pass(self, index: int) -> "Iteration":
        """Return the iteration in a pass of `repeat`; the first is as if there was no `repeat`."""
        if index == 0 and not self.passes:
            return self
        return self._replace(passes=(*self.passes, index))


class Rng:
    """The seed of a transform, and how many iterators there were.

    Without one it is taken from the global stream, now and in the caller's thread.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seed = new_seed() if seed is None else as_seed(seed)
        self._numbers = itertools.count()

    @property
    def seed(self) -> int | None:
        """The seed."""
        return self._seed

    def go_on_after(self, number: int) -> None:
        """Let the iterators that begin from now on have greater numbers."""
        self._numbers = itertools.count(max(next(self._numbers), number + 1))

    def number(self) -> int:
        """Return the number of an iterator that begins."""
        if current_rng_state() is global_rng_state():
            return next(self._numbers)
        # In a function of another dataset, which a thread may call ahead: a draw of its iteration.
        return new_seed()

    def stream(self, iteration: Iteration) -> RngState:
        """Return what the transform draws from in an iteration, from the beginning on."""
        seed = self._seed if iteration.seed is None else iteration.seed
        return RngState(derived_seed(seed, iteration.number, *iteration.passes))

    def permutation(self, iteration: Iteration, size: int) -> NDArray[np.int64]:
        """Return the numbers below `size` in the order that the transform draws in an iteration."""
        return self.stream(iteration).generator().permutation(size)


class FitRng(Rng):
    """What `fit` draws the order of arrays from: a `SeedGenerator`, a draw a pass.

    The seed is taken when the iteration begins, and not before: the model, whose weights are drawn
    from the global stream too, is built by then.
    """

    def __init__(self) -> None:
        self._seeds: SeedGenerator | None = None

    @property
    def seed(self) -> None:
        """None: it is the generator's."""
        return None

    def number(self) -> int:
        """Take the seed; there is one iteration."""
        self._seeds = SeedGenerator()
        return 0

    def permutation(self, iteration: Iteration, size: int) -> NDArray[np.int64]:
        """Return the order of a pass."""
        seeds = self._seeds or SeedGenerator()
        seeds.restore((seeds.state[0], *(iteration.passes or (0,))))
        return seeds.permutation(size)
