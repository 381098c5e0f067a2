"""TensorFlow 1's `tf.logging`: lines of the program's own, beside those of the library."""

import logging as _logging
from typing import Any

DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50
_logger = _logging.getLogger("tensorflow")


def set_verbosity(v: int) -> None:
    """Set the lowest level that is logged."""
    _logger.setLevel(v)


def get_verbosity() -> int:
    """Return the lowest level that is logged."""
    return _logger.getEffectiveLevel()


def log(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Log a message at a level."""
    _logger.log(level, msg, *args, **kwargs)


debug, info, warn, error, fatal = (
    _logger.debug,
    _logger.info,
    _logger.warning,
    _logger.error,
    _logger.critical,
)
warning = warn
