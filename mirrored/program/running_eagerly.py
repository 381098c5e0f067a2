"""The switch by which recorded functions run as plain Python, for debugging."""

_eagerly = [False]


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Let recorded functions run Python, op by op, from now on; or record them again.

    `fit`, `evaluate` and `predict` follow it too.

    Args:
        run_eagerly: Whether they run Python.

    Example:
        >>> import mirrored as mr
        >>> mr.config.run_functions_eagerly(True)
        >>> half = mr.function(lambda x: print("half of", float(x)) or x / 2.0)
        >>> y = half(half(mr.constant(8.0)))
        half of 8.0
        half of 4.0
        >>> mr.config.run_functions_eagerly(False)
    """
    _eagerly[0] = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return whether recorded functions run Python instead.

    Example:
        >>> import mirrored as mr
        >>> mr.config.functions_run_eagerly()
        False
    """
    return _eagerly[0]
