"""Configurations: plain dicts that objects are written as and made of again, as Keras 3's are.

A configuration names classes by public names, which lead to this library's, to registered ones, or
to those that the caller gives. It never leads to an import of what a file says.
"""
