"""Scopes of names: what variables made inside one are called begins with the scope's name.

Nothing else is named here, since there are no graphs.
"""

from contextvars import ContextVar, Token

from mirrored._arguments import explained

_current: ContextVar[str] = ContextVar("mirrored_name_scope", default="")
# The scopes that are open, the innermost last; one may be open several times, and in many threads.
_open: ContextVar[tuple[Token[str], ...]] = ContextVar("mirrored_open_name_scopes", default=())


def scoped(name: str) -> str:
    """Return a variable's name with that of the scope in which it is made."""
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
        """What it was made with."""
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
