"""Runs the checks and the measurements from the command line.

It is what `python -m benchmarks.gpu` starts, from the root of the checkout.
"""

import sys

from benchmarks.gpu.command import main

if __name__ == "__main__":
    sys.exit(main())
