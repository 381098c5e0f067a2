"""Random states of a dataset's transforms, so that every run of a program draws the same numbers.

A thread that creates elements ahead may be stopped at any time, without effect on later draws.
"""

import itertools
from dataclasses import dataclass, replace

from mirrored.ops.rng_state import (
    WORD,
    Key,
    RngState,
    as_seed,
    current_rng_state,
    derived_seed,
    global_rng_state,
    new_seed,
)


@dataclass
class CallDraws(RngState):
    """The draws of a function that a dataset calls for each element.

    As in TensorFlow, where each op has a state of its own that begins with the iterator, draws
    with a seed of their own follow from it and from the number of the call: draws with one seed
    are alike in a call, and the next iterator begins again.

    Attributes:
        base: What draws with a seed of their own follow from too: the global seed, and the pass.
        number: The number of calls before this one.
    """

    base: int = 0
    number: int = 0

    def next(self, seed: int | None = None) -> tuple[Key, int]:
        """Return key and number of the next draw."""
        if seed is None:
            return super().next()
        return (self.base, 1 + seed % (WORD - 1)), self.number


@dataclass(frozen=True)
class Iteration:
    """The identity of an iteration over a transform; all draws in it follow from this.

    Without arguments it is the first one of a transform that has no source.

    Attributes:
        number: Which iterator over the transform it is of, counted from 0.
        sources: The iterations of the transforms that the transform takes elements from.
        passes: Where `repeat` is in it: the numbers of the passes, the outermost first.
        seed: What is drawn in it follows from; None: the seed that the transform has.
        base: What draws with a seed of their own follow from; None: the transform's.
    """

    number: int = 0
    sources: "tuple[Iteration, ...]" = ()
    passes: tuple[int, ...] = ()
    seed: int | None = None
    base: int | None = None

    def source(self, index: int = 0) -> "Iteration":
        """Return the iteration of a transform that elements are taken from, in the same pass."""
        return replace(self.sources[index], passes=self.passes)

    def first(self) -> "Iteration":
        """Return the iteration that stands for all where each draws the same numbers."""
        return Iteration(seed=self.seed)

    def in_pass(self, index: int) -> "Iteration":
        """Return the iteration in a pass of `repeat`; the first is as if there was no `repeat`."""
        if index == 0 and not self.passes:
            return self
        return replace(self, passes=(*self.passes, index))


class Rng:
    """The seed of a transform, and how many iterators there were.

    Without one it is taken from the global stream, now and in the caller's thread.

    Attributes:
        seed: The seed.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._base = current_rng_state().seed
        self.seed = new_seed() if seed is None else as_seed(seed)
        self._numbers = itertools.count()

    @property
    def base(self) -> int | None:
        """The seed that draws with a seed of their own follow from, in a new iterator.

        It is the global seed when this was made; in a function of another dataset, what those of
        that function follow from, and the number of its call.
        """
        state = current_rng_state()
        return (
            derived_seed(state.base, state.number) if isinstance(state, CallDraws) else self._base
        )

    def go_on_after(self, number: int) -> None:
        """Give later iterators greater numbers than this one."""
        self._numbers = itertools.count(max(next(self._numbers), number + 1))

    def number(self) -> int:
        """Return the number of an iterator that begins."""
        if current_rng_state() is global_rng_state():
            return next(self._numbers)
        # In a function of another dataset, which a thread may call ahead: a draw of its iteration.
        return new_seed()

    def stream(self, iteration: Iteration) -> RngState:
        """Return the random state of the transform at the beginning of an iteration."""
        return RngState(self._derived(iteration))

    def call_draws(self, iteration: Iteration) -> CallDraws:
        """Return the random state of the transform's function in an iteration."""
        base = self._base if iteration.base is None else iteration.base
        return CallDraws(self._derived(iteration), base=derived_seed(base, *iteration.passes))

    def _derived(self, iteration: Iteration) -> int:
        seed = self.seed if iteration.seed is None else iteration.seed
        return derived_seed(seed, iteration.number, *iteration.passes)
