"""Runs the measurements and the model from the command line.

It is what `python -m benchmarks.scaling` starts, from the root of the checkout.
"""

from benchmarks.scaling.command import main

if __name__ == "__main__":
    main()
