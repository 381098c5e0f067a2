"""Names the right argument where a public call is given one that it has not, misspelt or old.

Calls that are right pay one more Python call for it; ops of a microsecond are left as they are.
"""

import functools
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mirrored._logging import warn_caller
from mirrored._symbolic import Symbolic, symbolic_in
from mirrored._tracebacks import shorten

_Target = TypeVar("_Target")
_Value = TypeVar("_Value")

# What older versions of TensorFlow and Keras called arguments: the first that is there is meant.
_OLDER = {
    "lr": ("learning_rate",),
    "eps": ("epsilon",),
    "std": ("stddev",),
    "p": ("rate",),
    "nb_epoch": ("epochs",),
    "samples_per_epoch": ("steps_per_epoch",),
    "nb_val_samples": ("validation_steps",),
    "output_dim": ("units",),
    "init": ("kernel_initializer",),
    "input_shape": ("shape",),
    "batch_input_shape": ("input_shape", "batch_shape"),
    "keep_dims": ("keepdims",),
    **dict.fromkeys(("reduction_indices", "dim", "dims", "dimension"), ("axis",)),
    **dict.fromkeys(("concat_dim", "squeeze_dims"), ("axis",)),
    "targets": ("labels", "y_true"),
    "num_threads": ("num_parallel_calls",),
}

# What the library itself calls in every step; a user does not pass arguments to it by name.
_HOOK = re.compile(r"on_\w+|call|build|update|statistics|per_example")


def explained(target: _Target) -> _Target:
    """Return a function or class whose TypeErrors name the argument that was meant.

    In a class these are its constructor, and its public methods that have options.

    Args:
        target: The function or class; the class itself is changed.

    Example:
        >>> import mirrored as mr
        >>> mr.optim.SGD(lr=0.1)
        Traceback (most recent call last):
        TypeError: SGD() got an unexpected keyword argument 'lr'. Did you mean 'learning_rate'?
        >>> mr.reduce_sum([1.0], keep_dims=True)
        Traceback (most recent call last):
        TypeError: reduce_sum() got an unexpected keyword argument 'keep_dims'. Did you mean ...
    """
    if not isinstance(target, type):
        explaining: _Target = _explaining_function(target)
        return explaining
    for name, member in list(vars(target).items()):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not inspect.isfunction(function) or not _is_called_by_users(name, function):
            continue
        wrapped = _explaining(function)
        setattr(target, name, wrapped if function is member else type(member)(wrapped))
    return target


class Explained:
    """Base of classes whose subclasses in this library are `explained`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let a subclass of this library's own be `explained`."""
        super().__init_subclass__(**kwargs)
        if is_ours(cls):
            explained(cls)


def is_ours(cls: type) -> bool:
    """Return whether a class is defined in this library."""
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]


def explained_only(target: _Target) -> _Target:
    """Return a function as `explained` does, which runs with symbolic tensors too.

    It looks at none of them, or calls layers with them.

    Args:
        target: The function.
    """
    explaining: _Target = _explaining(target)
    return explaining


def explain_functions(module: str, all_but: str | None = None) -> None:
    """Let the public functions of a module be `explained`, at its end: those that have options.

    Args:
        module: The module's name.
        all_but: Those without options are explained too, and so are one node with symbolic tensors,
            but for these, whose names are separated by spaces; None: none of them.
    """
    names = vars(sys.modules[module])
    left_out = (all_but or "").split()
    chosen = {
        value: explained(value)
        for name, value in names.items()
        if inspect.isfunction(value)
        and (value.__module__, value.__name__) == (module, name)
        and not name.startswith("_")
        and name not in left_out
        and (all_but is not None or has_options(value))
    }
    # Other names of one of them stay other names of it.
    aliases = {name: value for name, value in names.items() if inspect.isfunction(value)}
    names.update({name: chosen[value] for name, value in aliases.items() if value in chosen})


def takes_older(
    renamed: Mapping[str, str] | None = None, ignored: Mapping[str, str] | None = None
) -> Callable[[_Target], _Target]:
    """Return a decorator: the constructor of a class takes older arguments too, and warns.

    Args:
        renamed: The present names of arguments, by their older ones.
        ignored: What the warning says of arguments that do nothing, by their names.

    Example:
        >>> import mirrored as mr, warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = mr.layers.LeakyReLU(alpha=0.5)
        >>> layer.negative_slope
        0.5
    """

    def decorate(cls: _Target) -> _Target:
        target: Any = cls
        construct = target.__init__

        @functools.wraps(construct)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            for name, text in (ignored or {}).items():
                if kwargs.pop(name, None) is not None:
                    warn_caller(f"Argument `{name}` {text}")
            for name, later in (renamed or {}).items():
                if name in kwargs:
                    warn_caller(f"Argument `{name}` is deprecated. Use `{later}` instead.")
                    kwargs[later] = kwargs.pop(name)
            construct(self, *args, **kwargs)

        target.__init__ = explained_only(init)
        return cls

    return decorate


def only(name: str, value: Any, kept: _Value, advice: str) -> _Value:
    """Return the one value that an argument of Keras' has here.

    Args:
        name: The argument's name.
        value: What was given.
        kept: The value.
        advice: What the error says to do.

    Raises:
        ValueError: Another value was given.
    """
    if value is not kept and (type(value) is not type(kept) or value != kept):
        raise ValueError(
            f"`{name}` is not provided here: it is {kept!r}. {advice} Received: {name}={value!r}"
        )
    return kept


def has_options(function: Any) -> bool:
    """Say whether a function takes more than what it works on and a name.

    Args:
        function: A function of Python's.
    """
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    optional = positional[code.co_argcount - len(function.__defaults__ or ()) :]
    keywords = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    return bool({*optional, *keywords} - {"name"})


def _is_called_by_users(name: str, function: Any) -> bool:
    if name in ("__init__", "__new__"):
        return bool(_names_of(function)) or _takes_any(function)
    return not name.startswith("_") and not _HOOK.fullmatch(name) and has_options(function)


def _explaining_function(function: Any) -> Any:
    """Return a function that explains, and that is drawn where an argument is symbolic."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if Symbolic.exist:
                symbolic = symbolic_in(args)
                if symbolic is None and kwargs:
                    symbolic = symbolic_in(kwargs.values())
                if symbolic is not None and _fits(function, args, kwargs):
                    return symbolic.drawn(call, args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            _explain(error, function, args, kwargs)
            raise

    return call


def _fits(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function has such arguments; else it says itself what is wrong."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _explaining(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            _explain(error, function, args, kwargs)
            raise

    return call


def _explain(
    error: Exception, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Let an error name the argument that was meant, if it is about one, and end at the user's."""
    if isinstance(error, TypeError):
        text = _explanation(error, function, args, kwargs) if kwargs else None
        text = text or _of_the_class(error, function, args)
        if text is not None:
            error.args, error.__suppress_context__ = (text,), True
    shorten(error)


def _explanation(
    error: TypeError, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return what is wrong with the arguments' names, or None where that is not what is wrong."""
    from mirrored._absent import nearest  # Needed where something is wrong, and here only.

    whose, names = _called(function, args)
    # One that it has may be wrong further down, which is not what the caller can mend.
    unknown = [name for name in kwargs if name not in names]
    if len([*traceback.walk_tb(error.__traceback__)]) > 1:
        # It ran, and may have passed them on to a call that names one.
        unknown = [name for name in unknown if repr(name) in str(error)]
    if not unknown:
        return None
    name = unknown[0]
    free = [argument for argument in names if argument not in kwargs]
    longer = [argument for argument in free if argument.startswith(name)]
    older = [argument for argument in _OLDER.get(name, ()) if argument in free]
    meant = next(iter(older), longer[0] if len(longer) == 1 else nearest(name, free))
    advice = f"Did you mean {meant!r}?" if meant else f"Its arguments are: {', '.join(names)}."
    return f"{whose}() got an unexpected keyword argument {name!r}. {advice}"


def _of_the_class(error: TypeError, function: Any, args: tuple[Any, ...]) -> str | None:
    """Return Python's text with the name of the class that was called instead of a private base."""
    name, text = f"{function.__qualname__}()", str(error)
    if function.__name__ == "__init__" and name.startswith("_") and text.startswith(name):
        return f"{type(args[0]).__name__}.__init__(){text.removeprefix(name)}"
    return None


def _called(function: Any, args: tuple[Any, ...]) -> tuple[str, list[str]]:
    """Return what the caller called, and the names of the arguments that it has."""
    if function.__name__ not in ("__init__", "__new__"):
        return function.__qualname__, _names_of(function)
    owner = type(args[0]) if function.__name__ == "__init__" else args[0]
    names: dict[str, None] = {}
    for base in owner.__mro__:
        constructor: Any = vars(base).get(function.__name__)
        inner = inspect.unwrap(getattr(constructor, "__func__", constructor))
        if inspect.isfunction(inner):
            names.update(dict.fromkeys(_names_of(inner)))
            if not _takes_any(inner):  # Else it passes them to that of the class above.
                break
    return owner.__name__, list(names)


def _names_of(function: Any) -> list[str]:
    """Return the names of arguments, without positional-only ones and the object of a method."""
    code = function.__code__
    end = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[code.co_posonlyargcount : end]
    return [name for name in names if name not in ("self", "cls", "_cls")]


def _takes_any(function: Any) -> bool:
    return bool(function.__code__.co_flags & inspect.CO_VARKEYWORDS)
