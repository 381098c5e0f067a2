"""What a call returns, found without computing it: the call is recorded for two sizes.

Sizes that are not known are one number in the first recording and another in the second, and what
differs in the results is not known either. So every op and composition has a rule.
"""

from collections.abc import Callable
from typing import Any

from mirrored import _nest
from mirrored.devices import Device, place
from mirrored.graph.part import map_leaves
from mirrored.graph.tensor import Shape, SymbolicTensor, placeholders
from mirrored.ops.conversion import convert_to_tensor, is_tensor
from mirrored.ops.hooks import RecordedTensor, only
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.graph import SHARED
from mirrored.program.recorder import GraphRecorder

# What stands for an unknown size: a small one and one that most sizes divide; the next pair where
# a call takes only certain sizes, as to split an axis into halves or to look at its tenth element.
_SIZES = ((2, 12), (12, 24), (840, 2520))
_SMALL = 64  # Values of so many elements, such as shapes, are kept where they are known.


class ShapeRecorder(GraphRecorder):
    """Notes a call for the shapes of what it returns: variables stay where they are."""

    def __init__(self) -> None:
        super().__init__("shapes", logs=False, labels_checked=True)
        self._values: dict[int, tuple[Any, Tensor]] = {}

    def read(self, variable: Any) -> Tensor:
        """Return what stands for the value of one copy of a variable."""
        if id(variable) not in self._values:
            spec = TensorSpec(variable.shape, variable.dtype)
            # The variable is kept, so that its number is no other's.
            self._values[id(variable)] = (variable, self.input(spec, _device(), SHARED))
        return self._values[id(variable)][1]

    def write(self, variable: Any, value: Tensor) -> None:
        """Note the value that one copy of a variable has from now on; nothing is written."""
        self._values[id(variable)] = (variable, value)

    def run_by(self, strategy: Any) -> None:
        """Take no note: nothing is run."""


def results_of(call: Callable[..., Any], args: Any, kwargs: dict[str, Any], what: str) -> Any:
    """Return placeholders for what a call returns, in the structure that it returns.

    Args:
        call: What is called.
        args: Its arguments by position, with placeholders in them.
        kwargs: Those by name.
        what: What errors call it.

    Raises:
        ValueError: It returns something else than tensors.
    """
    given = placeholders((args, kwargs))
    if all(None not in each._shape for each in given):
        return _nest.map_structure(
            lambda leaf: _placeholder((leaf,), (0,)), _recorded(call, args, kwargs, 0, what)
        )
    failures: list[Exception] = []
    for sizes in _SIZES:
        try:
            runs = [_recorded(call, args, kwargs, size, what) for size in sizes]
        except Exception as error:
            failures.append(error)
            continue
        return _nest.map_structure(
            lambda *leaves, sizes=sizes: _placeholder(leaves, sizes), *runs, each="result"
        )
    failures[0].add_note(
        f"It was raised when the shapes of what {what} returns were looked for, with {_SIZES[0][0]}"
        " in the place of sizes that are not known."
    )
    raise failures[0]


def _recorded(
    call: Callable[..., Any], args: Any, kwargs: dict[str, Any], size: int, what: str
) -> Any:
    """Return what a call returns for one size: tensors of a recording, or ones that are known."""
    recorder = ShapeRecorder()
    with only(), recorder.recording():

        def stand_in(leaf: Any) -> Any:
            return _stand_in(leaf, size, recorder) if isinstance(leaf, SymbolicTensor) else leaf

        results = call(*map_leaves(stand_in, args), **map_leaves(stand_in, kwargs))
        if not _nest.flatten(results):
            raise _not_tensors(results, what)
        return _nest.map_structure(lambda leaf: _as_result(leaf, what), results)


def _as_result(leaf: Any, what: str) -> Tensor:
    if not is_tensor(leaf):
        raise _not_tensors(leaf, what)
    return convert_to_tensor(leaf)


def _not_tensors(value: Any, what: str) -> ValueError:
    return ValueError(
        f"All operation outputs must be tensors. Operation {what} returned a non-tensor. "
        f"Non-tensor received: {value!r:.200} (of type {type(value)}). Return tensors."
    )


def _stand_in(tensor: SymbolicTensor, size: int, recorder: ShapeRecorder) -> Tensor:
    known: Tensor | None = _known(tensor, size)
    if known is not None:
        return known
    shape = tuple(size if each is None else each for each in tensor._shape)
    return recorder.input(TensorSpec(shape, tensor._dtype), _device(), SHARED)


def _known(tensor: SymbolicTensor, size: int) -> Any:
    """Return the value of what follows from shapes, such as a size, for this unknown size."""
    if not tensor.known:
        return None
    if size not in tensor.known:
        node = tensor.node
        results = _nest.flatten(
            _recorded(node.callee, node.args, node.kwargs, size, node.callee.name)
        )
        tensor.known[size] = results[tensor.index]
    return tensor.known[size]


def _placeholder(leaves: tuple[Tensor, ...], sizes: tuple[int, ...]) -> SymbolicTensor:
    first = leaves[0]
    tensor = SymbolicTensor(_common_shape([each.shape for each in leaves]), first.dtype)
    if not any(isinstance(each, RecordedTensor) or each.size > _SMALL for each in leaves):
        tensor.known = dict(zip(sizes, leaves, strict=True))
    return tensor


def _common_shape(shapes: list[Any]) -> Shape:
    if len({len(shape) for shape in shapes}) > 1:
        raise ValueError(
            f"A result has {shapes[0]} or {shapes[1]} as its shape: the number of its axes depends "
            "on sizes that are not known. Give `Input` these sizes."
        )
    columns = zip(*shapes, strict=True)
    return tuple(column[0] if len(set(column)) == 1 else None for column in columns)


def _device() -> Device:
    return place("Placeholder", ("GPU", "CPU"))
