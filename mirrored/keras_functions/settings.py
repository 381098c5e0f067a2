"""Keras' global settings, as far as this library has them."""

from mirrored.version import _KERAS


def backend() -> str:
    """Return "tensorflow": what a program for that backend calls is here.

    Example:
        >>> backend()
        'tensorflow'
    """
    return "tensorflow"


def image_data_format() -> str:
    """Return "channels_last", which is how images are everywhere here.

    Example:
        >>> image_data_format()
        'channels_last'
    """
    return "channels_last"


def version() -> str:
    """Return the version of Keras whose names `keras` has.

    Example:
        >>> version()
        '3.15.0'
    """
    return _KERAS
