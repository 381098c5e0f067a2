"""How layers are built: once, for all replicas together, and wholly or not at all.

A weight that does not fit in memory must leave none of those behind that were made before it.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import zip_longest
from typing import Any, NoReturn

from mirrored._tracebacks import shorten
from mirrored.distribute import get_replica_context, has_strategy
from mirrored.layers.layer_state import LayerState
from mirrored.layers.shapes import Shapes, as_shapes
from mirrored.ops.hooks import only, recorded_by
from mirrored.ops.rng_state import current_rng_state
from mirrored.program.variable_access import rule_in_force, ruled_by

_CHANGING = (list, dict, LayerState)
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def building(
    build: Callable[..., None], scope: Callable[..., AbstractContextManager[None]]
) -> Callable[..., None]:
    """Return ``build`` made to run once a layer, and to leave nothing behind when it fails.

    Args:
        build: The method.
        scope: Given the layer, and whether it may make no variables, the context to build it in.
    """
    signature = inspect.signature(build)
    names = list(signature.parameters)[1:]
    others = {name for name in names[1:] if not name.endswith(("shape", "shapes"))}
    others -= {param.name for param in signature.parameters.values() if param.kind in _ANY_NUMBER}

    def converted(name: str | None, value: Any) -> Any:
        return value if name in others else as_shapes(value)

    @functools.wraps(build)
    def run(self: Any, *input_shapes: Any, **named: Any) -> None:
        try:
            if self.built:
                return
            placed = zip_longest(names[: len(input_shapes)], input_shapes)
            shapes = [converted(name, value) for name, value in placed]
            by_name = {name: converted(name, value) for name, value in named.items()}
            said = (value for name, value in by_name.items() if name not in others)
            first = next(iter((*shapes, *said)), None)
            self.check_input_shape(first)
            context = get_replica_context()
            alone = rule_in_force() is _refuse_here
            if has_strategy() and context is not None and not alone:
                if not (context.made(self) and _built_here(self, shapes, by_name)):
                    # Weights are made once for all replicas: they meet for it, in a first call.
                    context.merge_call(lambda strategy: _built_eagerly(self, shapes, by_name))
                    _check_shared(self)
                return
            with scope(self, alone=alone):
                build(self, *shapes, **by_name)
            self.__state__.input_shape = first
            arguments = signature.bind(self, *shapes, **by_name).arguments
            self.__state__.built_for = dict(list(arguments.items())[1:])
            self.built = True
        except Exception as error:
            shorten(error)
            raise

    run._runs_once = True  # type: ignore[attr-defined]
    return run


def _check_shared(layer: Any) -> None:
    """Raise RuntimeError where the replicas met to build a layer, and it was not this one."""
    if not layer.built:
        raise RuntimeError(
            "A layer's weights are created once for all replicas. Received: the layer "
            f"{layer.name!r}, created inside a replica. Create it before strategy.run."
        )


class _MakesVariables(BaseException):
    """Ends a `build` that was to make no variable; nobody outside this module sees it."""


def _refuse_here(_: str) -> NoReturn:
    raise _MakesVariables


def _built_here(layer: Any, shapes: list[Shapes], by_name: dict[str, Shapes]) -> bool:
    """Return whether a layer that a replica made is built, as without variables it can be."""
    undo_draws = current_rng_state().mark()
    try:
        with ruled_by(_refuse_here):
            layer.build(*shapes, **by_name)
    except _MakesVariables:
        undo_draws()
        return False
    return True


def _built_eagerly(layer: Any, shapes: list[Shapes], by_name: dict[str, Shapes]) -> None:
    """Build a layer while a function is being recorded, which has no part in it."""
    with recorded_by(None), only():
        layer.build(*shapes, **by_name)


@contextmanager
def undone_on_failure(owners: Iterable[Any]) -> Iterator[None]:
    """Within this context, an exception leaves the owners as they are now.

    That is, their attributes and what is in lists and dicts among these. What is built already
    does not change by building, so it is left alone.
    """
    before = [(vars(owner), vars(owner).copy()) for owner in owners if not owner.built]
    contents = [
        (value, (vars(value) if isinstance(value, LayerState) else value).copy())
        for _, attributes in before
        for value in attributes.values()
        if isinstance(value, _CHANGING)
    ]
    try:
        yield
    except BaseException:
        for value, content in contents:
            if isinstance(value, LayerState):
                vars(value).update(content)
            elif isinstance(value, list):
                list.__setitem__(value, slice(None), content)
            else:
                dict.clear(value)
                dict.update(value, content)
        for current, attributes in before:
            current.clear()
            current.update(attributes)
        raise
