"""Traces of what programs do, and pictures of steps and of the memory of devices."""
