"""The switch for TensorFloat-32 in float32 matrix products.

Users set it through ``mr.config.experimental``; backends whose hardware has it read it here.
"""

_tensor_float_32 = True  # As in TensorFlow.


def allow_tensor_float_32(enabled: bool) -> None:
    """Choose whether float32 products may round their inputs to 10 bits of mantissa.

    Args:
        enabled: Whether they may.

    Example:
        >>> allow_tensor_float_32(False)
        >>> tensor_float_32_allowed()
        False
        >>> allow_tensor_float_32(True)
    """
    global _tensor_float_32
    _tensor_float_32 = enabled


def tensor_float_32_allowed() -> bool:
    """Return what was set by ``allow_tensor_float_32``, by default True."""
    return _tensor_float_32
