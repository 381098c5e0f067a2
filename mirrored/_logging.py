"""The logger ``mirrored``, whose INFO lines users see without configuring anything.

It stays out of the way of an application that configures logging itself.
"""

import logging
import sys
from typing import TextIO


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error unless the application has given the root logger a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers:
            return  # The record propagates to the application's own handlers.
        self.stream = sys.stderr  # Looked up now: tests and notebooks replace it.
        super().emit(record)


logger = logging.getLogger("mirrored")
if not logger.handlers:
    logger.addHandler(_StandardErrorHandler())
if logger.level == logging.NOTSET:
    logger.setLevel(logging.INFO)
