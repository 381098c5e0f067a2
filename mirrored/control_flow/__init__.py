"""Branches and loops as functions, and what TensorFlow's programs say about graphs.

Eagerly they are Python's own. In a recorded function they go by what is known while it is recorded.
"""
