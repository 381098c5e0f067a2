"""What layers and optimizers are told by a variable, beside its value: its traits.

The copies of a variable have them together.
"""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(slots=True)
class Traits:
    """Traits of a variable; `Variable` says what each means.

    Example:
        >>> Traits().set_function("constraint", "non_neg")
        Traceback (most recent call last):
        ValueError: Invalid value for attribute `constraint`. Expected a callable (such as a ...
    """

    constraint: Callable[[Any], Any] | None = None
    regularizer: Callable[[Any], Any] | None = None
    path: str = ""
    autocast: bool = True

    def set_function(self, name: str, value: Callable[[Any], Any] | None) -> None:
        """Set the constraint or the regularizer.

        Args:
            name: Which of the two.
            value: A function of the variable; None: none.

        Raises:
            ValueError: It cannot be called.
        """
        if not (value is None or callable(value)):
            raise ValueError(
                f"Invalid value for attribute `{name}`. Expected a callable (such as a "
                f"`keras.{name}s.{name.capitalize()}` instance) or `None`. Received: "
                f"{name}={value!r}"
            )
        setattr(self, name, value)


def check_overwrite(value: bool) -> None:
    """Refuse what Keras' training in float8 asks of a variable.

    Args:
        value: Whether optimizers should assign its gradient to a variable.

    Raises:
        TypeError: It is no boolean.
        ValueError: It is True.
    """
    if not isinstance(value, bool):
        raise TypeError(f"`overwrite_with_gradient` must be a boolean. Received: {value!r}")
    if value:
        raise ValueError(
            "Optimizers take steps with all gradients, which are sums over replicas: there is no "
            "training in float8. Received: overwrite_with_gradient=True. Assign the value in a "
            "custom `train_step`."
        )
