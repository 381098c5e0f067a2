"""How a strategy goes to another process: as what it was made with, its devices by their names.

What was of one strategy before is of one strategy afterwards, though it comes by several ways.
"""

import secrets
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mirrored.distribute.context import get_strategy
from mirrored.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mirrored.distribute.strategy import Strategy

# Strategies that have travelled, each with what tells it from others made alike.
_tokens: "WeakKeyDictionary[Strategy, str]" = WeakKeyDictionary()


def packed(strategy: "Strategy") -> tuple[Any, ...]:
    """Return what `__reduce__` of a strategy returns.

    Args:
        strategy: The strategy.
    """
    token = _tokens.setdefault(strategy, secrets.token_hex(16))
    return _restored, (type(strategy), strategy.arguments(), token)


def _restored(kind: "type[Strategy]", arguments: dict[str, Any], token: str) -> "Strategy":
    """Return the strategy itself where it is there, or the one in force where that is alike."""
    candidates = [each for each, known in _tokens.items() if known == token]
    in_force = get_strategy()
    if type(in_force) is kind and in_force.arguments() == arguments:
        candidates.insert(0, in_force)
    for strategy in candidates:
        if not any(device.is_gone for device in strategy.devices):
            return strategy
    try:
        strategy = kind(**arguments)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"A {kind.__name__} was pickled, and this process does not have its devices. Set up "
            "devices of these names before it is loaded: simulated ones by mr.config.experimental."
            f"set_simulated_gpus, after reset_devices() where others are in use. {error}"
        ) from None
    _tokens[strategy] = token
    return strategy
