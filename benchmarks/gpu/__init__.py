"""Checks and measurements on a real GPU: the tests of `tests/gpu`, and a step beside its peers'.

`python -m benchmarks.gpu` is the one command; nothing here is installed with the package.
"""
