"""``python -m mirrored``: the program ``mirrored``, where it is not on the path."""

import sys

from mirrored._commands.command_line import main

if __name__ == "__main__":
    sys.exit(main())
