"""Lines of the log that are the same for every collective: the first ones are enough.

TensorFlow writes such a line ten times, and so does each collective here.
"""

import threading
from typing import Any

_LINES = 10


class FirstLines:
    """Counts the lines that were written, from any thread."""

    def __init__(self) -> None:
        """Begin with all lines left."""
        self._left = _LINES
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return FirstLines, ()

    def take(self) -> bool:
        """Return whether one more line may be written, and count it."""
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            return True
