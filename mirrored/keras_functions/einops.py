"""`keras.ops.rearrange`: reshape and transpose by the names of axes."""

import math
import re

from mirrored import ops
from mirrored._arguments import explain_functions
from mirrored._types import TensorLike
from mirrored.ops import Tensor


def rearrange(tensor: TensorLike, pattern: str, **axes_lengths: int) -> Tensor:
    """Return the elements with axes in another order, joined and split, as names say.

    Args:
        tensor: A tensor or an array.
        pattern: The names of the axes before and after an arrow, as in "b h w c -> b (h w) c".
            Axes between parentheses are one axis.
        **axes_lengths: The sizes of axes that are split, except one a pair of parentheses.

    Raises:
        ValueError: The pattern is none, or does not fit the tensor.

    Example:
        >>> import mirrored as mr
        >>> mr.keras.ops.rearrange(mr.zeros((2, 3, 4)), "a b c -> c (a b)").shape
        (4, 6)
    """
    x = ops.convert_to_tensor(tensor)
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"A pattern must have one arrow. Received: pattern={pattern!r}")
    before, after = (_axes(side, pattern) for side in sides)
    if len(before) != x.ndim:
        raise ValueError(
            f"A pattern must name each axis. Received: pattern={pattern!r} for a tensor of shape "
            f"{x.shape}"
        )
    names = [name for group in before for name in group]
    wanted = [name for group in after for name in group]
    if sorted(names) != sorted(wanted) or len({*names}) < len(names):
        raise ValueError(
            "The same names, each once, must be before and after the arrow. Received: "
            f"pattern={pattern!r}"
        )
    sizes: dict[str, int] = {}
    for group, size in zip(before, x.shape, strict=True):
        sizes.update(_sizes(group, size, axes_lengths, pattern))
    split = ops.reshape(x, [sizes[name] for name in names])
    moved = ops.transpose(split, [names.index(name) for name in wanted])
    return ops.reshape(moved, [math.prod(sizes[name] for name in group) for group in after])


def _axes(side: str, pattern: str) -> list[list[str]]:
    """Return the names on one side of a pattern, those in parentheses together."""
    groups: list[list[str]] = []
    for part in re.findall(r"\([^()]*\)|[^\s()]+|[()]", side):
        if part in ("(", ")"):
            raise ValueError(f"Parentheses do not fit. Received: pattern={pattern!r}")
        groups.append(part.strip("()").split())
        for word in groups[-1]:
            if not word.isidentifier():
                raise ValueError(
                    f"{word!r} is not the name of an axis. Received: pattern={pattern!r}"
                )
    return groups


def _sizes(group: list[str], size: int, lengths: dict[str, int], pattern: str) -> dict[str, int]:
    """Return the sizes of axes that are joined as one."""
    known = {name: lengths[name] for name in group if name in lengths}
    unknown = [name for name in group if name not in known]
    product = math.prod(known.values())
    if len(unknown) > 1:
        raise ValueError(f"Pass all sizes of {unknown} except one. Received: pattern={pattern!r}")
    if size % product or (not unknown and product != size):
        raise ValueError(f"An axis of size {size} cannot be {group} of the sizes {known}.")
    return {**known, **dict.fromkeys(unknown, size // product)}


explain_functions(__name__, all_but="")
