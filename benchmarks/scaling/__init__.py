"""A model of what a training step takes on many cards, beside what was measured on this machine.

`python -m benchmarks.scaling` measures, computes and writes docs/explanation/scaling.md; nothing
here is installed with the package.
"""
