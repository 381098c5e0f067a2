"""Runs the measurements from the command line.

It is what `python -m benchmarks` starts, from the root of the checkout.
"""

from benchmarks.run import main

if __name__ == "__main__":
    main()
