"""TensorFlow 1's `tf.app.flags`: the arguments of a program's command line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


class Error(Exception):
    """A flag has an invalid value, or is not defined."""


class FlagValues:
    """The flags by name. The command line is parsed when a flag is first read.

    Example:
        >>> import mirrored.compat.v1 as tf
        >>> tf.app.flags.DEFINE_integer("steps", 100, "How many steps.")
        >>> tf.app.flags.FLAGS(["program", "--steps=20", "more"])
        ['program', 'more']
        >>> tf.app.flags.FLAGS.steps
        20
        >>> delattr(tf.app.flags.FLAGS, "steps")
    """

    def __init__(self) -> None:
        vars(self).update(_defined={}, _values={}, _parsed=False)

    def define(self, name: str, default: Any, help: str, convert: Callable[[str], Any]) -> None:
        """Add a flag.

        Args:
            name: Its name.
            default: What it is where the command line does not say it.
            help: What `--help` says of it.
            convert: From its text to its value.

        Raises:
            Error: There is one of that name.
        """
        if name in self._defined:
            raise Error(f"The flag '{name}' is defined twice.")
        self._defined[name] = (help, convert)
        self._values[name] = default

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read a command line up to what is no flag, and return the rest behind the program's name.

        Args:
            argv: The program's name, and what follows it.
            known_only: Whether flags that are not there are returned too.

        Raises:
            Error: A flag is not there, or has a value that it cannot have.
        """
        rest: list[str] = list(argv[:1])
        left = iter(argv[1:])
        for argument in left:
            if not argument.startswith("-") or argument == "-":
                rest.append(argument)
                break
            if argument == "--":
                break
            name, has_value, value = argument.lstrip("-").partition("=")
            if name in ("help", "h"):
                self._help(argv[0])
            if not self._set(name, value if has_value else None, left):
                if not known_only:
                    raise Error(f"Unknown command line flag '{name}'")
                rest.append(argument)
        self.__dict__["_parsed"] = True
        return [*rest, *left]

    def _set(self, name: str, value: str | None, left: Iterator[str]) -> bool:
        """Set a flag as it stands on the command line, and return whether there is one."""
        off = name.removeprefix("no")
        if name not in self._defined and self._defined.get(off, ("", None))[1] is _boolean:
            name, value = off, "false"
        if name not in self._defined:
            return False
        convert = self._defined[name][1]
        if value is None:
            value = "true" if convert is _boolean else next(left, None)
        if value is None:
            raise Error(f"Missing value for flag --{name}")
        try:
            self._values[name] = convert(value)
        except ValueError as error:
            raise Error(f"flag --{name}={value}: {error}") from None
        return True

    def _help(self, program: str) -> NoReturn:
        print(f"\n       USAGE: {program} [flags]\nflags:\n")
        for name, (text, _) in self._defined.items():
            print(f"  --{name}: {text}\n    (default: {self._values[name]!r})")
        sys.exit(1)

    def __getattr__(self, name: str) -> Any:
        if name not in self._defined:
            raise AttributeError(f"There is no flag {name!r}. Received: FLAGS.{name}.")
        if not self._parsed:
            self(sys.argv)
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defined:
            raise AttributeError(f"There is no flag {name!r}. Define it before it is set.")
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        for values in (self._defined, self._values):
            values.pop(name, None)

    def __contains__(self, name: str) -> bool:
        return name in self._defined

    def __iter__(self) -> Any:
        return iter(self._defined)

    def is_parsed(self) -> bool:
        """Return whether a command line has been parsed."""
        return bool(self._parsed)

    def mark_as_parsed(self) -> None:
        """Allow reading flags without parsing a command line."""
        self.__dict__["_parsed"] = True

    def unparse_flags(self) -> None:
        """Parse the command line again when a flag is read."""
        self.__dict__["_parsed"] = False

    def flag_values_dict(self) -> dict[str, Any]:
        """Return the values of all flags by name."""
        return dict(self._values)


FLAGS = FlagValues()


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"Non-boolean argument to boolean flag: {text}")


def _integer(text: str) -> int:
    return int(text, 0)


def DEFINE_string(name: str, default: str | None, help: str) -> None:
    """Define a string flag."""
    FLAGS.define(name, default, help, str)


def DEFINE_integer(name: str, default: int | None, help: str) -> None:
    """Define an integer flag."""
    FLAGS.define(name, default, help, _integer)


def DEFINE_float(name: str, default: float | None, help: str) -> None:
    """Define a float flag."""
    FLAGS.define(name, None if default is None else float(default), help, float)


def DEFINE_boolean(name: str, default: bool | None, help: str) -> None:
    """Define a boolean flag: `--name` and `--noname`."""
    FLAGS.define(name, default, help, _boolean)


DEFINE_bool = DEFINE_boolean
