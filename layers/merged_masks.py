"""The masks of several inputs that become one tensor: checked, and in shapes that go together."""

from typing import Any

from mirrored import ops
from mirrored.ops import Tensor


def check_masks(inputs: Any, masks: Any) -> Any:
    """Return the masks of several inputs; refuse others than one each.

    Args:
        inputs: The inputs.
        masks: Their masks; None where there are none.

    Raises:
        ValueError: They are no lists, or of unequal lengths.
    """
    if masks is not None and not isinstance(masks, list | tuple):
        raise ValueError(f"`mask` should be a list. Received: mask={masks}")
    if masks is not None and not isinstance(inputs, list | tuple):
        raise ValueError(f"`inputs` should be a list. Received: inputs={inputs}")
    if masks is not None and len(masks) != len(inputs):
        raise ValueError(
            "The lists `inputs` and `mask` should have the same length. Received: inputs of length "
            f"{len(inputs)}, and mask of length {len(masks)}"
        )
    return None if masks is None else [_as_booleans(mask) for mask in masks]


def masks_as_wide(inputs: list[Tensor]) -> list[Tensor | None]:
    """Return the masks of inputs in the inputs' shapes, None for those without.

    Args:
        inputs: The inputs, each with one axis more than its mask.
    """
    masks = [(tensor, _as_booleans(tensor._keras_mask)) for tensor in inputs]
    return [
        None if mask is None else ops.broadcast_to(ops.expand_dims(mask, -1), tensor.shape)
        for tensor, mask in masks
    ]


def _as_booleans(mask: Any) -> Any:
    """Return a mask as booleans, of which users' may be none."""
    return mask if mask is None or mask.dtype == ops.bool_ else ops.cast(mask, ops.bool_)


def mask_of_rank(x: Any, mask: Any) -> Any:
    """Return a mask with as many axes as its input, to be joined as the inputs are.

    Args:
        x: The input.
        mask: Its mask; None: all of it counts.
    """
    if mask is None:
        return ops.ones_like(x, dtype=ops.bool_)
    if mask.ndim < x.ndim:
        return ops.logical_or(ops.expand_dims(mask, -1), ops.zeros_like(x, dtype=ops.bool_))
    return mask
