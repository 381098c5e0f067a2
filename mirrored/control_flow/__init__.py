"""Branches and loops as functions, and TensorFlow's functions about graphs.

Eagerly they are Python's own. In a recorded function they go by what is known while it is recorded.
"""
