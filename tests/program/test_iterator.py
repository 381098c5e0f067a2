"""Iterators that can be looked at before they give their elements, as recorded functions need."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from mirrored.errors import OperatorNotAllowedInGraphError, OutOfRangeError
from mirrored.ops.hooks import recorded_by
from mirrored.program import GraphRecorder, PeekingIterator
from mirrored.program.iterator import END


class Letters(PeekingIterator):
    """Gives letters, and notes how many it was asked for.

    Args:
        letters: The letters.
        origin: See `PeekingIterator`.
    """

    def __init__(self, letters: str = "abcd", origin: Any = None) -> None:
        super().__init__(origin)
        self.left: Iterator[str] = iter(letters)
        self.made = 0

    def produce(self) -> Sequence[str]:
        letter = next(self.left)
        self.made += 1
        return [letter]


def test_elements_one_after_the_other() -> None:
    letters = Letters()
    assert iter(letters) is letters
    assert (next(letters), letters.get_next(), letters.made) == ("a", "b", 2)
    assert list(letters) == ["c", "d"]
    assert list(letters) == []


@pytest.mark.parametrize("end", [next, PeekingIterator.get_next])
def test_the_end_is_tensorflows_and_pythons(end: Any) -> None:
    letters = Letters("")
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="End of sequence") as caught:
            end(letters)
        assert isinstance(caught.value, StopIteration)
        assert caught.value.__cause__ is None
    assert next(letters, "other") == "other"


def test_what_is_looked_at_is_still_to_come() -> None:
    letters = Letters()
    assert [letters.peek(place) for place in (0, 2, 0, 1)] == ["a", "c", "a", "b"]
    assert letters.made == 3
    assert next(letters) == "a"
    letters.skip(1)
    assert (letters.peek(0), letters.peek(1), letters.peek(2)) == ("c", "d", END)
    assert list(letters) == ["c", "d"]
    assert letters.peek(0) is END


def test_an_error_is_no_end() -> None:
    class Failing(Letters):
        def produce(self) -> Sequence[str]:
            if self.made == 1:
                self.made += 1
                raise KeyError("mine")
            return super().produce()

    letters = Failing()
    assert letters.peek(0) == "a"
    with pytest.raises(KeyError, match="mine"):
        letters.peek(1)
    assert list(letters) == ["a", "b", "c", "d"]  # Neither what came before nor after is lost.


def test_a_stream_has_to_give_elements() -> None:
    with pytest.raises(NotImplementedError, match="PeekingIterator has no `produce`"):
        next(PeekingIterator())
    PeekingIterator().close()  # Most have nothing to end.


def test_origins_matter_to_functions_alone() -> None:
    dataset = object()
    recorder = GraphRecorder()
    with recorded_by(recorder):
        assert Letters(origin=dataset).origin is dataset
    assert Letters(origin=dataset).origin is None


def test_a_recorder_is_asked_first() -> None:
    recorder, letters, asked = GraphRecorder(), Letters(), []

    def on_pull(stream: PeekingIterator) -> str:
        asked.append(stream)
        return stream.peek(0).upper()

    recorder.on_pull = on_pull
    with recorded_by(recorder):
        assert (next(letters), letters.get_next()) == ("A", "A")
    assert asked == [letters, letters]
    assert next(letters) == "a"


def test_a_step_that_fit_feeds_takes_nothing_itself() -> None:
    recorder, letters = GraphRecorder(), Letters()
    match = r"is fed by them\. Received: .*\bLetters object"
    with recorded_by(recorder), pytest.raises(OperatorNotAllowedInGraphError, match=match):
        next(letters)
    assert letters.made == 0
