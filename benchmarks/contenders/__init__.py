"""One script for each contender, which runs in an environment of its own.

All of them answer the requests of `contenders/protocol.py`, so the driver treats them alike.
"""
