"""Configurations: objects as plain dicts, and objects from them, as in Keras 3.

A configuration names classes by public names, which lead to this library's, to registered ones, or
to those that the caller gives. It never leads to an import of what a file says.
"""
