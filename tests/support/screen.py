"""A terminal of a few characters: what a real pseudo-terminal was given, as it would look."""

import fcntl
import os
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Screen:
    """Lines of text, without end, that a cursor moves over.

    Args:
        columns: How many characters a line has.

    Attributes:
        lines: What stands there now.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.lines = [""]
        self._row = self._column = 0

    def feed(self, text: str) -> None:
        """Take what a program wrote; it knows no sequence but "a line up"."""
        for part in text.replace("\x1b[A", "\x1b").replace("\r\n", "\n\r"):
            if part == "\r":
                self._column = 0
            elif part == "\x1b":
                self._row -= 1
            elif part == "\n":
                self._down()
            else:
                self._put(part)

    def _put(self, character: str) -> None:
        if self._column == self.columns:
            self._column = 0
            self._down()
        line = self.lines[self._row].ljust(self._column)
        self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
        self._column += 1

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self.lines):
            self.lines.append("")

    def shown(self) -> list[str]:
        """Return the lines that are not blank."""
        return [line.rstrip() for line in self.lines if line.strip()]


class PseudoTerminal:
    """The two ends of a pseudo-terminal.

    Attributes:
        stream: What a program writes to.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._reader, writer = os.openpty()
        rows = 50 if columns else 0  # One that nobody sits before has no size.
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.stream: TextIO = open(writer, "w", encoding="utf-8")  # noqa: SIM115
        self._taken: list[bytes] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        # The end of the other side is an error here, as Linux tells it.
        while True:
            try:
                taken = os.read(self._reader, 65536)
            except OSError:
                return
            if not taken:
                return
            self._taken.append(taken)

    def close(self) -> str:
        """Close both ends and return all that was written."""
        self.stream.close()
        self._thread.join()
        os.close(self._reader)
        return b"".join(self._taken).decode()


@contextmanager
def pseudo_terminal(columns: int) -> Iterator[tuple[TextIO, list[str]]]:
    """Give a terminal's stream, and a list that has all that was written at the end."""
    terminal, written = PseudoTerminal(columns), list[str]()
    try:
        yield terminal.stream, written
    finally:
        written.append(terminal.close())
