"""Checks the numbers that users give as arguments.

NumPy's numbers pass wherever Python's do, and booleans, which Python counts as integers, do not.
"""

from numbers import Real

from mirrored._numbers import as_integer


def as_real(value: object) -> float | None:
    """Return ``value`` as a float, or None when it is not a real number.

    Example:
        >>> as_real(3), as_real("3"), as_real(True)
        (3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value)


def as_positive(argument: str, value: object) -> int:
    """Return ``value`` as a positive integer.

    Args:
        argument: The name of the argument that it was given for; the error gives it.
        value: An integer, NumPy's too.

    Raises:
        ValueError: It is not one.

    Example:
        >>> as_positive("units", 64)
        64
    """
    number = as_integer(value)
    if number is not None and number > 0:
        return number
    raise ValueError(
        f"Received an invalid value for `{argument}`, expected a positive integer. "
        f"Received: {argument}={value}"
    )
