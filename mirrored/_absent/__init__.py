"""What a public module shows, and what a name that it has not leads to: one sentence that says so.

The lists of names are loaded when the first such name is met, so that they cost an import nothing.
"""

import builtins
import functools
import opcode
import sys
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any

# How much of two names is the same, of 1, where one is taken for a misspelling of the other.
_ALIKE, _VERY_ALIKE = 0.7, 0.85


def absent_names(
    module: str, own: str | None = None, **late: Callable[[], Any]
) -> Callable[[str], Any]:
    """Return the `__getattr__` of one of the modules that hold TensorFlow's names.

    A module sets it through `globals()`, which type checkers do not follow: they would take every
    name for one that exists.

    Args:
        module: The module's name in TensorFlow, as in "tf.keras.layers".
        own: Its name here, where that is another than "mirrored.keras.layers".
        **late: Names that are there when they are first asked for, and what makes each.

    Example:
        >>> absent_names("tf.math")("erf")
        Traceback (most recent call last):
        AttributeError: mirrored has no `tf.math.erf`: not provided here. ...
    """
    home = own or "mirrored" + module.removeprefix("tf")

    def refuse(name: str) -> Any:
        if name in late:
            return late[name]()
        text = None
        # Python itself asks for names that begin so, and may do it often.
        if not name.startswith("_"):
            text = _said_of(module, home, name)
        if _imports(sys._getframe(1)):
            # Python would put a sentence of its own in the place of an AttributeError's.
            raise ImportError(
                f"cannot import name {name!r} from {home!r}" + (f": {text}" if text else ""),
                name=home,
                path=sys.modules[home].__file__,
            )
        # Without an object Python does not add "Did you mean", which would name another function.
        text = text or f"module {home!r} has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=None)

    return refuse


def public_names(module: str) -> Callable[[], list[str]]:
    """Return the `__dir__` of a public module: what it offers, and not what it is made of.

    That is what its `__all__` lists, and names such as `abs`: `from mirrored import *` leaves them
    out, since they would hide Python's own.

    Args:
        module: The module's name.

    Example:
        >>> public_names("mirrored.linalg")()[-2:]
        ['l2_normalize', 'matmul']
    """

    def listed() -> list[str]:
        there = vars(sys.modules[module])
        others = (name for name in there if name[:2] == "__" or hasattr(builtins, name))
        # A file called `input.py` would be among them.
        names = (name for name in others if not isinstance(there[name], ModuleType))
        return sorted({*there["__all__"], *names})

    return listed


def advice_on(home: str, name: str) -> str | None:
    """Return what to use for a name of TensorFlow's, or None where TensorFlow has no such name.

    Args:
        home: The module or class in TensorFlow that the name is looked for in.
        name: The name.
    """
    return _advice()[home].get(name)


@functools.cache
def _advice() -> dict[str, dict[str, str]]:
    """Return what to use for each name, by the module or class that has it in TensorFlow."""
    from mirrored._absent.advice import ABSENT, GENERAL, OLDER
    from mirrored._absent.member_advice import ABSENT_MEMBERS, GENERAL_MEMBERS, OLDER_MEMBERS
    from mirrored._absent.tensorflow_members import MEMBERS
    from mirrored._absent.tensorflow_names import NAMES

    general = {**GENERAL, **GENERAL_MEMBERS}
    known = {**NAMES, **MEMBERS}
    found = {home: dict.fromkeys(known[home].split(), general[home]) for home in known}
    for homes, names, advice in (*ABSENT, *OLDER, *ABSENT_MEMBERS, *OLDER_MEMBERS):
        for home in homes.split():
            found[home].update(dict.fromkeys(names.split(), advice))
    return found


def nearest(name: str, names: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return which of some names another is a misspelling of, or None.

    Args:
        name: What was written.
        names: What there is.
        alike: How much of the two is to be the same, of 1.

    Example:
        >>> nearest("actvation", ["activation", "units"])
        'activation'
    """
    import difflib  # Needed where something is wrong, and here only.

    def likeness(there: str) -> tuple[float, float]:
        # With other capitals or underscores it is the same name, as others write it.
        pairs = [(name.replace("_", "").lower(), there.replace("_", "").lower()), (name, there)]
        plain, exact = (difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
        return plain, exact

    ranked = [(likeness(each), each) for each in names if not each.startswith("_")]
    (same, _), best = max(ranked, key=lambda each: each[0], default=((0.0, 0.0), ""))
    return best if same >= alike else None


def _said_of(module: str, home: str, name: str) -> str | None:
    advice = advice_on(module, name)
    if advice is not None:
        return f"mirrored has no `{module}.{name}`: not provided here. {advice}"
    there = dir(sys.modules[home])
    # Of the many that are not there, one that is a little like it is none.
    found = nearest(name, there), nearest(name, _advice()[module], alike=_VERY_ALIKE)
    meant = nearest(name, [each for each in found if each is not None])
    if meant is None:
        return None
    text = f"module {home!r} has no attribute {name!r}. Did you mean: {meant!r}?"
    advice = None if meant in there else advice_on(module, meant)
    return f"{text} It is not provided here. {advice}" if advice else text


def _imports(frame: FrameType) -> bool:
    """Say whether what a frame does now is `from ... import ...`."""
    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]
