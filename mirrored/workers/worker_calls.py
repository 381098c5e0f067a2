"""The description of a call that each worker sends, to check that all make the same call.

An error can then name both calls, where workers that wait for each other would wait indefinitely.
"""

from __future__ import annotations

from typing import NamedTuple

# The bytes that a call is said in, and the characters of its name that are sent.
BYTES = 256
_NAME = 120
_NO_DIGITS = str.maketrans("", "", "0123456789")
ANY = -1  # A size that may differ from worker to worker.


class Call(NamedTuple):
    """One call of a worker.

    Attributes:
        number: Which of its calls it is, from 1 on.
        kind: What is done, as in "sum".
        dtype: The name of the dtype of what is sent; empty: it has none.
        size: How many elements that are; `ANY`: it may differ.
        label: The name that its caller gives it.
    """

    number: int
    kind: str
    dtype: str
    size: int
    label: str

    def encode(self) -> bytes:
        """Return the call as `BYTES` bytes.

        Example:
            >>> call = Call(3, "sum", "float32", 10, "bucket 1 of 2")
            >>> Call.decode(call.encode()) == call
            True
        """
        text = f"{self.number}\n{self.kind}\n{self.dtype}\n{self.size}\n{self.label[:_NAME]}"
        return text.encode()[:BYTES].ljust(BYTES, b"\0")

    @classmethod
    def decode(cls, data: bytes) -> Call:
        """Return the call that was encoded; long names have lost their end."""
        text = data.rstrip(b"\0").decode(errors="ignore")
        number, kind, dtype, size, label = text.split("\n", 4)
        return cls(int(number), kind, dtype, int(size), label)

    def agrees(self, other: Call) -> bool:
        """Return whether two workers do the same; numbers in the names, as of steps, may differ.

        Example:
            >>> mine = Call(3, "sum", "float32", 10, "bucket 1 of step 7")
            >>> mine.agrees(mine._replace(label="bucket 1 of step 8"))
            True
            >>> mine.agrees(mine._replace(dtype="float64"))
            False
        """
        return self[:4] == other[:4] and self._kind_of_label() == other._kind_of_label()

    def _kind_of_label(self) -> str:
        # The end may be missing, and where it begins hangs on the digits before it.
        return self.label.translate(_NO_DIGITS)[: _NAME // 2]

    def __str__(self) -> str:
        """Return what errors call it."""
        size = "" if self.size == ANY or not self.dtype else str(self.size)
        of = f"{size} {self.dtype}".strip()
        return f"call {self.number}, {self.kind}{f' of {of}' if of else ''} ({self.label})"
