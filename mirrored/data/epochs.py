"""What an epoch's batches are, of arrays or of a stream: they are read pass after pass.

An epoch and a pass need not be the same, and one loop trains on all kinds of data.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any

from mirrored._logging import logger
from mirrored.data.arrays import Arrays, Check
from mirrored.data.batches import Chunk, Span
from mirrored.data.passes import Passes, PassesOfRows, cardinality_of, passes_of
from mirrored.data.rng import FitRng
from mirrored.data.row_transforms import Batched, Repeated, Shuffled
from mirrored.data.stored import Given, Stored
from mirrored.data.transform import INFINITE_CARDINALITY, Slices, Transform

# Running several batches of a stream in one go takes less Python. Where no callback looks between
# steps, some batches are read first: no more bytes than a cache holds, and for no longer than a
# short step takes, since a `prefetch` makes the next batches while steps run.
_BYTES_AHEAD = 8 << 20
_SECONDS_AHEAD = 1e-3


class Epochs:
    """The batches of one epoch after another.

    Data that can be iterated over again begin anew with each epoch without `steps`, and wherever
    they ended: the epoch in which that happens is a shorter one.

    Args:
        passes: The batches.
        steps: How many batches an epoch has; None: all of a pass.
        goes_on: Whether an epoch with `steps` goes on where the one before ended.
        for_what: The method that was given the data, named in errors.
        steps_name: The argument that `steps` was given for.
        pass_steps: How many batches of arrays are a pass; None: the data came as batches.

    Attributes:
        steps: How many batches an epoch has, None where that is not known yet.
        ran_out: Whether the data ended, and cannot be iterated over again.
        is_stream: Whether the data came as batches.
    """

    steps: int | None
    ran_out = False

    def __init__(
        self,
        passes: Passes,
        steps: int | None,
        *,
        goes_on: bool,
        for_what: str,
        steps_name: str = "steps",
        pass_steps: int | None = None,
    ) -> None:
        self.steps = self._wanted = steps
        self._passes, self._goes_on = passes, goes_on
        self._for_what, self._steps_name = for_what, steps_name
        self._pass_steps, self._taken = pass_steps, 0
        self.is_stream = pass_steps is None
        self._warned = False

    @classmethod
    def of_arrays(
        cls,
        arrays: Given,
        for_what: str,
        batch_size: int,
        steps: int,
        steps_name: str = "steps",
        *,
        goes_on: bool,
        shuffled: bool = False,
    ) -> "Epochs":
        """Return batches of arrays, pass after pass.

        Args:
            arrays: The examples.
            for_what: The method that asks, named in errors.
            batch_size: The number of examples in a global batch.
            steps: How many batches an epoch has; where a pass has fewer it is shorter.
            steps_name: The argument that `steps` was given for.
            goes_on: Whether an epoch goes on where the one before ended.
            shuffled: Whether each pass is in another order, by the global seed.
        """
        passes: Passes
        if isinstance(arrays, Stored):
            from mirrored.data.stored_passes import PassesOfStored  # What has no room is seldom.

            passes = PassesOfStored(arrays, batch_size, shuffled=shuffled)
        else:
            rows: Transform = Slices(arrays.columns, arrays.size)
            if shuffled:
                rows = Shuffled(rows, arrays.size, FitRng())
            transform = Repeated(Batched(rows, batch_size, drop_remainder=False), None)
            passes = PassesOfRows(transform, arrays)
        return cls(
            passes,
            steps,
            goes_on=goes_on,
            for_what=for_what,
            steps_name=steps_name,
            pass_steps=-(-arrays.size // batch_size),
        )

    @classmethod
    def of_stream(
        cls,
        data: Iterable[Any],
        for_what: str,
        steps: int | None,
        steps_name: str,
        *,
        goes_on: bool,
        class_weight: Mapping[int, float] | None = None,
        shuffled: bool = False,
        among: Callable[[Passes], Passes] | None = None,
    ) -> "Epochs":
        """Return the batches that a dataset, a generator or another iterable gives.

        Args:
            data: What gives batches.
            for_what: The method that asks, named in errors.
            steps: How many batches an epoch has; None: all of a pass.
            steps_name: The argument that `steps` was given for.
            goes_on: Whether an epoch with `steps` goes on where the one before ended.
            class_weight: A weight for each integer label, or None.
            shuffled: Whether the batches of a `PyDataset` are taken in another order in each pass.
            among: From the batches of this process to those of all, where each has its own.

        Raises:
            ValueError: There is no batch, the first one is none, or there is no end without
                `steps`.
        """
        size = cardinality_of(data)
        if size == INFINITE_CARDINALITY and steps is None:
            raise ValueError(
                f"`{for_what}` needs `{steps_name}` for a dataset that never ends. Received: an "
                f"infinite dataset and {steps_name}=None. Give it, or leave `.repeat()` out."
            )
        passes = passes_of(data, for_what, class_weight, shuffled=shuffled)
        if among is not None:
            passes = among(passes)
        epochs = cls(passes, steps, goes_on=goes_on, for_what=for_what, steps_name=steps_name)
        epochs.steps = steps if steps is not None or size < 0 else size
        return epochs

    @property
    def example(self) -> Arrays:
        """Arrays of the shapes and dtypes that the data have, but for their first axis."""
        return self._passes.example

    def check_with(self, check: Check) -> None:
        """Let all data go through a function, which may change them or raise.

        Args:
            check: From arrays as they were given to those that steps are to have.

        Raises:
            ValueError: It raised for what is known of the data by now.
        """
        self._passes = self._passes.checked(check)

    def begin(self) -> bool:
        """Make ready for an epoch; return whether there is a batch for it."""
        passes = self._passes
        if passes.batches_read and not self._goes_on:
            passes.close()
            self._taken = 0
        was_open = passes.is_open
        has_next = passes.has_next() or (was_open and passes.has_next())  # Of another pass.
        if not has_next:
            self._run_out(0)
        return has_next

    def spans(self, most: int | None) -> Iterator[Span]:
        """Yield the batches of an epoch that was begun.

        Args:
            most: How many a span may have; None: as many as is sensible.
        """
        notified = self._passes.notified
        if notified is not None:
            notified.on_epoch_begin()
        yield from self._spans(most)
        if notified is not None:
            notified.on_epoch_end()

    def _spans(self, most: int | None) -> Iterator[Span]:
        done, wanted = 0, self._wanted
        if wanted is not None and self._pass_steps is not None:
            wanted = min(wanted, self._pass_steps - self._taken)
        while wanted is None or done < wanted:
            limit = most or self._passes.most_ahead
            span, failure = self._gathered(
                limit if wanted is None else min(limit, wanted - done), asked=most is not None
            )
            done += span.count
            if span.count:
                yield span
            if failure is not None:  # What came before it was well, and has been run.
                try:
                    raise failure
                finally:
                    del failure
            if not self._passes.is_open:
                if wanted is None:
                    self.steps = done
                elif done < wanted:
                    self._run_out(done)
                return
        if self._pass_steps is not None:
            self._taken = (self._taken + done) % self._pass_steps
            if wanted != self._wanted:
                self._run_out(done)

    def close(self) -> None:
        """End what works for the data that have not been used."""
        self._passes.close()

    def _gathered(self, most: int, *, asked: bool) -> tuple[Span, Exception | None]:
        """Return the next batches and what ended them; as many as asked, or as is sensible."""
        chunks: list[Chunk] = []
        count, room, until = 0, _BYTES_AHEAD, perf_counter() + _SECONDS_AHEAD
        while count < most and (asked or not chunks or (room > 0 and perf_counter() < until)):
            if chunks and self._passes.is_lent:
                chunks[-1] = replace(chunks[-1], arrays=chunks[-1].arrays.copied())
            try:
                chunk = self._passes.read(most - count)
            except Exception as error:
                if not chunks:
                    raise
                return Span(chunks), error
            if chunk is None:
                break
            chunks.append(chunk)
            count += len(chunk)
            room -= sum([column.nbytes for column in chunk.arrays.columns])
        return Span(chunks), None

    def _run_out(self, done: int) -> None:
        self.ran_out = self.ran_out or not (done and self._passes.begins_anew)
        if self._warned:  # Validation may be asked for again after each epoch.
            return
        self._warned = True
        asked = "" if self._wanted is None else f" with {self._steps_name}={self._wanted}"
        logger.warning(
            "Your input ran out of data; interrupting %s`%s`. Make sure that your dataset or "
            "generator can generate at least `steps_per_epoch * epochs` batches. You may need to "
            "use the `.repeat()` function when building your dataset. Received: data that ended "
            "after %d batches of an epoch%s.",
            "this epoch of " if self._goes_on and not self.ran_out else "",
            self._for_what,
            done,
            asked,
        )
