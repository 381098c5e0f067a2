"""Infers the results of a call without computing: the call is recorded for two sizes.

Sizes that are not known are one number in the first recording and another in the second, and what
differs in the results is not known either. So every op and composition has a rule.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mirrored import _nest
from mirrored.devices import Device, place
from mirrored.graph.part import nodes_between
from mirrored.graph.symbolic_tensor import Shape, SymbolicTensor, placeholders
from mirrored.ops.conversion import convert_to_tensor, is_tensor
from mirrored.ops.hooks import RecordedTensor, active_recorder, only
from mirrored.ops.spec import TensorSpec
from mirrored.ops.tensor import Tensor
from mirrored.program.dataflow import SHARED
from mirrored.program.recorder import GraphRecorder
from mirrored.program.variable_access import is_ruled, ruled_by

# What stands for an unknown size: a small one and one that most sizes divide; the next pair where
# a call takes only certain sizes, as to split an axis into halves or to look at its tenth element.
_SIZES = ((2, 12), (12, 24), (840, 2520))
_MOST_ATTEMPTS = 64
_SMALL = 64  # Values of this many elements, such as shapes, are kept where they are known.


# The sizes of axes that are not known, by a placeholder's identity and the axis.
Fixed = dict[tuple[int, int], int]


class ShapeRecorder(GraphRecorder):
    """Records a call for the shapes of its results; variables are not moved.

    Devices are not made for it, so that they can be set up after a graph was drawn.

    Args:
        label: What errors call the call.
    """

    shapes_alone = True

    def __init__(self, label: str = "a step") -> None:
        super().__init__("shapes", logs=False, labels_checked=True)
        self.label = label
        self._values: dict[int, tuple[Any, Tensor]] = {}

    def read(self, variable: Any) -> Tensor:
        """Return the recorded value of one copy of a variable."""
        if id(variable) not in self._values:
            spec = TensorSpec(variable.shape, variable.dtype)
            # The variable is kept, so that its number is no other's.
            self._values[id(variable)] = (variable, self.input(spec, _device(), SHARED))
        return self._values[id(variable)][1]

    def write(self, variable: Any, value: Tensor) -> None:
        """Note the new value of one copy of a variable; nothing is written."""
        self._values[id(variable)] = (variable, value)

    def run_by(self, strategy: Any) -> None:
        """Do nothing: nothing runs."""


def results_of(
    call: Callable[..., Any], args: Any, kwargs: dict[str, Any], label: str, *, passes: bool = False
) -> Any:
    """Return placeholders for the results of a call, in their structure.

    Args:
        call: What is called.
        args: Its arguments by position, with placeholders in them.
        kwargs: Those by name.
        label: What errors call it.
        passes: Whether an argument that is returned as it is needs no new placeholder.

    Raises:
        ValueError: It returns something else than tensors.
    """
    outer = active_recorder()
    if isinstance(outer, ShapeRecorder) and any(
        isinstance(leaf, RecordedTensor) for leaf in _nest.flatten((args, kwargs))
    ):
        raise _foreign(outer.label)  # Stand-ins meet a placeholder for which nothing stands in.
    tensors = placeholders((args, kwargs))
    known = all(None not in tensor._shape and not tensor.known for tensor in tensors)
    failures: list[Exception] = []
    for sizes, fixed in [((0,), {})] if known else _attempts(args, kwargs):
        try:
            runs = [_recorded(call, args, kwargs, size, label, fixed) for size in sizes]
        except Exception as error:
            failures.append(error)
            continue
        passed = passes and isinstance(runs[0].results, Tensor)
        stand_ins = {id(leaf): tensor for leaf, tensor in runs[0].stand_ins} if passed else {}

        return _nest.map_structure(
            partial(_placeholder, stand_ins, sizes, fixed),
            *[run.results for run in runs],
            label="result",
        )
    if not known:
        failures[0].add_note(
            f"It was raised while the shapes of the results of {label} were inferred, with "
            f"{_SIZES[0][0]} instead of unknown sizes."
        )
    raise failures[0]


def _attempts(args: Any, kwargs: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Fixed]]:
    """Yield sizes to try a call with, and axes that must equal others, with their sizes."""
    yield from ((sizes, {}) for sizes in _SIZES)
    values = _nest.flatten((args, kwargs))
    leaves = [value for value in values if is_tensor(value) or isinstance(value, np.ndarray)]
    shapes = [
        (id(leaf), leaf._shape if isinstance(leaf, SymbolicTensor) else leaf.shape)
        for leaf in leaves
    ]
    unknown = dict.fromkeys(
        (leaf, axis) for leaf, shape in shapes for axis, size in enumerate(shape) if size is None
    )
    known_sizes = dict.fromkeys(size for _, shape in shapes for size in shape if size is not None)
    # Such as the number of parts that an axis has.
    known_sizes |= dict.fromkeys(value for value in values if type(value) is int and value > 0)
    several = (
        dict(zip(axes, chosen, strict=True))
        for count in range(1, len(unknown) + 1)
        for axes in itertools.combinations(unknown, count)
        for chosen in itertools.product(known_sizes, repeat=count)
    )
    yield from ((_SIZES[0], fixed) for fixed in itertools.islice(several, _MOST_ATTEMPTS))


class _Recorded(NamedTuple):
    """The results of a call for one size.

    Attributes:
        results: Tensors of a recording, or ones that are known.
        stand_ins: Pairs of a stand-in and its placeholder.
    """

    results: Any
    stand_ins: list[tuple[Tensor, SymbolicTensor]]


def _recorded(
    call: Callable[..., Any], args: Any, kwargs: dict[str, Any], size: int, label: str, fixed: Fixed
) -> _Recorded:
    """Return the results of a call for one size, and other sizes along fixed axes."""
    recorder = ShapeRecorder(label)
    pairs: list[tuple[Tensor, SymbolicTensor]] = []
    # Functions inside that make variables in their first call may do it here.
    rule = nullcontext() if is_ruled() else ruled_by(lambda name: None)
    with only(), recorder.recording(), rule:

        def stand_in(leaf: Any) -> Any:
            if not isinstance(leaf, SymbolicTensor):
                return leaf
            pairs.append((_stand_in(leaf, size, recorder, fixed), leaf))
            return pairs[-1][0]

        given_args, given_kwargs = (_nest.map_structure(stand_in, part) for part in (args, kwargs))
        results = call(*given_args, **given_kwargs)
        if not _nest.flatten(results):
            raise _not_tensors(results, label)
        return _Recorded(_nest.map_structure(lambda leaf: _as_result(leaf, label), results), pairs)


def _as_result(leaf: Any, label: str) -> Tensor:
    if isinstance(leaf, SymbolicTensor):
        raise _foreign(label)
    if not is_tensor(leaf):
        raise _not_tensors(leaf, label)
    return convert_to_tensor(leaf)


def _foreign(label: str) -> ValueError:
    return ValueError(
        f"The call of {label} uses a placeholder that is not one of its arguments. Pass it as an "
        "argument."
    )


def _not_tensors(value: Any, label: str) -> ValueError:
    return ValueError(
        f"All operation outputs must be tensors. Operation {label} returned a non-tensor. "
        f"Non-tensor received: {value!r:.200} (of type {type(value)}). Return tensors."
    )


def _stand_in(tensor: SymbolicTensor, size: int, recorder: ShapeRecorder, fixed: Fixed) -> Tensor:
    shape = tuple(
        fixed.get((id(tensor), axis), size) if length is None else length
        for axis, length in enumerate(tensor._shape)
    )
    if tensor.known and not fixed:
        held = _known(tensor, size)
        if isinstance(held, Tensor):
            return held
        shape = held
    return recorder.input(TensorSpec(shape, tensor._dtype), _device(), SHARED)


def _known(tensor: SymbolicTensor, size: int) -> Any:
    """Return the shape, or even the value, that a placeholder has for this unknown size."""
    if size not in tensor.known:  # It was found for others: so may be those that it is made from.
        for node in nodes_between([], [tensor])[0]:
            missing = [value for value in node.outputs if value.known and size not in value.known]
            if missing:
                name = node.callee.name
                run = _recorded(node.callee, node.args, node.kwargs, size, name, {})
                results = _nest.flatten(run.results)
                for output in missing:
                    output.known[size] = _held(results[output.index])
    return tensor.known[size]


def _held(result: Tensor) -> Any:
    """Return the value of a result if it follows from shapes, else its shape."""
    is_value = not isinstance(result, RecordedTensor) and result.size <= _SMALL
    return result if is_value else tuple(result.shape)


def _placeholder(
    stand_ins: dict[int, SymbolicTensor], sizes: tuple[int, ...], fixed: Fixed, *leaves: Tensor
) -> SymbolicTensor:
    first = leaves[0]
    if id(first) in stand_ins:
        return stand_ins[id(first)]
    tensor = SymbolicTensor(_common_shape([leaf.shape for leaf in leaves]), first.dtype)
    held = [_held(leaf) for leaf in leaves]
    # A size that is not known is usually that of the inputs.
    usual = [tuple(size if n is None else n for n in tensor._shape) for size in sizes]
    if not fixed and (any(isinstance(value, Tensor) for value in held) or held != usual):
        tensor.known = dict(zip(sizes, held, strict=True))
    return tensor


def _common_shape(shapes: list[Any]) -> Shape:
    if len({len(shape) for shape in shapes}) > 1:
        raise ValueError(
            f"A result has {shapes[0]} or {shapes[1]} as its shape: the number of its axes "
            "depends on unknown sizes. Pass these sizes to `Input`."
        )
    columns = zip(*shapes, strict=True)
    return tuple(column[0] if len(set(column)) == 1 else None for column in columns)


def _device() -> Device:
    return place("Placeholder", ("GPU", "CPU"))
