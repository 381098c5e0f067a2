"""Names of layers and variables: dense, dense_1, dense_2, and the scopes that names begin with.

The counters are the process's, so that two models never share an automatic name.
"""

import itertools
import re
from collections.abc import Container, Iterable, Iterator
from contextvars import ContextVar, Token

from mirrored._arguments import explained
from mirrored._contexts import Within

_counters: dict[str, Iterator[int]] = {}


def snake_case(class_name: str) -> str:
    """Return a class's name in lower case, its words joined by underscores."""
    return file_case(re.sub(r"\W+", "", class_name).lstrip("_"))


def file_case(class_name: str) -> str:
    """Return a class's name as it is in the paths of Keras' files; private ones keep their mark."""
    name = re.sub(r"\W+", "", class_name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def unique_name(prefix: str) -> str:
    """Return ``prefix`` the first time, then ``prefix_1``, ``prefix_2`` and so on."""
    count = next(_counters.setdefault(prefix, itertools.count()))
    return prefix if count == 0 else f"{prefix}_{count}"


def free_name(name: str, taken: Container[str], first: int = 1) -> str:
    """Return ``name``, or the first of ``name_1``, ``name_2`` and so on that is not taken.

    Args:
        name: The name.
        taken: The names that others have.
        first: The number to begin with.

    Example:
        >>> free_name("bias", {"bias", "bias_1"})
        'bias_2'
    """
    numbered = (f"{name}_{number}" for number in itertools.count(first))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


def one_line(name: str) -> str:
    r"""Return a name with escapes for what is not printable, such as line breaks.

    Args:
        name: The name.

    Example:
        >>> one_line("a\nb")
        'a\\nb'
    """
    if name.isprintable():
        return name
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)


def shortened(names: Iterable[str], most: int = 28) -> list[str]:
    """Return names with an ellipsis instead of the middle of long ones.

    Args:
        names: The names.
        most: The largest number of characters, unless more are needed to tell the names apart.

    Example:
        >>> shortened(["encoder_block_12_query", "bias"], 13)
        ['encode…_query', 'bias']
    """
    names = list(names)
    texts = names
    for size in range(most, 2 * most + 5):
        half = (size - 1) // 2
        texts = [
            name if len(name) <= size else f"{name[: size - 1 - half]}…{name[-half:]}"
            for name in names
        ]
        if len(set(texts)) == len(set(names)):
            break
    return texts


def check_name(name: object) -> str:
    """Return ``name`` when it can name a layer: a string without the separator ``/``.

    Raises:
        ValueError: It cannot.
    """
    if not isinstance(name, str) or "/" in name:
        raise ValueError(
            "Argument `name` must be a string and cannot contain character `/`. "
            f"Received: name={name} (of type {type(name)})"
        )
    return name


def reset_names() -> None:
    """Start the automatic names again, as in a fresh process; for tests.

    Example:
        >>> reset_names()
        >>> unique_name("dense")
        'dense'
    """
    _counters.clear()


# ------------------------------------------------------------------------------------------- scopes

_current: ContextVar[str] = ContextVar("mirrored_name_scope", default="")
# The scopes that are open, the innermost last; one may be open several times, and in many threads.
_open: ContextVar[tuple[Token[str], ...]] = ContextVar("mirrored_open_name_scopes", default=())


def scoped(name: str) -> str:
    """Return a variable's name with that of the current scope before it."""
    return _current.get() + name


def get_current_name_scope() -> str:
    """Return the name of the scope that is open, or an empty one.

    Example:
        >>> import mirrored as mr
        >>> with mr.name_scope("encoder"), mr.name_scope("first"):
        ...     mr.get_current_name_scope()
        'encoder/first'
    """
    return _current.get().rstrip("/")


@explained
class name_scope:
    """A context in which the names of variables begin with its own, and with those around it.

    Args:
        name: What is added; one that ends with a slash stands for itself, whatever is around it,
            and an empty one leaves all scopes.

    Raises:
        ValueError: The name is no string.

    Example:
        >>> import mirrored as mr
        >>> with mr.name_scope("encoder") as scope:
        ...     weight = mr.Variable(1.0, name="w")
        >>> scope, weight.name
        ('encoder/', 'encoder/w:0')
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string. Received: {name!r}.")
        self._name = name

    @property
    def name(self) -> str:
        """The argument `name`."""
        return self._name

    def __enter__(self) -> str:
        """Return the whole name, with a slash behind it."""
        name = self._name
        whole = name if not name or name.endswith("/") else f"{_current.get()}{name}/"
        _open.set((*_open.get(), _current.set(whole)))
        return whole

    def __exit__(self, *_: object) -> None:
        *outer, token = _open.get()
        _open.set(tuple(outer))
        _current.reset(token)


# Keras' names of what is open: of the models and layers around, which name their variables' paths.
_path: ContextVar[str] = ContextVar("mirrored_path", default="")


def path_of(name: str) -> str:
    """Return the path of a new object in Keras' scopes: their names, and its own.

    Args:
        name: Its name.
    """
    outer = _path.get()
    return f"{outer}/{name}" if outer else name


def within_path(path: str) -> Within:
    """Return a context in which paths begin with another one.

    Args:
        path: The path.
    """
    return Within(_path, path)


@explained
class keras_name_scope(name_scope):
    """A context in which the paths of variables begin with its name, and with those around it.

    Args:
        name: What is added, without slashes.
        **options: Accepted for compatibility.

    Raises:
        ValueError: The name is no string, or has a slash.

    Example:
        >>> import mirrored as mr
        >>> layer = mr.layers.Dense(2, name="head")
        >>> with mr.keras.name_scope("decoder"):
        ...     layer.build((None, 3))
        >>> layer.kernel.path
        'decoder/head/kernel'
    """

    def __init__(self, name: str, **options: object) -> None:
        del options
        super().__init__(check_name(name))
        self._paths: list[Within] = []

    def __enter__(self) -> str:
        """Return the whole name, with a slash behind it."""
        self._paths.append(within_path(path_of(self._name)))
        self._paths[-1].__enter__()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._paths.pop().__exit__(*error)
