"""What operations return for tensors of which not even the number of axes is known.

They are tried with several: what is the same for all of them is known.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from mirrored import _nest
from mirrored.compat.v1.elements import Tensor
from mirrored.graph import placeholders, results_of

_FEW, _MOST = range(4), range(4, 6)


def results_for(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], name: str) -> Any:
    """Return placeholders for what a function returns, in the structure that it returns.

    Args:
        function: The function.
        args: Its arguments by position, with tensors of a graph in them.
        kwargs: Those by name.
        name: What errors call it.

    Raises:
        ValueError: How many tensors it returns depends on the number of axes.
    """
    given = placeholders((args, kwargs))
    unknown = list(dict.fromkeys(each for each in given if _is_unknown(each)))
    if not unknown:
        return results_of(function, args, kwargs, name)
    found: list[Any] = []
    failure: Exception | None = None
    for tries in _ranks(len(unknown)):
        for ranks in tries:
            known = {
                tensor: Tensor((None,) * rank, tensor._dtype, tensor.name)
                for tensor, rank in zip(unknown, ranks, strict=True)
            }
            try:
                given_args, given_kwargs = (_with(known, each) for each in (args, kwargs))
                found.append(results_of(function, given_args, given_kwargs, name))
            except Exception as error:
                failure = failure or error
        if found:
            break
    if failure is not None and not found:
        raise failure
    if len({len(_nest.flatten(each)) for each in found}) > 1:
        raise ValueError(
            f"How many tensors {name} returns depends on the number of axes, which is not known. "
            f"Received: {unknown}. Give the placeholder a shape, or call `set_shape`."
        )
    return _nest.map_structure(_common, *found)


def _ranks(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield numbers of axes to try together; later ones where none of those before does."""
    yield [(rank,) * count for rank in _FEW]
    if count == 2:
        yield [each for each in itertools.product(_FEW, repeat=2) if each[0] != each[1]]
    yield [(rank,) * count for rank in _MOST]


def _with(known: dict[Any, Tensor], structure: Any) -> Any:
    return _nest.map_structure(
        lambda leaf: known.get(leaf, leaf) if isinstance(leaf, Tensor) else leaf, structure
    )


def _is_unknown(tensor: Any) -> bool:
    return tensor._shape is None


def _common(*found: Any) -> Tensor:
    """Return a tensor with the sizes that are the same in all."""
    shapes = [each._shape for each in found]
    if len({len(each) for each in shapes}) > 1:
        return Tensor(None, found[0]._dtype, "")
    columns = zip(*shapes, strict=True)
    sizes = tuple(column[0] if len(set(column)) == 1 else None for column in columns)
    return Tensor(sizes, found[0]._dtype, "")
