"""What a name that TensorFlow has and this library does not leads to: one sentence that says so.

The lists of names are loaded when the first such name is met, so that they cost an import nothing.
"""

import sys
from collections.abc import Callable
from typing import NoReturn


def absent_names(module: str) -> Callable[[str], NoReturn]:
    """Return the `__getattr__` of one of the modules that hold TensorFlow's names.

    A module sets it through `globals()`, which type checkers do not follow: they would take every
    name for one that exists.

    Args:
        module: The module's name in TensorFlow, as in "tf.keras.layers".

    Example:
        >>> absent_names("tf.math")("argmin")
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.math.argmin`: not provided here. Use ...
    """

    def refuse(name: str) -> NoReturn:
        # Python itself asks for names that begin so, and may do it often.
        advice = None if name.startswith("_") else advice_on(module, name)
        if advice is None:
            own = "mirrored" + module.removeprefix("tf")
            raise AttributeError(
                f"module {own!r} has no attribute {name!r}", name=name, obj=sys.modules[own]
            )
        text = f"mirrored has no `{module}.{name}`: not provided here. {advice}"
        # Without an object Python does not add "Did you mean", which would name another function.
        raise AttributeError(text, name=name, obj=None)

    return refuse


def advice_on(module: str, name: str) -> str | None:
    """Return what to use for a name of TensorFlow's, or None where TensorFlow has no such name."""
    from mirrored._absent.advice import ABSENT, GENERAL, OLDER
    from mirrored._absent.tensorflow_names import NAMES

    for modules, names, advice in (*ABSENT, *OLDER):
        if module in modules.split() and name in names.split():
            return advice
    return GENERAL[module] if name in NAMES[module].split() else None
