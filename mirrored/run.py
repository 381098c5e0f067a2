"""``python -m mirrored.run``: the command ``mirrored run``, where the program is not on the path.

A launcher starts it: ``mpiexec -n 4 python -m mirrored.run train.py``.
"""

import sys

from mirrored._commands.command_line import main

if __name__ == "__main__":
    sys.exit(main(["run", *sys.argv[1:]]))
