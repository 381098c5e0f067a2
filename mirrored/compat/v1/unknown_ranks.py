"""What operations return for tensors of which not even the number of axes is known.

They are tried with several: what is the same for all of them is known.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from mirrored import _nest
from mirrored.compat.v1.graph_elements import Tensor
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
    tensors = placeholders((args, kwargs))
    unknown = list(dict.fromkeys(tensor for tensor in tensors if _is_unknown(tensor)))
    if not unknown:
        return results_of(function, args, kwargs, name)
    results: list[Any] = []
    failure: Exception | None = None
    for tries in _ranks(len(unknown)):
        for ranks in tries:
            known = {
                tensor: Tensor((None,) * rank, tensor._dtype, tensor.name)
                for tensor, rank in zip(unknown, ranks, strict=True)
            }
            try:
                given_args, given_kwargs = (_with(known, part) for part in (args, kwargs))
                results.append(results_of(function, given_args, given_kwargs, name))
            except Exception as error:
                failure = failure or error
        if results:
            break
    if failure is not None and not results:
        raise failure
    if len({len(_nest.flatten(result)) for result in results}) > 1:
        raise ValueError(
            f"How many tensors {name} returns depends on the number of axes, which is not known. "
            f"Received: {unknown}. Set a shape for the placeholder, or call `set_shape`."
        )
    return _nest.map_structure(_common, *results)


def _ranks(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield numbers of axes to try together; later ones where none of those before does."""
    yield [(rank,) * count for rank in _FEW]
    if count == 2:
        yield [pair for pair in itertools.product(_FEW, repeat=2) if pair[0] != pair[1]]
    yield [(rank,) * count for rank in _MOST]


def _with(known: dict[Any, Tensor], structure: Any) -> Any:
    return _nest.map_structure(
        lambda leaf: known.get(leaf, leaf) if isinstance(leaf, Tensor) else leaf, structure
    )


def _is_unknown(tensor: Any) -> bool:
    return tensor._shape is None


def _common(*results: Any) -> Tensor:
    """Return a tensor with the sizes that are the same in all."""
    shapes = [result._shape for result in results]
    if len({len(shape) for shape in shapes}) > 1:
        return Tensor(None, results[0]._dtype, "")
    columns = zip(*shapes, strict=True)
    sizes = tuple(column[0] if len(set(column)) == 1 else None for column in columns)
    return Tensor(sizes, results[0]._dtype, "")
