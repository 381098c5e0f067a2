"""TensorFlow 1's `tf.app`: a program that begins with its command line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mirrored.compat.v1 import flags as flags


def run(
    main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None
) -> NoReturn:
    """Parse the flags, call a function with the remaining arguments, and exit.

    Args:
        main: The function; None: `main` of the program.
        argv: The command line; None: that of the program.
    """
    rest = flags.FLAGS(sys.argv if argv is None else argv, known_only=True)
    sys.exit((main or sys.modules["__main__"].main)(rest))
