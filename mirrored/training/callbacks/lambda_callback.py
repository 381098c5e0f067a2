"""A callback of functions, without a class."""

from collections.abc import Callable
from typing import Any

from mirrored.training.callbacks.callback import Callback

_HOOKS = tuple(name for name in vars(Callback) if name.startswith("on_"))


class LambdaCallback(Callback):
    """Calls functions instead of a callback's hooks, with the hooks' arguments.

    Args:
        on_epoch_begin: A function of the epoch and the logs.
        on_epoch_end: A function of the epoch and the logs.
        on_train_begin: A function of the logs.
        on_train_end: A function of the logs.
        on_train_batch_begin: A function of the batch and the logs.
        on_train_batch_end: A function of the batch and the logs.
        kwargs: Functions for other hooks of `Callback`, by their names.

    Raises:
        TypeError: There is no such hook, or what is given for one is no function.

    Example:
        >>> import mirrored as mr
        >>> model = mr.Sequential([mr.layers.Input(shape=(1,)), mr.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> show = mr.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch))
        >>> history = model.fit([[1.0]], [[2.0]], epochs=2, callbacks=[show], verbose=0)
        0
        1
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        on_train_batch_begin: Callable[..., Any] | None = None,
        on_train_batch_end: Callable[..., Any] | None = None,
        **kwargs: Callable[..., Any] | None,
    ) -> None:
        functions = {name: value for name, value in locals().items() if name in _HOOKS} | kwargs
        super().__init__()
        for hook, function in functions.items():
            if hook not in _HOOKS:
                raise TypeError(
                    f"LambdaCallback() got an unexpected keyword argument {hook!r}. Known hooks: "
                    f"{', '.join(_HOOKS)}."
                )
            if function is None:
                continue
            if not callable(function):
                raise TypeError(f"`{hook}` must be a function. Received: {hook}={function!r}")
            setattr(self, hook, function)
