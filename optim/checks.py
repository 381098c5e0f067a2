"""Checks of what optimizers are given, before anything is made of it.

Their errors say what was wrong, what was received and what to do.
"""

import math
from collections.abc import Sequence
from typing import Any

from mirrored.variables import Variable


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


def check_variables(variables: Sequence[Any]) -> None:
    """Refuse what is no variable, and a variable that is there twice.

    Args:
        variables: What is to be updated in one step.

    Raises:
        TypeError: Something is no variable.
        ValueError: A variable is there twice.
    """
    seen: set[int] = set()
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(
                f"Optimizers update variables made by mr.Variable. Received: {variable!r}"
            )
        if id(variable) in seen:
            raise ValueError(
                "A step updates each variable once. Received: more than one gradient for "
                f"{variable.name}. Add them up first."
            )
        seen.add(id(variable))
