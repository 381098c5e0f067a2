"""The states that random numbers are drawn from: the global one, and others instead of it.

A draw is a key and a number. Its numbers follow from these and from their places by Philox 4x64
(Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), so any part of a stream can
be drawn without those before it.
"""

import functools
import os
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirrored._contexts import Within
from mirrored.ops.spec import Shape

WORD = 1 << 64
Key = tuple[int, int]
# The second words of keys; 0 is that of draws without a seed of their own. A seed of an op could be
# one of these two, but then the first words are not the same.
GENERATORS, _DERIVED = WORD - 1, WORD - 2


@functools.cache
def _unseeded() -> tuple[Any, Any, Any]:
    """Return a seed sequence, a counter and a state for a generator that gets its own afterwards.

    NumPy would ask the system for a seed first. Its random numbers are slow to import, so that is
    done for the first draw.
    """
    from numpy.random.bit_generator import ISeedSequence

    zeros = np.zeros(4, np.uint64)

    class NoSeed(ISeedSequence):
        def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
            return zeros[:n_words].astype(dtype)

    seed: Any = NoSeed()
    state: Any = np.random.Philox(seed).state
    return seed, zeros, state | {"buffer": state["buffer"].tolist()}


def _bits(key: Key, draw: int, block: int, spare: Any = None) -> "np.random.Philox":
    """Return a bit generator at a block of a draw: a new one, or one that is not in use."""
    seed, zeros, fresh = _unseeded()
    bits: np.random.Philox = spare or np.random.Philox(seed, counter=zeros)
    bits.state = fresh | {"state": {"counter": (block, 0, draw % WORD, 0), "key": key}}
    return bits


def philox(key: Key, draw: int, first: int, per_block: int) -> "np.random.Generator":
    """Return a generator whose next number is number `first` of draw number `draw`."""
    block, skip = divmod(first, per_block)
    generator = np.random.Generator(_bits(key, draw, block))
    if skip:
        generator.random(skip, dtype=np.float32 if per_block == 8 else np.float64)
    return generator


# Generators that are not in use: to make one takes longer than what each `fit` draws.
_spare: "list[np.random.Generator]" = []


def _at(key: Key, draw: int) -> "np.random.Generator":
    """Return a generator at the beginning of a draw, which is spare again once it has drawn."""
    try:
        generator = _spare.pop()
    except IndexError:  # There is none yet, or threads have them.
        return philox(key, draw, 0, 4)
    _bits(key, draw, 0, generator.bit_generator)
    return generator


def first_word(key: Key, draw: int) -> int:
    """Return the first 64 bits of a draw."""
    generator = _at(key, draw)
    word = int(generator.bit_generator.random_raw())
    _spare.append(generator)
    return word


def permutation(key: Key, draw: int, n: int) -> NDArray[np.int64]:
    """Return the numbers below `n` in the random order of a draw."""
    generator = _at(key, draw)
    order = generator.permutation(n)
    _spare.append(generator)
    return order


class ShardPosition(NamedTuple):
    """The position of the current replica's examples in the global batch.

    Attributes:
        run: What all replicas of one step share and no other step does; None outside replicas.
        replica: The number of the replica.
        first_example: How many examples of the global batch come before its own.
        examples: How many are its own; None where the step has no batch.
        batch: How many the global batch has.
        replicas: How many replicas there are.
        draws_by_example: Returns whether the next random numbers may be those of the examples;
            None: that follows from their shape alone.
    """

    run: object | None = None
    replica: int = 0
    first_example: int = 0
    examples: int | None = None
    batch: int = 0
    replicas: int = 1
    draws_by_example: Callable[[], bool] | None = None

    def leads(self, shape: Shape) -> bool:
        """Return whether the first axis of what is drawn is taken for the batch."""
        if self.draws_by_example is not None and not self.draws_by_example():
            return False
        return self.examples is not None and shape[:1] == (self.examples,)

    def whole(self, shape: Shape) -> Shape:
        """Return the shape of the draw of all replicas together."""
        return (self.batch, *shape[1:]) if self.leads(shape) else shape


WHOLE = ShardPosition()  # That of who draws everything.
_position: ContextVar[ShardPosition] = ContextVar("mirrored_shard_position", default=WHOLE)


def shard_position(position: ShardPosition) -> Within:
    """Draw, within this context, as the replica at `position`."""
    return Within(_position, position)


# Returns the position in the global batch of the replica that is running.
current_position: Callable[[], ShardPosition] = _position.get


@dataclass
class _RunDraws:
    """The draws that the replicas of a run share, by their seeds.

    Attributes:
        run: What all replicas of one step share and no other step does.
        draws: The draws so far, by seed and number.
        taken: How many of them each replica had, by seed and replica.
    """

    run: object | None = None
    draws: dict[tuple[int | None, int], tuple[Key, int]] = field(default_factory=dict)
    taken: dict[tuple[int | None, int], int] = field(default_factory=dict)

    def copy(self) -> "_RunDraws":
        """Return a copy, which later draws do not change."""
        return _RunDraws(self.run, dict(self.draws), dict(self.taken))


@dataclass
class RngState:
    """Draws one after another: those without a seed of their own, and those of each such seed.

    Attributes:
        seed: What all of them follow from.
        draws: How many were made without a seed of their own.
        draws_by_seed: How many were made with each such seed.
    """

    seed: int
    draws: int = 0
    draws_by_seed: dict[int, int] = field(default_factory=dict)
    _of_run: _RunDraws = field(default_factory=_RunDraws, init=False, repr=False, compare=False)

    def next(self, seed: int | None = None) -> tuple[Key, int]:
        """Return key and number of the next draw; each seed of its own has its own draws."""
        if seed is None:
            self.draws += 1
            return (self.seed, 0), self.draws - 1
        drawn = self.draws_by_seed.get(seed, 0)
        self.draws_by_seed[seed] = drawn + 1
        return (self.seed, 1 + seed % (WORD - 1)), drawn

    def next_of_run(self, run: object | None, replica: int, seed: int | None) -> tuple[Key, int]:
        """Return the next draw of a replica, which is the same on all replicas of a run.

        Args:
            run: What all replicas of one step share and no other step does; None: outside replicas.
            replica: The replica's number.
            seed: As for `next`.
        """
        if run is None:
            return self.next(seed)
        if run is not self._of_run.run:
            self._of_run = _RunDraws(run)
        draws, taken = self._of_run.draws, self._of_run.taken
        number = taken.get((seed, replica), 0)
        taken[seed, replica] = number + 1
        if (seed, number) not in draws:
            draws[seed, number] = self.next(seed)
        return draws[seed, number]

    def mark(self) -> Callable[[], None]:
        """Return a function that takes back all later draws."""
        draws, by_seed, of_run = self.draws, dict(self.draws_by_seed), self._of_run.copy()

        def back() -> None:
            self.draws, self.draws_by_seed, self._of_run = draws, by_seed, of_run.copy()

        return back

    def generator(self) -> "np.random.Generator":
        """Return a generator of numbers on the host, all of the next draw."""
        return philox(*self.next(), 0, 4)


_global = [RngState(int.from_bytes(os.urandom(8)) >> 1)]
_own: ContextVar[RngState | None] = ContextVar("mirrored_own_rng_state", default=None)


def global_rng_state() -> RngState:
    """Return the global state, from which draws are made outside of other states."""
    return _global[0]


def set_global_rng_state(state: RngState) -> None:
    """Set the global state."""
    _global[0] = state


def current_rng_state() -> RngState:
    """Return the state of this context."""
    return _own.get() or _global[0]


def drawing_from(state: RngState) -> Within:
    """Within this context draw from a state instead of from the global one."""
    return Within(_own, state)


_always: ContextVar[RngState | None] = ContextVar("mirrored_always_rng_state", default=None)

# Returns the state that draws are always made from here; None: those of whoever draws.
bound_rng_state: Callable[[], RngState | None] = _always.get


def drawing_always_from(state: RngState) -> Within:
    """Within this context draw from a state; recorded functions do so wherever they are run."""
    return Within(_always, state)


def as_seed(seed: Any) -> int:
    """Return a seed below 2**64.

    Args:
        seed: Any integer.

    Raises:
        TypeError: It is no integer.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise TypeError(f"A seed must be an integer. Received: {seed!r}")
    return int(seed) % WORD


def new_seed() -> int:
    """Return a seed that is drawn from the state of this context, the same on all replicas."""
    position = current_position()
    return first_word(*current_rng_state().next_of_run(position.run, position.replica, None))


def derived_seed(seed: int, *numbers: int) -> int:
    """Return a seed that is derived from another one and some numbers.

    Args:
        seed: The other seed.
        *numbers: Which one it is of those that follow; each is 0 or more.
    """
    for number in numbers:
        seed = first_word((seed, _DERIVED), number)
    return seed
