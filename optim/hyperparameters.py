"""What the settings of optimizers may be: numbers, each in a range of its own."""

import math
from typing import Any


def check_number(
    name: str,
    value: Any,
    *,
    below: float = math.inf,
    at_most: float = math.inf,
    above_zero: bool = False,
) -> float:
    """Return a hyperparameter as a float.

    Args:
        name: What the error calls it.
        value: A finite number of 0 or more.
        below: What it is less than.
        at_most: What it is not more than.
        above_zero: Whether 0 is refused.

    Raises:
        ValueError: It is no such number.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    inside = 0 <= number < below and number <= at_most and not (above_zero and number == 0)
    if isinstance(value, bool | str) or not inside:
        low = "above 0" if above_zero else "of 0 or more"
        high = "" if below == math.inf else f" and below {below:g}"
        high += "" if at_most == math.inf else f" and at most {at_most:g}"
        raise ValueError(f"`{name}` is a finite number {low}{high}. Received: {name}={value!r}")
    return number
