"""Gradients that are not longer than they may be."""

from mirrored import ops
from mirrored.distribute.cross_device_ops.buckets import Buckets
from mirrored.optim.hyperparameters import check_number


def checked_clips(**clips: float | None) -> dict[str, float | None]:
    """Return the bounds of gradients, of which one may be set.

    Args:
        clips: By name a number above 0, or None.

    Raises:
        ValueError: A number is not in its range, or there are several.

    Example:
        >>> from mirrored.optim.clipping import checked_clips
        >>> checked_clips(clipnorm=1, clipvalue=None)
        {'clipnorm': 1.0, 'clipvalue': None}
    """
    if len([each for each in clips.values() if each is not None]) > 1:
        raise ValueError(
            "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. "
            f"Received: {', '.join(f'{key}={value!r}' for key, value in clips.items())}."
        )
    return {
        key: None if value is None else check_number(key, value, above_zero=True)
        for key, value in clips.items()
    }


def clipped(
    gradients: Buckets,
    clipnorm: float | None,
    clipvalue: float | None,
    global_clipnorm: float | None,
) -> Buckets:
    """Return gradients within the bound that is set.

    Args:
        gradients: The gradients.
        clipnorm: The largest L2 norm of each.
        clipvalue: The largest absolute value in one.
        global_clipnorm: The largest L2 norm of all together.
    """
    each = (gradients[i] for i in range(len(gradients)))
    if clipvalue is not None:
        return Buckets(ops.clip_by_value(g, -clipvalue, clipvalue) for g in each)
    if clipnorm is not None:
        return Buckets(ops.clip_by_norm(g, clipnorm) for g in each)
    if global_clipnorm is not None:
        return Buckets(ops.clip_by_global_norm(list(each), global_clipnorm)[0])
    return gradients
