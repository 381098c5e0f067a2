"""Measurements of mirrored and its peers on the same work, alternating within one run.

`python -m benchmarks` is the one command; nothing here is installed with the package.
"""
