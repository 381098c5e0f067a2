"""What an epoch's batches are, of arrays or of a stream: they are read pass after pass.

An epoch and a pass need not be the same, and one loop trains on all kinds of data.
"""

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

from mirrored._logging import logger
from mirrored.data.arrays import Check
from mirrored.data.batches import Span
from mirrored.data.passes import Passes
from mirrored.data.py_dataset import PyDataset

# Running several batches of a stream in one go takes less Python. Where no callback looks between
# steps, some batches are read first: no more bytes than a cache holds, and for no longer than a
# short step takes, since a `prefetch` makes the next batches while steps run.
_BYTES_AHEAD = 8 << 20
_SECONDS_AHEAD = 1e-3


class Epochs:
    """The batches of one epoch after another.

    Data that can be iterated over again start again with each epoch without `steps`, and where they
    ended: that epoch is shorter.

    Args:
        passes: The batches.
        steps: How many batches an epoch has; None: all of a pass.
        use: What the data are for: in `fit` an epoch with `steps` goes on where the one before
            ended. Warnings name it.
        steps_name: The argument that `steps` was given for.
        pass_steps: How many batches of arrays are a pass; None: the data came as batches.

    Attributes:
        steps: How many batches an epoch has, None where that is not known yet.
        ran_out: Whether the data ended, and cannot be iterated over again.
        is_stream: Whether the data came as batches.
        example: Arrays of the shapes and dtypes that the data have, but for their first axis.
        keeps_places: Whether `place` may be asked for batches in the middle of a span.
    """

    steps: int | None
    ran_out = False
    keeps_places = False

    def __init__(
        self,
        passes: Passes,
        steps: int | None,
        *,
        use: str,
        steps_name: str,
        pass_steps: int | None = None,
    ) -> None:
        self.steps = self._wanted = steps
        self._passes, self._use, self._goes_on = passes, use, use == "fit"
        self.example = passes.example
        self._steps_name = steps_name
        self._pass_steps, self._taken = pass_steps, 0
        self._begun = 0  # Epochs.
        self._done = 0  # Batches of this epoch that were read.
        self._continues = False  # With this epoch, which an earlier run began.
        self._before: dict[str, Any] = {}  # The position before the latest span.
        self.is_stream = pass_steps is None
        self._warned = False

    def check_with(self, check: Check) -> None:
        """Let all data go through a function, which may change them or raise.

        Args:
            check: From arrays as they were given to those that steps are to have.

        Raises:
            ValueError: It raised for what is known of the data by now.
        """
        self._passes = self._passes.checked(check)
        self.example = self._passes.example

    def begin(self) -> bool:
        """Make ready for an epoch; return whether there is a batch for it."""
        passes = self._passes
        if self._continues:
            return True
        self._done = 0
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
        return self._spans(most) if notified is None else self._notifying(notified, most)

    def _notifying(self, data: PyDataset, most: int | None) -> Iterator[Span]:
        if not self._continues:
            data.on_epoch_begin()
        yield from self._spans(most)
        data.on_epoch_end()

    def _spans(self, most: int | None) -> Iterator[Span]:
        self._begun += not self._continues
        has_ended = self._continues and not self._passes.is_open
        self._continues = False
        wanted = self._wanted
        if wanted is not None and self._pass_steps is not None:
            wanted = min(wanted, self._pass_steps - self._taken)
        while wanted is None or self._done < wanted:
            if not has_ended:
                if self.keeps_places:
                    self._before = self.place(self._done)
                limit = most - self._done % most if most else self._passes.most_ahead
                span, failure = self._gathered(
                    limit if wanted is None else min(limit, wanted - self._done),
                    asked=most is not None,
                )
                if span is not None:
                    self._done += span.count
                    yield span
                if failure is not None:  # What came before it was well, and has been run.
                    try:
                        raise failure
                    finally:
                        del failure
                has_ended = not self._passes.is_open
            if has_ended:
                if wanted is None:
                    self.steps = self._done
                elif self._done < wanted:
                    self._run_out(self._done)
                return
        if self._pass_steps is not None:
            self._taken = (self._taken + self._done) % self._pass_steps
            if wanted != self._wanted:
                self._run_out(self._done)

    def place(self, done: int) -> dict[str, Any]:
        """Return a position, for `go_to` of another run.

        Args:
            done: The number of batches of this epoch before the position; 0: the epoch has ended.
        """
        if 0 < done < self._done:  # The span that was read last has batches behind it.
            return {**self._before, "done": done, "skip": done - self._before["done"]}
        return {
            "passes": self._passes.place(),
            "done": done,
            "skip": 0,
            "taken": self._taken,
            "begun": self._begun,
            "steps": self.steps,
        }

    def go_to(self, place: Mapping[str, Any]) -> None:
        """Continue from a position; a `PyDataset` is notified of the epochs before it.

        Args:
            place: What `place` returned, for the same data.

        Raises:
            ValueError: The data cannot be at this position.
        """
        self._passes.go_to(place["passes"])
        skip = place["skip"]
        while skip and (span := self._passes.read(skip)) is not None:
            skip -= span.count
        self._done, self._taken = place["done"], place["taken"]
        self._begun, self._continues = place["begun"], bool(self._done)
        if self.steps is None:
            self.steps = place["steps"]
        if (data := self._passes.notified) is not None:
            for number in range(1, self._begun + 1):
                data.on_epoch_begin()
                if number < self._begun or not self._continues:
                    data.on_epoch_end()

    @property
    def facts(self) -> dict[str, Any]:
        """What a backup says of the data, to tell them from others."""
        specs = [
            # The batches of a stream may have other lengths, and another one may come first.
            f"{column.dtype.name} of {column.ndim} axes"
            if self.is_stream
            else f"{column.dtype.name} {list(column.shape[1:])}"
            for column in self.example.columns
        ]
        return {"arrays": specs, "steps": self._wanted, **self._passes.facts()}

    def close(self) -> None:
        """End what works for the data that have not been used."""
        self._passes.close()

    def _gathered(self, most: int, *, asked: bool) -> tuple[Span | None, Exception | None]:
        """Return the next batches and what ended them; as many as asked, or as is sensible."""
        parts: list[Span] = []
        count, room, until = 0, _BYTES_AHEAD, perf_counter() + _SECONDS_AHEAD
        while count < most and (asked or not parts or (room > 0 and perf_counter() < until)):
            if parts and self._passes.is_lent:
                parts[-1].arrays = parts[-1].arrays.copied()
            try:
                part = self._passes.read(most - count)
            except Exception as error:
                if not parts:
                    raise
                return Span.joined(parts), error
            if part is None:
                break
            parts.append(part)
            count += part.count
            if count < most:
                room -= sum([column.nbytes for column in part.arrays.columns])
        return (Span.joined(parts) if parts else None), None

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
            self._use,
            done,
            asked,
        )
